package drive_test

import (
	"context"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/tool"
)

func script(t *testing.T, yaml string) *scripted.Model {
	t.Helper()
	s, err := scripted.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

func host(t *testing.T) *drive.Host {
	t.Helper()
	h, err := drive.Open(drive.Options{Store: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

type payment struct {
	Amount int `json:"amount"`
}

func TestApprovalAcrossHosts(t *testing.T) {
	ctx := context.Background()
	paid := 0
	pay := tool.Func("pay", "Pay.", func(ctx context.Context, p payment) (string, error) { paid += p.Amount; return "receipt R-1", nil }, tool.Ask())
	agent := &drive.Agent{Name: "a", Model: script(t, "- {calls: [{pay: {amount: 5}}]}\n- {text: Paid.}\n"), Tools: []tool.Tool{pay}}
	h := host(t)
	run, err := h.Start(ctx, drive.Start{Agent: agent, Input: drive.Text("Pay 5.")})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != loop.StatusWaiting || len(run.Pending) != 1 || string(run.Pending[0].Args) != `{"amount":5}` {
		t.Fatalf("want one pending payment, got %+v", run)
	}
	if paid != 0 {
		t.Fatal("paid before the approval")
	}
	if err := h.Decide(ctx, run.ID, run.Pending[0].Call, drive.Decision{Decision: loop.Approve, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	run, err = h.Resume(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if run.Stop != loop.StopCompleted || run.Answer != "Paid." || paid != 5 {
		t.Fatalf("want completed and paid once, got %+v, paid %d", run, paid)
	}
}
