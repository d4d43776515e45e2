//go:build unix

package drive_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// looping asks for a tool n times and then answers, without any cost of its own.
type looping struct{ n int }

func (looping) Info() model.Info { return model.Info{Wire: "test", Name: "looping"} }

func (l looping) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	u := &loop.Usage{Input: 100, Output: 10}
	if req.Call > int64(l.n) {
		return &model.Response{Blocks: []loop.Block{{Kind: loop.BlockText, Text: "Done."}}, Finish: loop.FinishStop, Usage: u}, nil
	}
	return &model.Response{Blocks: []loop.Block{{Kind: loop.BlockCall, ID: "x", Name: "lookup", Args: fmt.Sprintf(`{"q":"%d"}`, req.Call)}}, Finish: loop.FinishCalls, Usage: u}, nil
}

// cpuTime is the CPU time of the process in seconds: on a shared machine it says more than the clock on the wall.
func cpuTime() float64 {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}

// BenchmarkRun is the cost of the loop, the driver and the memory journal alone: the model and the tool cost nothing.
func BenchmarkRun(b *testing.B) {
	type in struct {
		Q string `json:"q"`
	}
	text := strings.Repeat("x", 1024)
	lookup := tool.Func("lookup", "Looks up.", func(ctx context.Context, i in) (string, error) { return text, nil }, tool.Read())
	for _, rounds := range []int{10, 200} {
		b.Run(fmt.Sprintf("rounds=%d", rounds), func(b *testing.B) {
			agent := &drive.Agent{Name: "a", Model: looping{rounds}, Tools: []tool.Tool{lookup}, Limits: drive.Limits{Rounds: rounds}}
			h, err := drive.Open(drive.Options{Store: memory.New()})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			cpu := cpuTime()
			for b.Loop() {
				run, err := h.Start(b.Context(), drive.Start{Agent: agent, Input: drive.Text("Go.")})
				if err != nil || run.Stop != loop.StopCompleted {
					b.Fatal(err, run)
				}
			}
			b.ReportMetric((cpuTime()-cpu)*1e6/float64(b.N*rounds), "cpu-µs/round")
		})
	}
}
