package yamldoc

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error is one thing wrong in a document: where, what, and the way out.
type Error struct {
	File         string
	Line, Column int
	Field        string // path of the field; "" the whole document
	Reason       string
	Hint         string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	fmt.Fprintf(&b, "%d:%d: ", e.Line, e.Column)
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Errors are all that is wrong with a document, in the order of its lines; never empty.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, x := range e {
		lines[i] = x.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single errors to errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, x := range e {
		out[i] = x
	}
	return out
}

// maxErrors bounds what one document can complain of.
const maxErrors = 50

// Problems collects what is wrong while a document is read, so that a person sees all of it at once. Its methods read one
// node as one type: where the node is something else they note the error and return the zero value.
type Problems struct {
	File string
	errs Errors
}

// Add notes an error at a node. hint may be empty.
func (p *Problems) Add(n *Node, reason, hint string) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &Error{
			File: p.File, Line: n.Line, Column: n.Column, Field: n.Path, Reason: reason, Hint: hint,
		})
	}
}

// Join adds what is wrong with another document that this one names. An error that is not an Errors is noted at n.
func (p *Problems) Join(n *Node, err error) {
	var many Errors
	switch {
	case err == nil:
	case errors.As(err, &many):
		p.errs = append(p.errs, many...)
	default:
		p.Add(n, err.Error(), "")
	}
}

// Len is the number of errors so far.
func (p *Problems) Len() int { return len(p.errs) }

// Err is nil or an Errors in the order of lines, this document's before those of others.
func (p *Problems) Err() error {
	if len(p.errs) == 0 {
		return nil
	}
	out := slices.Clone(p.errs)
	slices.SortStableFunc(out, func(a, b *Error) int {
		if a.File != b.File {
			if a.File == p.File {
				return -1
			}
			if b.File == p.File {
				return 1
			}
			return strings.Compare(a.File, b.File)
		}
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return out
}

func (p *Problems) want(n *Node, k Kind, example string) bool {
	if n.Kind == k {
		return true
	}
	hint := ""
	if example != "" {
		hint = "write " + example
	}
	got := n.Kind.String()
	if n.Kind == String || n.Kind == Number || n.Kind == Bool {
		got = quote(n.Text)
	}
	p.Add(n, "want "+k.String()+", not "+got, hint)
	return false
}

// Keys says what each key of a map means.
type Keys map[string]func(*Node)

// Object reads a map. An unknown key is an error that names those that exist.
func (p *Problems) Object(n *Node, keys Keys) bool {
	if !p.want(n, Map, "") {
		return false
	}
	for _, f := range n.Fields {
		if read, ok := keys[f.Name]; ok {
			read(f.Value)
			continue
		}
		known := make([]string, 0, len(keys))
		for k := range keys {
			known = append(known, k)
		}
		p.Add(f.Key, "unknown key "+quote(f.Name), suggest(f.Name, known))
	}
	return true
}

// List reads each item of a list.
func (p *Problems) List(n *Node, item func(*Node)) {
	if !p.want(n, List, "") {
		return
	}
	for _, v := range n.Items {
		item(v)
	}
}

// Strings reads a list of scalars.
func (p *Problems) Strings(n *Node) []string {
	var out []string
	p.List(n, func(v *Node) { out = append(out, p.Scalar(v)) })
	return out
}

// Scalar reads a text; a number or truth value is taken as it is spelled.
func (p *Problems) Scalar(n *Node) string {
	if n.Kind != Bool && n.Kind != Number {
		p.want(n, String, "")
	}
	return n.Text
}

// String reads a text. What YAML takes for a number or a truth value must be quoted.
func (p *Problems) String(n *Node) string {
	example := ""
	if n.Kind == Bool || n.Kind == Number {
		example = strconv.Quote(n.Text) + " with the quotes"
	}
	if !p.want(n, String, example) {
		return ""
	}
	return n.Text
}

// Name reads a text that may not be empty.
func (p *Problems) Name(n *Node) string {
	s := p.String(n)
	if s == "" && (n.Kind == String) {
		p.Add(n, "must not be empty", "")
	}
	return s
}

// Bool reads true or false.
func (p *Problems) Bool(n *Node) bool {
	return p.want(n, Bool, "true or false") && n.Text == "true"
}

// Int reads a whole number that is not negative.
func (p *Problems) Int(n *Node) int64 {
	if !p.want(n, Number, "a whole number") {
		return 0
	}
	i, err := strconv.ParseInt(n.Text, 10, 64)
	if f, ferr := strconv.ParseFloat(n.Text, 64); err != nil && ferr == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		i, err = int64(f), nil // 1e3, 5.0
	}
	switch {
	case err != nil:
		p.Add(n, n.Text+" is not a whole number in range", "")
	case i < 0:
		p.Add(n, n.Text+" is negative", "0 means none at all; leave the key out where there is no limit")
	default:
		return i
	}
	return 0
}

// Float reads a number that is not negative.
func (p *Problems) Float(n *Node) float64 {
	if !p.want(n, Number, "") {
		return 0
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case err != nil:
		p.Add(n, n.Text+" is too large", "")
	case f < 0:
		p.Add(n, n.Text+" is negative", "0 means none at all; leave the key out where there is no limit")
	default:
		return f
	}
	return 0
}

// Duration reads a length of time with its unit (300ms, 5s, 2m, 1h30m; a bare 0 too) that is not negative.
func (p *Problems) Duration(n *Node) time.Duration {
	if n.Kind == Number && n.Text == "0" {
		return 0
	}
	if n.Kind == Number {
		p.Add(n, n.Text+" has no unit", "write "+n.Text+"s or "+n.Text+"m")
		return 0
	}
	if !p.want(n, String, "30s or 2m") {
		return 0
	}
	d, err := time.ParseDuration(n.Text)
	switch {
	case err != nil, d >= 0 && !duration.MatchString(n.Text):
		p.Add(n, quote(n.Text)+" is no length of time", "write 300ms, 30s, 2m or 1h30m")
	case d < 0:
		p.Add(n, n.Text+" is negative", "0 means none at all; leave the key out where there is no limit")
	default:
		return d
	}
	return 0
}

// OneOf reads a word of a closed list. noun is what the word should be, with its article: "an effect".
func (p *Problems) OneOf(n *Node, noun string, words ...string) string {
	s := n.Text
	if n.Kind <= String && slices.Contains(words, s) {
		return s
	}
	if n.Kind >= List || n.Kind == Null {
		s = n.Kind.String()
	} else {
		s = quote(s)
	}
	p.Add(n, s+" is not "+noun, "use "+alternatives(words))
	return ""
}

// duration is how lengths of time are spelled: time.ParseDuration knows odder ways that a JSON Schema need not.
var duration = regexp.MustCompile(`^(0|([0-9]{1,9}(\.[0-9]{1,9})?(us|ms|s|m|h))+)$`)

func alternatives(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func quote(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return strconv.Quote(s)
}

// suggest is the way out of an unknown key: the nearest known one, else all of them.
func suggest(name string, known []string) string {
	slices.Sort(known)
	best, dist := "", 3
	for _, k := range known {
		if d := distance(name, k); d < dist && d < len(k) {
			best, dist = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 {
		return "no key is known here"
	}
	return "known keys: " + strings.Join(known, ", ")
}

// distance counts the edits between two words (Levenshtein); long words are far from everything.
func distance(a, b string) int {
	if len(a) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
