package foreign

import (
	"encoding/json"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// codexItem is a line of a Codex rollout, or its payload.
type codexItem struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`

	ID        string          `json:"id"`
	Version   string          `json:"cli_version"`
	Model     string          `json:"model"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`
	Action    json.RawMessage `json:"action"`
	Status    string          `json:"status"`
	Info      *struct {
		Last *codexUsage `json:"last_token_usage"`
	} `json:"info"`
}

type codexUsage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

// readCodex reads a rollout: response items in envelopes, or bare as older versions wrote them.
func readCodex(lines []json.RawMessage) (*recording.Recording, error) {
	s := &source{name: Codex, split: true, wire: "openai", pace: recording.PaceBlock}
	for i, raw := range lines {
		var l codexItem
		if json.Unmarshal(raw, &l) != nil {
			continue
		}
		at := moment(l.Timestamp)
		item, kind := l, "response_item"
		if len(l.Payload) > 0 {
			kind, item = l.Type, codexItem{}
			if json.Unmarshal(l.Payload, &item) != nil {
				continue
			}
		} else if i == 0 && l.ID != "" && l.Type == "" {
			kind = "session_meta"
		}
		switch kind {
		case "session_meta":
			s.session, s.version, s.run = item.ID, item.Version, "run_"+item.ID
		case "turn_context":
			if item.Model != "" {
				s.model = item.Model
			}
		case "event_msg":
			if item.Type == "token_count" && item.Info != nil && item.Info.Last != nil {
				s.codexUsage(item.Info.Last)
			}
		case "response_item":
			s.codexItem(&item, at)
		}
	}
	return s.build()
}

// codexUsage belongs to the last response that has none yet.
func (s *source) codexUsage(u *codexUsage) {
	for i := len(s.says) - 1; i >= 0; i-- {
		if r := s.says[i].reply; r != nil {
			if r.usage == nil {
				r.usage = &loop.Usage{Input: max(u.Input-u.Cached, 0), CacheRead: u.Cached, Output: u.Output, Reasoning: min(u.Reasoning, u.Output)}
			}
			return
		}
	}
}

func (s *source) codexItem(it *codexItem, at loop.Micros) {
	reply1 := func(b loop.Block) {
		r := &reply{blocks: []loop.Block{b}}
		if b.Kind == loop.BlockCall {
			r.ids = []string{b.ID}
		}
		s.says = append(s.says, say{at: at, reply: r})
	}
	switch it.Type {
	case "message":
		t := textOf(it.Content)
		switch it.Role {
		case "assistant":
			if t != "" {
				reply1(loop.Block{Kind: loop.BlockText, Text: t})
			}
		case "user":
			if t != "" && !strings.HasPrefix(t, "<environment_context>") && !strings.HasPrefix(t, "<user_instructions>") {
				s.says = append(s.says, say{at: at, user: t})
			}
		}
	case "reasoning":
		t := textOf(it.Summary)
		if t == "" {
			t = textOf(it.Content)
		}
		if t != "" {
			reply1(loop.Block{Kind: loop.BlockThought, Text: t})
		}
	case "function_call":
		reply1(loop.Block{Kind: loop.BlockCall, ID: it.CallID, Name: it.Name, Args: it.Arguments})
	case "custom_tool_call":
		args, err := json.Marshal(map[string]json.RawMessage{"input": it.Input})
		if err == nil {
			reply1(loop.Block{Kind: loop.BlockCall, ID: it.CallID, Name: it.Name, Args: string(args)})
		}
	case "local_shell_call":
		reply1(loop.Block{Kind: loop.BlockCall, ID: it.CallID, Name: "local_shell", Args: argsOf(it.Action)})
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		t, fail := codexOutput(it.Output)
		s.says = append(s.says, say{at: at, result: &result{call: it.CallID, text: t, fail: fail}})
	}
}

// codexOutput reads an output: text, or an object with the text and how it went, or that object in a string.
func codexOutput(raw json.RawMessage) (text string, fail bool) {
	var s string
	inner := []byte(raw)
	if json.Unmarshal(raw, &s) == nil {
		inner = []byte(s)
	}
	var o struct {
		Output   *string         `json:"output"`
		Content  json.RawMessage `json:"content"`
		Success  *bool           `json:"success"`
		Metadata struct {
			ExitCode int `json:"exit_code"`
		} `json:"metadata"`
	}
	if json.Unmarshal(inner, &o) == nil && (o.Output != nil || o.Content != nil) {
		t := textOf(o.Content)
		if o.Output != nil {
			t = *o.Output
		}
		return t, o.Metadata.ExitCode != 0 || o.Success != nil && !*o.Success
	}
	if s != "" {
		return s, false
	}
	return textOf(raw), false
}
