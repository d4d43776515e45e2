package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

// decide lets a person act on a run that waits. Who decides what depends on the call alone, not on when it is asked.
func (w *world) decide(ctx context.Context, run *drive.Run, step int) bool {
	if len(run.Pending) == 0 {
		w.violate("bounded", run.ID, w.seq(run.ID), "the run waits for %v and nothing is pending: %s", run.Waiting, w.state(run.ID))
		return false
	}
	if step > 120 {
		return w.must(run.ID, "cancel", w.host.Cancel(ctx, run.ID, "ana", "this goes on for too long"))
	}
	p := run.Pending[0]
	if p.Kind == loop.WaitResolution {
		w.loosen("a person is asked whether it happened")
	}
	r := dice(w.seed, "person", w.path(p.Run), p.Call, p.Kind, w.asks(p))
	w.wrongAnswers(ctx, run, p)
	if in(r, 6) && w.once("said "+run.ID+p.Call+p.Kind) {
		supersede := in(r, 50)
		text := "By the way."
		if err := w.host.Message(ctx, run.ID, drive.Text(text), "ana", supersede); err != nil {
			w.violate("approval is exact", run.ID, w.seq(run.ID), "a message to a waiting run was refused: %v", err)
		}
		w.told(run.ID, text)
		if supersede {
			return true
		}
	}
	if in(r, 4) {
		return w.must(run.ID, "cancel", w.host.Cancel(ctx, run.ID, "ana", "never mind"))
	}
	switch p.Kind {
	case loop.WaitApproval:
		return w.approve(ctx, run, p)
	case loop.WaitResolution:
		happened := w.happenedCall(p)
		if w.draw.liar {
			happened = in(r, 50)
		}
		return w.must(run.ID, "resolve", w.host.Resolve(ctx, run.ID, p.Call, happened, "ana", "", nil))
	case loop.WaitExtension:
		if in(r, 50) {
			return w.extend(ctx, run, p)
		}
		return w.must(run.ID, "cancel", w.host.Cancel(ctx, run.ID, "ana", "no more"))
	}
	w.violate("bounded", run.ID, w.seq(run.ID), "nobody knows what to do about %s", p.Kind)
	return false
}

func (w *world) must(run, what string, err error) bool {
	if err != nil && !errors.Is(err, drive.ErrKilled) {
		w.violate("approval is exact", run, w.seq(run), "%s was refused: %v", what, err)
		return false
	}
	return true
}

// approve decides on a call: yes, other arguments, no, or nothing until it expires.
func (w *world) approve(ctx context.Context, run *drive.Run, p drive.Pending) bool {
	r := dice(w.seed, "approval", w.path(p.Run), p.Call, w.asks(p))
	d := drive.Decision{By: "ana", Digest: p.Digest}
	approved := string(p.Args)
	switch n := r.IntN(100); {
	case n < 50:
		d.Decision = loop.Approve
		if in(r, 15) {
			d.Always = &drive.Scope{Session: in(r, 50)}
		}
	case n < 65 && json.Valid(p.Args):
		d.Decision, d.Args, d.Digest = loop.Edit, json.RawMessage(fmt.Sprintf(`{"x": %d}`, 7+r.IntN(2))), ""
		if p.Tool[0] != 't' || p.Tool == "task" { // a child
			d.Args = json.RawMessage(`{"task": "Something else."}`)
		}
		canonical, _ := loop.Canonical(d.Args)
		approved = string(canonical)
	case n < 90:
		d.Decision, d.Message, approved = loop.Reject, "not this", ""
	case p.Expires != 0:
		time.Sleep(2 * time.Minute) // too late
		return true
	default:
		d.Decision = loop.Approve
	}
	w.approves(p, approved)
	err := w.host.Decide(ctx, run.ID, p.Call, d)
	if !w.must(run.ID, d.Decision, err) {
		return false
	}
	if err := w.host.Decide(ctx, run.ID, p.Call, d); err != nil {
		w.violate("approval is exact", run.ID, w.seq(run.ID), "the same answer of the same person again was refused: %v", err)
	}
	other := d
	other.By = "ben"
	other.Decision = pick(r, loop.Approve, loop.Reject)
	if err := w.host.Decide(ctx, run.ID, p.Call, other); !errors.Is(err, drive.ErrConflict) {
		w.violate("approval is exact", run.ID, w.seq(run.ID), "a second answer was not a conflict: %v", err)
	}
	return true
}

