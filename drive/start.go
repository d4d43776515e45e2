package drive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// Start asks for a new run.
type Start struct {
	Agent   *Agent
	Input   []loop.Block // the first message of the user
	ID      string       // "" makes one
	Session string       // "" a session of its own
	Limits  *Limits      // in place of the agent's: only those that are set
	By      string
	Fork    *loop.RunRef
}

// Text is an input of plain text.
func Text(s string) []loop.Block { return []loop.Block{{Kind: loop.BlockText, Text: s}} }

// ErrBusy is wrapped where a session has a live run already.
var ErrBusy = errors.New("the session has a live run")

// Start makes a run and drives it until it waits or stops. Errors of the configuration come before anything is stored. A Run that is
// returned with an error is the state that was reached.
func (h *Host) Start(ctx context.Context, s Start) (*Run, error) {
	d, err := h.create(ctx, s)
	if err != nil {
		return nil, err
	}
	return h.drive(ctx, d)
}

// Begin is Start without waiting: the run is in the store when it returns, and a goroutine of the host drives it.
func (h *Host) Begin(ctx context.Context, s Start) (run string, work *Background, err error) {
	d, err := h.create(ctx, s)
	if err != nil {
		return "", nil, err
	}
	if err := d.commit(ctx); err != nil {
		return "", nil, h.started(err, d)
	}
	return d.lease.Run, h.background(d.lease.Run, func(ctx context.Context) error {
		_, err := h.drive(ctx, d)
		return err
	}), nil
}

// Background is the driving of a run in a goroutine of the host.
type Background struct {
	done chan struct{}
	err  error
}

// Done is closed when the driver has let go: the run waits or has stopped, or Err says why not.
func (b *Background) Done() <-chan struct{} { return b.done }

// Err is what ended the driving too early: a store that failed, a host that was shut down. Call it after Done was closed.
func (b *Background) Err() error {
	<-b.done
	return b.err
}

// background runs the driving of a run in a goroutine that ends with the host.
func (h *Host) background(run string, drive func(ctx context.Context) error) *Background {
	b := &Background{done: make(chan struct{})}
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		defer close(b.done)
		if b.err = drive(context.WithoutCancel(h.ctx)); b.err != nil && !errors.Is(b.err, ErrKilled) {
			h.log.Error("driving a run failed", "run", run, "error", b.err)
		}
	}()
	return b
}

func (h *Host) create(ctx context.Context, s Start) (*driver, error) {
	if s.Agent == nil {
		return nil, errors.New("drive: start: Agent is missing")
	}
	if len(s.Input) == 0 {
		return nil, errors.New("drive: start: Input is empty. Say what the agent is to do")
	}
	c, err := h.compile(s.Agent)
	if err != nil {
		return nil, err
	}
	h.Register(s.Agent)
	cfg, err := h.configFor(ctx, c, &s)
	if err != nil {
		return nil, err
	}
	if err := h.storeDefinition(ctx, c); err != nil {
		return nil, err
	}
	started := loop.RunStarted{Run: s.ID, Config: cfg, Input: s.Input, By: s.By, Fork: s.Fork}
	return h.newRun(ctx, c, started, "", s.ID)
}

// newRun readies a driver for a run that is not in the store yet: it gets there with the first commit.
func (h *Host) newRun(ctx context.Context, c *compiled, started loop.RunStarted, parent, root string) (*driver, error) {
	d := h.newDriver(c)
	d.lease = journal.Lease{Run: started.Run, Owner: h.owner, Epoch: 1}
	session := started.Run
	if started.Config.Session != nil {
		session = started.Config.Session.ID
	}
	if parent != "" {
		session = ""
	}
	d.row = journal.Run{ID: started.Run, Session: session, Parent: parent, Root: root, Agent: started.Config.Agent, Model: started.Config.Model,
		Created: h.now(), Title: title(started.Input)}
	before, err := h.sessionMessages(ctx, started.Config)
	if err != nil {
		return nil, err
	}
	d.talk = loop.NewTranscript(before)
	return d, d.step(started)
}

func (h *Host) newDriver(c *compiled) *driver {
	return &driver{h: h, c: c, flight: map[string]*work{}, results: make(chan answer, 4), done: make(chan struct{}), jobs: make(chan func()),
		caches: map[string]*model.Cache{}, fresh: map[string]bool{}, refs: map[string]bool{}}
}

func title(input []loop.Block) string {
	for _, b := range input {
		if b.Kind == loop.BlockText {
			line, _, _ := strings.Cut(strings.TrimSpace(b.Text), "\n")
			return cut(line, 120)
		}
	}
	return ""
}

