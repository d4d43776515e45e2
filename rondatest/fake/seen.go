package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

// Seen is a request as the model sees it, in wire-neutral form. Nobody changes it after it was recorded.
type Seen struct {
	N         int // counts from 1
	Wire      string
	Path      string
	Header    http.Header // without keys
	Model     string
	Stream    bool
	System    string // all system texts outside and inside the messages, joined by blank lines
	Tools     []Tool
	Choice    string // "" auto, none, required, or the name of the one tool that must be called
	MaxOutput int64
	// Messages is the whole conversation: with a previous response what the server kept of it comes first. Results have the
	// name of their call filled in, on all wires; roles are user, assistant and tool.
	Messages []loop.Message
	Previous string // id of the previous response that the request builds on
	Stored   int    // how many of Messages came from what the server kept
	Body     []byte
	// Prefix is the array of messages as it stood in the body, without its brackets and without the system messages at its head.
	Prefix  []byte
	Refused string // why the request was refused, "" if it was not

	fresh bool // the next user block begins a message
}

// Tool is a tool as it was declared.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // as it stood in the body; nil where there was none
	Strict      bool
}

// ToolsDeclared reports whether the request declares tools.
func (s *Seen) ToolsDeclared() bool { return len(s.Tools) > 0 }

// Results are the results of the messages after the model's last turn that made calls: what the last round handed back.
func (s *Seen) Results() []loop.Block {
	last := 0
	for i, m := range s.Messages {
		if m.Role == loop.Assistant && has(m.Blocks, loop.BlockCall) {
			last = i
		}
	}
	return results(s.Messages[min(last, len(s.Messages)):])
}

// AllResults are all results of the conversation, in order.
func (s *Seen) AllResults() []loop.Block { return results(s.Messages) }

func results(msgs []loop.Message) []loop.Block {
	var out []loop.Block
	for _, m := range msgs {
		for _, b := range m.Blocks {
			if b.Kind == loop.BlockResult {
				out = append(out, b)
			}
		}
	}
	return out
}

func has(blocks []loop.Block, kind loop.BlockKind) bool {
	for _, b := range blocks {
		if b.Kind == kind {
			return true
		}
	}
	return false
}

// UserLast is the text of the last user message, "" if there is none.
func (s *Seen) UserLast() string {
	for i := len(s.Messages) - 1; i >= 0; i-- {
		if s.Messages[i].Role == loop.User {
			return texts(s.Messages[i].Blocks)
		}
	}
	return ""
}

func texts(blocks []loop.Block) string {
	var parts []string
	for _, b := range blocks {
		if b.Kind == loop.BlockText {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Match is what the rules of a script see of the request.
func (s *Seen) Match() scripted.Match {
	m := scripted.Match{NoTools: s.Choice == "none", System: s.System}
	last := len(s.Messages)
	for last > 0 && s.Messages[last-1].Role != loop.Assistant {
		last--
	}
	var b strings.Builder
	for _, msg := range s.Messages[last:] {
		for _, bl := range msg.Blocks {
			if bl.Kind == loop.BlockText || bl.Kind == loop.BlockResult {
				b.WriteString(bl.Text)
				b.WriteByte('\n')
			}
		}
	}
	m.New = b.String()
	return m
}

// add appends blocks to the last message if it has the role, else as a new message. What a wire splits over several messages
// or items (calls, results) is one message here; user messages stay apart where begin was called between them.
func (s *Seen) add(role loop.Role, blocks ...loop.Block) {
	fresh := s.fresh && role == loop.User
	s.fresh = s.fresh && !fresh
	if n := len(s.Messages); !fresh && n > s.Stored && s.Messages[n-1].Role == role {
		s.Messages[n-1].Blocks = append(s.Messages[n-1].Blocks, blocks...)
		return
	}
	s.Messages = append(s.Messages, loop.Message{Role: role, Blocks: blocks})
}

// begin says that a message of the wire begins.
func (s *Seen) begin() { s.fresh = true }

func (s *Seen) addSystem(text string) {
	if s.System != "" {
		s.System += "\n\n"
	}
	s.System += text
}

// callName finds the name of a call by its id, the latest first.
func (s *Seen) callName(id string) string {
	for i := len(s.Messages) - 1; i >= 0; i-- {
		for _, b := range s.Messages[i].Blocks {
			if b.Kind == loop.BlockCall && b.ID == id {
				return b.Name
			}
		}
	}
	return ""
}

func (s *Seen) tool(name string) *Tool {
	for i := range s.Tools {
		if s.Tools[i].Name == name {
			return &s.Tools[i]
		}
	}
	return nil
}

// PrefixStable checks invariant 8 on two requests that follow each other: the messages of a, as bytes, are a prefix of those of
// b. It holds by definition where either builds on a previous response, since the provider then keeps the prefix. The error
// shows the place at which they part.
func PrefixStable(a, b Seen) error {
	if a.Previous != "" || b.Previous != "" {
		return nil
	}
	if a.Wire != b.Wire {
		return fmt.Errorf("requests %d and %d are on different wires, %s and %s: their messages cannot be compared", a.N, b.N, a.Wire, b.Wire)
	}
	i := 0
	for i < len(a.Prefix) && i < len(b.Prefix) && a.Prefix[i] == b.Prefix[i] {
		i++
	}
	rest := bytes.TrimLeft(b.Prefix[min(len(a.Prefix), len(b.Prefix)):], " \t\r\n")
	switch {
	case i < len(a.Prefix):
	case len(a.Prefix) == 0 || len(rest) == 0 || rest[0] == ',':
		return nil
	}
	return fmt.Errorf("the messages of request %d do not begin with those of request %d: they part at byte %d: %q became %q",
		b.N, a.N, i, around(a.Prefix, i), around(b.Prefix, i))
}

func around(b []byte, i int) []byte { return b[max(0, i-30):min(len(b), i+50)] }