// wrongAnswers must be refused and change nothing.
func (w *world) wrongAnswers(ctx context.Context, run *drive.Run, p drive.Pending) {
	before := w.seq(p.Run)
	want := func(what string, err, kind error) {
		if !errors.Is(err, kind) {
			w.violate("approval is exact", run.ID, w.seq(run.ID), "%s: want %v, got %v", what, kind, err)
		}
	}
	want("an unknown call", w.host.Decide(ctx, run.ID, "c99.1", drive.Decision{Decision: loop.Approve, By: "eve"}), drive.ErrNotFound)
	if p.Kind == loop.WaitApproval {
		want("nobody's answer", w.host.Decide(ctx, run.ID, p.Call, drive.Decision{Decision: loop.Approve}), drive.ErrInvalid)
		want("a stale digest", w.host.Decide(ctx, run.ID, p.Call, drive.Decision{Decision: loop.Approve, By: "eve", Digest: "stale"}), drive.ErrConflict)
		want("no decision", w.host.Decide(ctx, run.ID, p.Call, drive.Decision{Decision: "perhaps", By: "eve"}), drive.ErrInvalid)
		want("an edit that does not fit", w.host.Decide(ctx, run.ID, p.Call, drive.Decision{Decision: loop.Edit, By: "eve", Args: json.RawMessage(`{"task":7,"x":"y"}`)}), drive.ErrInvalid)
		want("a resolution of an approval", w.host.Resolve(ctx, run.ID, p.Call, true, "eve", "", nil), drive.ErrConflict)
	}
	if w.seq(p.Run) != before {
		w.violate("approval is exact", run.ID, w.seq(run.ID), "refused answers changed the journal")
	}
}

func (w *world) extend(ctx context.Context, run *drive.Run, p drive.Pending) bool {
	w.mu.Lock()
	st := w.witnessOf(p.Run).state
	w.mu.Unlock()
	add := drive.Limits{}
	switch st.Limit.Limit {
	case loop.LimitRounds:
		add.Rounds = 2
	case loop.LimitModelCalls:
		add.ModelCalls = 2
	case loop.LimitToolCalls:
		add.ToolCalls = 2
	case loop.LimitTokens:
		add.Tokens = 5000
	case loop.LimitCost:
		add.CostUSD = 0.05
	case loop.LimitActiveTime:
		add.ActiveTime = time.Minute
	case loop.LimitDeadline:
		add.Deadline = time.Hour
	}
	if st.Limit.Whose != "" || !w.once(fmt.Sprintf("extended %s %d", w.path(p.Run), st.Model.Call)) {
		return w.must(run.ID, "cancel", w.host.Cancel(ctx, run.ID, "ana", "no more"))
	}
	return w.must(run.ID, "extend", w.host.Extend(ctx, p.Run, add, "ana"))
}

// afterwards: a run that has stopped takes nothing more.
func (w *world) afterwards(ctx context.Context, run string) {
	before := w.seq(run)
	for what, err := range map[string]error{
		"a message":      w.host.Message(ctx, run, drive.Text("late"), "ana", false),
		"a cancellation": w.host.Cancel(ctx, run, "someone", "late"),
		"an extension":   w.host.Extend(ctx, run, drive.Limits{Rounds: 1}, "ana"),
	} {
		if err == nil || !errors.Is(err, drive.ErrConflict) && !errors.Is(err, drive.ErrInvalid) {
			w.violate("one end", run, before, "%s to a run that has stopped: %v", what, err)
		}
	}
	if _, err := w.host.Resume(ctx, run); err != nil {
		w.violate("one end", run, before, "resuming a run that has stopped: %v", err)
	}
	if w.seq(run) != before {
		w.violate("one end", run, before, "something was written after the stop")
	}
}
