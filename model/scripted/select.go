package scripted

import (
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// When says for which requests an item is meant. All that is set must hold.
type When struct {
	Tools          string   // none: the request forbids tools; allowed: it does not
	Contains       []string // each occurs in what is new in the request: the messages after the model's last turn
	SystemContains []string // each occurs in the system instructions, those of this call alone included
}

// Match is what the rules of a script see of a request. A fake provider fills it from the HTTP request.
type Match struct {
	NoTools bool   // the tool choice is none
	New     string // the text of the messages after the model's last turn: user texts and results
	System  string
}

// MatchOf looks at a request.
func MatchOf(req *model.Request) Match {
	m := Match{NoTools: req.Choice == model.ChoiceNone, System: req.System}
	if req.Extra != "" {
		m.System += "\n" + req.Extra
	}
	last := len(req.Messages)
	for last > 0 && req.Messages[last-1].Role != loop.Assistant {
		last--
	}
	var b strings.Builder
	for _, msg := range req.Messages[last:] {
		writeTexts(&b, msg.Blocks)
	}
	m.New = b.String()
	return m
}

func writeTexts(b *strings.Builder, blocks []loop.Block) {
	for _, bl := range blocks {
		if bl.Kind == loop.BlockText || bl.Kind == loop.BlockResult {
			b.WriteString(bl.Text)
			b.WriteByte('\n')
		}
		writeTexts(b, bl.More)
	}
}

// Matches reports whether a request is what the item waits for. A nil When matches each request.
func (w *When) Matches(m Match) bool {
	switch {
	case w == nil:
		return true
	case w.Tools == "none" && !m.NoTools, w.Tools == "allowed" && m.NoTools:
		return false
	}
	for _, s := range w.Contains {
		if !strings.Contains(m.New, s) {
			return false
		}
	}
	for _, s := range w.SystemContains {
		if !strings.Contains(m.System, s) {
			return false
		}
	}
	return true
}

func (w *When) String() string {
	var parts []string
	if w.Tools != "" {
		parts = append(parts, "tools: "+w.Tools)
	}
	if len(w.Contains) > 0 {
		parts = append(parts, fmt.Sprintf("contains: %q", w.Contains))
	}
	if len(w.SystemContains) > 0 {
		parts = append(parts, fmt.Sprintf("system_contains: %q", w.SystemContains))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Select finds the item that answers a request when the items before cursor are used up. Each attempt of a model call takes
// one item, in order:
//
//  1. A request that forbids tools takes the first item at or after the cursor that says when: {tools: none} and matches.
//     The items before it are skipped: a run that was ended by a limit does not use what was meant for its further rounds.
//  2. Any other request, and one that finds no such item, takes the item at the cursor. If that item has a when that does
//     not match, the request is unmatched: an error, because the run did something else than the script is about.
//  3. After the last item the script has run out: an error too.
//
// The error names the item and its line. The cursor of the next request is After(i).
func (s *Script) Select(cursor int, m Match) (i int, err error) {
	cursor = max(cursor, 0)
	if m.NoTools {
		for i := cursor; i < len(s.Items); i++ {
			if w := s.Items[i].When; w != nil && w.Tools == "none" && w.Matches(m) {
				return i, nil
			}
		}
	}
	if cursor >= len(s.Items) {
		return 0, fmt.Errorf("the script has run out after its %s (the last begins on line %d): the run asks for one response more",
			count(len(s.Items)), s.Line)
	}
	it := &s.Items[cursor]
	if !it.When.Matches(m) {
		what := "allows tools"
		if m.NoTools {
			what = "forbids tools"
		}
		return 0, fmt.Errorf("item %d of the script (line %d) waits for a request that matches when: %s, but this one does not (it %s)",
			cursor+1, it.Line, it.When, what)
	}
	return cursor, nil
}

func count(n int) string {
	if n == 1 {
		return "one item"
	}
	return fmt.Sprintf("%d items", n)
}

// After is the cursor once item i was served.
func (s *Script) After(i int) int {
	if i < len(s.Items) && s.Items[i].Repeat {
		return i
	}
	return i + 1
}
