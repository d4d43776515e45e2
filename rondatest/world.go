package rondatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
)

// world is one performance of a scenario in one cell: the store, the time, the providers and tools, all of which outlive a process,
// and the life of the process under way.
type world struct {
	s         *Scenario
	cell      Cell
	clock     *Clock
	journal   opened
	ctx       context.Context
	cancel    context.CancelCauseFunc
	sim       *simulation
	decks     map[string]*deck
	providers map[string]*provider
	root      *deck
	agent     *yamldoc.Node // in force
	ids       atomic.Int64
	kill      killer

	mu       sync.Mutex
	g        *generation
	problems []string
	read     map[string][]loop.Event // by run: what was decoded of its journal

	runs     []string // of the session, in order
	starting string   // the run that is being started
	once     map[string]bool
	killed   bool           // the process died
	died     atomic.Bool    // the same, for those that deal
	resolved bool           // an unknown outcome was settled because of that
	untold   map[string]int // by tool: effects that the death kept from happening
	diverged bool           // the model was told so: what follows may differ
}

// generation is one life of the process.
type generation struct {
	ctx    context.Context
	cancel context.CancelFunc
	dead   atomic.Bool
	host   *drive.Host
	agent  *drive.Agent
}

func (g *generation) die() {
	g.dead.Store(true)
	g.cancel()
}

// patience is how long, in real time, one performance may take.
const patience = 2 * time.Minute

func newWorld(s *Scenario, cell Cell, kill int) (*world, error) {
	w := &world{s: s, cell: cell, agent: s.agent, clock: NewClock(start), sim: newSimulation(s.tools), decks: map[string]*deck{},
		providers: map[string]*provider{}, once: map[string]bool{}, untold: map[string]int{}, read: map[string][]loop.Event{}}
	w.kill.at = kill
	var err error
	if w.journal, err = openStore(cell.Store); err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.clock.OnStuck(func() {
		w.cancel(errors.New("the run would wait for ever: every driver waits, no timer is set and no work ends by itself. A tool that never returns needs a timeout"))
	})
	if err := w.boot(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) close() {
	w.cancel(errors.New("the scenario is over"))
	if g := w.current(); g != nil {
		g.die()
	}
	w.clock.Quiet()
	for _, p := range w.providers {
		p.close()
	}
	w.journal.close()
}

func (w *world) current() *generation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.g
}

// problem notes what went wrong beside what the run says of itself.
func (w *world) problem(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.problems {
		if p == text {
			return
		}
	}
	w.problems = append(w.problems, text)
}

func (w *world) newID() string { return fmt.Sprintf("run-%d", w.ids.Add(1)) }

// store is the store as the life under way has it open.
func (w *world) store() journal.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.journal.store
}

