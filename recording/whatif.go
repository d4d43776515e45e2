package recording

import (
	"errors"
	"reflect"
	"slices"

	"github.com/ronda-go/ronda/loop"
)

// Change is another configuration for a run that happened. Zero values change nothing.
type Change struct {
	Limits  loop.Limits `json:"limits,omitzero"` // those that are set take the place of the run's
	OnLimit string      `json:"on_limit,omitempty"`
	Stall   *int64      `json:"stall,omitempty"`
	Nudges  *int64      `json:"nudges,omitempty"`
	Repairs *int64      `json:"repairs,omitempty"`
	Deny    []string    `json:"deny,omitempty"` // tools whose calls the policy would have denied
	Ask     []string    `json:"ask,omitempty"`  // tools whose calls would have waited for a person
}

// Outcome is what a change would have done, as far as a recording can tell: up to where the run would have gone another way, each answer of
// the model and each result is the recorded one.
type Outcome struct {
	Change     Change      `json:"change"`
	Same       bool        `json:"same"`           // nothing would have been different
	Stop       loop.Reason `json:"stop,omitempty"` // it would have ended so
	Limit      string      `json:"limit,omitempty"`
	Closing    bool        `json:"closing,omitempty"` // after one more model call, the closing call
	Open       bool        `json:"open,omitempty"`    // it would have gone on beyond what was recorded: only a model can tell
	Waits      int64       `json:"waits,omitempty"`   // calls that would have waited for a person
	Denied     []string    `json:"denied,omitempty"`  // calls that would have been denied
	Nudged     []int64     `json:"nudged,omitempty"`  // after these recorded events the model would have been told that it repeats itself
	Round      int64       `json:"round"`             // rounds at that place
	Event      int64       `json:"event"`             // last recorded event before it went another way
	Rounds     int64       `json:"rounds_saved"`
	ModelCalls int64       `json:"model_calls_saved"`
	ToolCalls  int64       `json:"tool_calls_saved"`
	Tokens     int64       `json:"tokens_saved"`
	Cost       loop.Pico   `json:"cost_saved"`
	Time       loop.Micros `json:"time_saved"`
}

// WhatIf folds the events of a run again under another configuration. No model and no tool is asked. It fails only where the events do not
// begin with RunStarted.
func WhatIf(events []loop.Event, ch Change) (Outcome, error) {
	out := Outcome{Change: ch, Same: true}
	if len(events) == 0 {
		return out, errors.New("recording: what if: there are no events")
	}
	first, ok := startOf(events)
	if !ok {
		return out, errors.New("recording: what if: the events do not begin with RunStarted")
	}
	first.Config = ch.apply(first.Config)
	f := &refold{ch: ch, out: &out}
	if !f.add(events[0].Time, first) {
		return out, errors.New("recording: what if: the first event does not fold")
	}
	for i, ev := range events[1:] {
		if f.step(ev) {
			out.saved(f.st, events, events[1+i].Time)
			return out, nil
		}
		out.Event = ev.Seq
	}
	out.Round = f.st.Ledger.Own.Rounds
	if f.st.Stop == nil {
		if f.settles(events[len(events)-1].Time) {
			out.saved(f.st, events, f.st.Time)
		}
	}
	return out, nil
}

func (ch Change) apply(c *loop.Config) *loop.Config {
	cfg := *c
	pick := func(to **int64, v *int64) {
		if v != nil {
			*to = v
		}
	}
	l := &cfg.Limits
	pick(&l.Rounds, ch.Limits.Rounds)
	pick(&l.ModelCalls, ch.Limits.ModelCalls)
	pick(&l.ToolCalls, ch.Limits.ToolCalls)
	pick(&l.Tokens, ch.Limits.Tokens)
	if ch.Limits.Cost != nil {
		l.Cost = ch.Limits.Cost
	}
	if ch.Limits.ActiveTime != nil {
		l.ActiveTime = ch.Limits.ActiveTime
	}
	if ch.Limits.Deadline != nil {
		l.Deadline = ch.Limits.Deadline
	}
	if ch.OnLimit != "" {
		cfg.OnLimit = ch.OnLimit
	}
	if ch.Stall != nil {
		cfg.Stall.Repeats = *ch.Stall
	}
	if ch.Nudges != nil {
		cfg.Nudges = *ch.Nudges
	}
	if ch.Repairs != nil {
		cfg.Repairs = *ch.Repairs
	}
	return &cfg
}