// configFor is the agent's config for one run: its limits, and what it takes over from its session.
func (h *Host) configFor(ctx context.Context, c *compiled, s *Start) (*loop.Config, error) {
	cfg := c.config
	p := &problems{agent: c.agent.Name}
	if s.Limits != nil {
		l := s.Limits.build(p, "limits", false)
		if len(p.errs) > 0 {
			return nil, errors.Join(p.errs...)
		}
		cfg.Limits = override(cfg.Limits, l)
		if cfg.Limits.Cost != nil && cfg.Price == nil && !c.agent.AllowUnpriced {
			return nil, fmt.Errorf("agent %q: limits.cost_usd: the price of %s is not known, so a cost limit would not hold. Set a price, or allow unpriced models", c.agent.Name, c.info.Ref())
		}
	}
	if s.ID == "" {
		s.ID = h.opts.NewID()
	}
	ses := &loop.SessionStart{ID: s.Session, Limits: c.agent.Session.build(p, "Session", false)}
	if s.Session == "" {
		ses.ID = s.ID
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	if s.Session != "" {
		if err := h.takeOver(ctx, ses); err != nil {
			return nil, err
		}
	}
	if s.Session != "" || ses.Prev != nil || ses.Limits != (loop.Limits{}) {
		cfg.Session = ses
	}
	return &cfg, nil
}

func override(base, l loop.Limits) loop.Limits {
	pick := func(a, b *int64) *int64 {
		if b != nil {
			return b
		}
		return a
	}
	base.Rounds, base.ModelCalls, base.ToolCalls, base.Tokens = pick(base.Rounds, l.Rounds), pick(base.ModelCalls, l.ModelCalls), pick(base.ToolCalls, l.ToolCalls), pick(base.Tokens, l.Tokens)
	base.Cost = (*loop.Pico)(pick((*int64)(base.Cost), (*int64)(l.Cost)))
	base.ActiveTime = (*loop.Micros)(pick((*int64)(base.ActiveTime), (*int64)(l.ActiveTime)))
	base.Deadline = (*loop.Micros)(pick((*int64)(base.Deadline), (*int64)(l.Deadline)))
	return base
}

// takeOver fills in what a run takes from the last run of its session.
func (h *Host) takeOver(ctx context.Context, ses *loop.SessionStart) error {
	page, err := h.store.List(ctx, journal.Query{Session: ses.ID, Roots: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Runs) == 0 {
		return nil
	}
	last := page.Runs[0]
	if last.Status != loop.StatusStopped {
		return fmt.Errorf("drive: session %s: %w (%s is %s). Say something to that run, or cancel it", ses.ID, ErrBusy, last.ID, last.Status)
	}
	st, err := h.stateOf(ctx, last.ID)
	if err != nil {
		return err
	}
	ses.Prev = &loop.RunRef{Run: last.ID, Seq: last.Seq, Digest: last.Digest}
	ses.Counts, ses.Cost, ses.Active = st.Ledger.Total(), st.Ledger.TotalCost(), st.Ledger.Active
	ses.Prefix = st.Model.Prefix + st.Model.Fresh
	if before := st.Config.Session; before != nil {
		ses.Counts = loop.Ledger{Own: ses.Counts, Below: before.Counts}.Total()
		ses.Cost += before.Cost
		ses.Active += before.Active
	}
	ses.Counts.Rounds = 0
	for _, s := range st.Standing {
		if s.Session {
			ses.Standing = append(ses.Standing, s)
		}
	}
	return nil
}

// sessionMessages are the messages of the runs before this one.
func (h *Host) sessionMessages(ctx context.Context, cfg *loop.Config) ([]*loop.Message, error) {
	return h.earlier(ctx, cfg, false)
}

// earlier is sessionMessages; with whole as if no compaction had left anything out.
func (h *Host) earlier(ctx context.Context, cfg *loop.Config, whole bool) ([]*loop.Message, error) {
	if cfg.Session == nil || cfg.Session.Prev == nil {
		return nil, nil
	}
	prev := cfg.Session.Prev.Run
	var talk *loop.Transcript
	var st loop.State
	err := h.read(ctx, prev, func(ev loop.Event) error {
		if b, ok := ev.Body.(loop.RunStarted); ok {
			before, err := h.earlier(ctx, b.Config, whole)
			if err != nil {
				return err
			}
			talk = loop.NewTranscript(before)
		}
		next, err := loop.Next(st, ev)
		if err != nil {
			return err
		}
		st = next
		if _, ok := ev.Body.(loop.Compacted); !ok || !whole {
			talk.Apply(ev, next)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drive: read the session's earlier run %s: %w", prev, err)
	}
	// Messages of earlier runs are named by no event of this one.
	msgs := talk.Messages()
	out := make([]*loop.Message, len(msgs))
	for i, m := range msgs {
		c := *m
		c.Seq = 0
		out[i] = &c
	}
	return out, nil
}

func (h *Host) storeDefinition(ctx context.Context, c *compiled) error {
	if _, known := h.defs.Load(c.ref); known {
		return nil
	}
	if err := h.store.PutArtifacts(ctx, []journal.Artifact{{Ref: c.ref, MIME: "application/json", Data: c.def}}); err != nil {
		return err
	}
	h.defs.Store(c.ref, true)
	return nil
}
