package drive

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// driver drives one run in one goroutine: validate, append, adopt, act. Work that leaves the process runs in goroutines of its own,
// which answer through results; nothing but the driver's goroutine touches the rest.
type driver struct {
	h     *Host
	c     *compiled
	lease journal.Lease
	state loop.State
	row   journal.Run
	talk  *loop.Transcript
	known evidence // what grounding and requirements look at

	batch    []loop.Event // validated, not yet appended
	take     []string     // inputs that the batch takes
	noInputs bool         // the batch ends or expires something
	extra    []journal.Artifact
	tapes    []journal.Tape
	launch   []func() // what begins once the batch is durable

	inputs   []journal.Input // accepted and not yet taken
	flight   map[string]*work
	results  chan answer
	jobs     chan func()             // work for goroutines that are idle
	done     chan struct{}           // closed when the driver is gone: nobody listens to results any more
	answers  []answer                // folded into the batch
	starting []string                // ids of work that begins once the batch is durable
	created  bool                    // the run is in the store
	caches   map[string]*model.Cache // by model
	previous previous
	memory   memory          // what a compaction keeps
	refs     map[string]bool // artifacts of this run
	planned  planned         // what the hook said before the call that is owed
	passed   string          // the command whose own check has passed: only the judge is left
	fresh    map[string]bool // calls decided by this driver: their policy needs no second look
	waits    func(bool)      // a child\'s driver: says whether it only waits
	dead     atomic.Bool     // a hook killed the process
	rest     rest            // what a watched clock knows of this driver
}

// drop says that nobody waits for the work any more.
func (w *work) drop(cause error) {
	w.over.Store(true)
	w.end(cause)
}

// end asks the work to end. A child's driver does not count as waiting from here until it has heard of it.
func (w *work) end(cause error) {
	w.cancel(cause)
	if c := w.driver.Load(); c != nil {
		c.rest.wake()
	}
}

// errLetGo ends a driver without an error: the run waits, or the host is being shut down.
var errLetGo = errors.New("let go")

// run drives until the run waits or stops, or ctx ends. The lease is given up in each case but a crash.
func (d *driver) run(ctx context.Context) error {
	if w, ok := d.h.clock.(watched); ok && !d.rest.entered {
		defer w.Enter()()
	}
	signal, unsubscribe := d.h.store.Notify(d.lease.Run)
	defer unsubscribe()
	err := d.loop(ctx, signal)
	close(d.done)
	for _, w := range d.flight {
		w.drop(errLetGo)
	}
	switch {
	case errors.Is(err, ErrKilled):
		d.dead.Store(true)
		return err
	case errors.Is(err, errLetGo):
		err = nil
	}
	d.awaitChildren()
	if rel := d.h.store.Release(context.WithoutCancel(ctx), d.lease); rel != nil && err == nil {
		err = rel
	}
	return err
}

// awaitChildren returns when no driver of a child is at work any more: whoever gets this run back may decide for its children, and must
// not meet one that is leaving.
func (d *driver) awaitChildren() {
	for _, w := range d.flight {
		if w.gone == nil {
			continue
		}
		if clock, ok := d.h.clock.(watched); ok {
			d.rest.awaitsEnd(w, clock)
		}
		<-w.gone
		d.rest.wake()
	}
}

// loop is the one interpreter of commands.
func (d *driver) loop(ctx context.Context, signal <-chan struct{}) error {
	if err := d.readInputs(ctx); err != nil {
		return err
	}
	for {
		if err := d.takeInputs(); err != nil {
			return err
		}
		wake, err := d.perform(ctx)
		if err != nil {
			return err
		}
		if err := d.commit(ctx); err != nil {
			if errors.Is(err, journal.ErrInbox) {
				if err := d.rewind(ctx); err != nil {
					return err
				}
				continue
			}
			return err
		}
		for _, begin := range d.launch {
			begin()
		}
		started := len(d.launch) > 0
		d.launch, d.starting = d.launch[:0], d.starting[:0]
		if started || len(d.inputs) > 0 {
			continue
		}
		if status, _ := d.state.Status(); status != loop.StatusRunning && d.onlyWaiting() {
			if status == loop.StatusStopped || d.waits == nil {
				return errLetGo
			}
			d.waits(true) // a child's driver stays while its parent's does
		}
		if err := d.wait(ctx, signal, wake); err != nil {
			return err
		}
	}
}

