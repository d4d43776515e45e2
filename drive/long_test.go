package drive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// windowed is a model whose window is real: it counts a token for four bytes and refuses what does not fit.
type windowed struct {
	rounds int64
	window int64
	worst  *int64 // the largest request
	asked  *int64 // calls of the run itself
}

func (w windowed) Info() model.Info {
	return model.Info{Wire: "test", Name: "windowed", ContextWindow: w.window, OutputCap: 200}
}

func (w windowed) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	var n int64
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			n += int64(len(b.Text)+len(b.Args)) + 16
		}
	}
	u := loop.Usage{Input: n/4 + 200, Output: 20}
	*w.worst = max(*w.worst, u.Input)
	if u.Input > w.window {
		return nil, &model.Error{Class: loop.ClassInvalid, Window: true, Message: "the prompt is too long"}
	}
	*w.asked++
	if *w.asked > w.rounds {
		return &model.Response{Blocks: []loop.Block{{Kind: loop.BlockText, Text: "Done."}}, Finish: loop.FinishStop, Usage: &u}, nil
	}
	call := loop.Block{Kind: loop.BlockCall, ID: "x", Name: "lookup", Args: fmt.Sprintf(`{"q":"%d"}`, *w.asked)}
	return &model.Response{Blocks: []loop.Block{call}, Finish: loop.FinishCalls, Usage: &u}, nil
}

// stored is what a store keeps of a run.
func stored(t *testing.T, s journal.Store, run string) (bytes int64, events []loop.Event) {
	t.Helper()
	err := s.Read(t.Context(), run, 0, func(r journal.Record) error {
		bytes += int64(len(r.Data))
		ev, err := loop.Decode(r.Data)
		events = append(events, ev)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, events
}

func longAgent(rounds int64, worst *int64) *drive.Agent {
	type in struct {
		Q string `json:"q"`
	}
	text := strings.Repeat("a line of what was found\n", 40)
	lookup := tool.Func("lookup", "Looks up.", func(ctx context.Context, i in) (string, error) { return i.Q + text, nil }, tool.Read())
	return &drive.Agent{Name: "long", Model: windowed{rounds: rounds, window: 8000, worst: worst, asked: new(int64)}, Tools: []tool.Tool{lookup},
		Limits: drive.Limits{Rounds: drive.Unlimited}, OutputCap: 200, Compact: &drive.Compact{At: 0.5, Keep: 6}}
}

// TestTwoThousandRounds is a run far beyond its model's window. It counts; it measures no time.
func TestTwoThousandRounds(t *testing.T) {
	const rounds = 2000
	var worst int64
	store := memory.New()
	h, err := drive.Open(drive.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	run, err := h.Start(t.Context(), drive.Start{Agent: longAgent(rounds, &worst), Input: drive.Text("Go on until it is done.")})
	if err != nil || run.Stop != loop.StopCompleted || run.Counts.Rounds != rounds {
		t.Fatalf("want %d rounds and the end, got %+v, %v", rounds, run, err)
	}
	if worst > 8000 {
		t.Errorf("a request had %d tokens, the window is 8000", worst)
	}
	bytes, events := stored(t, store, run.ID)
	var st loop.State
	var sizes, stores []int64 // after each 200 rounds
	var allocs []float64
	var sum int64
	for i, ev := range events {
		at := st
		next, err := loop.Next(st, ev)
		if err != nil {
			t.Fatal(err)
		}
		st = next
		data, err := loop.Encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		sum += int64(len(data))
		if _, ok := ev.Body.(loop.ToolReturned); ok && st.Ledger.Own.Rounds%200 == 0 && st.Ledger.Own.Rounds > 0 {
			raw, err := json.Marshal(st)
			if err != nil {
				t.Fatal(err)
			}
			sizes, stores = append(sizes, int64(len(raw))), append(stores, sum)
			ev := events[i]
			allocs = append(allocs, testing.AllocsPerRun(20, func() { _, _ = loop.Next(at, ev) }))
		}
	}
	last := len(sizes) - 1
	if last < 9 || sizes[last] > sizes[0]+64 {
		t.Errorf("the state grows: %v bytes", sizes)
	}
	if allocs[last] > allocs[0] {
		t.Errorf("Next allocates more: %v", allocs)
	}
	if half := stores[(last+1)/2-1]; float64(bytes) > 2.1*float64(half) {
		t.Errorf("%d bytes are stored for %d rounds, %d for half of them", bytes, rounds, half)
	}
}

// TestLongRunIsResumed reads a long journal and goes on.
func TestLongRunIsResumed(t *testing.T) {
	var worst int64
	store := memory.New()
	agent := longAgent(400, &worst)
	killed := false
	h, err := drive.Open(drive.Options{Store: store, Owner: "p", Hook: func(p drive.Point) error {
		if p.Name == "append" && p.State.Ledger.Own.Rounds >= 300 || killed {
			killed = true
			return drive.ErrKilled
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(t.Context(), drive.Start{Agent: agent, ID: "r", Input: drive.Text("Go on until it is done.")}); err == nil {
		t.Fatal("want the run to be killed")
	}
	next, err := drive.Open(drive.Options{Store: store, Owner: "p"})
	if err != nil {
		t.Fatal(err)
	}
	next.Register(agent)
	run, err := next.Resume(t.Context(), "r")
	if err != nil || run.Stop != loop.StopCompleted || run.Counts.Rounds < 399 || worst > 8000 {
		t.Fatalf("want the run to go on to its end under the window (%d), got %+v, %v", worst, run, err)
	}
}
