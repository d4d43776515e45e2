package recording

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Redactor replaces secrets by references: known ones by {{secret:NAME}}, what looks like one by {{redacted:KIND#N}}, where N tells the
// different values apart. It is safe for concurrent use.
type Redactor struct {
	policy   string
	known    []knownSecret // longest first
	patterns []Pattern

	mu   sync.Mutex
	seen map[string]int // values that patterns found
}

type knownSecret struct{ name, value, by string }

// Secret is a value that must not leave the process, under a name that may.
type Secret struct{ Name, Value string }

// Pattern finds secrets by their form. Expr must not match across white space unless it is one of Patterns' own; a match is at most
// patternMax bytes.
type Pattern struct {
	Kind string
	Expr *regexp.Regexp
	// After and Until mark what Expr matches across white space: a stream is held back from After up to Until.
	After, Until string
}

// patternMax bounds how much of a stream is held back for a pattern.
const patternMax = 16 << 10

// minSecret is the length below which a known secret is not looked for: it would be found everywhere.
const minSecret = 6

// Patterns are forms of widely used keys and tokens, from the documentation of those who issue them.
func Patterns() []Pattern {
	p := func(kind, expr string) Pattern { return Pattern{Kind: kind, Expr: regexp.MustCompile(expr)} }
	return []Pattern{
		{Kind: "private-key", Expr: regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----`),
			After: "-----BEGIN ", Until: "PRIVATE KEY-----"},
		p("anthropic-key", `sk-ant-[A-Za-z0-9_-]{20,}`),
		p("openai-key", `sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}`),
		p("google-key", `AIza[A-Za-z0-9_-]{35}`),
		p("aws-key", `(?:AKIA|ASIA)[A-Z0-9]{16}`),
		p("github-token", `gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}`),
		p("slack-token", `xox[abeoprs]-[A-Za-z0-9-]{10,}`),
		p("jwt", `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),
	}
}

// NewRedactor makes a redactor. policy names what it does, for the header of recordings. A secret that is shorter than six bytes, or has no
// name, is an error: it would be replaced everywhere, or could not be put back.
func NewRedactor(policy string, secrets []Secret, patterns []Pattern) (*Redactor, error) {
	r := &Redactor{policy: policy, patterns: patterns, seen: map[string]int{}}
	if policy == "" {
		r.policy = "custom"
	}
	for _, s := range secrets {
		switch {
		case s.Name == "" || strings.ContainsAny(s.Name, "{}\"\\\n"):
			return nil, fmt.Errorf("recording: redactor: the name %q of a secret is empty or has characters that references cannot hold", s.Name)
		case len(s.Value) < minSecret:
			return nil, fmt.Errorf("recording: redactor: the secret %s has fewer than %d bytes: it would be found everywhere. Leave it out", s.Name, minSecret)
		}
		for _, v := range spellings(s.Value) {
			r.known = append(r.known, knownSecret{s.Name, v, "{{secret:" + s.Name + "}}"})
		}
	}
	slices.SortStableFunc(r.known, func(a, b knownSecret) int { return len(b.value) - len(a.value) })
	return r, nil
}

// spellings are the ways in which a value stands in texts: as it is, inside of JSON, inside of a URL.
func spellings(v string) []string {
	list := []string{v}
	if esc, err := json.Marshal(v); err == nil {
		list = append(list, string(esc[1:len(esc)-1]))
	}
	if esc, err := marshal(v); err == nil {
		list = append(list, string(esc[1:len(esc)-1]))
	}
	list = append(list, url.QueryEscape(v), url.PathEscape(v))
	slices.Sort(list)
	return slices.Compact(list)
}

// Policy names what the redactor does.
func (r *Redactor) Policy() string { return r.policy }

// span is a replaced part of a text: bytes from to to became outFrom to outTo.
type span struct{ from, to, outFrom, outTo int }

// Redact replaces the secrets of a text.
func (r *Redactor) Redact(s string) string {
	out, _ := r.redact(s)
	return out
}

func (r *Redactor) redact(s string) (string, []span) {
	var spans []span
	var b strings.Builder
	done := 0
	for _, m := range r.find(s) {
		b.WriteString(s[done:m.from])
		if m.by == "" {
			m.by = r.found(m.kind, s[m.from:m.to])
		}
		from := b.Len()
		b.WriteString(m.by)
		spans = append(spans, span{m.from, m.to, from, b.Len()})
		done = m.to
	}
	if spans == nil {
		return s, nil
	}
	b.WriteString(s[done:])
	return b.String(), spans
}

type match struct {
	from, to int
	by       string
	kind     string // in the place of by: it gets its name when it is replaced
}

