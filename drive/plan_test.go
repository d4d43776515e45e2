package drive_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// sentRequest is what a plan shows of a request.
type sentRequest struct {
	Model, Choice, Extra string
	Tools                []string
}

// noting answers from a list and notes what it was asked.
type noting struct {
	name    string
	answers *[]any // loop.Block lists or errors, taken in order by all models of the list
	sent    *[]sentRequest
}

func (m noting) Info() model.Info { return model.Info{Wire: "test", Name: m.name} }

func (m noting) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	r := sentRequest{Model: m.name, Choice: string(req.Choice), Extra: req.Extra}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	*m.sent = append(*m.sent, r)
	next := (*m.answers)[0]
	*m.answers = (*m.answers)[1:]
	if err, ok := next.(error); ok {
		return nil, err
	}
	blocks := next.([]loop.Block)
	finish := loop.FinishStop
	if blocks[len(blocks)-1].Kind == loop.BlockCall {
		finish = loop.FinishCalls
	}
	return &model.Response{Blocks: blocks, Finish: finish, Usage: &loop.Usage{Input: 100, Output: 10}}, nil
}

func calls(name string) []loop.Block {
	return []loop.Block{{Kind: loop.BlockCall, ID: "x", Name: name, Args: "{}"}}
}

func says(text string) []loop.Block { return []loop.Block{{Kind: loop.BlockText, Text: text}} }

func nothing(name string) tool.Tool {
	return tool.Func(name, "Does nothing.", func(context.Context, struct{}) (string, error) { return "ok", nil }, tool.Read())
}

// planned is an agent with two models and three tools.
func planned(sent *[]sentRequest, answers ...any) *drive.Agent {
	off, zero := false, 0
	return &drive.Agent{Name: "a", Model: noting{"big", &answers, sent}, Models: []model.Model{noting{"small", &answers, sent}},
		Tools: []tool.Tool{nothing("find"), nothing("open"), nothing("pay")}, ReadArtifacts: &off, ModelRetries: &zero}
}

func startsOf(events []loop.Event) (out []loop.ModelCallStarted) {
	for _, ev := range events {
		if b, ok := ev.Body.(loop.ModelCallStarted); ok {
			b.Reserve = loop.Reserve{}
			out = append(out, b)
		}
	}
	return out
}

func TestPlanIsForOneCallAndOnRecord(t *testing.T) {
	var sent []sentRequest
	agent := planned(&sent, calls("find"), calls("open"), says("Done."))
	plans := map[int64]loop.Plan{1: {Model: "test/small", Tools: []string{"open", "find"}, ToolChoice: "find", Context: "First look."}}
	asked := 0
	agent.Plan = func(_ context.Context, in drive.PlanInput) (loop.Plan, error) { asked++; return plans[in.Call], nil }
	store := memory.New()
	h, err := drive.Open(drive.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	run, err := h.Start(t.Context(), drive.Start{Agent: agent, Input: drive.Text("Go.")})
	if err != nil || run.Stop != loop.StopCompleted {
		t.Fatal(run, err)
	}
	all := []string{"find", "open", "pay"}
	want := []sentRequest{
		{Model: "small", Choice: "find", Extra: "First look.", Tools: []string{"find", "open"}},
		{Model: "big", Tools: all},
		{Model: "big", Tools: all},
	}
	if diff := cmp.Diff(want, sent); diff != "" || asked != 3 {
		t.Errorf("the hook was asked %d times; requests (-want +got):\n%s", asked, diff)
	}
	_, events := stored(t, store, run.ID)
	plan := plans[1]
	record := []loop.ModelCallStarted{{Call: 1, Model: "test/small", Plan: &plan}, {Call: 2, Prefix: &loop.Prefix{Broken: "model"}}, {Call: 3}}
	if diff := cmp.Diff(record, startsOf(events)); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

func TestToolOutsideOfThePlanDoesNotRun(t *testing.T) {
	var sent []sentRequest
	agent := planned(&sent, calls("pay"), says("Done."))
	paid := false
	agent.Tools[2] = tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid = true; return "ok", nil })
	agent.Plan = func(_ context.Context, in drive.PlanInput) (loop.Plan, error) {
		return loop.Plan{Tools: []string{"find"}}, nil
	}
	run, err := host(t).Start(t.Context(), drive.Start{Agent: agent, Input: drive.Text("Go.")})
	if err != nil || run.Stop != loop.StopCompleted || paid {
		t.Fatalf("want the call refused: %+v, %v, paid %t", run, err, paid)
	}
}

