package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// seenRequest is a request as a model sees it; a planted fault may change the copy.
type seenRequest struct {
	run      string
	call     int64
	attempt  int64
	messages []*loop.Message
	choice   model.ToolChoice
}

// checkRequest asserts what must hold of every prompt, and says how many attempts of the call failed before this one.
func (w *world) checkRequest(d *door, a *agentDraw, req *model.Request) (failed int64, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.dead() {
		return 0, true
	}
	t := w.watch[req.Run]
	if t == nil {
		w.violateLocked("written before done", req.Run, 0, "a model call is sent and the run is not in the store")
		return 0, false
	}
	r := &seenRequest{req.Run, req.Call, max(req.Attempt, 1), req.Messages, req.Choice}
	if w.plant.request != nil {
		w.plant.request(r)
	}
	if !t.begun[fmt.Sprintf("model %d %d", r.call, r.attempt)] {
		t.bad("written before done", "model call %d.%d is sent and the journal does not say so: %s", r.call, r.attempt, t.state)
	}
	attempt := fmt.Sprintf("%s model %d %d", r.run, r.call, r.attempt)
	if w.executed[attempt]++; w.executed[attempt] > 1 {
		t.bad("at most once", "model call %d.%d is sent again", r.call, r.attempt)
	}
	t.checkMessages(r.messages)
	t.checkPrefix(r.messages)
	t.checkTaken(r.messages)
	closing := t.state.Model.Closing
	if closing != (r.choice == model.ChoiceNone) || closing != (req.Extra != "") {
		t.bad("well-formed prompts", "closing %t, tool choice %q, extra %q", closing, r.choice, req.Extra)
	}
	if want := len(a.tools) + len(a.children); len(req.Tools) < want {
		t.bad("well-formed prompts", "%d of %d tools are declared", len(req.Tools), want)
	}
	if req.Previous != "" && (req.PreviousLen < 1 || req.PreviousLen > len(r.messages) || r.messages[req.PreviousLen-1].Role != loop.Assistant) {
		t.bad("stable prefix", "the provider is said to know %d of %d messages", req.PreviousLen, len(r.messages))
	}
	return t.modelBad[req.Call], false
}

// checkMessages asserts that each call has exactly one result, in order and in its place, and that the model's turns go back as
// they came.
func (t *witness) checkMessages(msgs []*loop.Message) {
	const rule = "well-formed prompts"
	for i, m := range msgs {
		var calls []loop.Block
		text := false
		for _, b := range m.Blocks {
			switch b.Kind {
			case loop.BlockCall:
				calls = append(calls, b)
			case loop.BlockResult:
				if m.Role != loop.Tool {
					t.bad(rule, "message %d: a result in a message of %s", i, m.Role)
				}
			case loop.BlockText:
				text = text || strings.TrimSpace(b.Text) != ""
			}
		}
		switch m.Role {
		case loop.Tool:
			if i == 0 || msgs[i-1].Role != loop.Assistant {
				t.bad(rule, "message %d: results without a turn of the model before them", i)
			}
		case loop.Assistant:
			if len(calls) == 0 && !text {
				t.bad(rule, "message %d: an empty turn", i)
			}
			t.checkVerbatim(i, m)
			t.checkAnswered(i, calls, msgs)
		}
	}
	if n := len(msgs); n == 0 || msgs[n-1].Role == loop.Assistant && !t.paused(msgs[n-1]) {
		t.bad(rule, "the prompt ends with the model's own turn")
	}
}

// paused: a provider that paused its turn goes on with it.
func (t *witness) paused(m *loop.Message) bool {
	for _, b := range m.Blocks {
		if b.Kind == loop.BlockText && b.Text == "One moment" {
			return true
		}
	}
	return false
}

