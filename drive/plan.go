package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// planTimeout bounds one call of the hook: it decides, it does not work.
const planTimeout = 10 * time.Second

// planned is what the hook said before one model call, until that call's start is on record.
type planned struct {
	call int64
	plan *loop.Plan
	err  error
}

// plan asks the hook before a model call, once; further attempts and the closing call have no hook. An error says why there is no plan.
func (d *driver) plan(ctx context.Context, c loop.Command) (*loop.Plan, error) {
	switch {
	case c.Closing:
		return nil, nil
	case c.Attempt > 1:
		return d.state.Model.Plan, nil
	case d.c.agent.Plan == nil:
		return nil, nil
	case d.planned.call == c.N:
		return d.planned.plan, d.planned.err
	}
	d.planned = planned{call: c.N}
	plan, err := d.askPlan(ctx, PlanInput{Run: d.lease.Run, Call: c.N, Messages: d.talk.Messages(), Counts: d.state.Ledger.Own, Facts: maps.Clone(d.state.Facts)})
	if err == nil {
		err = d.checkPlan(plan)
	}
	if err != nil {
		d.planned.err = err
		return nil, err
	}
	if plan.Model != "" || plan.Tools != nil || plan.ToolChoice != "" || plan.Context != "" {
		plan.Tools = slices.Clone(plan.Tools)
		d.planned.plan = &plan
	}
	return d.planned.plan, nil
}

func (d *driver) askPlan(ctx context.Context, in PlanInput) (loop.Plan, error) {
	ctx, cancel := d.withTimeout(ctx, planTimeout, fmt.Errorf("it did not answer within %v", planTimeout))
	defer cancel(nil)
	type outcome struct {
		plan loop.Plan
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if r := recover(); r != nil {
				out.err = fmt.Errorf("it panicked: %v", r)
			}
			done <- out
		}()
		out.plan, out.err = d.c.agent.Plan(ctx, in)
	}()
	select {
	case out := <-done:
		return out.plan, out.err
	case <-ctx.Done():
		return loop.Plan{}, context.Cause(ctx)
	}
}

// checkPlan names what a plan asks for and the agent does not have.
func (d *driver) checkPlan(p loop.Plan) error {
	if p.Model != "" {
		if _, err := d.port(p.Model); err != nil {
			return fmt.Errorf("it chose the model %s, which the agent does not have. Add it to Models or Fallbacks", p.Model)
		}
	}
	declared := d.declared(&p)
	if len(declared) < len(p.Tools) {
		for _, name := range p.Tools {
			if !slices.ContainsFunc(declared, func(t model.Tool) bool { return t.Name == name }) {
				return fmt.Errorf("it chose the tool %s, which the agent does not have", name)
			}
		}
		return errors.New("it named a tool twice")
	}
	switch choice := model.ToolChoice(p.ToolChoice); choice {
	case model.ChoiceAuto, model.ChoiceNone:
	case model.ChoiceRequired:
		if len(declared) == 0 {
			return errors.New("it requires a tool call and declares no tool")
		}
	default:
		if !slices.ContainsFunc(declared, func(t model.Tool) bool { return t.Name == p.ToolChoice }) {
			return fmt.Errorf("it chose the tool %s to be called, which is not declared for this call", p.ToolChoice)
		}
	}
	return nil
}

// declared lists the tools of a call in the agent's order: all, or those of its plan. A built-in tool that the run was not started with is
// left out.
func (d *driver) declared(p *loop.Plan) []model.Tool {
	all := d.c.declare
	if b := d.c.tools[ReadArtifact]; b != nil && b.builtin && d.state.Config.ToolSpec(ReadArtifact) == nil {
		all = slices.DeleteFunc(slices.Clone(all), func(t model.Tool) bool { return t.Name == ReadArtifact })
	}
	if p == nil || p.Tools == nil {
		return all
	}
	var list []model.Tool
	for _, t := range all {
		if slices.Contains(p.Tools, t.Name) {
			list = append(list, t)
		}
	}
	return list
}
