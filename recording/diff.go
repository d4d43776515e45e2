package recording

import (
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Aligned is a place in two runs: a round of each, or of one of them.
type Aligned struct {
	A      *Round `json:"a,omitempty"`
	B      *Round `json:"b,omitempty"`
	Same   bool   `json:"same"`              // the same calls
	Result bool   `json:"results,omitempty"` // and the same results
}

// Comparison is two runs side by side.
type Comparison struct {
	Rows   []Aligned `json:"rows"`
	First  int       `json:"first"` // row of the first difference; −1: there is none
	Why    string    `json:"why,omitempty"`
	A      Side      `json:"a"`
	B      Side      `json:"b"`
	Config []string  `json:"config,omitempty"` // what of the configuration differs
}

// Side is what each run came to.
type Side struct {
	Run    string      `json:"run"`
	Agent  string      `json:"agent"`
	Model  string      `json:"model"`
	Stop   loop.Reason `json:"stop,omitempty"`
	Rounds int64       `json:"rounds"`
	Tokens int64       `json:"tokens"`
	Cost   loop.Pico   `json:"cost"`
	Answer string      `json:"answer,omitempty"`
}

// maxAlign bounds the work of aligning: rounds beyond are compared by their number.
const maxAlign = 4000

// Diff aligns two runs round by round: the longest common sequence of rounds whose calls have the same tools and canonical arguments.
func Diff(a, b []loop.Event) Comparison {
	ra, rb := rounds(a), rounds(b)
	c := Comparison{First: -1, A: side(a), B: side(b), Config: configDiff(a, b)}
	i, j := 0, 0
	for _, p := range common(keys(ra), keys(rb)) {
		for i < p[0] || j < p[1] {
			row := Aligned{}
			if i < p[0] {
				row.A = &ra[i]
				i++
			}
			if j < p[1] {
				row.B = &rb[j]
				j++
			}
			c.Rows = append(c.Rows, row)
		}
		if i < len(ra) && j < len(rb) {
			c.Rows = append(c.Rows, Aligned{A: &ra[i], B: &rb[j], Same: true, Result: sameResults(ra[i], rb[j])})
			i, j = i+1, j+1
		}
	}
	for n, r := range c.Rows {
		if !r.Same || !r.Result {
			c.First, c.Why = n, why(r)
			break
		}
	}
	return c
}

func why(r Aligned) string {
	switch {
	case r.A == nil:
		return "only the second has it"
	case r.B == nil:
		return "only the first has it"
	case !r.Same:
		return "they ask for different things"
	case len(r.A.Calls) == 0:
		return "they answer differently"
	}
	return "the same calls gave other results"
}

// keys names what each round asks for.
func keys(list []Round) []string {
	out := make([]string, len(list))
	for i, r := range list {
		parts := []string{}
		for _, c := range r.Calls {
			parts = append(parts, c.key)
		}
		out[i] = strings.Join(parts, "\x00")
		if len(parts) == 0 {
			out[i] = "\x01" + r.Reason
		}
	}
	return out
}

func sameResults(a, b Round) bool {
	for i := range a.Calls {
		if a.Calls[i].Sum != b.Calls[i].Sum {
			return false
		}
	}
	return len(a.Calls) > 0 || a.Text == b.Text
}

// common is the longest common sequence as pairs of indices, with the ends of both lists as its last pair.
func common(a, b []string) [][2]int {
	var out [][2]int
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		out = append(out, [2]int{from, from})
		from++
	}
	x, y := a[from:], b[from:]
	if len(x) > maxAlign || len(y) > maxAlign {
		for i := range min(len(x), len(y)) {
			if x[i] == y[i] {
				out = append(out, [2]int{from + i, from + i})
			}
		}
		return append(out, [2]int{len(a), len(b)})
	}
	width := len(y) + 1
	table := make([]uint16, (len(x)+1)*width)
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] == y[j]:
			out = append(out, [2]int{from + i, from + j})
			i, j = i+1, j+1
		case table[(i+1)*width+j] >= table[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return append(out, [2]int{len(a), len(b)})
}

func side(events []loop.Event) Side {
	var s Side
	if len(events) == 0 {
		return s
	}
	if b, ok := startOf(events); ok {
		s.Run, s.Agent, s.Model = b.Run, b.Config.Agent, b.Config.Model
	}
	run := Run{Events: events}
	st, _ := run.Fold()
	s.Rounds, s.Tokens, s.Cost = st.Ledger.Own.Rounds, st.Ledger.Total().Usage.Total(), st.Ledger.TotalCost()
	if b, ok := events[len(events)-1].Body.(loop.RunStopped); ok {
		s.Stop = b.Stop
		if i := b.Answer - events[0].Seq; b.Answer > 0 && i >= 0 && int(i) < len(events) {
			s.Answer = loop.AnswerText(events[i])
		}
	}
	return s
}

// configDiff names what two runs were configured differently in.
func configDiff(a, b []loop.Event) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	x, ok := startOf(a)
	y, is := startOf(b)
	if !ok || !is {
		return nil
	}
	var out []string
	add := func(name string, v, w any) {
		p, _ := marshal(v)
		q, _ := marshal(w)
		if string(p) != string(q) {
			out = append(out, fmt.Sprintf("%s: %s, %s", name, p, q))
		}
	}
	add("agent", x.Config.Agent, y.Config.Agent)
	add("model", x.Config.Model, y.Config.Model)
	add("limits", x.Config.Limits, y.Config.Limits)
	add("on_limit", x.Config.OnLimit, y.Config.OnLimit)
	add("stall", x.Config.Stall.Repeats, y.Config.Stall.Repeats)
	add("parallel", x.Config.Parallel, y.Config.Parallel)
	return out
}

// Text is the comparison for a person: = the same, ~ the same calls with other results, < only the first, > only the second.
func (c Comparison) Text() string {
	var b strings.Builder
	for _, s := range []Side{c.A, c.B} {
		fmt.Fprintf(&b, "%s  %s on %s: %s, %s, %s, %s\n", s.Run, s.Agent, s.Model, s.Stop, plural(s.Rounds, "round"), plural(s.Tokens, "token"), Dollars(s.Cost))
	}
	for _, line := range c.Config {
		fmt.Fprintf(&b, "differs: %s\n", line)
	}
	b.WriteString("\n")
	for i, r := range c.Rows {
		if i == c.First {
			fmt.Fprintf(&b, "--- first difference: %s ---\n", c.Why)
		}
		switch {
		case r.A == nil:
			fmt.Fprintf(&b, "%5s %5d > %s\n", "", r.B.Replied, r.B.what())
		case r.B == nil:
			fmt.Fprintf(&b, "%5d %5s < %s\n", r.A.Replied, "", r.A.what())
		case r.Same && r.Result:
			fmt.Fprintf(&b, "%5d %5d = %s\n", r.A.Replied, r.B.Replied, r.A.what())
		case r.Same:
			fmt.Fprintf(&b, "%5d %5d ~ %s\n", r.A.Replied, r.B.Replied, r.A.what())
		default:
			fmt.Fprintf(&b, "%5d %5s < %s\n%5s %5d > %s\n", r.A.Replied, "", r.A.what(), "", r.B.Replied, r.B.what())
		}
	}
	if c.First < 0 {
		b.WriteString("no difference\n")
	}
	return b.String()
}
