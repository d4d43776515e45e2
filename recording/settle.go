package recording

import (
	"slices"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Settle ends a run that has not ended, as a driver would that finds it and cancels it: what was under way is answered as lost, what had
// not begun as not run, and the stop is cancelled. The state is that after the run's last event.
func Settle(st loop.State, at loop.Micros, by, reason string) []loop.Event {
	at = max(at, st.Time)
	var out []loop.Event
	add := func(b loop.Body) bool {
		ev := loop.Event{Seq: st.Seq + 1, Time: at, Body: b}
		next, err := loop.Next(st, ev)
		if err != nil {
			return false
		}
		st = next
		out = append(out, ev)
		return true
	}
	if st.Cancel == nil {
		add(loop.CancelRequested{By: by, Reason: reason})
	}
	for range 10_000 {
		if st.Phase == loop.PhaseStopped || !add(settling(st, at)) {
			break
		}
	}
	return out
}

// settling is the next event of a run that ends without doing anything.
func settling(st loop.State, at loop.Micros) loop.Body {
	for _, c := range loop.Ready(st, at) {
		switch {
		case c.Kind == loop.Record:
			return c.Body
		case c.Kind == loop.CallModel && c.Started:
			return loop.ModelFailed{Call: c.N, Attempt: c.Attempt, Class: loop.ClassTransient, Lost: true, Cause: loop.CauseCrash,
				Message: "its end is not in the recording"}
		case c.Kind == loop.RunTool && c.Started:
			return loop.ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: loop.ClassUnknown, Cause: loop.CauseCrash, Message: "its end is not in the recording"}
		case c.Kind == loop.RunChild && c.Started:
			call, _ := st.Call(c.Call)
			return loop.ChildStopped{Call: c.Call, Run: call.Child, Stop: loop.StopCancelled, Error: true, Text: "Error: the end of the child is not in the recording."}
		}
	}
	return loop.RunStopped{}
}

// With returns the recording with events added to one of its runs.
func (r *Recording) With(run int, events []loop.Event) *Recording {
	c := *r
	c.Runs = slices.Clone(r.Runs)
	c.Runs[run].Events = append(slices.Clip(r.Runs[run].Events), events...)
	c.Footer = nil
	return &c
}

// Renamed returns the recording with its first run under another id, its children under ids that begin with that one. Keys of effects stay
// those of the run that was recorded.
func (r *Recording) Renamed(id string) *Recording {
	was := r.Root().Run
	name := func(run string) string {
		if run == was {
			return id
		}
		for i := range r.Runs {
			if r.Runs[i].Run == run {
				return id + "_" + strings.TrimPrefix(run, "run_")
			}
		}
		return run
	}
	c := *r
	c.Header.Run, c.Footer = id, nil
	c.Runs = make([]Run, len(r.Runs))
	for i, run := range r.Runs {
		out := run
		out.Run, out.Parent = name(run.Run), name(run.Parent)
		out.Events = make([]loop.Event, len(run.Events))
		for j, ev := range run.Events {
			out.Events[j] = renamed(ev, name)
		}
		c.Runs[i] = out
	}
	return &c
}

func renamed(ev loop.Event, name func(string) string) loop.Event {
	switch b := ev.Body.(type) {
	case loop.RunStarted:
		if b.Key == "" {
			b.Key = b.Run
		}
		b.Run = name(b.Run)
		if b.Config != nil && b.Config.Parent != nil {
			p := b.Config.Parent
			cfg, parent := *b.Config, *p
			parent.Run, parent.Root = name(p.Run), name(p.Root)
			cfg.Parent = &parent
			b.Config = &cfg
		}
		return loop.Event{Seq: ev.Seq, Time: ev.Time, Body: b}
	case loop.ChildStarted:
		b.Run = name(b.Run)
		return loop.Event{Seq: ev.Seq, Time: ev.Time, Body: b}
	case loop.ChildStopped:
		b.Run = name(b.Run)
		return loop.Event{Seq: ev.Seq, Time: ev.Time, Body: b}
	}
	return ev
}
