package ronda_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/tool"
)

func script(t testing.TB, yaml string) model.Model {
	t.Helper()
	s, err := scripted.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

type amount struct {
	Amount int `json:"amount"`
}

func TestRun(t *testing.T) {
	double := tool.Func("double", "Doubles.", func(ctx context.Context, a amount) (amount, error) { return amount{2 * a.Amount}, nil }, tool.Read())
	a := ronda.Agent{Name: "a", Model: script(t, "- {calls: [{double: {amount: 2}}]}\n- {text: It is 4.}\n"), Tools: []ronda.Tool{double}}
	run, err := a.Run(t.Context(), "Double 2.")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{run.Status, run.Stop, run.Answer, run.Counts.Rounds, run.Counts.ModelCalls, run.Counts.ToolCalls}
	want := []any{"stopped", loop.StopCompleted, "It is 4.", int64(1), int64(2), int64(1)}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestStreamYieldsEventsAndDeltas(t *testing.T) {
	a := ronda.Agent{Name: "a", Model: script(t, "- {thinking: Hm., text: Four it is.}\n")}
	var kinds []string
	var text strings.Builder
	for it, err := range a.Stream(t.Context(), "Two and two?") {
		if err != nil {
			t.Fatal(err)
		}
		if it.Delta != nil {
			if it.Delta.Channel == model.Text {
				text.WriteString(it.Delta.Text)
			}
			continue
		}
		kinds = append(kinds, it.Event.Kind())
	}
	if got := strings.Join(kinds, " "); got != "RunStarted ModelCallStarted ModelReplied RunStopped" {
		t.Errorf("events: %s", got)
	}
	if !strings.HasPrefix("Four it is.", text.String()) {
		t.Errorf("deltas: %q", text.String())
	}
}

func TestRunAsDecodesAndCorrects(t *testing.T) {
	a := ronda.Agent{Name: "a", Model: script(t, "- {text: \"no json\"}\n- {text: \"{\\\"amount\\\": 7}\"}\n")}
	got, run, err := ronda.RunAs[amount](t.Context(), &a, "How much?")
	if err != nil || got != (amount{7}) {
		t.Fatalf("got %v, %v, %+v", got, err, run)
	}
	bad := ronda.Agent{Name: "a", Model: script(t, "- repeat: {text: \"{}\"}\n")}
	_, run, err = ronda.RunAs[amount](t.Context(), &bad, "How much?")
	var nc *ronda.NotCompleted
	if !errors.As(err, &nc) || run.Stop != loop.StopIncomplete || run.Counts.ModelCalls != 4 {
		t.Fatalf("want incomplete after 3 repairs, got %v, %+v", err, run)
	}
}

// A run is started, approved and ended by three hosts on one file, as three processes would.
func TestApproveInAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	paid := 0
	agent := func() *ronda.Agent {
		pay := tool.Func("pay", "Pays.", func(ctx context.Context, a amount) (string, error) { paid++; return "R-1", nil }, tool.Ask())
		return &ronda.Agent{Name: "payer", Model: script(t, "- {calls: [{pay: {amount: 5}}]}\n- {text: \"Paid, R-1.\"}\n"), Tools: []ronda.Tool{pay}}
	}
	open := func() *ronda.Host {
		h, err := ronda.Open(path, agent())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := open()
	run, err := h.Run(t.Context(), agent(), "Pay 5.")
	if err != nil {
		t.Fatal(err)
	}
	id, call := run.ID, run.Pending[0].Call
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h = open()
	if err := h.Approve(t.Context(), id, call, ronda.Decision{By: "ana"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Approve(t.Context(), id, call, ronda.Decision{By: "ana"}); err != nil {
		t.Fatalf("the same answer from the same person again: %v", err)
	}
	if err := h.Reject(t.Context(), id, call, ronda.Decision{By: "eve"}); !errors.Is(err, ronda.ErrConflict) {
		t.Fatalf("want a conflict, got %v", err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h = open()
	run, err = h.Resume(t.Context(), id)
	if err != nil || run.Stop != loop.StopCompleted || paid != 1 {
		t.Fatalf("got %v, %+v, paid %d", err, run, paid)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestChildDrawsOnTheLedger(t *testing.T) {
	noop := tool.Func("noop", "Does nothing.", func(ctx context.Context, a amount) (amount, error) { return a, nil }, tool.Read())
	child := ronda.Agent{Name: "expert", Model: script(t, "- repeat: {calls: [{noop: {amount: 1}}]}\n"), Tools: []ronda.Tool{noop}, Stall: new(int)}
	root := ronda.Agent{Name: "root", Model: script(t, "- repeat: {calls: [{expert: {task: x}}]}\n"), Tools: []ronda.Tool{ronda.AsTool(&child)}, Limits: ronda.Limits{ModelCalls: 8, Rounds: 3}, Stall: new(int)}
	run, err := root.Run(t.Context(), "Ask.")
	if err != nil {
		t.Fatal(err)
	}
	if run.Stop != loop.StopLimit || run.Total.ModelCalls > 8 {
		t.Fatalf("want a limit within 8 calls over the tree, got %s %s with %d", run.Stop, run.Limit, run.Total.ModelCalls)
	}
}

func TestSessionGoesOn(t *testing.T) {
	m := script(t, "- {text: One.}\n- {text: Two.}\n")
	a := ronda.Agent{Name: "a", Model: m}
	h, err := ronda.Open("memory:", &a)
	if err != nil {
		t.Fatal(err)
	}
	first, err := h.Run(t.Context(), &a, "First.")
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.Say(t.Context(), &a, first.Session, "Second.")
	if err != nil || second.Answer != "Two." || second.Session != first.Session {
		t.Fatalf("got %v, %+v", err, second)
	}
}

// The first run of a named session carries the name.
func TestNamedSession(t *testing.T) {
	a := ronda.Agent{Name: "a", Model: script(t, "- {text: One.}\n- {text: Two.}\n")}
	h, err := ronda.Open("memory:", &a)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"One.", "Two."} {
		run, err := h.Say(t.Context(), &a, "s1", "Go on.")
		if err != nil || run.Session != "s1" || run.Answer != want {
			t.Fatalf("run %d: %v, session %q, answer %q", i, err, run.Session, run.Answer)
		}
	}
}

func TestCostLimitNeedsAPrice(t *testing.T) {
	a := ronda.Agent{Name: "a", Model: script(t, "- {text: Hi.}\n"), Limits: ronda.Limits{CostUSD: 1}}
	if _, err := a.Run(t.Context(), "Hi."); err == nil || !strings.Contains(err.Error(), "price") {
		t.Fatalf("want an error about the price, got %v", err)
	}
}

func TestBadConfigurationNamesTheField(t *testing.T) {
	m := script(t, "- {text: Hi.}\n")
	for name, c := range map[string]struct {
		agent ronda.Agent
		want  string
	}{
		"no name":        {ronda.Agent{Model: m}, "Name"},
		"no model":       {ronda.Agent{Name: "a"}, "Model"},
		"negative limit": {ronda.Agent{Name: "a", Model: m, Limits: ronda.Limits{Rounds: -1}}, "Rounds"},
		"on_limit":       {ronda.Agent{Name: "a", Model: m, OnLimit: "halt"}, "OnLimit"},
		"contract":       {ronda.Agent{Name: "a", Model: m, Contract: &ronda.Contract{Called: []string{"x"}}}, "Contract"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.agent.Run(t.Context(), "Hi."); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("want an error that names %s, got %v", c.want, err)
			}
		})
	}
}

// Ten thousand short runs in one process leave nothing behind (cases, 35).
func TestShortRunsLeaveNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	s := script(t, "- {text: Hi.}\n")
	measure := func() (heap uint64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		return ms.HeapAlloc, runtime.NumGoroutine()
	}
	one := func() {
		a := ronda.Agent{Name: "a", Model: s}
		if _, err := a.Run(t.Context(), "Hi."); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		one()
	}
	heap, goroutines := measure()
	for range 10_000 {
		one()
	}
	after, gafter := measure()
	if after > heap+8<<20 || gafter > goroutines+5 {
		t.Fatalf("heap %d → %d bytes, goroutines %d → %d", heap, after, goroutines, gafter)
	}
}
