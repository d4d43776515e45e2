package foreign

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// claudeLine is a line of a Claude Code transcript.
type claudeLine struct {
	Type        string          `json:"type"`
	SessionID   string          `json:"sessionId"`
	Version     string          `json:"version"`
	Timestamp   string          `json:"timestamp"`
	IsMeta      bool            `json:"isMeta"`
	IsSidechain bool            `json:"isSidechain"`
	APIError    bool            `json:"isApiErrorMessage"`
	Message     *claudeMessage  `json:"message"`
	Content     json.RawMessage `json:"content"`
}

type claudeMessage struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      *claudeUsage    `json:"usage"`
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// readClaude reads a transcript: one line for each block of a response, lines of one response share its id.
func readClaude(lines []json.RawMessage) (*recording.Recording, error) {
	s := &source{name: ClaudeCode, split: true, wire: "anthropic", pace: recording.PaceBlock}
	lastID, side := "", 0
	for _, raw := range lines {
		var l claudeLine
		if json.Unmarshal(raw, &l) != nil || l.Message == nil || l.IsMeta {
			continue
		}
		if l.IsSidechain {
			side++
			continue
		}
		if l.SessionID != "" {
			s.session, s.version = l.SessionID, l.Version
			s.run = "run_" + l.SessionID
		}
		at := moment(l.Timestamp)
		if l.Type == "assistant" && l.APIError {
			s.says = append(s.says, say{at: at, reply: &reply{failed: textOf(l.Message.Content)}})
			lastID = ""
			continue
		}
		if l.Type == "assistant" {
			s.claudeReply(&l, at, lastID == l.Message.ID && lastID != "")
			lastID = l.Message.ID
			continue
		}
		lastID = ""
		s.claudeUser(&l, at)
	}
	if side > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d lines of sub-agents were left out", side))
	}
	return s.build()
}

func (s *source) claudeReply(l *claudeLine, at loop.Micros, same bool) {
	m := l.Message
	if m.Model != "" && m.Model != "<synthetic>" {
		s.model = m.Model
	}
	r := &reply{model: m.Model, id: m.ID}
	for _, b := range claudeBlocks(m.Content) {
		switch b.Type {
		case "text":
			r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockText, Text: b.Text})
		case "thinking":
			r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockThought, Text: b.Thinking})
		case "tool_use":
			r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockCall, ID: b.ID, Name: b.Name, Args: argsOf(b.Input)})
			r.ids = append(r.ids, b.ID)
		}
	}
	if u := m.Usage; u != nil && !same { // each line of a response repeats its usage
		r.usage = &loop.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}
	}
	if m.StopReason == "max_tokens" {
		r.finish = loop.FinishLength
	}
	if same {
		// The last line has the whole usage of the output.
		if n := len(s.says); n > 0 && s.says[n-1].reply != nil && m.Usage != nil {
			s.says[n-1].reply.usage = &loop.Usage{Input: m.Usage.Input, CacheRead: m.Usage.CacheRead, CacheWrite: m.Usage.CacheWrite, Output: m.Usage.Output}
			was := s.says[n-1].reply
			was.blocks, was.ids = append(was.blocks, r.blocks...), append(was.ids, r.ids...)
			s.says[n-1].at = max(s.says[n-1].at, at)
			return
		}
	}
	if len(r.blocks) > 0 {
		s.says = append(s.says, say{at: at, reply: r})
	}
}

func (s *source) claudeUser(l *claudeLine, at loop.Micros) {
	var plain string
	if json.Unmarshal(l.Message.Content, &plain) == nil {
		if strings.TrimSpace(plain) != "" {
			s.says = append(s.says, say{at: at, user: plain})
		}
		return
	}
	var words []string
	for _, b := range claudeBlocks(l.Message.Content) {
		switch b.Type {
		case "text":
			words = append(words, b.Text)
		case "image", "document":
			words = append(words, "("+b.Type+")")
		case "tool_result":
			s.says = append(s.says, say{at: at, result: &result{call: b.ToolUseID, text: textOf(b.Content), fail: b.IsError}})
		}
	}
	if t := strings.TrimSpace(strings.Join(words, "\n")); t != "" {
		s.says = append(s.says, say{at: at, user: t})
	}
}

func claudeBlocks(raw json.RawMessage) []claudeBlock {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return []claudeBlock{{Type: "text", Text: plain}}
	}
	var list []claudeBlock
	_ = json.Unmarshal(raw, &list)
	return list
}

// moment reads a time of RFC 3339; 0 where it is none.
func moment(s string) loop.Micros {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return loop.Micros(t.UnixMicro())
}
