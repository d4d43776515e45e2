package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/policy"
)

// policyTimeout bounds one decision of a policy: policies are pure and quick, and one that hangs must not hold a run.
const policyTimeout = 10 * time.Second

// authorize validates a call and asks the policy, once: the answer goes on record. It fails only with faults of ronda.
func (d *driver) authorize(ctx context.Context, c loop.Command) (loop.Body, error) {
	call, _ := d.state.Call(c.Call)
	block, ok := d.talk.CallBlock(c.Call)
	if !ok {
		return nil, fmt.Errorf("drive: run %s: call %s is not in the transcript", d.lease.Run, c.Call)
	}
	refuse := func(why, args, format string, a ...any) (loop.Body, error) {
		return loop.CallRefused{Call: c.Call, Why: why, Args: args, Message: fmt.Sprintf(format, a...)}, nil
	}
	args, err := canonicalArgs(block.Args)
	if err != nil {
		return refuse(loop.WhyInvalid, loop.Fingerprint([]byte(block.Args)), "Error: the arguments of %s are not valid JSON: %v. Call it again with one JSON object.", call.Tool, err)
	}
	sum := loop.Fingerprint(args)
	if call.Tool == loop.FinishTool && d.state.Config.Finish {
		return d.authorizeFinish(c.Call, args, sum)
	}
	b := d.c.tools[call.Tool]
	if b == nil {
		return refuse(loop.WhyChanged, sum, "Error: the tool %s is not available any more.", call.Tool)
	}
	if err := b.schema.Validate(args); err != nil {
		return refuse(loop.WhyInvalid, sum, "Error: the arguments of %s do not fit: %v", call.Tool, err)
	}
	if msg := d.ungrounded(b, args); msg != "" {
		return refuse(loop.WhyUngrounded, sum, "Error: %s", msg)
	}
	if msg := d.known.unmet(b, args); msg != "" {
		return refuse(loop.WhyRequires, sum, "Error: %s", msg)
	}
	dec := d.decide(ctx, b, args)
	digest := approvalDigest(b, args)
	// Allowed calls have their digest too: a refusal of the same effect may make a person's approval necessary after all.
	auth := loop.CallAuthorized{Call: c.Call, Verdict: dec.Verdict, Args: sum, Digest: digest, Rule: dec.Rule, Reason: dec.Reason}
	switch dec.Verdict {
	case loop.Deny:
		return refuse(loop.WhyDenied, sum, "Not executed: the policy denies this call%s", because(dec.Reason))
	case loop.Ask:
		if st, ok := d.state.StandingFor(call.Tool, b.digest, flatArgs(args), d.now()); ok {
			auth.Verdict, auth.Standing = loop.Allow, st.ID
		}
	}
	d.fresh[c.Call] = true
	return auth, nil
}

func because(reason string) string {
	if reason == "" {
		return "."
	}
	return ": " + reason
}

// canonicalArgs reads a call's arguments. Providers write a call without arguments as an empty text or as null.
func canonicalArgs(raw string) ([]byte, error) {
	if s := strings.TrimSpace(raw); s == "" || s == "null" {
		return []byte("{}"), nil
	}
	return loop.Canonical([]byte(raw))
}

// approvalDigest is what an approval binds: the tool, its definition with the destination, the canonical arguments.
func approvalDigest(b *boundTool, args []byte) string {
	return loop.Fingerprint([]byte(b.def.Name), []byte(b.digest), []byte(b.def.Destination), args)
}

func (d *driver) authorizeFinish(id string, args []byte, sum string) (loop.Body, error) {
	if err := d.c.finish.Validate(args); err != nil {
		return loop.CallRefused{Call: id, Why: loop.WhyInvalid, Args: sum, Message: "Error: the arguments of finish do not fit: " + err.Error()}, nil
	}
	var a struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(args, &a) // the schema was checked
	switch a.Status {
	case loop.FinishDeclined, loop.FinishBlocked:
	default:
		a.Status = loop.FinishDone
	}
	return loop.CallAuthorized{Call: id, Verdict: loop.Allow, Args: sum, Finish: a.Status}, nil
}

