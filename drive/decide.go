package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
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
