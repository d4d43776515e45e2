package drive_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// spender uses all of what a call may use: it calls tools while it may, and counts over the whole tree.
type spender struct {
	tally *tally
	calls []string // of one response
	turns int64
}

type tally struct {
	mu     sync.Mutex
	calls  int64
	tokens int64
}

func (s spender) Info() model.Info { return model.Info{Wire: "test", Name: "spender"} }

func (s spender) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	u := &loop.Usage{Input: 50, Output: req.MaxOutput}
	s.tally.mu.Lock()
	s.tally.calls++
	s.tally.tokens += u.Total()
	s.tally.mu.Unlock()
	if req.Choice == model.ChoiceNone || req.Call > s.turns {
		return &model.Response{Blocks: says("Done."), Finish: loop.FinishStop, Usage: u}, nil
	}
	var blocks []loop.Block
	for i, name := range s.calls {
		blocks = append(blocks, loop.Block{Kind: loop.BlockCall, ID: fmt.Sprint("x", i), Name: name, Args: fmt.Sprintf(`{"task":"%d.%d"}`, req.Call, i)})
	}
	return &model.Response{Blocks: blocks, Finish: loop.FinishCalls, Usage: u}, nil
}

// tree is an agent of three levels: ten children, nine of each: a hundred children below the root.
func tree(t *tally, limits drive.Limits) *drive.Agent {
	var below []string
	for range 9 {
		below = append(below, "leaf")
	}
	var heads []string
	for range 10 {
		heads = append(heads, "head")
	}
	type in struct {
		Task string `json:"task"`
	}
	look := tool.Func("look", "Looks.", func(context.Context, in) (string, error) { return "ok", nil }, tool.Read())
	leaf := &drive.Agent{Name: "leaf", Model: spender{t, []string{"look"}, 1}, Tools: []tool.Tool{look}, OutputCap: 20, Parallel: "read"}
	head := &drive.Agent{Name: "head", Model: spender{t, below, 1}, Children: []drive.Child{{Agent: leaf}}, OutputCap: 20, Parallel: "read"}
	return &drive.Agent{Name: "root", Model: spender{t, heads, 1}, Children: []drive.Child{{Agent: head}}, OutputCap: 20, Parallel: "read", Limits: limits}
}

func TestTreeOfAHundredChildren(t *testing.T) {
	for name, limits := range map[string]drive.Limits{
		"wide enough": {ModelCalls: 100_000, Tokens: 1 << 40},
		"calls":       {ModelCalls: 60},
		"tokens":      {Tokens: 200_000},
		"tool calls":  {ToolCalls: 40},
	} {
		t.Run(name, func(t *testing.T) {
			var sum tally
			store := memory.New()
			h, err := drive.Open(drive.Options{Store: store})
			if err != nil {
				t.Fatal(err)
			}
			run, err := h.Start(t.Context(), drive.Start{Agent: tree(&sum, limits), Input: drive.Text("Go.")})
			if err != nil || run.Status != loop.StatusStopped {
				t.Fatal(run, err)
			}
			if run.Total.ModelCalls != sum.calls || run.Total.Usage.Total() != sum.tokens {
				t.Errorf("on the account are %d calls and %d tokens, the models counted %d and %d", run.Total.ModelCalls, run.Total.Usage.Total(), sum.calls, sum.tokens)
			}
			over := func(what string, got, limit int64) {
				if limit > 0 && got > limit {
					t.Errorf("%d %s, the limit is %d", got, what, limit)
				}
			}
			over("model calls", sum.calls, int64(limits.ModelCalls))
			over("tokens", sum.tokens, limits.Tokens)
			over("tool calls", run.Total.ToolCalls, int64(limits.ToolCalls))
			if name == "wide enough" && (run.Stop != loop.StopCompleted || run.Total.ToolCalls != 190 || sum.calls != 202) {
				t.Errorf("want the whole tree of 100 children: %+v, %s", run.Total, run.Stop)
			}
		})
	}
}

// TestCancelReachesEveryLevel cancels the root while a grandchild's tool hangs.
func TestCancelReachesEveryLevel(t *testing.T) {
	var sum tally
	began := make(chan struct{})
	type in struct {
		Task string `json:"task"`
	}
	hang := tool.Func("look", "Hangs.", func(ctx context.Context, _ in) (string, error) { close(began); <-ctx.Done(); return "", ctx.Err() }, tool.Read())
	leaf := &drive.Agent{Name: "leaf", Model: spender{&sum, []string{"look"}, 1}, Tools: []tool.Tool{hang}}
	head := &drive.Agent{Name: "head", Model: spender{&sum, []string{"leaf"}, 1}, Children: []drive.Child{{Agent: leaf}}}
	root := &drive.Agent{Name: "root", Model: spender{&sum, []string{"head"}, 1}, Children: []drive.Child{{Agent: head}}}
	h := host(t)
	id, done, err := h.Begin(t.Context(), drive.Start{Agent: root, Input: drive.Text("Go.")})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := h.Cancel(t.Context(), id, "ana", "enough"); err != nil {
		t.Fatal(err)
	}
	<-done.Done()
	for run := id; run != ""; {
		r, err := h.Show(t.Context(), run)
		if err != nil || r.Stop != loop.StopCancelled {
			t.Fatalf("run %s: want cancelled, got %+v, %v", run, r, err)
		}
		run = childOf(t, h, run)
	}
}

func childOf(t *testing.T, h *drive.Host, run string) (child string) {
	t.Helper()
	for it, err := range h.Events(t.Context(), run, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := it.Event.Body.(loop.ChildStarted); ok {
			child = b.Run
		}
	}
	return child
}

// TestApprovalPath shows a grandchild's approval at the root with its agents, and decides it by its path.
func TestApprovalPath(t *testing.T) {
	var sum tally
	paid := 0
	type in struct {
		Task string `json:"task"`
	}
	pay := tool.Func("pay", "Pays.", func(context.Context, in) (string, error) { paid++; return "ok", nil }, tool.Ask())
	leaf := &drive.Agent{Name: "leaf", Model: spender{&sum, []string{"pay"}, 1}, Tools: []tool.Tool{pay}}
	head := &drive.Agent{Name: "head", Model: spender{&sum, []string{"leaf"}, 1}, Tools: []tool.Tool{drive.AsTool(drive.Child{Agent: leaf})}}
	root := &drive.Agent{Name: "root", Model: spender{&sum, []string{"head"}, 1}, Children: []drive.Child{{Agent: head}}}
	h := host(t)
	run, err := h.Start(t.Context(), drive.Start{Agent: root, Input: drive.Text("Go.")})
	if err != nil || len(run.Pending) != 1 {
		t.Fatal(run, err)
	}
	p := run.Pending[0]
	if p.Call != "c1.1/c1.1/c1.1" || strings.Join(p.Path, " ") != "root head leaf" || p.Tool != "pay" || p.Run == run.ID {
		t.Fatalf("pending is %+v", p)
	}
	if err := h.Decide(t.Context(), run.ID, p.Call, drive.Decision{Decision: loop.Approve, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	if run, err = h.Resume(t.Context(), run.ID); err != nil || run.Stop != loop.StopCompleted || paid != 1 {
		t.Fatalf("want it paid once: %+v, %v, paid %d", run, err, paid)
	}
}
