package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// Fork starts a new run from a prefix of an old one and drives it until it waits or stops. Its journal repeats the events of the prefix up to
// at (their times moved, so that the run goes on without a gap), and RunStarted names where they are from. Nothing of the prefix is done
// again: its calls have their results, and calls of the turn that is open at the cut keep the idempotency keys of the old run. What was
// under way at the cut is settled: a call that ended later in the old run gets the end it had there; one whose end nobody knows is lost as
// in a crash; a child whose end nobody knows is over; a model call is made again.
//
// s.Agent (nil: that of the old run), s.Limits and s.ID are the new run's; s.Input, where set, is a message after the prefix; s.Session is
// ignored: a fork has a session of its own that begins with what the old run saw. A configuration under which the prefix could not have
// happened is refused with ErrInvalid.
func (h *Host) Fork(ctx context.Context, run string, at int64, s Start) (*Run, error) {
	d, err := h.fork(ctx, run, at, s)
	if err != nil {
		return nil, err
	}
	return h.drive(ctx, d)
}

// BeginFork is Fork without waiting: the run is in the store when it returns, and a goroutine of the host drives it.
func (h *Host) BeginFork(ctx context.Context, run string, at int64, s Start) (id string, work *Background, err error) {
	d, err := h.fork(ctx, run, at, s)
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

func (h *Host) fork(ctx context.Context, run string, at int64, s Start) (*driver, error) {
	what := fmt.Sprintf("fork run %s at %d", run, at)
	row, err := h.store.Get(ctx, run)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, inputError(what, ErrNotFound, "there is no such run; ronda runs lists them")
	}
	if err != nil {
		return nil, err
	}
	prefix, rest, digest, err := h.cutAt(ctx, run, at)
	if err != nil {
		return nil, err
	}
	switch {
	case at < 1 || int64(len(prefix)) != at:
		return nil, inputError(what, ErrInvalid, fmt.Sprintf("the run has events 1 to %d", row.Seq))
	case prefix[at-1].Kind() == "RunStopped":
		return nil, inputError(what, ErrInvalid, "the run has stopped there and nothing can follow. Fork at an earlier event, or say something in the session")
	}
	if s.Agent == nil {
		if s.Agent, err = h.agentOf(ctx, row); err != nil {
			return nil, err
		}
	}
	d, err := h.forked(ctx, &s, prefix, loop.RunRef{Run: run, Seq: at, Digest: digest}, what)
	if err != nil {
		return nil, err
	}
	if err := d.copyTapes(ctx, run); err != nil {
		return nil, err
	}
	if err := d.settleCut(rest); err != nil {
		return nil, err
	}
	if len(s.Input) > 0 {
		if err := d.step(loop.MessageTaken{Blocks: s.Input, By: s.By}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// cutAt reads a journal in two parts, with the digest of the first.
func (h *Host) cutAt(ctx context.Context, run string, at int64) (prefix, rest []loop.Event, digest string, err error) {
	err = h.store.Read(ctx, run, 0, func(r journal.Record) error {
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return fmt.Errorf("drive: run %s: %w", run, err)
		}
		if ev.Seq > at {
			rest = append(rest, ev)
			return nil
		}
		digest = Chain(digest, r.Data)
		prefix = append(prefix, ev)
		return nil
	})
	return prefix, rest, digest, err
}

// forked readies a driver whose run has repeated the prefix.
func (h *Host) forked(ctx context.Context, s *Start, prefix []loop.Event, from loop.RunRef, what string) (*driver, error) {
	first, ok := prefix[0].Body.(loop.RunStarted)
	if !ok {
		return nil, inputError(what, ErrInvalid, "its journal does not begin with RunStarted")
	}
	c, err := h.compile(s.Agent)
	if err != nil {
		return nil, err
	}
	h.Register(s.Agent)
	s.Session = ""
	if s.Limits == nil && c.ref == first.Config.Digest {
		s.Limits = &Limits{} // the same agent: the run's own limits, below
	}
	cfg, err := h.configFor(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if c.ref == first.Config.Digest {
		cfg.Limits = override(first.Config.Limits, s.Limits.build(&problems{}, "limits", false))
	}
	cfg.Tools = withTools(cfg.Tools, first.Config.Tools, prefix)
	if was := first.Config.Session; was != nil {
		ses := *was
		ses.ID, ses.Limits = s.ID, loop.Limits{}
		if cfg.Session != nil {
			ses.Limits = cfg.Session.Limits
		}
		cfg.Session = &ses
	}
	if err := h.storeDefinition(ctx, c); err != nil {
		return nil, err
	}
	move := h.now() - prefix[len(prefix)-1].Time
	key := first.Key
	if key == "" {
		key = first.Run
	}
	started := loop.RunStarted{Run: s.ID, Config: cfg, Input: first.Input, By: s.By, Format: first.Format, Fork: &from, Key: key}
	d, err := h.newRunAt(ctx, c, started, prefix[0].Time+move)
	if err != nil {
		return nil, err
	}
	for _, ev := range prefix[1:] {
		if err := d.repeat(ev, move); err != nil {
			return nil, inputError(what, ErrInvalid, fmt.Sprintf("event %d could not have happened with this agent and these limits: %v. Fork at an earlier event, or change less", ev.Seq, err))
		}
	}
	return d, nil
}

// newRunAt is newRun for a run that began at another time.
func (h *Host) newRunAt(ctx context.Context, c *compiled, started loop.RunStarted, at loop.Micros) (*driver, error) {
	d := h.newDriver(c)
	d.lease = journal.Lease{Run: started.Run, Owner: h.owner, Epoch: 1}
	d.row = journal.Run{ID: started.Run, Session: started.Run, Root: started.Run, Agent: started.Config.Agent, Model: started.Config.Model,
		Created: h.now(), Title: title(started.Input)}
	before, err := h.sessionMessages(ctx, started.Config)
	if err != nil {
		return nil, err
	}
	d.talk = loop.NewTranscript(before)
	return d, d.put(loop.Event{Seq: 1, Time: at, Body: started})
}

// put folds an event with a time of its own into the batch.
func (d *driver) put(ev loop.Event) error {
	next, err := loop.Next(d.state, ev)
	if err != nil {
		return err
	}
	d.adopt(ev, next)
	d.batch = append(d.batch, ev)
	return nil
}

// repeat takes an event of the prefix over. Points in time that it holds move with it.
func (d *driver) repeat(ev loop.Event, move loop.Micros) error {
	body := ev.Body
	switch b := body.(type) {
	case loop.ApprovalAsked:
		if b.Expires != 0 {
			b.Expires += move
		}
		body = b
	case loop.ApprovalDecided:
		if b.Standing != nil && b.Standing.Until != 0 {
			st := *b.Standing
			st.Until += move
			b.Standing = &st
		}
		b.Input = "" // the inbox is the old run's
		body = b
	case loop.RunResumed:
		b.Digest = ""
		body = b
	}
	return d.put(loop.Event{Seq: d.state.Seq + 1, Time: max(ev.Time+move, d.state.Time), Body: body})
}

// withTools adds the tools of the old run that the prefix called and the new agent does not have: their calls have to fold.
func withTools(now, before []loop.ToolSpec, prefix []loop.Event) []loop.ToolSpec {
	called := map[string]bool{}
	for _, ev := range prefix {
		if b, ok := ev.Body.(loop.ModelReplied); ok {
			for _, bl := range b.Blocks {
				if bl.Kind == loop.BlockCall {
					called[bl.Name] = true
				}
			}
		}
	}
	out := append([]loop.ToolSpec{}, now...)
	for _, t := range before {
		has := false
		for _, n := range now {
			has = has || n.Name == t.Name
		}
		if !has && called[t.Name] {
			out = append(out, t)
		}
	}
	return out
}

// copyTapes gives the new run the tapes that its events name.
func (d *driver) copyTapes(ctx context.Context, run string) error {
	named := map[string]bool{}
	for _, ev := range d.batch {
		if b, ok := ev.Body.(loop.ModelReplied); ok {
			named[b.Tape] = true
		}
	}
	tapes, err := d.h.store.Tapes(ctx, run)
	for _, t := range tapes {
		if named[t.ID] {
			d.tapes = append(d.tapes, journal.Tape{Run: d.lease.Run, ID: t.ID, Data: t.Data})
		}
	}
	return err
}

// settleCut answers what was under way at the cut: with the end that it had in the old run, where it had one.
func (d *driver) settleCut(rest []loop.Event) error {
	for _, c := range loop.Ready(d.state, d.now()) {
		if !c.Started {
			continue
		}
		var body loop.Body
		switch c.Kind {
		case loop.CallModel:
			body = loop.ModelFailed{Call: c.N, Attempt: c.Attempt, Class: loop.ClassTransient, Cause: loop.CauseCrash, Message: "the fork begins before its answer"}
		case loop.RunTool:
			body = loop.ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: loop.ClassUnknown, Cause: loop.CauseCrash, Message: "the fork begins before its result was known"}
		case loop.RunChild:
			call, _ := d.state.Call(c.Call)
			body = loop.ChildStopped{Call: c.Call, Run: call.Child, Stop: loop.StopCancelled, Error: true,
				Text: "Error: the agent was still at work where the fork begins. Call it again if its answer is needed."}
		default:
			continue
		}
		if end := endOf(c, rest); end != nil {
			body = end
		}
		if err := d.step(body); err != nil {
			return err
		}
	}
	return nil
}

// endOf finds the end of an attempt of a call in the rest of the old journal.
func endOf(c loop.Command, rest []loop.Event) loop.Body {
	for _, ev := range rest {
		switch b := ev.Body.(type) {
		case loop.ToolReturned:
			if c.Kind == loop.RunTool && b.Call == c.Call && max(b.Attempt, 1) == c.Attempt {
				return b
			}
		case loop.ToolFailed:
			if c.Kind == loop.RunTool && b.Call == c.Call && max(b.Attempt, 1) == c.Attempt && b.Cause == "" {
				return b
			}
		case loop.ChildStopped:
			if c.Kind == loop.RunChild && b.Call == c.Call {
				return b
			}
		}
	}
	return nil
}

// Explain says why a run took what it took.
func (h *Host) Explain(ctx context.Context, run string) (recording.Explanation, error) {
	rec, err := h.Recording(ctx, run)
	if err != nil {
		return recording.Explanation{}, err
	}
	return recording.Explain(rec.Root().Events), nil
}

// Loop gives the limits in the loop's words; those that are not set are absent, Rounds too.
func (l Limits) Loop() (loop.Limits, error) {
	p := &problems{}
	out := l.build(p, "limits", false)
	return out, errors.Join(p.errs...)
}
