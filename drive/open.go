package drive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

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

// Begin is Start without waiting: the run is in the store when it returns, and a goroutine of the host drives it. done is closed
// when the driver lets go.
func (h *Host) Begin(ctx context.Context, s Start) (run string, done <-chan struct{}, err error) {
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

// background runs the driving of a run in a goroutine that ends with the host.
func (h *Host) background(run string, drive func(ctx context.Context) error) <-chan struct{} {
	done := make(chan struct{})
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		defer close(done)
		if err := drive(context.WithoutCancel(h.ctx)); err != nil && !errors.Is(err, ErrKilled) {
			h.log.Error("driving a run failed", "run", run, "error", err)
		}
	}()
	return done
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
		caches: map[string]*model.Cache{}, fresh: map[string]bool{}}
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
	if ses.Prev != nil || ses.Limits != (loop.Limits{}) {
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
	if cfg.Session == nil || cfg.Session.Prev == nil {
		return nil, nil
	}
	prev := cfg.Session.Prev.Run
	var talk *loop.Transcript
	var st loop.State
	err := h.read(ctx, prev, func(ev loop.Event) error {
		if b, ok := ev.Body.(loop.RunStarted); ok {
			before, err := h.sessionMessages(ctx, b.Config)
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
		talk.Apply(ev, next)
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

// drive runs a driver in the caller's goroutine and says what came of it.
func (h *Host) drive(ctx context.Context, d *driver) (*Run, error) {
	release, err := h.claim(ctx, d.lease.Run)
	if err != nil {
		return nil, err
	}
	err = d.run(ctx)
	release()
	if !d.created {
		return nil, h.started(err, d)
	}
	return d.view(), err
}

func (h *Host) started(err error, d *driver) error {
	if errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("drive: session %s: %w: %w. Say something to that run, or cancel it", d.row.Session, ErrBusy, err)
	}
	return err
}

// Resume takes a run over and drives it until it waits or stops: after a crash, after a decision, on any process with the same store
// and agents. A run that has stopped is returned as it is. While another living process drives it: journal.ErrHeld.
func (h *Host) Resume(ctx context.Context, run string) (*Run, error) {
	release, err := h.claim(ctx, run)
	if err != nil {
		return nil, err
	}
	defer release()
	d, err := h.open(ctx, run)
	if err != nil {
		return nil, err
	}
	if d.state.Phase == loop.PhaseStopped {
		_ = h.store.Release(ctx, d.lease)
		return d.view(), nil
	}
	err = d.run(ctx)
	return d.view(), err
}

// ResumeInBackground is Resume in a goroutine of the host.
func (h *Host) ResumeInBackground(run string) <-chan struct{} {
	return h.background(run, func(ctx context.Context) error {
		_, err := h.Resume(ctx, run)
		return err
	})
}

// open takes the lease of a run and folds its journal. A run that has stopped needs no lease.
func (h *Host) open(ctx context.Context, run string) (*driver, error) {
	row, err := h.store.Get(ctx, run)
	if err != nil {
		return nil, err
	}
	agent, err := h.agentOf(ctx, row)
	if err != nil {
		if row.Status == loop.StatusStopped {
			agent, err = nil, nil
		} else {
			return nil, err
		}
	}
	d := h.newDriver(nil)
	d.created = true
	d.lease = journal.Lease{Run: run}
	if agent != nil {
		if d.c, err = h.compile(agent); err != nil {
			return nil, err
		}
	}
	if row.Status != loop.StatusStopped {
		if d.lease, err = h.store.Acquire(ctx, run, h.owner); err != nil {
			return nil, err
		}
	}
	giveUp := func(err error) (*driver, error) {
		if d.lease.Owner != "" {
			_ = h.store.Release(context.WithoutCancel(ctx), d.lease)
		}
		return nil, err
	}
	if err := d.fold(ctx); err != nil {
		return giveUp(err)
	}
	if d.state.Phase == loop.PhaseStopped {
		return d, nil
	}
	if err := d.sameAgent(); err != nil {
		return giveUp(err)
	}
	resumed := loop.RunResumed{Epoch: d.lease.Epoch}
	if d.c.ref != d.state.Config.Digest && d.c.ref != d.state.Digest || d.state.Digest != "" && d.c.ref != d.state.Digest {
		resumed.Digest = d.c.ref
		if err := h.storeDefinition(ctx, d.c); err != nil {
			return giveUp(err)
		}
	}
	if status, _ := d.state.Status(); status == loop.StatusRunning || resumed.Digest != "" {
		return d, d.step(resumed)
	}
	return d, nil
}

// fold reads the journal from its beginning.
func (d *driver) fold(ctx context.Context) error {
	row, err := d.h.store.Get(ctx, d.lease.Run)
	if err != nil {
		return err
	}
	d.row, d.state, d.known, d.previous = row, loop.State{}, evidence{}, previous{gone: d.previous.gone}
	clear(d.caches)
	return d.h.read(ctx, d.lease.Run, func(ev loop.Event) error {
		if b, ok := ev.Body.(loop.RunStarted); ok {
			before, err := d.h.sessionMessages(ctx, b.Config)
			if err != nil {
				return err
			}
			d.talk = loop.NewTranscript(before)
		}
		next, err := loop.Next(d.state, ev)
		if err != nil {
			return fmt.Errorf("drive: run %s: its journal does not fold: %w", d.lease.Run, err)
		}
		d.adopt(ev, next)
		return nil
	})
}

// ErrChanged is wrapped where a pending call's tool is not what it was when the call was asked for. The run keeps its pause.
var ErrChanged = errors.New("the agent's definition has changed")

// sameAgent refuses to go on where a call that waits would run a tool that is not the one it was decided for; other differences go on
// record.
func (d *driver) sameAgent() error {
	if d.state.Config.Digest == d.c.ref {
		return nil
	}
	for _, c := range d.state.Turn.Calls {
		if c.Status == loop.CallSettled || c.Status == loop.CallNew || c.Tool == loop.FinishTool {
			continue
		}
		was := d.state.Config.ToolSpec(c.Tool)
		now := d.c.tools[c.Tool]
		switch {
		case was == nil:
		case now == nil:
			return fmt.Errorf("drive: run %s: %w: call %s waits for the tool %s, which the agent no longer has. Resume with the tool, or cancel the run", d.lease.Run, ErrChanged, c.ID, c.Tool)
		case was.Digest != now.digest:
			return fmt.Errorf("drive: run %s: %w: call %s waits for the tool %s, whose definition is another one now. Resume with the definition that was asked for, or reject the call", d.lease.Run, ErrChanged, c.ID, c.Tool)
		}
	}
	return nil
}

// read decodes the journal of a run.
func (h *Host) read(ctx context.Context, run string, fn func(loop.Event) error) error {
	return h.read1(ctx, run, 0, fn)
}

// read1 decodes the journal of a run after a sequence.
func (h *Host) read1(ctx context.Context, run string, after int64, fn func(loop.Event) error) error {
	return h.store.Read(ctx, run, after, func(r journal.Record) error {
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return fmt.Errorf("drive: run %s: %w", run, err)
		}
		return fn(ev)
	})
}

// stateOf folds a run without its messages.
func (h *Host) stateOf(ctx context.Context, run string) (loop.State, error) {
	var st loop.State
	err := h.read(ctx, run, func(ev loop.Event) error {
		next, err := loop.Next(st, ev)
		st = next
		return err
	})
	return st, err
}

// encode makes the batch for the store: the records, the row of the run after them, and what is stored with them.
func (d *driver) encode() (journal.Batch, error) {
	b := journal.Batch{Lease: d.lease, After: d.row.Seq, Take: d.take, NoInputs: d.noInputs, Artifacts: d.extra, Tapes: d.tapes}
	digest := d.row.Digest
	b.Records = make([]journal.Record, len(d.batch))
	for i, ev := range d.batch {
		data, err := loop.Encode(ev)
		if err != nil {
			return b, err
		}
		digest = Chain(digest, data)
		b.Records[i] = journal.Record{Seq: ev.Seq, Data: data}
	}
	row := d.row
	row.Status, row.Waiting = d.state.Status()
	if d.state.Stop != nil {
		row.Stop, row.Limit = d.state.Stop.Stop, d.state.Stop.Limit
	}
	row.Updated, row.Seq, row.Digest = d.state.Time, d.state.Seq, digest
	row.Wake = 0
	if row.Status == loop.StatusWaiting {
		row.Wake = d.state.NextWake(d.state.Time)
	}
	row.Summary = summary(d.state)
	b.Run = row
	return b, nil
}

// Chain is the rolling digest of a journal: 32 hex digits of SHA-256 over the digest before and the record.
func Chain(before string, record []byte) string {
	room := chainRoom.Get().(*[]byte)
	buf := append(append((*room)[:0], before...), record...)
	sum := sha256.Sum256(buf)
	*room = buf
	chainRoom.Put(room)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

var chainRoom = sync.Pool{New: func() any { return new([]byte) }}

// summary is what lists show of a run.
func summary(s loop.State) json.RawMessage {
	t := s.Ledger.Total()
	return fmt.Appendf(nil, `{"rounds":%d,"model_calls":%d,"tool_calls":%d,"tokens":%d,"cost":%d}`, t.Rounds, t.ModelCalls, t.ToolCalls, t.Usage.Total(), s.Ledger.TotalCost())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
