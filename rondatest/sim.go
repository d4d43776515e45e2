package rondatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// simTool is a simulated tool in one life of the process.
type simTool struct {
	def tool.Def
	w   *world
	g   *generation
}

var _ tool.Checker = (*simTool)(nil)

// Def is what the agent declares.
func (t *simTool) Def() tool.Def { return t.def }

var errDead = errors.New("the process died")

// Run does what the scenario says of this execution. What a dead process does has no effect.
func (t *simTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.g.ctx, cancel)()
	if t.g.dead.Load() {
		return tool.Result{}, errDead
	}
	it, err := t.w.sim.item(t.w.store(), t.def.Name, call)
	if err != nil {
		t.w.problem(err.Error())
		return tool.Result{}, tool.Fatal(err)
	}
	if err := t.passes(ctx, it); err != nil {
		return tool.Result{}, err
	}
	switch {
	case it.panics != "":
		panic(it.panics)
	case it.class != "":
		return tool.Result{}, &tool.Error{Class: it.class, Message: it.message, RetryAfter: it.retryAfter, NotRun: it.class == loop.ClassTransient}
	case it.timeout == "before_effect":
		return tool.Result{}, t.hang(ctx)
	}
	res := tool.Result{Text: it.text, Facts: it.facts}
	if it.echo {
		res.Text = string(call.Args)
	}
	if !t.w.sim.happen(t.g, effect{tool: t.def.Name, run: call.Run, call: call.ID, key: call.Key, attempt: call.Attempt, result: res}) {
		return tool.Result{}, errDead
	}
	if it.timeout == "after_effect" {
		return tool.Result{}, t.hang(ctx)
	}
	return res, nil
}

// passes lets the time pass that the execution takes.
func (t *simTool) passes(ctx context.Context, it toolItem) error {
	switch {
	case it.takes <= 0:
		return nil
	case it.deaf:
		t.w.clock.SleepThrough(ctx, it.takes)
		return nil
	}
	return t.w.clock.Sleep(ctx, it.takes)
}

// hang waits for the time-out that the caller sees. A tool without one of its own has had it already.
func (t *simTool) hang(ctx context.Context) error {
	if t.def.Timeout == 0 {
		return &tool.Error{Class: loop.ClassUnknown, Clock: "tool", Message: t.def.Name + " timed out"}
	}
	return t.w.clock.Hang(ctx)
}

// Check tells from the log of effects whether the one with the key happened.
func (t *simTool) Check(_ context.Context, call tool.Call) (string, tool.Result, error) {
	if e, ok := t.w.sim.find(call.Key); ok {
		return loop.HappenedYes, e.result, nil
	}
	return loop.HappenedNo, tool.Result{}, nil
}

// effect is something that really happened.
type effect struct {
	tool, run, call, key string
	attempt              int
	result               tool.Result
}

// simulation is what the simulated tools do and did, over all lives of the process: the world outside of it.
type simulation struct {
	items map[string][]toolItem

	mu      sync.Mutex
	effects []effect
	next    map[string]int // by tool: items dealt
	runs    map[string]*toolView
}

// toolView is what the journal of a run says of executions.
type toolView struct {
	seq     int64
	names   map[string]string // call: tool
	dealt   map[string]int    // call/attempt: number of the item, from 0
	crashed map[string]bool   // call/attempt: its end was lost with the process
}

func newSimulation(items map[string][]toolItem) *simulation {
	return &simulation{items: items, next: map[string]int{}, runs: map[string]*toolView{}}
}

func attemptKey(call string, attempt int64) string {
	return fmt.Sprintf("%s/%d", call, max(attempt, 1))
}

// item is what the tool does at an attempt of a call. Executions are counted in the order in which the journal starts them; one whose
// end was lost is done in the same way again.
func (s *simulation) item(store journal.Store, name string, call tool.Call) (toolItem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.runs[call.Run]
	if v == nil {
		v = &toolView{names: map[string]string{}, dealt: map[string]int{}, crashed: map[string]bool{}}
		s.runs[call.Run] = v
	}
	err := store.Read(context.Background(), call.Run, v.seq, func(r journal.Record) error {
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return err
		}
		s.see(v, ev)
		return nil
	})
	if err != nil {
		return toolItem{}, err
	}
	n, ok := v.dealt[attemptKey(call.ID, int64(call.Attempt))]
	if !ok {
		return toolItem{}, fmt.Errorf("%s runs call %s, attempt %d, whose start is not on record: invariant 3 is broken", name, call.ID, call.Attempt)
	}
	items := s.items[name]
	if len(items) == 0 {
		return toolItem{text: "ok"}, nil
	}
	return items[min(n, len(items)-1)], nil
}

func (s *simulation) see(v *toolView, ev loop.Event) {
	v.seq = ev.Seq
	switch b := ev.Body.(type) {
	case loop.ModelReplied:
		n := 0
		for _, bl := range b.Blocks {
			if bl.Kind == loop.BlockCall {
				v.names[loop.CallID(b.Call, n)] = bl.Name
				n++
			}
		}
	case loop.ToolFailed:
		if b.Cause == loop.CauseCrash {
			v.crashed[attemptKey(b.Call, b.Attempt)] = true
		}
	case loop.ToolStarted:
		attempt := max(b.Attempt, 1)
		name := v.names[b.Call]
		if before := attemptKey(b.Call, attempt-1); attempt > 1 && v.crashed[before] {
			v.dealt[attemptKey(b.Call, attempt)] = v.dealt[before]
			return
		}
		v.dealt[attemptKey(b.Call, attempt)] = s.next[name]
		s.next[name]++
	}
}

// happen puts an effect into the log, unless its process is dead.
func (s *simulation) happen(g *generation, e effect) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.dead.Load() {
		return false
	}
	s.effects = append(s.effects, e)
	return true
}

func (s *simulation) find(key string) (effect, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.effects {
		if e.key == key {
			return e, true
		}
	}
	return effect{}, false
}

// executions counts effects by tool.
func (s *simulation) executions() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[string]int64{}
	for _, e := range s.effects {
		m[e.tool]++
	}
	return m
}

func valuesOf(m map[string]json.RawMessage) map[string]loop.Value {
	if len(m) == 0 {
		return nil
	}
	out := map[string]loop.Value{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// start is when virtual time begins.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
