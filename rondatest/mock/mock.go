//go:build unix

// Package mock starts the fast, strict model server that benchmarks of adapters talk to, and plays a run of tool calls against
// it with an adapter alone: no journal, no loop. The server is no part of the project: RONDA_BENCH says where its sources are
// (a folder with mock/), by default ../shared/bench beside the project. Without it benchmarks are skipped.
package mock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// Start builds and starts the server and returns its address. It ends with the test.
func Start(t testing.TB) string {
	t.Helper()
	dir := folder()
	if dir == "" {
		t.Skip("the mock server is missing: set RONDA_BENCH to the folder that has mock/ (default: ../shared/bench beside the project)")
	}
	bin := filepath.Join(t.TempDir(), "mock")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the mock server: %v\n%s", err, out)
	}
	cmd := exec.Command(bin)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the mock server said nothing: %v", err)
	}
	go io.Copy(io.Discard, out)
	return strings.TrimSpace(line)
}

func folder() string {
	dir := os.Getenv("RONDA_BENCH")
	if dir == "" {
		wd, _ := os.Getwd()
		for wd != filepath.Dir(wd) {
			if _, err := os.Stat(filepath.Join(wd, "go.mod")); err == nil {
				break
			}
			wd = filepath.Dir(wd)
		}
		dir = filepath.Join(filepath.Dir(wd), "shared", "bench")
	}
	dir = filepath.Join(dir, "mock")
	if _, err := os.Stat(filepath.Join(dir, "main.go")); err != nil {
		return ""
	}
	return dir
}

// Run plays one run with the tool lookup until the model answers, and returns the number of rounds. The prompt makes the call
// ids of the server unique to the run.
func Run(ctx context.Context, m model.Model, prompt string, stream bool) (rounds int, err error) {
	msgs := []*loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: prompt}}}}
	req := &model.Request{
		System: "You are a helpful agent. Use the lookup tool until you know the answer.", Stream: stream, Cache: &model.Cache{},
		Tools: []model.Tool{{
			Name: "lookup", Description: "Look up a fact by its key.",
			Schema: []byte(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`),
		}},
	}
	for ; ; rounds++ {
		req.Messages = msgs
		r, err := m.Generate(ctx, req, nil)
		if err != nil {
			return rounds, fmt.Errorf("round %d: %w", rounds+1, err)
		}
		results := &loop.Message{Role: loop.Tool}
		for i := range r.Blocks {
			if b := &r.Blocks[i]; b.Kind == loop.BlockCall {
				b.Call = fmt.Sprintf("c%d.%d", rounds+1, i+1)
				results.Blocks = append(results.Blocks, loop.Block{
					Kind: loop.BlockResult, ID: b.ID, Call: b.Call, Name: b.Name, Text: strings.Repeat("lorem ipsum data", 64),
				})
			}
		}
		if len(results.Blocks) == 0 {
			return rounds, nil
		}
		msgs = append(msgs, &loop.Message{Role: loop.Assistant, Blocks: r.Blocks}, results)
	}
}

// Bench runs m, a model of this server, whole and streamed, and reports the CPU time of this process for a round, in
// microseconds.
func Bench(b *testing.B, m model.Model) {
	for _, stream := range []bool{false, true} {
		name := "whole"
		if stream {
			name = "stream"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			rounds, before := 0, cpu(b)
			for i := 0; b.Loop(); i++ {
				n, err := Run(b.Context(), m, fmt.Sprintf("Look things up, run %d %s.", i, name), stream)
				if err != nil {
					b.Fatal(err)
				}
				rounds += n
			}
			b.ReportMetric((cpu(b)-before)*1e6/float64(rounds), "cpu-µs/round")
		})
	}
}

func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
