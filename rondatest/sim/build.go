package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/policy"
	"github.com/ronda-go/ronda/tool"
)

// build makes the agent that a drawing describes, for the process behind a door: what a dead process still does must not count.
func (w *world) build(a *agentDraw, door *door) *drive.Agent {
	agent := a.cfg
	agent.Model = &simModel{w: w, a: a, door: door}
	for _, t := range a.tools {
		agent.Tools = append(agent.Tools, &simTool{w: w, a: a, t: t, door: door})
	}
	for i, c := range a.children {
		r := dice(w.seed, "child", c.name)
		child := drive.Child{Agent: w.build(c, door), Handoff: in(r, 15)}
		if in(r, 20) {
			child.Approval = loop.Ask
		}
		if in(r, 30) {
			child.Limits = drive.Limits{ModelCalls: pick(r, 0, 2, 4), ToolCalls: pick(r, 0, 3), Rounds: pick(r, 0, 2)}
		}
		if i%2 == 0 {
			agent.Tools = append(agent.Tools, drive.AsTool(child))
		} else {
			agent.Children = append(agent.Children, child)
		}
	}
	if a.policy != "" {
		agent.Policy = simPolicy{w, a}
	}
	return &agent
}

// simPolicy decides by a hash of the call, or does not decide at all.
type simPolicy struct {
	w *world
	a *agentDraw
}

func (p simPolicy) Decide(_ context.Context, c policy.Call) (policy.Decision, error) {
	r := dice(p.w.seed, "policy", c.Tool, string(c.Args))
	declared := c.Approval
	if declared == "" {
		declared = loop.Allow
	}
	switch p.a.policy {
	case "panics":
		if in(r, 30) {
			panic("no rule")
		}
	case "fails":
		if in(r, 30) {
			return policy.Decision{}, errors.New("no answer")
		}
	default:
		switch {
		case in(r, 15):
			return policy.Decision{Verdict: loop.Deny, Rule: "hash", Reason: "by lot"}, nil
		case in(r, 20):
			return policy.Decision{Verdict: loop.Ask, Rule: "hash", Reason: "by lot"}, nil
		}
	}
	return policy.Decision{Verdict: declared, Rule: "tool"}, nil
}

// simTool does what the lot says, and the world counts what really happened.
type simTool struct {
	w *world
	a *agentDraw
	t *toolDraw

	door *door
}

var _ tool.Checker = (*simTool)(nil)

func (t *simTool) Def() tool.Def { return t.t.def }

// execution is one attempt of a call as it was executed.
type execution struct {
	tool tool.Call
	def  tool.Def
	path string // of the run
}

func (e *execution) String() string {
	return fmt.Sprintf("%s %s %s attempt %d %s", e.path, e.tool.ID, e.def.Name, e.tool.Attempt, e.tool.Args)
}
