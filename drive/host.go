// Package drive performs what the loop asks for: it opens journals, folds them, performs commands and makes events durable. There is
// one interpreter of commands (driver.go); recovery is its normal path.
package drive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// Journal is the store as the driver calls it: the contract of package journal.
type Journal = journal.Store

// Options configure a Host. Store is required.
type Options struct {
	Store journal.Store
	// Agents finds an agent by name for runs that are taken over. Nil: only agents given to Start and Register are known.
	Agents func(name string) (*Agent, error)
	// AgentFor finds the agent of one run, where the name alone does not say which configuration it was started with. Nil or a nil agent:
	// by name.
	AgentFor func(ctx context.Context, run journal.Run) (*Agent, error)
	Clock    Clock // nil: the machine's
	// Owner names this process in leases; "" asks the store (its Owner method), else a random name.
	Owner string
	Log   *slog.Logger // nil: nothing is logged
	// Stream asks models for streams; deltas reach subscribers and tapes.
	Stream bool
	// Tapes keeps the times of deltas in the store (only with Stream).
	Tapes bool
	// Hook is called at named points of the work, for tests of crashes: an error makes the driver behave as if the process had died.
	Hook func(p Point) error
	// NewID makes ids of runs; nil: UUIDs of version 7.
	NewID func() string
}

// Point names a moment at which a process can die.
type Point struct {
	Name string // append, appended, effect, effected
	Run  string
	Seq  int64  // append, appended: sequence of the last event of the batch
	Call string // effect, effected: call and attempt
	// State is the driver's live state with the batch folded (append, appended); not to be changed.
	State *loop.State
}

// ErrKilled is what a Hook returns to end a driver as a crash would.
var ErrKilled = errors.New("killed")

// Host runs agents on a store. It is safe for concurrent use. A host holds nothing for runs that wait or have stopped.
type Host struct {
	store  journal.Store
	clock  Clock
	owner  string
	log    *slog.Logger
	opts   Options
	ctx    context.Context // ends when the host is shut down
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	agents   map[string]*Agent
	driving  map[string]chan struct{} // runs driven by this host; closed when let go
	subs     map[string]map[*subscription]struct{}
	defs     sync.Map // digests of definitions known to be stored
	compiled sync.Map // *Agent → *compiled
	draining bool
}

// Open returns a host on a store. The host does not close the store.
func Open(o Options) (*Host, error) {
	if o.Store == nil {
		return nil, errors.New("drive: open host: Store is missing. Give it a journal, for example journal/memory")
	}
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Owner == "" {
		if named, ok := o.Store.(interface{ Owner() string }); ok {
			o.Owner = named.Owner()
		} else {
			o.Owner = uuid.NewString()
		}
	}
	if o.NewID == nil {
		o.NewID = func() string { return "run_" + uuid.Must(uuid.NewV7()).String() }
	}
	h := &Host{store: o.Store, clock: o.Clock, owner: o.Owner, log: o.Log, opts: o,
		agents: map[string]*Agent{}, driving: map[string]chan struct{}{}, subs: map[string]map[*subscription]struct{}{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// Store is the host's store.
func (h *Host) Store() journal.Store { return h.store }

// Clock is the host's clock.
func (h *Host) Clock() Clock { return h.clock }

// Register makes agents known by name, their children too.
func (h *Host) Register(agents ...*Agent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range agents {
		h.register(a)
	}
}

func (h *Host) register(a *Agent) {
	h.agents[a.Name] = a
	for _, c := range a.children() {
		if h.agents[c.Agent.Name] == nil {
			h.register(c.Agent)
		}
	}
}

// ErrUnknownAgent is wrapped by errors about an agent that the host does not know.
var ErrUnknownAgent = errors.New("unknown agent")

// Agent finds an agent by name.
func (h *Host) Agent(name string) (*Agent, error) {
	h.mu.Lock()
	a := h.agents[name]
	h.mu.Unlock()
	if a != nil {
		return a, nil
	}
	if h.opts.Agents != nil {
		a, err := h.opts.Agents(name)
		if err != nil {
			return nil, err
		}
		h.Register(a)
		return a, nil
	}
	return nil, fmt.Errorf("agent %q: %w. Register it with the host", name, ErrUnknownAgent)
}

// agentOf finds the agent of a run.
func (h *Host) agentOf(ctx context.Context, row journal.Run) (*Agent, error) {
	if h.opts.AgentFor == nil {
		return h.Agent(row.Agent)
	}
	if row.Parent != "" {
		if a, err := h.Agent(row.Agent); err == nil {
			return a, nil
		}
		root, err := h.store.Get(ctx, row.Root)
		if err != nil {
			return nil, err
		}
		if _, err := h.agentOf(ctx, root); err != nil { // registers its children
			return nil, err
		}
		return h.Agent(row.Agent)
	}
	a, err := h.opts.AgentFor(ctx, row)
	if err != nil || a == nil {
		if err == nil {
			return h.Agent(row.Agent)
		}
		return nil, err
	}
	h.Register(a)
	return a, nil
}

// Shutdown lets go of every run and waits until each driver has written what it knows: running model calls and reads are abandoned,
// other tools get the grace time. Nothing is lost: the runs stay as they are and any process can resume them. It returns ctx's
// error if that takes too long.
func (h *Host) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	h.cancel()
	done := make(chan struct{})
	go func() { h.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drive: shut down: runs are still being let go: %w", ctx.Err())
	}
}

// now is the clock's time in microseconds.
func (h *Host) now() loop.Micros { return micros(h.clock.Now()) }

func (h *Host) hook(p Point) error {
	if h.opts.Hook == nil {
		return nil
	}
	return h.opts.Hook(p)
}

// claim marks a run as driven by this host, so that two goroutines do not drive it at once.
func (h *Host) claim(ctx context.Context, run string) (release func(), err error) {
	for {
		h.mu.Lock()
		if h.draining {
			h.mu.Unlock()
			return nil, fmt.Errorf("drive: run %s: the host is being shut down. Resume the run in another process", run)
		}
		busy, ok := h.driving[run]
		if !ok {
			done := make(chan struct{})
			h.driving[run] = done
			h.wg.Add(1)
			h.mu.Unlock()
			return func() {
				h.mu.Lock()
				delete(h.driving, run)
				h.mu.Unlock()
				close(done)
				h.wg.Done()
			}, nil
		}
		h.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Driving says whether this host drives the run at the moment.
func (h *Host) Driving(run string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.driving[run]
	return ok
}

// grace is what cancelled work of an agent gets to end.
func grace(c *loop.Config) time.Duration {
	if c.Grace > 0 {
		return toDuration(c.Grace)
	}
	return 2 * time.Second
}