// perform does what Ready says: what is answered at once is folded into the batch until nothing of the kind is owed; what leaves the
// process is put on record and begins after the commit.
func (d *driver) perform(ctx context.Context) (wake loop.Micros, err error) {
	for range 10_000 {
		cmds := loop.Ready(d.state, d.now())
		wake = 0
		again := false
		for _, c := range cmds {
			if c.Kind == loop.Wake && (wake == 0 || c.After < wake) {
				wake = c.After
			}
			again, err = d.begin(ctx, c)
			if err != nil {
				return 0, err
			}
			if again {
				break
			}
		}
		if !again {
			return wake, nil
		}
	}
	return 0, fmt.Errorf("drive: run %s: the loop owes records without end: %s. This is a fault of ronda; report it with the journal", d.lease.Run, d.state)
}

// begin performs one command. again says that the state changed, so that Ready must be asked anew.
func (d *driver) begin(ctx context.Context, c loop.Command) (again bool, err error) {
	if _, under := d.flight[c.ID]; under {
		return false, nil
	}
	switch c.Kind {
	case loop.Record:
		return true, d.step(c.Body)
	case loop.Authorize:
		body, err := d.authorize(ctx, c)
		if err != nil {
			return false, err
		}
		return true, d.step(body)
	case loop.Abort:
		d.abort(c)
		return false, nil
	case loop.Wake:
		return false, nil
	}
	if c.Started {
		if c.Kind == loop.RunChild {
			return false, d.driveChild(ctx, c)
		}
		return true, d.step(d.lost(c))
	}
	if c.After > d.now() {
		return false, nil
	}
	if d.h.ctx.Err() != nil || ctx.Err() != nil {
		return false, nil // nothing new begins while the driver is asked to let go
	}
	switch c.Kind {
	case loop.CallModel:
		return d.beginModel(ctx, c)
	case loop.RunTool:
		return d.beginTool(ctx, c)
	case loop.RunChild:
		return d.beginChild(ctx, c)
	case loop.CheckEffect:
		d.beginCheckEffect(ctx, c)
	case loop.CheckDone:
		return d.beginCheckDone(ctx, c)
	case loop.Compaction:
		return d.beginCompaction(ctx, c)
	default:
		return false, fmt.Errorf("drive: run %s: no such command: %s", d.lease.Run, c.Kind)
	}
	return false, nil
}

// lost answers a command that a driver before this one began: it died with its process.
func (d *driver) lost(c loop.Command) loop.Body {
	if c.Kind == loop.Compaction || c.Kind == loop.CheckDone {
		return d.state.SideLost()
	}
	if c.Kind == loop.CallModel {
		return loop.ModelFailed{Call: c.N, Attempt: c.Attempt, Class: loop.ClassTransient, Lost: true, Cause: loop.CauseCrash,
			Message: "the process that made the call died"}
	}
	return loop.ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: loop.ClassUnknown, Cause: loop.CauseCrash,
		Message: "the process that ran the call died before its result was recorded"}
}

// now is the time for the next event: never before the last one.
func (d *driver) now() loop.Micros { return max(d.h.now(), d.state.Time) }