// decide asks the policy. Whatever goes wrong there, the call does not run.
func (d *driver) decide(ctx context.Context, b *boundTool, args []byte) (dec policy.Decision) {
	declared := b.def.Approval
	if declared == "" {
		declared = loop.Allow
	}
	if b.builtin { // it shows what this run has seen
		return policy.Decision{Verdict: loop.Allow, Rule: "built-in"}
	}
	if d.c.agent.Policy == nil {
		return policy.Decision{Verdict: declared, Rule: "tool"}
	}
	defer func() {
		if r := recover(); r != nil {
			dec = policy.Decision{Verdict: loop.Deny, Rule: "error", Reason: fmt.Sprintf("the policy panicked: %v", r)}
		}
	}()
	ctx, cancel := d.withTimeout(ctx, policyTimeout, errors.New("the policy took too long"))
	defer cancel(nil)
	var path []string
	if d.state.Config.Parent != nil {
		path = d.state.Config.Parent.Path
	}
	type outcome struct {
		dec policy.Decision
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- outcome{err: fmt.Errorf("the policy panicked: %v", r)}
			}
		}()
		dec, err := d.c.agent.Policy.Decide(ctx, policy.Call{Agent: d.c.agent.Name, Path: path, Tool: b.def.Name, Effect: d.state.Config.ToolSpec(b.def.Name).EffectOf(),
			Label: b.def.Label, Destination: b.def.Destination, Approval: b.def.Approval, Args: args})
		done <- outcome{dec, err}
	}()
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
		out.err = context.Cause(ctx)
	}
	switch {
	case out.err != nil:
		return policy.Decision{Verdict: loop.Deny, Rule: "error", Reason: "the policy failed: " + out.err.Error()}
	case out.dec.Verdict != loop.Allow && out.dec.Verdict != loop.Ask && out.dec.Verdict != loop.Deny:
		return policy.Decision{Verdict: loop.Deny, Rule: "error", Reason: fmt.Sprintf("the policy gave no verdict (%q)", out.dec.Verdict)}
	}
	return out.dec
}

// recheck looks again at a call that is about to run and was decided by an earlier driver or has waited: a policy that changed may only
// tighten, and a tool that is not what was approved does not run.
func (d *driver) recheck(ctx context.Context, call loop.Call, args []byte) loop.Body {
	b := d.c.tools[call.Tool]
	if b == nil || d.fresh[call.ID] && call.By == "" || call.Attempt > 0 {
		return nil
	}
	dec := d.decide(ctx, b, args)
	switch {
	case dec.Verdict == loop.Deny:
		return loop.CallRefused{Call: call.ID, Why: loop.WhyDenied, Message: "Not executed: the policy denies this call now" + because(dec.Reason)}
	case call.By != "" && call.Digest != approvalDigest(b, args):
		return loop.ApprovalAsked{Call: call.ID, Ask: call.Ask + 1, Digest: approvalDigest(b, args), Reason: "the call is not what was approved"}
	case dec.Verdict == loop.Ask && call.By == "":
		if _, ok := d.state.StandingFor(call.Tool, b.digest, flatArgs(args), d.now()); !ok {
			return loop.ApprovalAsked{Call: call.ID, Ask: call.Ask + 1, Digest: approvalDigest(b, args), Reason: dec.Reason}
		}
	}
	return nil
}

// args are the canonical arguments with which a call runs: the model's, or a person's in their place.
func (d *driver) args(call string) ([]byte, error) {
	if edited := d.talk.Edited(call); edited != "" {
		return []byte(edited), nil
	}
	b, _ := d.talk.CallBlock(call)
	return canonicalArgs(b.Args)
}

// flatArgs gives each top-level argument as text: strings as they are, other values as JSON.
func flatArgs(args []byte) map[string]string {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = plain(v)
	}
	return out
}

func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// evidence is what calls of this run showed: which tool succeeded on which arguments.
type evidence struct {
	succeeded []success
}

type success struct {
	tool string
	args string // canonical
}

