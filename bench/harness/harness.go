// Package harness is the contender protocol of the side-by-side benchmark: the same flags, the same tool, the same line of JSON from every
// contender, so that ratios mean something.
package harness

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Config is what the command line asks for.
type Config struct {
	Provider, BaseURL, Durable, Mode, ModelOpts string
	Rounds, Runs, Concurrency, Warmup, Bytes    int
	Stream                                      bool
}

// Model is the model name that tells the mock server how many rounds to play.
func (c Config) Model() string {
	if c.ModelOpts != "" {
		return fmt.Sprintf("mock-r%d-%s", c.Rounds, c.ModelOpts)
	}
	return fmt.Sprintf("mock-r%d", c.Rounds)
}

// System and Prompt are every contender's instructions and task; the task is unique so that call ids are.
const System = "You are a helpful agent. Use the lookup tool until you know the answer."

// Prompt is the task of run i.
func Prompt(i int) string { return fmt.Sprintf("Look things up, run %d, then answer.", i) }

var looked atomic.Int64

// Lookup is the tool: about a KiB of text for a key.
func Lookup(q string, size int) string {
	looked.Add(1)
	s := "result for " + q + " " + strings.Repeat("lorem ipsum data", size/16)
	return s[:size]
}

// Contender is one system under test.
type Contender struct {
	Run    func(ctx context.Context, i int) error
	Pause  func(ctx context.Context, i int) (any, error) // nil: cannot
	Resume func(ctx context.Context, i int, paused any) error
	Bytes  func() int64 // what its store holds; nil: the files at Config.Durable
	Close  func() error
}

func cpu() float64 {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}

func status(key string) int64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

func files(path string) (n int64) {
	list, _ := filepath.Glob(path + "*")
	for _, f := range list {
		_ = filepath.WalkDir(f, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasSuffix(p, "-shm") {
				if info, err := d.Info(); err == nil {
					n += info.Size()
				}
			}
			return nil
		})
	}
	return n
}

// Main runs a contender as the flags say and prints one line of JSON.
func Main(name string, setup func(Config) (*Contender, error)) {
	if err := measure(name, setup); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func measure(name string, setup func(Config) (*Contender, error)) error {
	var c Config
	flag.StringVar(&c.Provider, "provider", "openai-chat", "openai-chat, openai-responses, anthropic, gemini")
	flag.StringVar(&c.BaseURL, "base-url", "", "of the mock server")
	flag.IntVar(&c.Rounds, "rounds", 10, "")
	flag.IntVar(&c.Runs, "runs", 1, "")
	flag.IntVar(&c.Concurrency, "concurrency", 1, "")
	flag.BoolVar(&c.Stream, "stream", false, "")
	flag.StringVar(&c.Durable, "durable", "", "path of a durable store")
	flag.StringVar(&c.Mode, "mode", "run", "run or pause")
	flag.StringVar(&c.ModelOpts, "model-opts", "", "")
	flag.IntVar(&c.Warmup, "warmup", 0, "runs before the clock starts")
	flag.IntVar(&c.Bytes, "result-bytes", 1024, "")
	flag.Parse()
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.Proxy = 2048, 2048, nil
	}
	ctx := context.Background()
	k, err := setup(c)
	if err != nil {
		return err
	}
	out := map[string]any{"name": name, "lang": "go", "provider": c.Provider, "stream": c.Stream, "rounds": c.Rounds, "runs": c.Runs,
		"concurrency": c.Concurrency, "durable": c.Durable != "", "mode": c.Mode}
	if c.Mode == "pause" {
		err = pauseAndResume(ctx, c, k, out)
	} else {
		err = runAll(ctx, c, k, out)
	}
	if err != nil {
		return err
	}
	out["peak_rss"] = status("VmHWM")
	if k.Bytes != nil {
		out["bytes"] = k.Bytes()
	}
	if k.Close != nil {
		if err := k.Close(); err != nil {
			return err
		}
	}
	if k.Bytes == nil && c.Durable != "" {
		out["bytes"] = files(c.Durable)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func runAll(ctx context.Context, c Config, k *Contender, out map[string]any) error {
	for i := range c.Warmup {
		if err := k.Run(ctx, -1-i); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
	}
	looked.Store(0)
	runtime.GC()
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	if p := os.Getenv("PROF"); p != "" {
		if f, err := os.Create(p); err == nil {
			_ = pprof.StartCPUProfile(f)
			defer pprof.StopCPUProfile()
		}
	}
	c0, t0 := cpu(), time.Now()
	if err := each(ctx, c, func(i int) error { return k.Run(ctx, i) }); err != nil {
		return err
	}
	out["wall_s"], out["cpu_s"] = time.Since(t0).Seconds(), cpu()-c0
	runtime.ReadMemStats(&m1)
	out["alloc_bytes"], out["mallocs"] = m1.TotalAlloc-m0.TotalAlloc, m1.Mallocs-m0.Mallocs
	return called(c)
}

func called(c Config) error {
	if n, want := looked.Load(), int64(c.Rounds)*int64(c.Runs); n != want {
		return fmt.Errorf("the tool ran %d times, want %d", n, want)
	}
	return nil
}

func settle() (heap, rss int64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), status("VmRSS")
}

func pauseAndResume(ctx context.Context, c Config, k *Contender, out map[string]any) error {
	if k.Pause == nil {
		return fmt.Errorf("this contender cannot pause")
	}
	paused := make([]any, c.Runs)
	h0, r0 := settle()
	c0 := cpu()
	if err := each(ctx, c, func(i int) (err error) { paused[i], err = k.Pause(ctx, i); return err }); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	out["pause_cpu_s"] = cpu() - c0
	h1, r1 := settle()
	out["heap_per_paused"], out["rss_per_paused"] = float64(h1-h0)/float64(c.Runs), float64(r1-r0)/float64(c.Runs)
	out["goroutines_paused"] = runtime.NumGoroutine()
	if k.Bytes != nil {
		out["bytes_paused"] = k.Bytes()
	} else if c.Durable != "" {
		out["bytes_paused"] = files(c.Durable)
	}
	c1, t1 := cpu(), time.Now()
	if err := each(ctx, c, func(i int) error { return k.Resume(ctx, i, paused[i]) }); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	out["wall_s"], out["cpu_s"] = time.Since(t1).Seconds(), cpu()-c1
	return called(c)
}

// each calls f for every run, so many at once.
func each(ctx context.Context, c Config, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make(chan error, max(c.Concurrency, 1))
	for range max(min(c.Concurrency, c.Runs), 1) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= c.Runs {
					return
				}
				if err := f(i); err != nil {
					errs <- fmt.Errorf("run %d: %w", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}