// boot begins a life of the process: the store opened again, agents read anew, a new host.
func (w *world) boot() error {
	if w.current() != nil {
		w.mu.Lock()
		err := w.journal.again()
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	g := &generation{}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	p := &yamldoc.Problems{File: w.s.File}
	seen := map[string]int{}
	opts := agentOptions(w.s, func(spec agentfile.ToolSpec) tool.Tool {
		t := &simTool{def: spec.Def, w: w, g: g}
		if spec.Def.Effect == "" || spec.Def.Effect == loop.Once {
			w.once[spec.Def.Name] = true
		}
		return t
	}, func(sc *scripted.Script, agent string) model.Model {
		seen[agent]++
		key := agent
		if n := seen[agent]; n > 1 {
			key = fmt.Sprintf("%s (%d)", agent, n)
		}
		return w.answers(g, key, sc)
	})
	agent, file := agentfile.Read(p, w.agent, w.s.dir, opts)
	if err := p.Err(); err != nil {
		return err
	}
	if w.root == nil {
		a, ok := agent.Model.(*answers)
		if !ok {
			return fmt.Errorf("%s:%d: the agent has no script", w.s.File, file.Line)
		}
		w.root = a.d
		for _, d := range w.decks {
			d.again = d != w.root
		}
	}
	defaults(agent)
	host, err := drive.Open(drive.Options{Store: w.store(), Clock: w.clock, Owner: "scenario", Stream: w.cell.Stream == "on", Tapes: w.cell.Stream == "on",
		Hook: func(pt drive.Point) error { return w.kill.hook(g, pt) }, NewID: w.newID})
	if err != nil {
		return err
	}
	host.Register(agent)
	g.host, g.agent = host, agent
	w.mu.Lock()
	w.g = g
	w.mu.Unlock()
	return nil
}

// defaultOutputCap is what a response may have in scenarios.
const defaultOutputCap = 64

func defaults(a *drive.Agent) {
	if a.OutputCap == 0 {
		a.OutputCap = defaultOutputCap
	}
	for _, c := range a.Children {
		defaults(c.Agent)
	}
}

// answers makes the model of an agent; its deck and provider are those of its lives before.
func (w *world) answers(g *generation, key string, sc *scripted.Script) model.Model {
	d := w.decks[key]
	if d == nil {
		d = &deck{name: w.s.File, script: sc, runs: map[string]*dealt{}, stopped: w.stopped, lost: w.lost}
		w.decks[key] = d
	}
	a := &answers{w: w, g: g, d: d}
	if w.cell.Wire != Direct {
		p := w.providers[key]
		if p == nil {
			p = newProvider(w.cell.Wire, w.clock)
			w.providers[key] = p
		}
		a.serve, a.wire = p, adapters[w.cell.Wire](p.server.URL, p.client)
	}
	return a
}

func (w *world) stopped(run string) bool {
	row, err := w.store().Get(context.Background(), run)
	return err == nil && row.Status == loop.StatusStopped
}

// lost says whether the end of an attempt of a model call died with the process.
func (w *world) lost(run string, call, attempt int64) bool {
	if !w.died.Load() {
		return false
	}
	lost := true
	_ = w.events(run, func(ev loop.Event) error {
		switch b := ev.Body.(type) {
		case loop.ModelReplied:
			lost = lost && b.Call != call
		case loop.ModelFailed:
			if b.Call == call && max(b.Attempt, 1) == attempt {
				lost = b.Cause == loop.CauseCrash
				return errFound
			}
		}
		return nil
	})
	return lost
}

var errFound = errors.New("found")

// killer ends a life of the process at one of the points at which it can end.
type killer struct {
	mu    sync.Mutex
	at    int // 0: never
	n     int
	point string // where it died
}

func (k *killer) hook(g *generation, p drive.Point) error {
	if g.dead.Load() {
		return drive.ErrKilled
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n++; k.n != k.at {
		return nil
	}
	k.point = p.Name
	if p.Seq > 0 {
		k.point += fmt.Sprintf(" of event %d of %s", p.Seq, p.Run)
	} else {
		k.point += " of " + p.Call + " of " + p.Run
	}
	g.die()
	return drive.ErrKilled
}

// reboot follows the death of the process.
func (w *world) reboot() error {
	w.killed = true
	w.died.Store(true)
	w.clock.Quiet()
	return w.boot()
}

// goOn drives a run until it waits or stops, in as many lives as it takes.
func (w *world) goOn(run string) error {
	for {
		g := w.current()
		_, err := g.host.Resume(w.ctx, run)
		if again, err := w.afterwards(g, err); !again {
			return err
		}
	}
}

// afterwards says whether the process died and another one is to go on.
func (w *world) afterwards(g *generation, err error) (again bool, _ error) {
	w.clock.Quiet()
	if stuck := context.Cause(w.ctx); stuck != nil {
		return false, stuck
	}
	if !g.dead.Load() {
		return false, err
	}
	return true, w.reboot()
}

// start begins a run of the session.
func (w *world) start(text string) error {
	s := drive.Start{Input: drive.Text(text), ID: w.newID()}
	if len(w.runs) > 0 {
		s.Session = w.runs[0]
	}
	w.begins(s.ID)
	defer w.begins("")
	for {
		g := w.current()
		s.Agent = g.agent
		_, err := g.host.Start(w.ctx, s)
		again, err := w.afterwards(g, err)
		if _, lost := w.store().Get(context.Background(), s.ID); lost == nil {
			w.runs = append(w.runs, s.ID)
			if again && err == nil {
				return w.goOn(s.ID)
			}
			return err
		}
		if !again || err != nil {
			return err
		}
	}
}

func (w *world) begins(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starting = run
}

// last is the run that is being started, or the last one of the session; "" before the first.
func (w *world) last() string {
	w.mu.Lock()
	starting := w.starting
	w.mu.Unlock()
	if starting != "" {
		return starting
	}
	if len(w.runs) == 0 {
		return ""
	}
	return w.runs[len(w.runs)-1]
}

func (w *world) show() (*drive.Run, error) {
	if w.last() == "" {
		return nil, nil
	}
	return w.current().host.Show(context.Background(), w.last())
}
