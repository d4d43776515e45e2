package rondatest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

// actError is an act that could not happen, or that happened though it must not.
type actError struct {
	act act
	err error
}

func (e *actError) Error() string { return fmt.Sprintf("the act %s: %v", e.act.kind, e.err) }

// waits is what a run waited for after an act, to compare performances.
type waits map[string]string // call: kind

// perform does all acts in order. trace gets what the run waits for after each; known is that of the uninterrupted performance.
func (w *world) perform(known []waits) (trace []waits, err error) {
	for i := 0; i < len(w.s.acts); i++ {
		a := w.s.acts[i]
		var ats []act
		for i+1 < len(w.s.acts) && w.s.acts[i+1].kind == "at" {
			i++
			ats = append(ats, w.s.acts[i])
		}
		var expected waits
		if len(trace) < len(known) {
			expected = known[len(trace)]
		}
		if err := w.act(a, ats, expected); err != nil {
			if w.diverged {
				return trace, nil
			}
			return trace, err
		}
		now, err := w.waiting()
		if err != nil {
			return trace, err
		}
		trace = append(trace, now)
	}
	return trace, nil
}

// waiting says what the last run waits for.
func (w *world) waiting() (waits, error) {
	r, err := w.show()
	if err != nil || r == nil {
		return nil, err
	}
	now := waits{}
	for _, p := range r.Pending {
		now[p.Call] = p.Kind
	}
	return now, nil
}

// act does one act and those that are to happen while the run runs, and drives the run until it waits or stops.
func (w *world) act(a act, ats []act, expected waits) error {
	armed := make([]*armedAct, len(ats))
	for i, at := range ats {
		armed[i] = w.arm(at)
	}
	began := w.clock.Now()
	if err := w.once1(a, true); err != nil {
		return err
	}
	if err := w.settle(expected); err != nil {
		return &actError{a, err}
	}
	for i, at := range ats {
		if !armed[i].disarm() {
			if armed[i].err != nil {
				return &actError{at, armed[i].err}
			}
			if err := w.goOn(w.last()); err != nil { // where nobody drove at that moment
				return &actError{at, err}
			}
			continue
		}
		w.pass(began.Add(at.after).Sub(w.clock.Now()))
		if err := w.once1(*at.inner, true); err != nil {
			return err
		}
		if err := w.settle(expected); err != nil {
			return &actError{at, err}
		}
	}
	return nil
}

// armedAct is an act that happens at its time while a driver drives.
type armedAct struct {
	stop func() bool
	done chan struct{}
	err  error
}

func (w *world) arm(at act) *armedAct {
	x := &armedAct{done: make(chan struct{})}
	x.stop = w.clock.AfterFunc(at.after, func() {
		defer close(x.done)
		x.err = w.once1(*at.inner, false)
	})
	return x
}

// disarm says whether the act did not happen and will not happen by itself.
func (x *armedAct) disarm() bool {
	if x.stop() {
		return true
	}
	<-x.done
	return false
}

// once1 does an act. With drives it drives the run afterwards; else a driver is under way and is waited for until it has taken the
// input.
func (w *world) once1(a act, drives bool) error {
	err := w.does(a, drives)
	var inner *actError
	if err == nil || errors.As(err, &inner) {
		return err
	}
	return &actError{a, err}
}

func (w *world) does(a act, drives bool) error {
	ctx := w.ctx
	host := w.current().host
	run := w.last()
	switch a.kind {
	case "fails":
		return w.refused(a, drives)
	case "say":
		return w.say(a, run, drives)
	case "restart":
		if !drives {
			w.current().die()
			return nil
		}
		w.current().die()
		if w.agent = w.s.agent; a.agent != nil {
			w.agent = a.agent
		}
		if err := w.boot(); err != nil {
			return err
		}
		return w.goOn(run)
	case "wait":
		return w.waitFor(run, a.after)
	case "approve", "reject", "edit", "always":
		call, err := w.find(a, loop.WaitApproval)
		if err != nil {
			return err
		}
		if err := host.Decide(ctx, run, call, a.decision()); err != nil {
			return err
		}
	case "resolve":
		call, err := w.find(a, loop.WaitResolution)
		if err != nil {
			return err
		}
		if err := w.resolve(run, call, a.happened, a.by, a.message); err != nil {
			return err
		}
	case "extend":
		if err := host.Extend(ctx, run, a.limits, a.by); err != nil {
			return err
		}
	case "cancel":
		if err := host.Cancel(ctx, run, a.by, a.message); err != nil {
			return err
		}
	case "revoke":
		if err := w.revoke(a, run); err != nil {
			return err
		}
	}
	return w.after(run, drives)
}

