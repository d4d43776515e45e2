package drive_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
	"github.com/ronda-go/ronda/tool"
)

// payer is an agent that looks, pays and looks again; keys collects the idempotency keys of the payments.
func payer(t *testing.T, keys *[]string) *drive.Agent {
	t.Helper()
	pay := keyed{tool.Func("pay", "Pay.", func(ctx context.Context, p payment) (string, error) { return "receipt R-1", nil }, tool.Idempotent()), keys}
	look := tool.Func("look", "Look.", func(ctx context.Context, p payment) (string, error) { return "balance 10", nil }, tool.Read())
	return &drive.Agent{Name: "payer", Model: script(t, "- {calls: [{pay: {amount: 5}}]}\n- {calls: [{look: {amount: 1}}]}\n- {calls: [{pay: {amount: 2}}]}\n- {text: Done.}\n"),
		Tools: []tool.Tool{pay, look}}
}

// keyed notes the keys of calls.
type keyed struct {
	tool.Tool
	keys *[]string
}

func (k keyed) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	*k.keys = append(*k.keys, c.Key)
	return k.Tool.Run(ctx, c)
}

func eventsOf(t *testing.T, h *drive.Host, run string) []loop.Event {
	t.Helper()
	rec, err := h.Recording(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Root().Events
}

// at finds the n-th event of a kind.
func at(events []loop.Event, kind string, n int) int64 {
	for _, ev := range events {
		if ev.Kind() == kind {
			if n--; n == 0 {
				return ev.Seq
			}
		}
	}
	return 0
}

func TestForkEverywhere(t *testing.T) {
	ctx := context.Background()
	var keys []string
	h := host(t)
	a := payer(t, &keys)
	run, err := h.Start(ctx, drive.Start{Agent: a, Input: drive.Text("Pay.")})
	if err != nil {
		t.Fatal(err)
	}
	events := eventsOf(t, h, run.ID)
	first, firstPaid := keys[0], at(events, "ToolReturned", 1)
	for _, ev := range events[:len(events)-1] {
		keys = nil
		f, err := h.Fork(ctx, run.ID, ev.Seq, drive.Start{})
		if err != nil {
			t.Fatalf("fork at %d: %v", ev.Seq, err)
		}
		if f.Stop != loop.StopCompleted || f.Answer != "Done." {
			t.Errorf("fork at %d: %s %q", ev.Seq, f.Stop, f.Answer)
		}
		mine := eventsOf(t, h, f.ID)
		if diff := recording.Check(mine); diff != nil {
			t.Errorf("fork at %d: %v", ev.Seq, diff)
		}
		started := mine[0].Body.(loop.RunStarted)
		if started.Fork == nil || started.Fork.Run != run.ID || started.Fork.Seq != ev.Seq || started.Fork.Digest == "" {
			t.Errorf("fork at %d names its origin %+v", ev.Seq, started.Fork)
		}
		for i := range events[:ev.Seq] {
			if mine[i].Kind() != events[i].Kind() {
				t.Fatalf("fork at %d: event %d is %s, was %s", ev.Seq, i+1, mine[i].Kind(), events[i].Kind())
			}
		}
		started1 := at(events, "ToolStarted", 1)
		for _, k := range keys {
			// The first payment is asked for in the prefix if its response is there: then it keeps its key.
			if k == first && ev.Seq < at(events, "ModelReplied", 1) {
				t.Errorf("fork at %d: a payment that the fork asked for has the key of the old one", ev.Seq)
			}
		}
		if ev.Seq >= started1 && len(keys) > 0 && keys[0] == first {
			t.Errorf("fork at %d: the payment that began at %d and is on record at %d was made again", ev.Seq, started1, firstPaid)
		}
	}
}

func TestForkWithOtherLimits(t *testing.T) {
	ctx := context.Background()
	var keys []string
	h := host(t)
	run, err := h.Start(ctx, drive.Start{Agent: payer(t, &keys), Input: drive.Text("Pay.")})
	if err != nil {
		t.Fatal(err)
	}
	events := eventsOf(t, h, run.ID)
	cut := at(events, "ToolReturned", 1)
	f, err := h.Fork(ctx, run.ID, cut, drive.Start{Limits: &drive.Limits{Rounds: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Stop != loop.StopLimit || f.Limit != loop.LimitRounds || f.Counts.Rounds != 2 {
		t.Errorf("want the limit of 2 rounds, got %s %s at %d", f.Stop, f.Limit, f.Counts.Rounds)
	}
	for name, try := range map[string]func() error{
		"a limit that the prefix is beyond": func() error {
			_, err := h.Fork(ctx, run.ID, at(events, "ToolReturned", 2), drive.Start{Limits: &drive.Limits{ToolCalls: 1}})
			return err
		},
		"the stop": func() error { _, err := h.Fork(ctx, run.ID, int64(len(events)), drive.Start{}); return err },
		"beyond":   func() error { _, err := h.Fork(ctx, run.ID, 999, drive.Start{}); return err },
		"nothing":  func() error { _, err := h.Fork(ctx, run.ID, 0, drive.Start{}); return err },
	} {
		if err := try(); !errors.Is(err, drive.ErrInvalid) {
			t.Errorf("%s: want invalid, got %v", name, err)
		}
	}
	if _, err := h.Fork(ctx, "nope", 1, drive.Start{}); !errors.Is(err, drive.ErrNotFound) {
		t.Errorf("want not found, got %v", err)
	}
}

func TestForkWithAnotherAgent(t *testing.T) {
	ctx := context.Background()
	var keys []string
	h := host(t)
	run, err := h.Start(ctx, drive.Start{Agent: payer(t, &keys), Input: drive.Text("Pay.")})
	if err != nil {
		t.Fatal(err)
	}
	events := eventsOf(t, h, run.ID)
	other := &drive.Agent{Name: "teller", Model: script(t, "- repeat: {text: \"I have no tools.\"}\n")}
	f, err := h.Fork(ctx, run.ID, at(events, "ToolReturned", 2), drive.Start{Agent: other, Input: drive.Text("And now?"), By: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Answer != "I have no tools." || f.Agent != "teller" {
		t.Errorf("got %q by %s", f.Answer, f.Agent)
	}
}

func TestImportKeepsTheJournal(t *testing.T) {
	ctx := context.Background()
	var keys []string
	h := host(t)
	run, err := h.Start(ctx, drive.Start{Agent: payer(t, &keys), Input: drive.Text("Pay.")})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := h.Recording(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	there := host(t)
	got, err := there.Import(ctx, rec, "", "ana")
	if err != nil || got != (drive.Imported{Run: run.ID}) {
		t.Fatalf("%+v, %v", got, err)
	}
	back, err := there.Show(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run.Row.Digest, back.Row.Digest); diff != "" || back.Answer != "Done." {
		t.Errorf("the journal is another one: %s, answer %q", diff, back.Answer)
	}
	if got, err = there.Import(ctx, rec, "", "ana"); err != nil || !got.Known {
		t.Errorf("a second time: %+v, %v", got, err)
	}
	if got, err = there.Import(ctx, rec, "run_copy", "ana"); err != nil || got.Run != "run_copy" {
		t.Errorf("under another id: %+v, %v", got, err)
	}
	if diff := recording.Check(eventsOf(t, there, "run_copy")); diff != nil {
		t.Error(diff)
	}
}

func TestImportEndsWhatWasRunning(t *testing.T) {
	ctx := context.Background()
	pay := tool.Func("pay", "Pay.", func(ctx context.Context, p payment) (string, error) { return "ok", nil }, tool.Ask())
	h := host(t)
	run, err := h.Start(ctx, drive.Start{Agent: &drive.Agent{Name: "a", Model: script(t, "- {calls: [{pay: {amount: 5}}]}\n"), Tools: []tool.Tool{pay}}, Input: drive.Text("Pay.")})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := h.Recording(ctx, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	there := host(t)
	got, err := there.Import(ctx, rec, "", "ana")
	if err != nil || got.Settled == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	back, err := there.Show(ctx, run.ID)
	if err != nil || back.Stop != loop.StopCancelled || len(back.Pending) != 0 {
		t.Errorf("want cancelled, got %s, pending %v, %v", back.Stop, back.Pending, err)
	}
}