func (t *witness) checkAnswered(i int, calls []loop.Block, msgs []*loop.Message) {
	const rule = "well-formed prompts"
	if len(calls) == 0 {
		return
	}
	if i+1 >= len(msgs) || msgs[i+1].Role != loop.Tool || len(msgs[i+1].Blocks) != len(calls) {
		t.bad(rule, "message %d: its %d calls are not answered by the next one", i, len(calls))
		return
	}
	for j, b := range msgs[i+1].Blocks {
		if b.Kind != loop.BlockResult || b.Call != calls[j].Call || b.ID != calls[j].ID || b.Name != calls[j].Name {
			t.bad(rule, "message %d: result %d is of %s %s, the call was %s %s", i+1, j, b.Name, b.Call, calls[j].Name, calls[j].Call)
		}
	}
}

// checkVerbatim asserts that a turn of this run goes back exactly as it was received.
func (t *witness) checkVerbatim(i int, m *loop.Message) {
	was, ok := t.replies[m.Seq]
	if !ok {
		return // of an earlier run, or a note of a compaction
	}
	blocks := make([]loop.Block, len(m.Blocks))
	for j, b := range m.Blocks {
		b.Call = ""
		blocks[j] = b
	}
	if now := asJSON(blocks); now != was.blocks {
		t.bad("opaque is opaque", "message %d: the turn goes back as %s, it was %s", i, now, was.blocks)
	}
}

// checkPrefix asserts that the prompt begins with the one before it.
func (t *witness) checkPrefix(msgs []*loop.Message) {
	prints := make([]string, len(msgs))
	for i, m := range msgs {
		c := *m
		c.Seq = 0
		blocks := make([]loop.Block, len(m.Blocks))
		copy(blocks, m.Blocks)
		c.Blocks = blocks
		prints[i] = asJSON(c)
	}
	for i, was := range t.prompt {
		if i >= len(prints) || prints[i] != was {
			now := "nothing"
			if i < len(prints) {
				now = prints[i]
			}
			t.bad("stable prefix", "message %d was %s, now it is %s", i, was, now)
			break
		}
	}
	t.prompt = prints
}

// checkTaken asserts that a message is in the first prompt after it.
func (t *witness) checkTaken(msgs []*loop.Message) {
	var later []int64
	for _, seq := range t.taken {
		if seq > t.started { // of the call's first attempt: each attempt sends the same prompt
			later = append(later, seq)
			continue
		}
		found := false
		for _, m := range msgs {
			found = found || m.Seq == seq && m.Role == loop.User
		}
		if !found {
			t.bad("well-formed prompts", "the message of event %d is not in the prompt after it", seq)
		}
	}
	t.taken = later
}

// served1 remembers a response, so that the journal can be compared with it.
func (w *world) served1(req *model.Request, res *model.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served[fmt.Sprintf("%s %d %s", req.Run, req.Call, asJSON(res.Blocks))] = true
}

// told counts a message that a run accepted.
func (w *world) told(run, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.witnessOf(run).told++
}

// approves remembers what a person approved, before the run hears of it.
func (w *world) approves(p drive.Pending, args string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.witnessOf(p.Run).approved[leaf(p.Call)] = args
}

func (w *world) asks(p drive.Pending) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.witnessOf(p.Run).asks[leaf(p.Call)]
}

func (w *world) happenedCall(p drive.Pending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[w.keys[p.Run+" "+leaf(p.Call)]] > 0
}

func leaf(call string) string { return call[strings.LastIndexByte(call, '/')+1:] }

// checkView compares what people are shown with the journal.
func (w *world) checkView(run *drive.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.witnessOf(run.ID)
	if now := asJSON(run.State); now != asJSON(t.state) {
		t.bad("fold", "the whole journal folds to another state:\nwhole %s\nby event %s", now, asJSON(t.state))
	}
}

// atTheEnd asserts what must hold once every root run has stopped.
func (w *world) atTheEnd() {
	ctx := context.Background()
	w.mu.Lock()
	defer w.mu.Unlock()
	for run, t := range w.watch {
		if t.state.Stop == nil {
			t.bad("one end", "the run never stopped: %s", t.state)
			continue
		}
		if left, err := w.store.Inputs(ctx, run); err != nil || len(left) > 0 {
			t.bad("one end", "the run stopped with %d inputs that nobody took (%v)", len(left), err)
		}
		if t.messages != t.told {
			t.bad("one end", "%d messages were accepted and %d taken", t.told, t.messages)
		}
	}
}