func (e *evidence) apply(ev loop.Event, talk *loop.Transcript) {
	id := ""
	switch b := ev.Body.(type) {
	case loop.ToolReturned:
		id = b.Call
	case loop.ChildStopped:
		if b.Error {
			return
		}
		id = b.Call
	case loop.EffectChecked:
		if b.Happened != loop.HappenedYes {
			return
		}
		id = b.Call
	case loop.EffectResolved:
		if !b.Happened {
			return
		}
		id = b.Call
	default:
		return
	}
	block, ok := talk.CallBlock(id)
	if !ok {
		return
	}
	args := talk.Edited(id)
	if args == "" {
		if c, err := canonicalArgs(block.Args); err == nil {
			args = string(c)
		}
	}
	e.succeeded = append(e.succeeded, success{block.Name, args})
}

// unmet says which required tool has not succeeded yet (on the same values), "" if all have.
func (e *evidence) unmet(b *boundTool, args []byte) string {
	for _, r := range b.def.Requires {
		mine := flatArgs(args)
		ok := false
		for i := len(e.succeeded) - 1; i >= 0 && !ok; i-- {
			if e.succeeded[i].tool != r.Tool {
				continue
			}
			theirs := flatArgs([]byte(e.succeeded[i].args))
			ok = true
			for _, name := range r.Same {
				ok = ok && mine[name] == theirs[name]
			}
		}
		if !ok {
			on := ""
			for _, name := range r.Same {
				on += " with " + name + " = " + strconv.Quote(mine[name])
			}
			return fmt.Sprintf("%s needs a successful call of %s%s first. Call %s, then this.", b.def.Name, r.Tool, on, r.Tool)
		}
	}
	return ""
}

// ungrounded names the argument whose value occurs neither in a result nor in the user's words of the session, "" if all do.
func (d *driver) ungrounded(b *boundTool, args []byte) string {
	if len(b.def.Grounded) == 0 {
		return ""
	}
	var m map[string]json.RawMessage
	_ = json.Unmarshal(args, &m)
	for _, name := range b.def.Grounded {
		raw, ok := m[name]
		if !ok {
			continue
		}
		for _, v := range leaves(raw) {
			if !d.occurs(v) && !d.occurred(v) {
				return fmt.Sprintf("the %s %q of %s occurs in no earlier result and not in the user's words. Find it with a tool first; do not make it up.", name, v, b.def.Name)
			}
		}
	}
	return ""
}

// leaves lists the strings and numbers of a JSON value.
func leaves(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var out []string
		for _, v := range list {
			out = append(out, leaves(v)...)
		}
		return out
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) == nil && m != nil {
		var out []string
		for _, v := range m {
			out = append(out, leaves(v)...)
		}
		return out
	}
	if s := plain(raw); s != "" && s != "null" && s != "true" && s != "false" {
		return []string{s}
	}
	return nil
}

// occurs looks for a value in the results and the user's words, as a whole word: "44" does not occur in "1445".
func (d *driver) occurs(v string) bool { return occursIn(d.talk.Messages(), v) }

// occurred is occurs for what a compaction left out: the journal still has it.
func (d *driver) occurred(v string) bool {
	if d.memory.left == 0 && d.session() == nil {
		return false
	}
	msgs, err := d.whole()
	return err == nil && occursIn(msgs, v)
}

func occursIn(msgs []*loop.Message, v string) bool {
	for _, m := range msgs {
		if m.Role == loop.Assistant {
			continue
		}
		for _, b := range m.Blocks {
			if m.Role == loop.Tool && b.Error {
				continue
			}
			if containsWord(b.Text, v) {
				return true
			}
			for _, more := range b.More {
				if containsWord(more.Text, v) {
					return true
				}
			}
		}
	}
	return false
}

func containsWord(text, v string) bool {
	if esc, err := json.Marshal(v); err == nil && string(esc[1:len(esc)-1]) != v && containsRaw(text, string(esc[1:len(esc)-1])) {
		return true // as it stands inside of JSON
	}
	return containsRaw(text, v)
}

func containsRaw(text, v string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], v)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(v)
		if (i == 0 || !wordByte(text[i-1]) || !wordByte(v[0])) && (end == len(text) || !wordByte(text[end]) || !wordByte(v[len(v)-1])) {
			return true
		}
		from = i + 1
	}
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
