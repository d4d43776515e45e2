package rondatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ronda-go/ronda/rondatest/fake"
)

// Direct is the wire that is none: the script answers without a provider.
const Direct = "direct"

// Cell is one cell of the matrix.
type Cell struct {
	Wire   string `json:"wire"`
	Stream string `json:"stream"`
	Crash  string `json:"crash"`
	Store  string `json:"store"`
	Engine string `json:"engine"`
}

func (c Cell) String() string {
	s := c.Wire + " stream=" + c.Stream
	if c.Crash != "none" {
		s += " crash=" + c.Crash
	}
	if c.Store != "memory" {
		s += " store=" + c.Store
	}
	if c.Engine != "local" {
		s += " engine=" + c.Engine
	}
	return s
}

// Options choose the cells. The zero value is every wire, with and without streams, no crashes, in memory, on the local engine.
type Options struct {
	Wire   []string // direct, anthropic, openai, openaichat, gemini
	Stream []string // on, off
	Crash  string   // none (also ""), everywhere
	Store  []string // memory (also without any), sqlite, postgres
	Engine string   // local (also "")
	// Run keeps the scenarios whose name contains it.
	Run string
	// Workers is how many performances go on at once; 0: as many as there are processors.
	Workers int
	// Watch is called with each result as it comes, in the order of the report.
	Watch func(Result)
}

