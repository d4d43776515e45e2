package drive

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

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
	fresh    map[string]bool // calls decided by this driver: their policy needs no second look
	waits    func(bool)      // a child\'s driver: says whether it only waits
	dead     atomic.Bool     // a hook killed the process
	rest     rest            // what a watched clock knows of this driver
}

// work is something under way outside of the driver's goroutine.
type work struct {
	cmd     loop.Command
	cancel  context.CancelCauseFunc
	aborted string // cause
	stop    func() bool
	child   bool
	waiting atomic.Bool            // child: it only waits
	driver  atomic.Pointer[driver] // child: its driver
	over    atomic.Bool            // nobody waits for it any more
	gone    chan struct{}          // child: closed when its goroutine is done; nil before it begins
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

// onlyWaiting says that nothing is under way but children that wait themselves.
func (d *driver) onlyWaiting() bool {
	for _, w := range d.flight {
		if !w.waiting.Load() {
			return false
		}
	}
	return true
}

// answer is what work came to: the event, or err when the driver itself must give up.
type answer struct {
	id        string
	body      loop.Body
	artifacts []journal.Artifact
	tape      *journal.Tape
	err       error
	again     bool // the work was not done: ask Ready again (a child that waits)
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
			d.rest.mu.Lock()
			d.rest.awake = clock.Waiting(0)
			d.rest.mu.Unlock()
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
		d.beginCompaction(ctx, c)
	default:
		return false, fmt.Errorf("drive: run %s: no such command: %s", d.lease.Run, c.Kind)
	}
	return false, nil
}

// lost answers a command that a driver before this one began: it died with its process.
func (d *driver) lost(c loop.Command) loop.Body {
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
	d.known.apply(ev, d.talk)
	d.previous.apply(ev)
	d.state = next
	d.talk.Apply(ev, next)
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

// answered folds what a piece of work came to.
func (d *driver) answered(a answer) error {
	w, ok := d.flight[a.id]
	if !ok {
		return nil // given up before
	}
	delete(d.flight, a.id)
	if w.stop != nil {
		w.stop()
	}
	w.drop(nil)
	if a.err != nil {
		return a.err
	}
	if a.again {
		return nil
	}
	return d.fold1(a)
}

// fold1 puts an answer into the batch.
func (d *driver) fold1(a answer) error {
	d.answers = append(d.answers, a)
	d.extra = append(d.extra, a.artifacts...)
	if a.tape != nil {
		d.tapes = append(d.tapes, *a.tape)
	}
	return d.step(a.body)
}

// post gives an answer to the driver, if it is still there.
func (d *driver) post(a answer) {
	d.rest.posts()
	select {
	case d.results <- a:
	case <-d.done:
	}
}

// under registers work that begins once the batch is durable.
func (d *driver) under(ctx context.Context, c loop.Command, begin func(ctx context.Context, w *work)) {
	w := &work{cmd: c, child: c.Kind == loop.RunChild}
	ctx, w.cancel = context.WithCancelCause(context.WithValue(ctx, workKey{}, w))
	d.flight[c.ID] = w
	d.starting = append(d.starting, c.ID)
	d.launch = append(d.launch, func() {
		leave := func() {}
		if clock, ok := d.h.clock.(watched); ok && w.child {
			leave = clock.Enter() // the child's driver is counted from here
		}
		job := func() {
			defer leave()
			begin(ctx, w)
		}
		if w.child {
			w.gone = make(chan struct{})
			job = func() {
				defer leave()
				begin(ctx, w)
				close(w.gone)
				d.rest.wake() // the parent, before the child leaves
			}
		}
		select {
		case d.jobs <- job: // a goroutine that did work before: its stack has grown already
		default:
			go d.worker(job)
		}
	})
}

// worker does one piece of work after the other until the driver is gone.
func (d *driver) worker(job func()) {
	for {
		job()
		select {
		case job = <-d.jobs:
		case <-d.done:
			return
		}
	}
}

// deadline ends a piece of work after a time on the host's clock; 0 is for ever.
func (d *driver) deadline(w *work, after time.Duration, cause error) (stop func()) {
	if after <= 0 {
		return func() {}
	}
	timer := d.h.clock.AfterFunc(after, func() { w.cancel(cause) })
	return func() { timer() }
}

// abort asks a piece of work to end. If it does not within the grace time the driver answers in its place.
func (d *driver) abort(c loop.Command) {
	w := d.flight[c.Target]
	if w == nil || w.aborted != "" {
		return
	}
	w.aborted = c.Cause
	clock := ""
	if c.Cause == loop.CauseLimit && d.state.Limit != nil {
		clock = d.state.Limit.Limit
	}
	w.end(abortError{c.Cause, clock})
	if w.child {
		return
	}
	d.giveUpAfterGrace(w)
}

// giveUpAfterGrace answers for work that goes on though it was told to end.
func (d *driver) giveUpAfterGrace(w *work) {
	cmd, cause := w.cmd, w.aborted
	w.stop = d.h.clock.AfterFunc(grace(d.state.Config), func() {
		var body loop.Body
		if cmd.Kind == loop.CallModel {
			body = loop.ModelFailed{Call: cmd.N, Attempt: cmd.Attempt, Class: loop.ClassTransient, Lost: true, Cause: cause, Message: "did not end within the grace time"}
		} else {
			body = loop.ToolFailed{Call: cmd.Call, Attempt: cmd.Attempt, Class: loop.ClassUnknown, Cause: cause, Message: "did not end within the grace time"}
		}
		d.post(answer{id: cmd.ID, body: body})
	})
}

// abortError is the cause of a cancelled context: why the work is to end, and the clock that says so.
type abortError struct{ cause, clock string }

func (e abortError) Error() string { return e.cause }

// letGo ends the driving without ending the run: reads and model calls are abandoned and are begun again by the next driver; other
// tools get the grace time to end, and what they say is kept.
func (d *driver) letGo(cause error) error {
	d.rest.hears()
	deadline := make(chan struct{})
	stop := d.h.clock.AfterFunc(grace(d.state.Config), func() { d.rest.wake(); close(deadline) })
	defer stop()
	for d.busyWriting() {
		d.rests()
		select {
		case a := <-d.results:
			d.rest.received()
			d.rest.wake()
			if err := d.answered(a); err != nil {
				return err
			}
		case <-deadline:
			d.rest.wake()
			return d.leave(cause)
		}
	}
	return d.leave(cause)
}

func (d *driver) leave(cause error) error {
	if err := d.commit(context.Background()); err != nil && !errors.Is(err, journal.ErrInbox) {
		return err
	}
	if errors.Is(cause, errLetGo) {
		return errLetGo
	}
	return fmt.Errorf("drive: run %s was let go: %w. Resume it to go on", d.lease.Run, cause)
}

func (d *driver) busyWriting() bool {
	for _, w := range d.flight {
		if w.cmd.Kind != loop.RunTool {
			continue
		}
		call, _ := d.state.Call(w.cmd.Call)
		if d.state.Config.ToolSpec(call.Tool).EffectOf() != loop.Read {
			return true
		}
	}
	return false
}