// TestPlanIsNotAskedForAgain kills the process after the call's start is on record, and lets an attempt fail: both take the recorded plan.
func TestPlanIsNotAskedForAgain(t *testing.T) {
	var sent []sentRequest
	agent := planned(&sent, &model.Error{Class: loop.ClassTransient, Message: "busy"}, says("Done."))
	one := 1
	agent.ModelRetries = &one
	asked := 0
	agent.Plan = func(_ context.Context, in drive.PlanInput) (loop.Plan, error) {
		asked++
		return loop.Plan{Model: "test/small", Context: "Look."}, nil
	}
	store := memory.New()
	kills := 1
	open := func() *drive.Host {
		h, err := drive.Open(drive.Options{Store: store, Owner: "p", Hook: func(p drive.Point) error {
			if p.Name == "effect" && kills > 0 {
				kills--
				return drive.ErrKilled
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		h.Register(agent)
		return h
	}
	if _, err := open().Start(t.Context(), drive.Start{Agent: agent, ID: "r", Input: drive.Text("Go.")}); !errors.Is(err, drive.ErrKilled) {
		t.Fatalf("want a crash, got %v", err)
	}
	run, err := open().Resume(t.Context(), "r")
	if err != nil || run.Stop != loop.StopCompleted {
		t.Fatal(run, err)
	}
	want := sentRequest{Model: "small", Extra: "Look.", Tools: []string{"find", "open", "pay"}}
	if diff := cmp.Diff([]sentRequest{want, want}, sent); diff != "" || asked != 1 {
		t.Errorf("the hook was asked %d times; requests (-want +got):\n%s", asked, diff)
	}
}

func TestPlanThatFailsEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		plan func() (loop.Plan, error)
		want string
	}{
		"error":         {func() (loop.Plan, error) { return loop.Plan{}, errors.New("no idea") }, "no idea"},
		"panic":         {func() (loop.Plan, error) { panic("boom") }, "panicked: boom"},
		"unknown model": {func() (loop.Plan, error) { return loop.Plan{Model: "test/huge"}, nil }, "test/huge"},
		"unknown tool":  {func() (loop.Plan, error) { return loop.Plan{Tools: []string{"fly"}}, nil }, "the tool fly"},
		"tool twice":    {func() (loop.Plan, error) { return loop.Plan{Tools: []string{"find", "find"}}, nil }, "twice"},
		"choice":        {func() (loop.Plan, error) { return loop.Plan{Tools: []string{"find"}, ToolChoice: "open"}, nil }, "open"},
		"no tools":      {func() (loop.Plan, error) { return loop.Plan{Tools: []string{}, ToolChoice: "required"}, nil }, "declares no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []sentRequest
			agent := planned(&sent)
			agent.Plan = func(context.Context, drive.PlanInput) (loop.Plan, error) { return c.plan() }
			run, err := host(t).Start(t.Context(), drive.Start{Agent: agent, Input: drive.Text("Go.")})
			if err != nil {
				t.Fatal(err)
			}
			if run.Stop != loop.StopFailed || !strings.Contains(run.Stopped.Message, c.want) || len(sent) > 0 || run.Counts.ModelCalls != 0 {
				t.Errorf("want failed because of %q and nothing sent, got %+v, %d sent", c.want, run.Stopped, len(sent))
			}
		})
	}
}
