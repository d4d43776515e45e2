package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// Errors of inputs from outside. They change nothing.
var (
	ErrNotFound = errors.New("not found") // no such run or call
	ErrConflict = errors.New("conflict")  // answered already, stale, too late
	ErrInvalid  = errors.New("invalid")   // it makes no sense
)

// Kinds of inputs.
const (
	kindDecide  = "decide"
	kindMessage = "message"
	kindExtend  = "extend"
	kindCancel  = "cancel"
	kindResolve = "resolve"
	kindRevoke  = "revoke"
)

type resolveInput struct {
	Call     string                `json:"call"`
	Happened bool                  `json:"happened"`
	Message  string                `json:"message,omitempty"`
	Facts    map[string]loop.Value `json:"facts,omitempty"`
}

type messageInput struct {
	Blocks    []loop.Block `json:"blocks"`
	Supersede bool         `json:"supersede,omitempty"`
}

type extendInput struct {
	Add loop.Limits `json:"add"`
}

type reasonInput struct {
	Reason string `json:"reason,omitempty"`
	ID     string `json:"id,omitempty"`
}

// put offers an input and explains a refusal.
func (h *Host) put(ctx context.Context, what string, in journal.Input, body any, same func(a, b json.RawMessage) bool) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	in.ID, in.At, in.Body = uuid.NewString(), h.now(), raw
	first, won, err := h.store.Put(ctx, in)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return inputError(what, ErrNotFound, "there is no such run")
	case errors.Is(err, journal.ErrStopped):
		if before, err := h.store.Accepted(ctx, in.Run, in.Key); in.Key != "" && err == nil && before.By == in.By && same != nil && same(before.Body, raw) {
			return nil // the same again: it stopped the run meanwhile
		}
		return inputError(what, ErrConflict, "the run has stopped")
	case err != nil:
		return err
	case won || first.By == in.By && same != nil && same(first.Body, raw):
		return nil
	}
	return inputError(what, ErrConflict, first.By+" was first")
}

func inputError(what string, kind error, why string) error {
	return fmt.Errorf("drive: %s: %w: %s", what, kind, why)
}

// Resolve says whether an effect whose outcome is unknown happened.
func (h *Host) Resolve(ctx context.Context, run, call string, happened bool, by, message string, facts map[string]loop.Value) error {
	target, call, f, err := h.target(ctx, run, call)
	if err != nil {
		return err
	}
	what := "resolve " + target + " " + call
	c, ok := f.state.Call(call)
	switch {
	case by == "":
		return inputError(what, ErrInvalid, "By is empty: a resolution needs the person's name")
	case !ok && !f.knows(call):
		return inputError(what, ErrNotFound, "the run has no such call")
	case !ok || f.state.Phase == loop.PhaseStopped || c.Status != loop.CallResolve:
		key := fmt.Sprintf("resolve/%s/%d", call, max(c.Attempt, 1))
		if first, err := h.store.Accepted(ctx, target, key); err == nil {
			var was resolveInput
			if json.Unmarshal(first.Body, &was) == nil && was.Happened == happened && first.By == by {
				return nil
			}
		}
		return inputError(what, ErrConflict, "nobody has to resolve this call")
	}
	return h.put(ctx, what, journal.Input{Run: target, Key: fmt.Sprintf("resolve/%s/%d", call, c.Attempt), Kind: kindResolve, By: by},
		resolveInput{call, happened, message, facts}, func(a, b json.RawMessage) bool {
			var x, y resolveInput
			return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x.Happened == y.Happened
		})
}

// Message gives a live run something to read at its next safe point. supersede answers outstanding approvals with "not run".
// A run that has stopped: ErrConflict; start a new run of the session.
func (h *Host) Message(ctx context.Context, run string, blocks []loop.Block, by string, supersede bool) error {
	what := "say to " + run
	if len(blocks) == 0 {
		return inputError(what, ErrInvalid, "the message is empty")
	}
	return h.put(ctx, what, journal.Input{Run: run, Kind: kindMessage, By: by}, messageInput{blocks, supersede}, nil)
}

// Extend raises limits of a run that waits for it, or of one that still runs. Amounts are added.
func (h *Host) Extend(ctx context.Context, run string, add Limits, by string) error {
	what := "extend " + run
	p := &problems{agent: run}
	l := add.build(p, "limits", false)
	if len(p.errs) > 0 {
		return inputError(what, ErrInvalid, errors.Join(p.errs...).Error())
	}
	if by == "" {
		return inputError(what, ErrInvalid, "By is empty: an extension needs the person's name")
	}
	st, err := h.stateOrNotFound(ctx, what, run)
	if err != nil {
		return err
	}
	if !st.Extendable() {
		return inputError(what, ErrConflict, "it is too late: the run has stopped or is about to")
	}
	if missing := absentLimits(st.Limits(), l); len(missing) > 0 {
		return inputError(what, ErrInvalid, "the run has no limit on "+strings.Join(missing, ", "))
	}
	if l == (loop.Limits{}) {
		return inputError(what, ErrInvalid, "nothing to add. Say for example rounds=+5")
	}
	return h.put(ctx, what, journal.Input{Run: run, Kind: kindExtend, By: by}, extendInput{l}, nil)
}