// find lists the secrets of a text, in order, without overlaps: known ones first, then patterns in their order in what is between.
func (r *Redactor) find(s string) []match {
	var list []match
	free := func(from, to int) bool {
		for _, m := range list {
			if from < m.to && m.from < to {
				return false
			}
		}
		return true
	}
	for _, k := range r.known {
		for at := 0; ; {
			i := strings.Index(s[at:], k.value)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(k.value)
			if free(from, at) {
				list = append(list, match{from: from, to: at, by: k.by})
			}
		}
	}
	for _, p := range r.patterns {
		for _, loc := range p.Expr.FindAllStringIndex(s, -1) {
			if loc[1] > loc[0] && loc[1]-loc[0] <= patternMax && free(loc[0], loc[1]) {
				list = append(list, match{from: loc[0], to: loc[1], kind: p.Kind})
			}
		}
	}
	slices.SortFunc(list, func(a, b match) int { return a.from - b.from })
	return list
}

// found names a value that a pattern found: the same value has the same name.
func (r *Redactor) found(kind, value string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.seen[value]
	if !ok {
		n = len(r.seen) + 1
		r.seen[value] = n
	}
	return "{{redacted:" + kind + "#" + strconv.Itoa(n) + "}}"
}

// Restore puts known secrets back where their references stand: what the tool port does before a call runs. Values that patterns found are
// not kept and cannot be put back.
func (r *Redactor) Restore(s string) string {
	if !strings.Contains(s, "{{secret:") {
		return s
	}
	for i := len(r.known) - 1; i >= 0; i-- { // the plain spelling is the shortest
		s = strings.ReplaceAll(s, r.known[i].by, r.known[i].value)
	}
	return s
}

// mapPosition gives the place in the redacted text of a position in the text before: one within a secret is the end of what replaced it.
func mapPosition(spans []span, pos int) int {
	shift := 0
	for _, s := range spans {
		switch {
		case pos <= s.from:
			return pos + shift
		case pos < s.to:
			return s.outTo
		}
		shift = s.outTo - s.to
	}
	return pos + shift
}

// Stream redacts a text that comes in pieces, whatever way it is cut. It belongs to one goroutine.
type Stream struct {
	r    *Redactor
	held string // not given out yet: it could be the beginning of a secret
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Write takes the next piece and returns what can be shown of the text so far. All that it and Flush return is what Redact makes of the whole.
func (s *Stream) Write(piece string) string {
	s.held += piece
	safe := s.r.safe(s.held)
	if safe == 0 {
		return ""
	}
	out := s.r.Redact(s.held[:safe])
	s.held = s.held[safe:]
	return out
}

// Flush ends the text and returns the rest of it.
func (s *Stream) Flush() string {
	out := s.r.Redact(s.held)
	s.held = ""
	return out
}

// safe is how much of a text can be given out whatever follows: nothing of it can be a part of a secret that is not whole yet.
func (r *Redactor) safe(s string) int {
	safe := len(s)
	for _, k := range r.known {
		for n := min(len(k.value)-1, len(s)); n > 0; n-- {
			if strings.HasSuffix(s, k.value[:n]) {
				safe = min(safe, len(s)-n)
				break
			}
		}
	}
	if len(r.patterns) > 0 {
		safe = min(safe, wordStart(s))
	}
	for _, p := range r.patterns {
		if p.After != "" {
			safe = min(safe, r.open(s, p))
		}
	}
	// Never inside of a secret that is whole, and not before one whose end could still grow.
	for moved := true; moved; {
		moved = false
		for _, m := range r.find(s) {
			if m.from < safe && safe < m.to {
				safe, moved = m.from, true
			}
		}
	}
	return safe
}

// wordStart is where the last word of a text begins, if the text ends inside of one. A word that is longer than any pattern is no secret.
func wordStart(s string) int {
	i := strings.LastIndexAny(s, " \t\n\r") + 1
	if len(s)-i > patternMax {
		return len(s) - patternMax
	}
	return i
}

// open is where a marked pattern begins that has not ended yet; the length of the text if there is none.
func (r *Redactor) open(s string, p Pattern) int {
	from := 0
	for {
		i := strings.Index(s[from:], p.After)
		if i < 0 {
			for n := min(len(p.After)-1, len(s)); n > 0; n-- {
				if strings.HasSuffix(s, p.After[:n]) {
					return len(s) - n
				}
			}
			return len(s)
		}
		from += i
		loc := p.Expr.FindStringIndex(s[from:])
		switch {
		case loc != nil && loc[0] == 0:
			from += loc[1]
		case len(s)-from < patternMax:
			return from
		default:
			from += len(p.After)
		}
	}
}
