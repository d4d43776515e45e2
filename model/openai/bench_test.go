package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
)

// mock starts the strict model server of ../shared/bench and returns its address.
func mock(b *testing.B) string {
	dir := os.Getenv("RONDA_BENCH_MOCK")
	if dir == "" {
		dir = "../../../shared/bench/mock"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "main.go")); err != nil {
		b.Skip("the model server is missing: set RONDA_BENCH_MOCK to its folder (default: ../shared/bench/mock beside the project)")
	}
	bin := filepath.Join(b.TempDir(), "mock")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		b.Skipf("the model server does not build: %v\n%s", err, out)
	}
	cmd := exec.Command(bin)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

const lookup = `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`

// BenchmarkRun is a run of R rounds with a tool that returns 1 KiB, through Generate alone. cpu-µs/round counts all threads of
// this process, so that it can be held against ../shared/bench/go/floor with FLOOR=splice.
func BenchmarkRun(b *testing.B) {
	url := mock(b)
	for _, w := range []string{openaichat.Wire, openai.Wire} {
		for _, rounds := range []int{10, 50, 200} {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("mock-r%d", rounds)
				m := openaichat.Model(name, openaichat.BaseURL(url+"/v1"), openaichat.APIKey("x"))
				if w == openai.Wire {
					m = openai.Model(name, openai.BaseURL(url+"/v1"), openai.APIKey("x"))
				}
				b.Run(fmt.Sprintf("%s/rounds=%d/stream=%v", w, rounds, stream), func(b *testing.B) {
					run(b, m, -1, rounds, stream)
					before := cpu()
					b.ResetTimer()
					for i := range b.N {
						run(b, m, i, rounds, stream)
					}
					b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N*rounds), "cpu-µs/round")
				})
			}
		}
	}
}

func cpu() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func run(b *testing.B, m model.Model, i, rounds int, stream bool) {
	req := &model.Request{
		System: "You are a helpful agent. Use the lookup tool until you know the answer.",
		Tools:  []model.Tool{{Name: "lookup", Description: "Look up a fact by its key.", Schema: []byte(lookup)}},
		Messages: []*loop.Message{{Role: loop.User, Blocks: []loop.Block{
			{Kind: loop.BlockText, Text: fmt.Sprintf("Look things up, run %d, then answer.", i)},
		}}},
		Stream: stream, Cache: &model.Cache{},
		Timeouts: model.Timeouts{Connect: 10 * time.Second, FirstByte: 2 * time.Minute, BetweenDeltas: time.Minute, Call: 10 * time.Minute},
	}
	sink := func(model.Delta) {}
	n := 0
	for {
		res, err := m.Generate(context.Background(), req, sink)
		if err != nil {
			b.Fatal(err)
		}
		msg := &loop.Message{Role: loop.Assistant, Blocks: res.Blocks}
		req.Messages = append(req.Messages, msg)
		results := &loop.Message{Role: loop.Tool}
		for j := range msg.Blocks {
			c := &msg.Blocks[j]
			if c.Kind != loop.BlockCall {
				continue
			}
			n++
			c.Call = fmt.Sprintf("c%d", n)
			var args struct{ Q string }
			if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
				b.Fatal(err)
			}
			text := "result for " + args.Q + " "
			text += strings.Repeat("lorem ipsum data", (1024-len(text))/16)
			text += strings.Repeat(".", 1024-len(text))
			results.Blocks = append(results.Blocks, loop.Block{Kind: loop.BlockResult, ID: c.ID, Call: c.Call, Name: c.Name, Text: text})
		}
		if len(results.Blocks) == 0 {
			if n != rounds {
				b.Fatalf("%d rounds, want %d", n, rounds)
			}
			return
		}
		req.Messages = append(req.Messages, results)
	}
}
