// Package foreign reads what other tools recorded of an agent: transcripts of Claude Code, rollouts of Codex, .eval logs of inspect, AG-UI
// event streams and OTLP JSON with gen_ai spans. Each becomes a recording whose events fold: the loop is given the answers and results of
// the source, with a configuration that limits nothing. What a source does not say is not made up; Header.Source.Notes says what had to be
// left out or added, Header.Pace where the times come from.
package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// ErrUnknown: the file is of no format that is known here.
var ErrUnknown = errors.New("not a format that can be imported")

// Names of sources.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Inspect    = "inspect"
	AGUI       = "ag-ui"
	OTLP       = "otlp"
)

// maxFile bounds what is read.
const maxFile = 1 << 30

// Open reads a file of one of the formats; which one its content says. One file can hold several runs.
func Open(path string) ([]*recording.Recording, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("foreign: %w", err)
	}
	if st.Size() > maxFile {
		return nil, fmt.Errorf("foreign: %s: it has %d bytes, more than can be imported", path, st.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("foreign: %w", err)
	}
	list, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// Read reads the content of a file. Input of none of the formats is ErrUnknown; it never panics.
func Read(data []byte) ([]*recording.Recording, error) {
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		return readEval(data)
	}
	if docs := otlpDocs(data); docs != nil {
		return readOTLP(docs)
	}
	lines := jsonLines(data)
	if len(lines) == 0 {
		return nil, fmt.Errorf("foreign: %w: it is neither a zip nor lines of JSON", ErrUnknown)
	}
	one := func(rec *recording.Recording, err error) ([]*recording.Recording, error) {
		if err != nil {
			return nil, err
		}
		return []*recording.Recording{rec}, nil
	}
	for i, raw := range lines {
		if i == 50 {
			break
		}
		var k struct {
			Type      string          `json:"type"`
			Payload   json.RawMessage `json:"payload"`
			UUID      string          `json:"uuid"`
			SessionID string          `json:"sessionId"`
			Message   json.RawMessage `json:"message"`
			Thread    string          `json:"threadId"`
			ID        string          `json:"id"`
			Timestamp json.RawMessage `json:"timestamp"`
		}
		if json.Unmarshal(raw, &k) != nil {
			continue
		}
		switch {
		case aguiKinds[k.Type]:
			return one(readAGUI(lines))
		case (k.Type == "user" || k.Type == "assistant") && k.UUID != "" && k.Message != nil:
			return one(readClaude(lines))
		case k.Payload != nil && (k.Type == "session_meta" || k.Type == "response_item" || k.Type == "event_msg" || k.Type == "turn_context"):
			return one(readCodex(lines))
		case i == 0 && k.Type == "" && k.ID != "" && k.Timestamp != nil && len(lines) > 1: // rollouts before they had envelopes
			return one(readCodex(lines))
		}
	}
	return nil, fmt.Errorf("foreign: %w: its lines are of no kind that is known. Known are transcripts of Claude Code, rollouts of Codex, .eval of inspect, AG-UI events, OTLP JSON", ErrUnknown)
}

// jsonLines splits lines of JSON objects; server-sent events (data: …) too.
func jsonLines(data []byte) []json.RawMessage {
	var out []json.RawMessage
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			line = bytes.TrimSpace(rest)
		}
		if len(line) > 1 && line[0] == '{' && json.Valid(line) {
			out = append(out, json.RawMessage(line))
		}
	}
	return out
}

// textOf reads a text that is a string or a list of parts with texts.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &parts) == nil {
		for i, p := range parts {
			if p.Text == "" && len(p.Content) > 0 {
				p.Text = textOf(p.Content)
			}
			if i > 0 && p.Text != "" && s != "" {
				s += "\n"
			}
			s += p.Text
		}
		return s
	}
	if len(raw) > 0 && string(raw) != "null" {
		return string(raw)
	}
	return ""
}

// argsOf reads arguments that are an object, or a string that holds one.
func argsOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if len(raw) == 0 || string(raw) == "null" {
		return "{}"
	}
	return string(raw)
}

func text(s string) []loop.Block { return []loop.Block{{Kind: loop.BlockText, Text: s}} }
