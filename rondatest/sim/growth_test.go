package sim

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

// steady asks for one call after the other, then answers.
type steady struct{ rounds int64 }

func (m steady) Info() model.Info { return model.Info{Wire: "sim", Name: "steady", Scripted: true} }

func (m steady) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	if req.Call > m.rounds {
		return &model.Response{Finish: loop.FinishStop, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "Done."}}, Usage: &loop.Usage{Input: 1, Output: 1}}, nil
	}
	call := loop.Block{Kind: loop.BlockCall, Name: "look", Args: fmt.Sprintf(`{"n":%d}`, req.Call)}
	return &model.Response{Finish: loop.FinishCalls, Blocks: []loop.Block{call}, Usage: &loop.Usage{Input: 1, Output: 1}}, nil
}

// grown runs so many rounds and says how many bytes its journal and its last state have.
func grown(t *testing.T, rounds int64) (written, state int) {
	t.Helper()
	look := tool.Func("look", "Look.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat(fmt.Sprint(in.N%10), 1024), nil
	}, tool.Read())
	agent := &drive.Agent{Name: "a", Model: steady{rounds}, Tools: []tool.Tool{look}, Limits: drive.Limits{Rounds: drive.Unlimited}}
	store := memory.New()
	h, err := drive.Open(drive.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	run, err := h.Start(t.Context(), drive.Start{Agent: agent, Input: drive.Text("Go.")})
	if err != nil {
		t.Fatal(err)
	}
	if run.Stop != loop.StopCompleted || run.Counts.Rounds != rounds {
		t.Fatalf("it ended %s after %d rounds", run.Stop, run.Counts.Rounds)
	}
	err = store.Read(t.Context(), run.ID, 0, func(r journal.Record) error { written += len(r.Data); return nil })
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(run.State)
	if err != nil {
		t.Fatal(err)
	}
	return written, len(raw)
}

// TestLinearGrowth: each message is stored once, and the state does not grow with the rounds.
func TestLinearGrowth(t *testing.T) {
	bytes, state := grown(t, 60)
	twice, later := grown(t, 120)
	t.Logf("60 rounds: %d bytes written, state %d; 120 rounds: %d, %d", bytes, state, twice, later)
	if float64(twice) > 2.1*float64(bytes) {
		t.Errorf("%d bytes for 60 rounds, %d for 120: more than 2.1 times as many", bytes, twice)
	}
	if later > state+64 {
		t.Errorf("the state has %d bytes after 60 rounds and %d after 120: it is to be bounded", state, later)
	}
}