// refold is a run under another configuration.
type refold struct {
	ch    Change
	st    loop.State
	out   *Outcome
	tools map[string]string // calls of the turn
}

func (f *refold) add(t loop.Micros, b loop.Body) bool {
	next, err := loop.Next(f.st, loop.Event{Seq: f.st.Seq + 1, Time: max(t, f.st.Time), Body: b})
	if err != nil {
		return false
	}
	f.st = next
	return true
}

// step goes on with a recorded event; true says that the run ends or leaves the recording before it.
func (f *refold) step(ev loop.Event) (done bool) {
	for range 1000 {
		body, owed := f.owed(ev)
		if !owed {
			break
		}
		if sameBody(body, ev.Body) {
			if !f.add(ev.Time, body) {
				return f.leaves()
			}
			return false
		}
		f.out.Same = false
		switch b := body.(type) {
		case loop.LimitReached:
			f.add(ev.Time, b)
			return f.limit()
		case loop.RunStopped:
			return f.stops(b)
		case loop.Nudged:
			if b.Reason != loop.NudgeStall {
				return f.leaves()
			}
			f.out.Nudged = append(f.out.Nudged, ev.Seq-1)
		}
		if !f.add(ev.Time, body) {
			return f.leaves()
		}
	}
	return f.take(ev)
}

// owed is the record that the run owes before a recorded event.
func (f *refold) owed(ev loop.Event) (loop.Body, bool) {
	cmds := loop.Ready(f.st, max(ev.Time, f.st.Time))
	if len(cmds) == 0 {
		return nil, false
	}
	switch c := cmds[0]; {
	case c.Kind == loop.Record:
		return c.Body, true
	case c.Kind == loop.CallModel && !c.Started:
		started, ok := ev.Body.(loop.ModelCallStarted)
		if !ok || started.Purpose != "" {
			return nil, false
		}
		body := f.st.AdmitPlan(max(ev.Time, f.st.Time), started.Reserve.Input, started.Plan)
		if b, ok := body.(loop.ModelCallStarted); ok {
			return nil, b.Closing && !started.Closing
		}
		return body, true
	}
	return nil, false
}

// sameBody compares what is owed with what was recorded. The answer of a stop is an event of its own journal.
func sameBody(a, b loop.Body) bool {
	x, ok := a.(loop.RunStopped)
	if y, is := b.(loop.RunStopped); ok && is {
		x.Answer, y.Answer = 0, 0
		return reflect.DeepEqual(x, y)
	}
	return reflect.DeepEqual(a, b)
}

