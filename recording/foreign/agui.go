package foreign

import (
	"encoding/json"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// aguiKinds are the events by which a stream is known.
var aguiKinds = map[string]bool{"RUN_STARTED": true, "TEXT_MESSAGE_START": true, "TEXT_MESSAGE_CONTENT": true, "TEXT_MESSAGE_CHUNK": true,
	"TOOL_CALL_START": true, "TOOL_CALL_CHUNK": true, "MESSAGES_SNAPSHOT": true}

type aguiEvent struct {
	Type      string          `json:"type"`
	Timestamp float64         `json:"timestamp"` // milliseconds
	ThreadID  string          `json:"threadId"`
	RunID     string          `json:"runId"`
	MessageID string          `json:"messageId"`
	Role      string          `json:"role"`
	Delta     string          `json:"delta"`
	CallID    string          `json:"toolCallId"`
	CallName  string          `json:"toolCallName"`
	Content   json.RawMessage `json:"content"`
	Message   string          `json:"message"`
	Messages  []aguiMessage   `json:"messages"`
	Input     *struct {
		Messages []aguiMessage `json:"messages"`
	} `json:"input"`
}

type aguiMessage struct {
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"toolCallId"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls"`
}

// aguiReader collects the pieces of a stream.
type aguiReader struct {
	s     *source
	cur   *reply
	began loop.Micros
	last  loop.Micros
	ended loop.Micros    // of the last piece
	index map[string]int // blocks by the id of their message or call
	users map[string]bool
	timed bool
}

// readAGUI reads an event stream: messages and calls come in pieces, with times where the server sent some.
func readAGUI(lines []json.RawMessage) (*recording.Recording, error) {
	a := &aguiReader{s: &source{name: AGUI, split: true, wire: "ag-ui", pace: recording.PaceReal}, users: map[string]bool{}}
	for _, raw := range lines {
		var ev aguiEvent
		if json.Unmarshal(raw, &ev) == nil {
			a.event(&ev)
		}
	}
	a.flush()
	if !a.timed {
		a.s.notes = append(a.s.notes, "the stream has no timestamps")
	}
	return a.s.build()
}

func (a *aguiReader) event(ev *aguiEvent) {
	at := loop.Micros(ev.Timestamp * 1000)
	if at > 0 && at < 1<<60 {
		a.last, a.timed = max(a.last, at), true
	}
	switch ev.Type {
	case "RUN_STARTED":
		a.s.session = ev.ThreadID
		if a.s.run == "" && ev.RunID != "" {
			a.s.run = ev.RunID
		}
		if ev.Input != nil {
			a.messages(ev.Input.Messages)
		}
	case "MESSAGES_SNAPSHOT":
		if a.cur == nil && len(a.s.says) == 0 {
			a.messages(ev.Messages)
		}
	case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
		a.piece(ev.MessageID, recording.Text, loop.Block{Kind: loop.BlockText}, ev.Delta)
	case "THINKING_TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK":
		a.piece("thought "+ev.MessageID, recording.Thought, loop.Block{Kind: loop.BlockThought}, ev.Delta)
	case "TOOL_CALL_START":
		a.piece(ev.CallID, recording.Arguments, loop.Block{Kind: loop.BlockCall, ID: ev.CallID, Name: ev.CallName}, "")
	case "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK":
		a.piece(ev.CallID, recording.Arguments, loop.Block{Kind: loop.BlockCall, ID: ev.CallID, Name: ev.CallName}, ev.Delta)
	case "TOOL_CALL_RESULT":
		a.flush()
		a.s.says = append(a.s.says, say{at: a.last, result: &result{call: ev.CallID, text: textOf(ev.Content)}})
	case "RUN_ERROR":
		a.flush()
		a.s.stopped = ev.Message
	}
}

// piece adds to a block of the response under way; after results a new response begins.
func (a *aguiReader) piece(id, channel string, b loop.Block, delta string) {
	if a.cur == nil {
		a.cur, a.began, a.index = &reply{}, a.last, map[string]int{}
	}
	a.ended = a.last
	i, ok := a.index[id]
	if !ok {
		i = len(a.cur.blocks)
		a.index[id] = i
		a.cur.blocks = append(a.cur.blocks, b)
		if b.Kind == loop.BlockCall {
			a.cur.ids = append(a.cur.ids, b.ID)
		}
	}
	if delta == "" {
		return
	}
	if bl := &a.cur.blocks[i]; bl.Kind == loop.BlockCall {
		bl.Args += delta
	} else {
		bl.Text += delta
	}
	if a.timed {
		a.cur.tape = append(a.cur.tape, recording.TapePiece{At: a.last - a.began, Channel: channel, Block: i, Bytes: len(delta)})
	}
}

func (a *aguiReader) flush() {
	if a.cur != nil && len(a.cur.blocks) > 0 {
		a.s.says = append(a.s.says, say{at: a.ended, began: a.began, reply: a.cur})
	}
	a.cur = nil
}

// messages are those of a snapshot, or of the input of a run.
func (a *aguiReader) messages(list []aguiMessage) {
	for _, m := range list {
		if a.users[m.ID] && m.ID != "" {
			continue
		}
		a.users[m.ID] = true
		t := textOf(m.Content)
		switch m.Role {
		case "user":
			if strings.TrimSpace(t) != "" {
				a.s.says = append(a.s.says, say{at: a.last, user: t})
			}
		case "assistant":
			r := &reply{}
			if t != "" {
				r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockText, Text: t})
			}
			for _, c := range m.ToolCalls {
				r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockCall, ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
				r.ids = append(r.ids, c.ID)
			}
			if len(r.blocks) > 0 {
				a.s.says = append(a.s.says, say{at: a.last, reply: r})
			}
		case "tool":
			a.s.says = append(a.s.says, say{at: a.last, result: &result{call: m.CallID, text: t}})
		}
	}
}