func absentLimits(have, add loop.Limits) []string {
	var out []string
	check := func(name string, have, add bool) {
		if add && !have {
			out = append(out, name)
		}
	}
	check(loop.LimitRounds, have.Rounds != nil, add.Rounds != nil)
	check(loop.LimitModelCalls, have.ModelCalls != nil, add.ModelCalls != nil)
	check(loop.LimitToolCalls, have.ToolCalls != nil, add.ToolCalls != nil)
	check(loop.LimitTokens, have.Tokens != nil, add.Tokens != nil)
	check(loop.LimitCost, have.Cost != nil, add.Cost != nil)
	check(loop.LimitActiveTime, have.ActiveTime != nil, add.ActiveTime != nil)
	check(loop.LimitDeadline, have.Deadline != nil, add.Deadline != nil)
	return out
}

// Cancel asks a run to end. A run that has stopped: ErrConflict. Asking twice is the same as once.
func (h *Host) Cancel(ctx context.Context, run, by, reason string) error {
	err := h.put(ctx, "cancel "+run, journal.Input{Run: run, Key: "cancel", Kind: kindCancel, By: by}, reasonInput{Reason: reason},
		func(a, b json.RawMessage) bool { return true })
	if errors.Is(err, ErrConflict) {
		row, rerr := h.store.Get(ctx, run)
		if _, aerr := h.store.Accepted(ctx, run, "cancel"); rerr == nil && aerr == nil && row.Status != loop.StatusStopped {
			return nil // somebody else asked first: the run is ending already
		}
	}
	return err
}

// Revoke ends a standing approval.
func (h *Host) Revoke(ctx context.Context, run, id, by string) error {
	st, err := h.stateOrNotFound(ctx, "revoke "+id, run)
	if err != nil {
		return err
	}
	for _, s := range st.Standing {
		if s.ID == id {
			return h.put(ctx, "revoke "+id, journal.Input{Run: run, Key: "revoke/" + id, Kind: kindRevoke, By: by}, reasonInput{ID: id}, func(a, b json.RawMessage) bool { return true })
		}
	}
	return inputError("revoke "+id, ErrNotFound, "the run has no such standing approval")
}

func (h *Host) stateOrNotFound(ctx context.Context, what, run string) (loop.State, error) {
	st, err := h.stateOf(ctx, run)
	if errors.Is(err, journal.ErrNotFound) || err == nil && st.Run == "" {
		return st, inputError(what, ErrNotFound, "there is no run "+run)
	}
	return st, err
}

// target walks a path of calls to the run that owns the last one.
func (h *Host) target(ctx context.Context, run, call string) (string, string, *folded, error) {
	for {
		f, err := h.folded(ctx, run)
		if err != nil {
			return "", "", nil, err
		}
		first, rest, nested := strings.Cut(call, "/")
		if !nested {
			return run, f.callID(call), f, nil
		}
		child, ok := f.kids[f.callID(first)]
		if !ok {
			return "", "", nil, inputError("call "+call, ErrNotFound, "no child runs there")
		}
		run, call = child, rest
	}
}

// readInputs loads what waits in the inbox.
func (d *driver) readInputs(ctx context.Context) error {
	if !d.created {
		return nil
	}
	inputs, err := d.h.store.Inputs(context.WithoutCancel(ctx), d.lease.Run)
	d.inputs = inputs
	return err
}

// takeInputs turns accepted inputs into events, in order. One that has become pointless is taken all the same.
func (d *driver) takeInputs() error {
	for _, in := range d.inputs {
		body, err := inputEvent(in)
		if err != nil {
			return fmt.Errorf("drive: run %s: input %s: %w", d.lease.Run, in.ID, err)
		}
		d.take = append(d.take, in.ID)
		if err := d.step(body); err != nil && !errors.Is(err, loop.ErrIllegal) {
			return err
		} else if err != nil {
			d.h.log.Warn("an input came to nothing", "run", d.lease.Run, "error", err)
		}
	}
	d.inputs = nil
	return nil
}

func inputEvent(in journal.Input) (loop.Body, error) {
	switch in.Kind {
	case kindDecide:
		var b decideInput
		err := json.Unmarshal(in.Body, &b)
		return loop.ApprovalDecided{Call: b.Call, Decision: b.Decision, By: in.By, Message: b.Message, Args: b.Args, ArgsSum: b.ArgsSum,
			Digest: b.Digest, Standing: b.Standing, Input: in.ID}, err
	case kindResolve:
		var b resolveInput
		err := json.Unmarshal(in.Body, &b)
		return loop.EffectResolved{Call: b.Call, Happened: b.Happened, By: in.By, Message: b.Message, Facts: b.Facts, Input: in.ID}, err
	case kindMessage:
		var b messageInput
		err := json.Unmarshal(in.Body, &b)
		return loop.MessageTaken{Input: in.ID, Blocks: b.Blocks, By: in.By, Supersede: b.Supersede}, err
	case kindExtend:
		var b extendInput
		err := json.Unmarshal(in.Body, &b)
		return loop.LimitsExtended{By: in.By, Add: b.Add, Input: in.ID}, err
	case kindCancel:
		var b reasonInput
		err := json.Unmarshal(in.Body, &b)
		return loop.CancelRequested{By: in.By, Reason: b.Reason, Input: in.ID}, err
	case kindRevoke:
		var b reasonInput
		err := json.Unmarshal(in.Body, &b)
		return loop.StandingRevoked{ID: b.ID, By: in.By, Input: in.ID}, err
	}
	return nil, fmt.Errorf("kind %q is unknown: it was sent by a newer version", in.Kind)
}