// take folds a recorded event, or passes over it where this run does not owe it.
func (f *refold) take(ev loop.Event) (done bool) {
	switch b := ev.Body.(type) {
	case loop.ModelCallStarted:
		if b.Purpose != "" { // a summary or a verdict, as it was
			break
		}
		body, ok := f.st.AdmitPlan(max(ev.Time, f.st.Time), b.Reserve.Input, b.Plan).(loop.ModelCallStarted)
		if !ok || f.st.Phase != loop.PhasePrompt || body.Closing != b.Closing {
			return f.leaves()
		}
		if f.tools = map[string]string{}; !f.add(ev.Time, body) {
			return f.leaves()
		}
		return false
	case loop.ModelReplied:
		n := 0
		for _, bl := range b.Blocks {
			if bl.Kind == loop.BlockCall {
				f.tools[loop.CallID(b.Call, n)] = bl.Name
				n++
			}
		}
	case loop.CallAuthorized:
		switch tool := f.tools[b.Call]; {
		case slices.Contains(f.ch.Deny, tool):
			f.out.Same = false
			f.out.Denied = append(f.out.Denied, b.Call)
			return !f.add(ev.Time, loop.CallRefused{Call: b.Call, Why: loop.WhyDenied, Args: b.Args, Message: "Not executed: the policy denies this call."}) && f.leaves()
		case slices.Contains(f.ch.Ask, tool) && b.Verdict == loop.Allow:
			f.out.Same = false
			f.out.Waits++ // as recorded, once a person has approved it
		}
	case loop.LimitReached, loop.RunStopped:
		f.out.Same = false
		if _, ok := b.(loop.RunStopped); ok || f.st.Limit == nil {
			return f.leaves() // the recorded run ended here, this one goes on
		}
	case loop.Nudged:
		if b.Reason == loop.NudgeStall {
			f.out.Same = false
			return false // it was told so; under this rule it would not have been
		}
	}
	err := f.next(ev)
	switch {
	case err == nil:
		return false
	case errors.Is(err, loop.ErrStale) || f.refused(ev):
		f.out.Same = false
		return false
	}
	return f.leaves()
}

// refused says whether the event belongs to a call that was denied here.
func (f *refold) refused(ev loop.Event) bool {
	switch b := ev.Body.(type) {
	case loop.ToolStarted:
		return slices.Contains(f.out.Denied, b.Call)
	case loop.ChildStarted:
		return slices.Contains(f.out.Denied, b.Call)
	case loop.ApprovalAsked:
		return slices.Contains(f.out.Denied, b.Call)
	}
	return false
}

func (f *refold) next(ev loop.Event) error {
	next, err := loop.Next(f.st, loop.Event{Seq: f.st.Seq + 1, Time: max(ev.Time, f.st.Time), Body: ev.Body})
	if err == nil {
		f.st = next
	}
	return err
}

// leaves says that the run goes on where the recording does not follow.
func (f *refold) leaves() bool {
	f.out.Same, f.out.Open = false, true
	return true
}

func (f *refold) stops(b loop.RunStopped) bool {
	f.out.Stop, f.out.Limit = b.Stop, b.Limit
	return true
}

// limit says what follows a limit: what is under way is answered as not run, then the closing call or the stop.
func (f *refold) limit() bool {
	f.settles(f.st.Time)
	f.out.Stop = loop.StopLimit
	if f.st.Limit != nil {
		f.out.Limit = f.st.Limit.Limit
	}
	f.out.Closing = f.st.Model.Closing && f.st.Phase == loop.PhasePrompt
	if f.st.Phase == loop.PhasePaused {
		f.out.Stop, f.out.Open = "", true
	}
	return true
}

// settles adds the records that are owed; true if the run ended with them.
func (f *refold) settles(t loop.Micros) bool {
	for range 1000 {
		cmds := loop.Ready(f.st, max(t, f.st.Time))
		if len(cmds) == 0 || cmds[0].Kind != loop.Record || !f.add(t, cmds[0].Body) {
			return false
		}
		if b, ok := cmds[0].Body.(loop.RunStopped); ok {
			f.out.Same = false
			return f.stops(b)
		}
	}
	return false
}

// saved compares the account with that of the whole recording.
func (o *Outcome) saved(st loop.State, events []loop.Event, at loop.Micros) {
	o.Round = st.Ledger.Own.Rounds
	var whole loop.State
	for _, ev := range events {
		next, err := loop.Next(whole, ev)
		if err != nil {
			break
		}
		whole = next
	}
	a, b := whole.Ledger.Total(), st.Ledger.Total()
	o.Rounds, o.ModelCalls, o.ToolCalls = a.Rounds-b.Rounds, a.ModelCalls-b.ModelCalls, a.ToolCalls-b.ToolCalls
	o.Tokens, o.Cost = a.Usage.Total()-b.Usage.Total(), whole.Ledger.TotalCost()-st.Ledger.TotalCost()
	o.Time = whole.Time - at
}