// complete fills in the defaults and refuses what does not exist.
func (o Options) complete() (Options, error) {
	def := func(v *[]string, dim string, all ...string) error {
		if len(*v) == 0 {
			*v = all
		}
		for _, x := range *v {
			if !slices.Contains(matrix[dim], x) {
				return fmt.Errorf("rondatest: %s %q is unknown. Use %s", dim, x, list(matrix[dim]))
			}
		}
		return nil
	}
	if o.Crash == "" {
		o.Crash = "none"
	}
	if o.Engine == "" {
		o.Engine = "local"
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	crash := []string{o.Crash}
	return o, errors.Join(def(&o.Wire, "wire", matrix["wire"]...), def(&o.Stream, "stream", "on", "off"), def(&o.Store, "store", "memory"),
		def(&crash, "crash"))
}

// cells lists the cells that exist; left says which were asked for and do not.
func (o Options) cells() (cells []Cell, left []string) {
	for _, wire := range o.Wire {
		if wire != Direct && adapters[wire] == nil {
			left = append(left, "wire "+wire)
			continue
		}
		for _, store := range o.Store {
			if stores[store] == nil {
				left = append(left, "store "+store)
				continue
			}
			for _, stream := range o.Stream {
				cells = append(cells, Cell{Wire: wire, Stream: stream, Crash: o.Crash, Store: store, Engine: o.Engine})
			}
		}
	}
	if o.Engine != "local" {
		return nil, []string{"engine " + o.Engine}
	}
	slices.Sort(left)
	return cells, slices.Compact(left)
}

// in says whether a scenario means something in a cell.
func (s *Scenario) in(c Cell) bool {
	if s.raw && c.Wire == fake.Gemini {
		return false
	}
	for dim, v := range map[string]string{"wire": c.Wire, "stream": c.Stream, "crash": c.Crash, "store": c.Store, "engine": c.Engine} {
		if words, ok := s.only[dim]; ok && !slices.Contains(words, v) {
			return false
		}
	}
	return true
}

// RunFile runs the scenarios of a file in every cell that the options name. Its error says why nothing could be run: the file does not
// parse, an option is unknown. Scenarios that fail are in the report.
func RunFile(ctx context.Context, path string, o Options) (Report, error) {
	list, err := ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	return Run(ctx, list, o)
}

// Run runs scenarios in every cell that the options name.
func Run(ctx context.Context, list []*Scenario, o Options) (Report, error) {
	o, err := o.complete()
	if err != nil {
		return Report{}, err
	}
	cells, left := o.cells()
	rep := Report{Left: left}
	type job struct {
		s    *Scenario
		c    Cell
		done chan Result
	}
	var jobs []job
	for _, s := range list {
		for _, c := range cells {
			if strings.Contains(s.Name, o.Run) && s.in(c) {
				jobs = append(jobs, job{s, c, make(chan Result, 1)})
			}
		}
	}
	next := make(chan job)
	var wg sync.WaitGroup
	for range min(o.Workers, max(len(jobs), 1)) {
		wg.Go(func() {
			for j := range next {
				j.done <- perform(ctx, j.s, j.c)
			}
		})
	}
	go func() {
		defer close(next)
		for _, j := range jobs {
			select {
			case next <- j:
			case <-ctx.Done():
				j.done <- Result{Scenario: j.s.Name, File: j.s.File, Line: j.s.Line, Cell: j.c, Failures: []Failure{{File: j.s.File, Line: j.s.Line, What: "not run", Want: "to be run", Got: ctx.Err().Error()}}}
			}
		}
	}()
	for _, j := range jobs {
		r := <-j.done
		rep.add(r)
		if o.Watch != nil {
			o.Watch(r)
		}
	}
	wg.Wait()
	return rep, nil
}

// perform runs one scenario in one cell: once, or once for each point at which the process can die.
func perform(ctx context.Context, s *Scenario, c Cell) Result {
	began := time.Now()
	r := Result{Scenario: s.Name, About: s.About, File: s.File, Line: s.Line, Cell: c}
	base := performance(ctx, s, c, 0, nil)
	r.Failures, r.Journal = base.fails, base.journal
	if c.Crash == "everywhere" && len(base.fails) == 0 {
		for k := 1; k <= base.points; k++ {
			killed := performance(ctx, s, c, k, &base)
			r.Kills++
			if len(killed.fails) > 0 {
				r.Killed, r.Failures, r.Journal = killed.point, killed.fails, killed.journal
				break
			}
		}
	}
	r.Passed = len(r.Failures) == 0
	if r.Passed {
		r.Journal = ""
	}
	r.Seconds = time.Since(began).Seconds()
	return r
}

// played is one performance and what came of it.
type played struct {
	fails   []Failure
	journal string
	points  int
	point   string
	trace   []waits
	end     outcome
}

func performance(ctx context.Context, s *Scenario, c Cell, kill int, base *played) (p played) {
	broken := func(err error) played {
		p.fails = append(p.fails, Failure{File: s.File, Line: s.Line, What: "the scenario runs", Want: "it does", Got: err.Error()})
		return p
	}
	w, err := newWorld(s, c, kill)
	if err != nil {
		return broken(err)
	}
	defer w.close()
	defer context.AfterFunc(ctx, func() { w.cancel(context.Cause(ctx)) })()
	limit := time.AfterFunc(patience, func() { w.cancel(fmt.Errorf("the scenario did not end within %v of real time", patience)) })
	defer limit.Stop()
	var known []waits
	if base != nil {
		known = base.trace
	}
	ch := &checker{w: w}
	trace, err := w.perform(known)
	p.trace, p.points, p.point = trace, w.kill.n, w.kill.point
	if err != nil {
		line, what := s.Line, "the scenario runs"
		var act *actError
		if errors.As(err, &act) {
			line, what, err = act.act.line, "act "+act.act.kind, act.err
		}
		ch.fail(line, what, "it happens", err.Error())
	}
	if ch.run, err = w.show(); err != nil {
		ch.fail(s.Line, "the run can be read", "it can", err.Error())
	}
	if !w.diverged {
		for _, text := range w.problems {
			ch.fail(s.Line, "script and tools", "they fit what the run asks for", text)
		}
	}
	if len(ch.fails) == 0 && !w.diverged {
		ch.expectations()
	}
	if len(ch.fails) == 0 && base != nil && w.killed {
		ch.sameAs(base.end)
	}
	ch.invariants()
	p.fails, p.end = ch.fails, w.outcome(ch.run)
	if len(p.fails) > 0 {
		p.journal = w.journalText()
	}
	return p
}

// Scenarios runs scenario files (patterns of path/filepath.Match are taken too) in every cell that exists in memory, with and without
// crashes: a subtest for each scenario and in it one for each cell.
func Scenarios(t *testing.T, paths ...string) {
	t.Helper()
	ScenariosWith(t, []Options{{}, {Crash: "everywhere", Wire: []string{Direct}}}, paths...)
}

// ScenariosWith is Scenarios with options of one's own.
func ScenariosWith(t *testing.T, options []Options, paths ...string) {
	t.Helper()
	var files []string
	for _, p := range paths {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			if _, err = os.Stat(p); err != nil {
				t.Fatalf("scenarios: no file fits %s", p)
			}
			found = []string{p}
		}
		files = append(files, found...)
	}
	for _, f := range files {
		list, err := ReadFile(f)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, s := range list {
			t.Run(s.Name, func(t *testing.T) { s.test(t, options) })
		}
	}
}

func (s *Scenario) test(t *testing.T, options []Options) {
	for _, o := range options {
		o, err := o.complete()
		if err != nil {
			t.Fatal(err)
		}
		cells, left := o.cells()
		for _, l := range left {
			t.Logf("left out: %s does not exist here", l)
		}
		for _, c := range cells {
			if !s.in(c) {
				continue
			}
			t.Run(strings.ReplaceAll(c.String(), " ", ","), func(t *testing.T) {
				if r := perform(t.Context(), s, c); !r.Passed {
					t.Error("\n" + r.String())
				}
			})
		}
	}
}
