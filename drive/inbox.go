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

// Decision is a person's answer to an approval. By is required.
type Decision struct {
	Decision string // approve, edit, reject
	By       string
	Message  string
	Args     json.RawMessage // edit
	Digest   string          // where set, the answer only counts for this digest
	Always   *Scope          // approve: a standing approval beside the decision
}

// Scope says how far a standing approval reaches: the tool with its definition and destination, arguments that match the patterns.
type Scope struct {
	Args    map[string]string // argument: pattern with *
	Until   loop.Micros       // 0: the end of the run or session
	Session bool
}

type decideInput struct {
	Call     string         `json:"call"`
	Decision string         `json:"decision"`
	Message  string         `json:"message,omitempty"`
	Args     string         `json:"args,omitempty"`
	ArgsSum  string         `json:"args_digest,omitempty"`
	Digest   string         `json:"digest,omitempty"`
	Standing *loop.Standing `json:"standing,omitempty"`
}

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

// Decide puts a person's answer to an approval on record: at once, durably, once. call is the id that Pending shows; for a call of a
// child it is the path from this run, "c1.1/c2.1". The same answer from the same person again is the first one's result; another
// one is ErrConflict, an unknown call ErrNotFound. The run goes on when a driver takes the answer: see Resume.
func (h *Host) Decide(ctx context.Context, run, call string, dec Decision) error {
	target, call, f, err := h.target(ctx, run, call)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s %s", dec.Decision, target, call)
	if dec.By == "" {
		return inputError(what, ErrInvalid, "By is empty: a decision needs the person's name")
	}
	in, ask, err := h.decision(ctx, f, call, what, dec)
	if err != nil {
		return h.answeredBefore(ctx, target, call, ask, what, dec, in, err)
	}
	return h.put(ctx, what, journal.Input{Run: target, Key: decideKey(call, ask), Kind: kindDecide, By: dec.By}, in, sameDecision)
}

func decideKey(call string, ask int64) string { return fmt.Sprintf("decide/%s/%d", call, ask) }

// decision checks an answer against the state.
func (h *Host) decision(ctx context.Context, f *folded, call, what string, dec Decision) (in decideInput, ask int64, err error) {
	c, ok := f.state.Call(call)
	in = decideInput{Call: call, Decision: dec.Decision, Message: dec.Message, Digest: dec.Digest}
	if !ok {
		if f.knows(call) {
			return in, 1, inputError(what, ErrConflict, "the call has its result already")
		}
		return in, 0, inputError(what, ErrNotFound, "the run has no such call; ronda show lists what is pending")
	}
	ask = c.Ask
	switch {
	case f.state.Phase == loop.PhaseStopped:
		return in, ask, inputError(what, ErrConflict, "the run has stopped ("+string(f.state.Stop.Stop)+")")
	case c.Status != loop.CallAsking || !c.Asked:
		return in, ask, inputError(what, ErrConflict, "no approval of this call is outstanding")
	case dec.Digest != "" && dec.Digest != c.Digest:
		return in, ask, inputError(what, ErrConflict, "the digest is stale: look at the call again")
	}
	switch dec.Decision {
	case loop.Approve, loop.Reject:
	case loop.Edit:
		if err := h.edit(ctx, f, c, &in, dec.Args); err != nil {
			return in, ask, inputError(what, ErrInvalid, err.Error())
		}
	default:
		return in, ask, inputError(what, ErrInvalid, "the decision is approve, edit or reject")
	}
	if dec.Always != nil {
		spec := f.state.Config.ToolSpec(c.Tool)
		in.Standing = &loop.Standing{ID: "s" + call, Tool: c.Tool, Digest: spec.Digest, Args: dec.Always.Args, By: dec.By, Until: dec.Always.Until, Session: dec.Always.Session}
	}
	return in, ask, nil
}

// edit canonicalizes and validates a person's arguments; their digest is the new one that runs.
func (h *Host) edit(ctx context.Context, f *folded, c loop.Call, in *decideInput, raw json.RawMessage) error {
	args, err := loop.Canonical(raw)
	if err != nil {
		return fmt.Errorf("args: %w", err)
	}
	agent, err := h.agentOf(ctx, f.row)
	if err != nil {
		return err
	}
	comp, err := h.compile(agent)
	if err != nil {
		return err
	}
	b := comp.tools[c.Tool]
	if b == nil {
		return fmt.Errorf("the agent has no tool %s any more", c.Tool)
	}
	if err := b.schema.Validate(args); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	in.Args, in.ArgsSum, in.Digest = string(args), loop.Fingerprint(args), approvalDigest(b, args)
	return nil
}

// answeredBefore tells an answer that came twice from one that conflicts: the accepted input decides, also when the state has moved on.
func (h *Host) answeredBefore(ctx context.Context, run, call string, ask int64, what string, dec Decision, in decideInput, cause error) error {
	if !errors.Is(cause, ErrConflict) {
		return cause
	}
	for n := max(ask, 1); n >= 1; n-- {
		first, err := h.store.Accepted(ctx, run, decideKey(call, n))
		if err != nil {
			continue
		}
		var was decideInput
		if json.Unmarshal(first.Body, &was) == nil && first.By == dec.By && was.Decision == dec.Decision && was.Message == dec.Message && sameArgs(was.Args, dec.Args) {
			return nil
		}
		return inputError(what, ErrConflict, first.By+" answered first: "+was.Decision)
	}
	return cause
}

func sameArgs(was string, now json.RawMessage) bool {
	if len(now) == 0 {
		return was == ""
	}
	c, err := loop.Canonical(now)
	return err == nil && string(c) == was
}

func sameDecision(a, b json.RawMessage) bool {
	var x, y decideInput
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return x.Decision == y.Decision && x.Args == y.Args && x.Message == y.Message
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
	return h.put(ctx, "cancel "+run, journal.Input{Run: run, Key: "cancel", Kind: kindCancel, By: by}, reasonInput{Reason: reason},
		func(a, b json.RawMessage) bool { return true })
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