// step validates an event and adopts it in memory; it becomes durable with the batch. A stale event is dropped.
func (d *driver) step(b loop.Body) error {
	ev := loop.Event{Seq: d.state.Seq + 1, Time: d.now(), Body: b}
	next, err := loop.Next(d.state, ev)
	if errors.Is(err, loop.ErrStale) {
		d.h.log.Debug("stale event dropped", "run", d.lease.Run, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("drive: run %s: %w", d.lease.Run, err)
	}
	switch b := b.(type) {
	case loop.RunStopped:
		d.noInputs = true
	case loop.ApprovalDecided:
		d.noInputs = d.noInputs || b.Decision == loop.Expired
	}
	d.adopt(ev, next)
	d.batch = append(d.batch, ev)
	return nil
}

// adopt folds an accepted event into everything that the driver derives from events.
func (d *driver) adopt(ev loop.Event, next loop.State) {
	if d.c == nil || d.c.requires {
		d.known.apply(ev, d.talk)
	}
	d.previous.apply(ev)
	d.memory.apply(ev, d.talk)
	refsOf(ev, func(ref string) { d.refs[ref] = true })
	before := len(d.talk.Messages())
	d.state = next
	d.talk.Apply(ev, next)
	if b, ok := ev.Body.(loop.Compacted); ok && b.Failed == "" {
		d.memory.counts(before, len(d.talk.Messages()))
		clear(d.caches) // what was encoded is not a beginning any more, also where the first message stayed
	}
}

// commit appends the batch. Until it returns nothing of it is visible or acted upon.
func (d *driver) commit(ctx context.Context) error {
	if len(d.batch) == 0 && len(d.take) == 0 {
		return nil
	}
	b, err := d.encode()
	if err != nil {
		return err
	}
	last := d.state.Seq
	if err := d.h.hook(Point{Name: "append", Run: d.lease.Run, Seq: last, State: &d.state}); err != nil {
		return err
	}
	left, err := d.append(ctx, b)
	if err != nil {
		return err
	}
	d.row = b.Run
	d.h.publish(d.lease.Run, d.batch)
	d.batch, d.answers, d.take, d.noInputs, d.extra, d.tapes = d.batch[:0], d.answers[:0], nil, false, nil, nil
	if err := d.h.hook(Point{Name: "appended", Run: d.lease.Run, Seq: last, State: &d.state}); err != nil {
		return err
	}
	if left > 0 {
		return d.readInputs(ctx)
	}
	d.inputs = nil
	return nil
}

// append stores the batch. What is known must not be lost because somebody stopped waiting for it, so ctx's end does not count.
func (d *driver) append(ctx context.Context, b journal.Batch) (inputs int, err error) {
	ctx = context.WithoutCancel(ctx)
	if d.created {
		return d.h.store.Append(ctx, b)
	}
	lease, err := d.h.store.Create(ctx, b)
	if err != nil {
		return 0, err
	}
	d.lease, d.created = lease, true
	return 0, nil
}

// rewind gives a batch up that must not stand beside an input that arrived meanwhile: the journal is read again, the answers that were
// in the batch are folded again, and the inputs are taken before anything ends.
func (d *driver) rewind(ctx context.Context) error {
	answers := append([]answer{}, d.answers...)
	for _, id := range d.starting {
		d.flight[id].drop(errLetGo)
		delete(d.flight, id)
	}
	d.batch, d.answers, d.take, d.noInputs, d.extra, d.tapes, d.launch, d.starting = nil, nil, nil, false, nil, nil, nil, nil
	if err := d.fold(ctx); err != nil {
		return err
	}
	for _, a := range answers {
		if err := d.fold1(a); err != nil {
			return err
		}
	}
	return d.readInputs(ctx)
}

// wait blocks until an answer, an input, the wake time or the end of ctx.
func (d *driver) wait(ctx context.Context, signal <-chan struct{}, wake loop.Micros) error {
	turn := d.rest.begins()
	var timer chan struct{}
	if wake > 0 {
		timer = make(chan struct{}, 1)
		stop := d.h.clock.AfterFunc(toDuration(wake-d.now()), func() { d.rest.wakeIn(turn); timer <- struct{}{} })
		defer stop()
	}
	d.rests()
	defer d.rest.wake()
	select {
	case a := <-d.results:
		d.rest.received()
		d.goesOn()
		return d.answered(a)
	case <-signal:
		d.goesOn()
		return d.readInputs(ctx)
	case <-timer:
		return nil
	case <-ctx.Done():
		return d.letGo(context.Cause(ctx))
	case <-d.h.ctx.Done():
		return d.letGo(errLetGo)
	}
}

func (d *driver) goesOn() {
	if d.waits != nil {
		d.waits(false)
	}
}
