package rondatest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/rondatest/fake"
)

// prompt is a request in the form that all wires share.
type prompt struct {
	*sent
	system   string
	choice   string
	declared bool
	messages []loop.Message
	onWire   *fake.Seen
}

func (p prompt) results() (out []loop.Block) {
	for _, m := range p.messages {
		for _, b := range m.Blocks {
			if b.Kind == loop.BlockResult {
				out = append(out, b)
			}
		}
	}
	return out
}

func (p prompt) userLast() string {
	for i := len(p.messages) - 1; i >= 0; i-- {
		if p.messages[i].Role != loop.User {
			continue
		}
		var parts []string
		for _, b := range p.messages[i].Blocks {
			if b.Kind == loop.BlockText {
				parts = append(parts, b.Text)
			}
		}
		return strings.Join(parts, "\n")
	}
	return ""
}

// requests are what the root's model was sent.
func (w *world) requests() []prompt { return w.prompts(w.root, false) }

// prompts are what the model of a deck was sent, as it arrived there.
func (w *world) prompts(d *deck, all bool) (out []prompt) {
	var seen []fake.Seen
	for key, deck := range w.decks {
		if p := w.providers[key]; deck == d && p != nil {
			seen = p.server.Requests()
		}
	}
	for _, s := range d.requests(all) {
		p := prompt{sent: s, system: s.system, choice: s.choice, declared: s.declared}
		switch {
		case w.cell.Wire == Direct:
			for _, m := range s.messages {
				p.messages = append(p.messages, *m)
			}
		case s.seen.Load() == 0, int(s.seen.Load()) > len(seen):
			continue // it never arrived, or only now
		default:
			p.onWire = &seen[s.seen.Load()-1]
			p.system, p.choice, p.declared, p.messages = p.onWire.System, p.onWire.Choice, p.onWire.ToolsDeclared(), unwrapped(w.cell.Wire, p.onWire.Messages)
		}
		out = append(out, p)
	}
	return out
}

// unwrapped takes results out of the object that gemini needs around a text.
func unwrapped(wire string, msgs []loop.Message) []loop.Message {
	if wire != fake.Gemini {
		return msgs
	}
	out := make([]loop.Message, len(msgs))
	for i, m := range msgs {
		m.Blocks = append([]loop.Block(nil), m.Blocks...)
		for j, b := range m.Blocks {
			if b.Kind != loop.BlockResult {
				continue
			}
			if object := members(json.RawMessage(b.Text)); len(object) == 1 {
				for name, v := range object {
					var text string
					if (name == "output" || name == "error") && json.Unmarshal(v, &text) == nil {
						m.Blocks[j].Text = text
					}
				}
			}
		}
		out[i] = m
	}
	return out
}

// messages counts the messages of the session's transcript.
func (w *world) messages() (int64, error) {
	n := 0
	for _, run := range w.runs {
		talk, _, err := w.transcript(run)
		if err != nil {
			return 0, err
		}
		n += len(talk.Messages())
	}
	return int64(n), nil
}

// transcript folds a run.
func (w *world) transcript(run string) (*loop.Transcript, loop.State, error) {
	talk := loop.NewTranscript(nil)
	var st loop.State
	err := w.events(run, func(ev loop.Event) error {
		next, err := loop.Next(st, ev)
		if err != nil {
			return err
		}
		st = next
		talk.Apply(ev, next)
		return nil
	})
	return talk, st, err
}

func (w *world) quiet() context.Context { return context.Background() }

// illFormed says what is wrong with the calls and results of a prompt, "" if nothing is.
func illFormed(msgs []loop.Message) string {
	var open []loop.Block
	for i, m := range msgs {
		var calls, results []loop.Block
		for _, b := range m.Blocks {
			switch b.Kind {
			case loop.BlockCall:
				calls = append(calls, b)
			case loop.BlockResult:
				results = append(results, b)
			}
		}
		if len(results) > len(open) {
			return fmt.Sprintf("message %d has %d results for %d calls", i+1, len(results), len(open))
		}
		if len(open) > 0 && len(results) < len(open) {
			return fmt.Sprintf("message %d has %d results, but %d calls come before it", i+1, len(results), len(open))
		}
		for j, r := range results {
			if c := open[j]; r.Call != c.Call || r.ID != c.ID || r.Name != c.Name {
				return fmt.Sprintf("message %d: result %d is of %s %s%s, the call in its place is %s %s%s", i+1, j+1, r.Name, r.Call, r.ID, c.Name, c.Call, c.ID)
			}
		}
		if len(calls) > 0 && m.Role != loop.Assistant {
			return fmt.Sprintf("message %d has calls, but its role is %s", i+1, m.Role)
		}
		open = calls
	}
	if len(open) > 0 {
		return fmt.Sprintf("the last message leaves %d calls without a result", len(open))
	}
	return ""
}

// parts says where the messages of b do not begin with those of a, "" if they do.
func parts(a, b []loop.Message) string {
	if len(b) < len(a) {
		return fmt.Sprintf("%d messages became %d", len(a), len(b))
	}
	for i := range a {
		x, y := a[i], b[i]
		x.Seq, y.Seq = 0, 0
		was, _ := json.Marshal(x)
		is, _ := json.Marshal(y)
		if string(was) != string(is) {
			return fmt.Sprintf("message %d was %s and became %s", i+1, was, is)
		}
	}
	return ""
}
