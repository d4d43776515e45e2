package drill

import (
	"context"
	"errors"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func (d *drill) completion(ctx context.Context) Exit {
	x := Exit{Want: "completed"}
	var script []string
	for i, def := range d.defs() {
		if i > 0 && !d.needed(def.Name) {
			continue
		}
		it, err := item(def, i)
		if err != nil {
			fault(&x, "%v", err)
			return x
		}
		script = append(script, it)
	}
	s, err := d.stage(append(script, d.end()), func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.Limits = drive.Limits{Rounds: len(script) + 2}
	})
	r := d.start(ctx, &x, s, err)
	if r != nil && r.Stop != loop.StopCompleted {
		fault(&x, "want completed, got %s%s", x.Got, why(r))
	}
	return x
}

// needed says whether the contract wants a tool to have been called.
func (d *drill) needed(name string) bool {
	if d.agent.Contract == nil {
		return false
	}
	for _, c := range d.agent.Contract.Called {
		if c == name {
			return true
		}
	}
	return false
}

func (d *drill) limit(ctx context.Context) Exit {
	x := Exit{Want: "limit (rounds), with an answer from the closing call"}
	defs := d.defs()
	if len(defs) == 0 {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	var script []string
	for i := range 3 {
		it, err := item(defs[0], i)
		if err != nil {
			fault(&x, "%v", err)
			return x
		}
		script = append(script, it)
	}
	s, err := d.stage(append(script, "- {when: {tools: none}, text: \"Drill: the limit was reached.\"}"), func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.Limits, a.OnLimit = drive.Limits{Rounds: 2}, ""
		tools[0].def.CallsMax = nil
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if r.Stop != loop.StopLimit || r.Limit != loop.LimitRounds {
		fault(&x, "want the stop limit (rounds), got %s%s", x.Got, why(r))
	}
	if r.Answer == "" {
		fault(&x, "the closing call's answer was lost")
	}
	if n := s.ran[defs[0].Name]; n != 2 {
		fault(&x, "%s ran %d times within 2 rounds", defs[0].Name, n)
	}
	return x
}

// asked is the tool that a drill of decisions uses: one that asks, else the first that writes, else the first.
func (d *drill) asked() (tool.Def, bool) {
	defs := d.defs()
	for _, def := range defs {
		if def.Approval == loop.Ask {
			return def, true
		}
	}
	for _, def := range defs {
		if def.Effect != loop.Read {
			return def, true
		}
	}
	if len(defs) > 0 {
		return defs[0], true
	}
	return tool.Def{}, false
}

// asking makes one tool ask and the others run.
func asking(name string) func(a *drive.Agent, tools []*pretend) {
	return func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.ApprovalTTL = 0
		for _, t := range tools {
			if t.def.Name == name {
				t.def.Approval, t.facts = loop.Ask, tools[0].facts
			}
		}
	}
}

func (d *drill) approval(ctx context.Context) Exit {
	x := Exit{Want: "waiting: approval, then completed once, in another process"}
	def, ok := d.asked()
	if !ok {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	it, err := item(def, 1)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	s, err := d.stage([]string{it, d.end()}, func(a *drive.Agent, tools []*pretend) {
		asking(def.Name)(a, tools)
		if a.Contract != nil {
			a.Contract.Called = nil
		}
		a.Limits = drive.Limits{Rounds: 3}
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if r.Status != loop.StatusWaiting || len(r.Pending) != 1 {
		fault(&x, "want one pending approval, got %s%s", x.Got, why(r))
		return x
	}
	if s.ran[def.Name] != 0 {
		fault(&x, "%s ran before it was approved", def.Name)
	}
	paused := x.State
	before := r.Total
	if err := s.open(); err != nil { // another process
		fault(&x, "%v", err)
		return x
	}
	call := r.Pending[0]
	if err := s.host.Decide(ctx, r.ID, call.Call, drive.Decision{Decision: loop.Approve, By: "drill", Digest: call.Digest}); err != nil {
		fault(&x, "the approval was refused: %v", err)
		return x
	}
	if err := s.host.Decide(ctx, r.ID, call.Call, drive.Decision{Decision: loop.Reject, By: "someone else"}); !errors.Is(err, drive.ErrConflict) {
		fault(&x, "a second answer was not a conflict: %v", err)
	}
	r, err = s.host.Resume(ctx, r.ID)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	clear(&x, r)
	x.State = paused + "; then " + x.State
	if r.Stop != loop.StopCompleted {
		fault(&x, "want completed after the approval, got %s%s", x.Got, why(r))
	}
	if s.ran[def.Name] != 1 {
		fault(&x, "%s ran %d times", def.Name, s.ran[def.Name])
	}
	if r.Total.ModelCalls != before.ModelCalls+1 || r.Total.Usage.Total() <= before.Usage.Total() {
		fault(&x, "the pause changed the account: %+v, then %+v", before, r.Total)
	}
	if left := r.State.Limits().Rounds; left == nil || *left != 3 {
		fault(&x, "the pause changed the limits")
	}
	return x
}

func (d *drill) denied(ctx context.Context) Exit {
	x := Exit{Want: "the call does not run, the refusal is told and on record"}
	def, ok := d.asked()
	if !ok {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	it, err := item(def, 1)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	s, err := d.stage([]string{it, "- repeat: {text: \"Drill: it was refused.\"}"}, func(a *drive.Agent, tools []*pretend) {
		asking(def.Name)(a, tools)
		a.Contract, a.Finish = nil, false
		a.Limits = drive.Limits{Rounds: 3}
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if len(r.Pending) != 1 {
		fault(&x, "want one pending approval, got %s", x.Got)
		return x
	}
	if err := s.open(); err != nil {
		fault(&x, "%v", err)
		return x
	}
	if err := s.host.Decide(ctx, r.ID, r.Pending[0].Call, drive.Decision{Decision: loop.Reject, By: "drill", Message: "not in a drill"}); err != nil {
		fault(&x, "the refusal was refused: %v", err)
		return x
	}
	r, err = s.host.Resume(ctx, r.ID)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	clear(&x, r)
	want := loop.StopCompleted
	if def.OnReject == "stop" {
		want = loop.StopDenied
	}
	if r.Stop != want {
		fault(&x, "want %s, got %s%s", want, x.Got, why(r))
	}
	if s.ran[def.Name] != 0 {
		fault(&x, "%s ran although it was refused", def.Name)
	}
	if len(r.State.Refused) != 1 || r.State.Refused[0].By != "drill" {
		fault(&x, "the refusal is not on record")
	}
	return x
}

func (d *drill) failure(ctx context.Context) Exit {
	x := Exit{Want: "the failure is told; a write whose outcome is unknown waits for a person"}
	defs := d.defs()
	if len(defs) == 0 {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	def, _ := d.asked()
	it, err := item(def, 1)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	s, err := d.stage([]string{it, "- repeat: {text: \"Drill: the tool failed.\"}"}, func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.Contract, a.Finish = nil, false
		a.Limits = drive.Limits{Rounds: 3}
		for _, t := range tools {
			t.fail = &tool.Error{Class: loop.ClassUnknown, Message: "the drill cut the connection"}
			t.def.Retries = 0
			if t.def.Effect == "" {
				t.def.Effect = loop.Once
			}
		}
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if def.Effect != loop.Read && def.Effect != loop.Idempotent {
		if r.Status != loop.StatusWaiting || len(r.Pending) != 1 || r.Pending[0].Kind != loop.WaitResolution {
			fault(&x, "want waiting: resolution, got %s%s", x.Got, why(r))
			return x
		}
		paused := x.State
		if err := s.open(); err != nil {
			fault(&x, "%v", err)
			return x
		}
		if err := s.host.Resolve(ctx, r.ID, r.Pending[0].Call, false, "drill", "", nil); err != nil {
			fault(&x, "the resolution was refused: %v", err)
			return x
		}
		if r, err = s.host.Resume(ctx, r.ID); err != nil {
			fault(&x, "%v", err)
			return x
		}
		clear(&x, r)
		x.State = paused + "; then " + x.State
		if s.ran[def.Name] != 1 {
			fault(&x, "%s ran %d times", def.Name, s.ran[def.Name])
		}
	}
	if r.Stop != loop.StopCompleted {
		fault(&x, "want the failure told to the model and an honest end, got %s%s", x.Got, why(r))
	}
	return x
}
