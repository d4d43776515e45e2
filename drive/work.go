package drive

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// work is something under way outside of the driver's goroutine.
type work struct {
	cmd     loop.Command
	seq     int64 // of the event that put its start on record
	cancel  context.CancelCauseFunc
	aborted string // cause
	stop    func() bool
	child   bool
	waiting atomic.Bool            // child: it only waits
	driver  atomic.Pointer[driver] // child: its driver
	over    atomic.Bool            // nobody waits for it any more
	gone    chan struct{}          // child: closed when its goroutine is done; nil before it begins
	left    bool                   // child: the same, under the lock of the parent's rest
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
	also      loop.Body // what follows from it, at once
	tape      *journal.Tape
	passed    bool // a check of the agent's own holds: the judge is next
	err       error
	again     bool // the work was not done: ask Ready again (a child that waits)
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
	if a.passed {
		d.passed = a.id
		return nil
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
	last := d.state.Seq
	if err := d.step(a.body); err != nil || a.also == nil || d.state.Seq == last {
		return err
	}
	if b, ok := a.also.(loop.Compacted); ok {
		return d.step(d.sized(b))
	}
	return d.step(a.also)
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
	w := &work{cmd: c, seq: d.state.Seq, child: c.Kind == loop.RunChild}
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
				d.rest.left(w) // before the child leaves the clock
				close(w.gone)
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
		switch cmd.Kind {
		case loop.Compaction, loop.CheckDone:
			purpose := loop.PurposeCompaction
			if cmd.Kind == loop.CheckDone {
				purpose = loop.PurposeJudge
			}
			body = loop.ModelFailed{Call: cmd.N, Attempt: attempt(int(cmd.Attempt)), Class: loop.ClassTransient, Lost: true, Cause: cause, Purpose: purpose,
				Message: "did not end within the grace time"}
		case loop.CallModel:
			body = loop.ModelFailed{Call: cmd.N, Attempt: cmd.Attempt, Class: loop.ClassTransient, Lost: true, Cause: cause, Message: "did not end within the grace time"}
		default:
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