// after drives the run on, or waits until the driver that is under way has taken the input.
func (w *world) after(run string, drives bool) error {
	if drives {
		return w.goOn(run)
	}
	signal, stop := w.store().Notify(run)
	defer stop()
	again := time.NewTicker(10 * time.Millisecond) // a driver may leave at this moment: nothing is signalled then
	defer again.Stop()
	for {
		g := w.current()
		inputs, err := w.store().Inputs(context.Background(), run)
		if err != nil || len(inputs) == 0 || g.dead.Load() || !g.host.Driving(run) || w.stopped(run) {
			return err
		}
		select {
		case <-signal:
		case <-again.C:
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

func (w *world) say(a act, run string, drives bool) error {
	if run == "" || w.stopped(run) {
		if !drives {
			return fmt.Errorf("the run has stopped: a new one cannot begin while it is being driven")
		}
		return w.start(a.text)
	}
	if err := w.current().host.Message(w.ctx, run, drive.Text(a.text), a.by, a.supersede); err != nil {
		return err
	}
	return w.after(run, drives)
}

// waitFor lets time pass; a run that is to be looked at on the way is resumed then.
func (w *world) waitFor(run string, d time.Duration) error {
	end := w.clock.Now().Add(d)
	for {
		row, err := w.store().Get(context.Background(), run)
		if err != nil {
			return err
		}
		wake := time.UnixMicro(int64(row.Wake))
		if row.Wake == 0 || row.Status == loop.StatusStopped || wake.After(end) || !wake.After(w.clock.Now()) {
			break
		}
		w.pass(wake.Sub(w.clock.Now()))
		if err := w.goOn(run); err != nil {
			return err
		}
	}
	w.pass(end.Sub(w.clock.Now()))
	return w.goOn(run)
}

func (w *world) pass(d time.Duration) {
	if d > 0 {
		w.clock.Advance(d)
	}
}

func (w *world) revoke(a act, run string) error {
	r, err := w.show()
	if err != nil {
		return err
	}
	id := a.id
	for _, s := range r.State.Standing {
		if s.Tool == a.call {
			id = s.ID
		}
	}
	return w.current().host.Revoke(w.ctx, run, id, a.by)
}

// refused does an act that must be refused and change nothing.
func (w *world) refused(a act, drives bool) error {
	before := w.mark()
	err := w.does(*a.inner, drives)
	if err == nil {
		return fmt.Errorf("%s was accepted, but must be refused with %s", a.inner.kind, a.with)
	}
	if got := refusal(err); got != a.with {
		return fmt.Errorf("%s was refused with %s, not %s: %v", a.inner.kind, got, a.with, err)
	}
	if after := w.mark(); after != before {
		return fmt.Errorf("%s was refused with %s, but something changed: %s became %s", a.inner.kind, a.with, before, after)
	}
	return nil
}

// refusal is the class of an act's error.
func refusal(err error) string {
	switch {
	case errors.Is(err, drive.ErrNotFound):
		return "not_found"
	case errors.Is(err, drive.ErrConflict), errors.Is(err, drive.ErrBusy), errors.Is(err, drive.ErrChanged):
		return "conflict"
	case errors.Is(err, drive.ErrKilled):
		return "a crash"
	}
	return "invalid" // a configuration that cannot work, an input that makes no sense
}

// mark describes all that an act could change.
func (w *world) mark() string {
	s := fmt.Sprintf("%d runs", len(w.runs))
	for _, id := range w.runs {
		row, err := w.store().Get(context.Background(), id)
		if err == nil {
			s += fmt.Sprintf(", %s at event %d with %d inputs", id, row.Seq, row.Inputs)
		}
	}
	return s
}
