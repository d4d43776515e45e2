package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// ParseOutput makes a result of what a command printed or a server answered. A JSON object with exactly the members result
// and, if at all, facts (an object) is split: a result that is a string is the text, else its compact JSON is. Everything
// else is the text as it is, without the line ends at its end. Invalid UTF-8 is replaced by U+FFFD.
func ParseOutput(b []byte) Result {
	if res, ok := split(b); ok {
		return res
	}
	return Result{Text: strings.TrimRight(strings.ToValidUTF8(string(b), "\ufffd"), "\r\n")}
}

func split(b []byte) (Result, bool) {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return Result{}, false
	}
	canonical, err := loop.Canonical(b) // also: no key twice
	if err != nil {
		return Result{}, false
	}
	var as, in map[string]json.RawMessage
	if json.Unmarshal(b, &as) != nil || json.Unmarshal(canonical, &in) != nil {
		return Result{}, false
	}
	result, ok := as["result"]
	facts, hasFacts := in["facts"]
	if !ok || len(as) > 2 || len(as) == 2 && !hasFacts {
		return Result{}, false
	}
	var res Result
	if hasFacts && (json.Unmarshal(facts, &res.Facts) != nil || res.Facts == nil) {
		return Result{}, false
	}
	if json.Unmarshal(result, &res.Text) == nil && result[0] == '"' {
		return res, true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, result) != nil {
		return Result{}, false
	}
	res.Text = compact.String()
	return res, true
}

// Secrets resolves references to secrets, written ${NAME}, at the moment they are used, and hides the values again in what
// comes back. The zero value is ready; it is not safe for concurrent use, so each call makes its own.
type Secrets struct {
	found map[string]string // value → reference
}

var reference = regexp.MustCompile(`\$\{[^}]*\}?`)
var referenceName = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// CheckReferences reports a reference that is not of the form ${NAME}.
func CheckReferences(text string) error {
	for _, ref := range reference.FindAllString(text, -1) {
		if !referenceName.MatchString(ref) {
			return fmt.Errorf("%q is no reference; write ${NAME} with a name of letters, digits and _", ref)
		}
	}
	return nil
}

// Expand replaces the references in text by what lookup (os.LookupEnv, say) knows of them. The error names a variable that
// is not set, and never holds a value.
func (s *Secrets) Expand(text string, lookup func(string) (string, bool)) (string, error) {
	var err error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		if !referenceName.MatchString(ref) {
			err = CheckReferences(ref)
			return ref
		}
		v, ok := lookup(ref[2 : len(ref)-1])
		if !ok {
			err = fmt.Errorf("the environment variable %s is not set", ref[2:len(ref)-1])
			return ref
		}
		if s.found == nil {
			s.found = map[string]string{}
		}
		s.found[v] = ref
		return v
	})
	return out, err
}

// minSecret is the length from which a value is taken for a secret: hiding "1" or "eu" would only garble the text.
const minSecret = 6

// Hide replaces the values that Expand put in by their references.
func (s *Secrets) Hide(text string) string {
	var pairs []string
	for v := range s.found {
		if len(v) >= minSecret {
			pairs = append(pairs, v)
		}
	}
	// Of values that begin alike the longer one goes first.
	sort.Slice(pairs, func(i, j int) bool {
		return len(pairs[i]) > len(pairs[j]) || len(pairs[i]) == len(pairs[j]) && pairs[i] < pairs[j]
	})
	for _, v := range pairs {
		text = strings.ReplaceAll(text, v, s.found[v])
	}
	return text
}

// HideResult is Hide on all that a result says.
func (s *Secrets) HideResult(r Result) Result {
	if len(s.found) == 0 {
		return r
	}
	r.Text = s.Hide(r.Text)
	for name, v := range r.Facts {
		r.Facts[name] = json.RawMessage(s.Hide(string(v)))
	}
	return r
}
