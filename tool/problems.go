package tool

import (
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Bounds of the text of a validation error.
const (
	maxProblems     = 8
	maxProblemBytes = 220
	maxValueBytes   = 60
)

var printer = message.NewPrinter(language.English)

// problems turns the errors of the library into a text for a model.
type problems struct {
	top      string // what the whole value is called
	instance any    // the value
	schema   any    // its schema; nil: nothing is said of other members
}

// text lists the problems in the order of their places.
func (p problems) text(e *jsonschema.ValidationError) string {
	lines := p.collect(nil, e)
	for i := range lines {
		lines[i] = shorten(lines[i], maxProblemBytes)
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if len(lines) == 1 {
		return lines[0]
	}
	more, total := "", len(lines)
	if n := len(lines) - maxProblems; n > 0 {
		lines, more = lines[:maxProblems], fmt.Sprintf("\n- and %d more", n)
	}
	return strconv.Itoa(total) + " problems:\n- " + strings.Join(lines, "\n- ") + more
}

// collect walks down to the errors that say something by themselves.
func (p problems) collect(lines []string, e *jsonschema.ValidationError) []string {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return append(lines, p.choice(e, "none of the allowed forms fits"))
	case *kind.OneOf:
		if len(e.Causes) == 0 {
			return append(lines, p.place(e)+fmt.Sprintf(": fits %d of the allowed forms at once; exactly one must fit", len(k.Subschemas)))
		}
		return append(lines, p.choice(e, "none of the allowed forms fits"))
	case *kind.Contains, *kind.MinContains, *kind.PropertyNames, *kind.Not:
		return p.say(lines, e)
	}
	if len(e.Causes) == 0 {
		return p.say(lines, e)
	}
	for _, c := range e.Causes {
		lines = p.collect(lines, c)
	}
	return lines
}

// choice says why each of several forms does not fit.
func (p problems) choice(e *jsonschema.ValidationError, what string) string {
	var forms []string
	for _, c := range e.Causes {
		why := p.collect(nil, c)
		slices.Sort(why)
		forms = append(forms, strings.TrimPrefix(strings.Join(slices.Compact(why), ", "), p.place(e)+": "))
	}
	return p.place(e) + ": " + what + " (" + strings.Join(slices.Compact(forms), "; or: ") + ")"
}

// say adds one line for each member that an error is about.
func (p problems) say(lines []string, e *jsonschema.ValidationError) []string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, m := range k.Missing {
			lines = append(lines, p.member(e, m)+": missing"+describe(p.schemaAt(e.SchemaURL, "properties", m)))
		}
		return lines
	case *kind.DependentRequired:
		for _, m := range k.Missing {
			lines = append(lines, p.member(e, m)+": missing; it goes with "+k.Prop)
		}
		return lines
	case *kind.Dependency:
		for _, m := range k.Missing {
			lines = append(lines, p.member(e, m)+": missing; it goes with "+k.Prop)
		}
		return lines
	case *kind.AdditionalProperties:
		known := "; nothing is allowed here"
		if names, _ := p.schemaAt(e.SchemaURL, "properties").(map[string]any); len(names) > 0 {
			known = "; known: " + shorten(strings.Join(slices.Sorted(maps.Keys(names)), ", "), 120)
		}
		for _, m := range k.Properties {
			lines = append(lines, p.member(e, m)+": not known"+known)
		}
		return lines
	}
	return append(lines, p.place(e)+": "+p.what(e))
}

// what says what is wrong with one value and what is allowed.
func (p problems) what(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "must be " + orList(k.Want) + ", is " + p.valueAt(e)
	case *kind.Enum:
		return "must be one of " + values(k.Want) + ", is " + p.valueAt(e)
	case *kind.Const:
		return "must be " + value(k.Want) + ", is " + p.valueAt(e)
	case *kind.Minimum:
		return "must be at least " + number(k.Want) + ", is " + p.valueAt(e)
	case *kind.Maximum:
		return "must be at most " + number(k.Want) + ", is " + p.valueAt(e)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want) + ", is " + p.valueAt(e)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want) + ", is " + p.valueAt(e)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want) + ", is " + p.valueAt(e)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.Pattern:
		return "must match the pattern " + k.Want + ", is " + p.valueAt(e)
	case *kind.Format:
		return "must be in the format " + k.Want + ", is " + p.valueAt(e)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat itself; items %d and %d are the same", k.Duplicates[0], k.Duplicates[1])
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members, has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members, has %d", k.Want, k.Got)
	case *kind.PropertyNames:
		return "the name " + value(k.Property) + " is not allowed"
	case *kind.Contains, *kind.MinContains:
		return "lacks an item that must be among them"
	case *kind.MaxContains:
		return fmt.Sprintf("must hold at most %d items of a kind, holds %d", k.Want, len(k.Got))
	case *kind.FalseSchema:
		return "not allowed"
	case *kind.Not:
		return "has a form that is not allowed: " + p.valueAt(e)
	}
	return e.ErrorKind.LocalizedString(printer)
}

// place spells the way to a value: filter.tags[2].
func (p problems) place(e *jsonschema.ValidationError) string {
	if s := p.path(e.InstanceLocation); s != "" {
		return s
	}
	return p.top
}

func (p problems) member(e *jsonschema.ValidationError, name string) string {
	return dotted(p.path(e.InstanceLocation), name)
}

func (p problems) path(tokens []string) string {
	s, v := "", p.instance
	for _, t := range tokens {
		if list, ok := v.([]any); ok {
			s += "[" + t + "]"
			if i, err := strconv.Atoi(t); err == nil && i >= 0 && i < len(list) {
				v = list[i]
			}
			continue
		}
		s = dotted(s, t)
		m, _ := v.(map[string]any)
		v = m[t]
	}
	return s
}

// dotted adds a member's name to a path; names that are no words are quoted.
func dotted(path, name string) string {
	plain := name != ""
	for _, r := range name {
		plain = plain && (r == '_' || r == '-' || r == '$' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}
	if !plain {
		return path + "[" + shorten(strconv.Quote(name), maxValueBytes) + "]"
	}
	name = shorten(name, maxValueBytes)
	if path == "" {
		return name
	}
	return path + "." + name
}

// valueAt spells the value that an error is about.
func (p problems) valueAt(e *jsonschema.ValidationError) string {
	v := p.instance
	for _, t := range e.InstanceLocation {
		switch at := v.(type) {
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(at) {
				return "something else"
			}
			v = at[i]
		case map[string]any:
			v = at[t]
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case string:
		return "the text " + value(v)
	}
	return value(v)
}

// schemaAt finds a part of the schema by the address of an error and names below it.
func (p problems) schemaAt(address string, names ...string) any {
	fragment, ok := strings.CutPrefix(address, schemaURL+"#")
	if !ok {
		return nil
	}
	if u, err := url.PathUnescape(fragment); err == nil {
		fragment = u
	}
	at := p.schema
	for _, t := range append(strings.Split(fragment, "/")[1:], names...) {
		switch v := at.(type) {
		case map[string]any:
			if w, ok := v[t]; ok {
				at = w
			} else {
				at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(t)]
			}
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// describe says in brackets what a missing member should be.
func describe(schema any) string {
	m, _ := schema.(map[string]any)
	var parts []string
	switch t := m["type"].(type) {
	case string:
		parts = append(parts, t)
	case []any:
		var names []string
		for _, n := range t {
			names = append(names, fmt.Sprint(n))
		}
		parts = append(parts, strings.Join(names, " or "))
	}
	if list, ok := m["enum"].([]any); ok {
		parts = append(parts, "one of "+values(list))
	}
	if d, ok := m["description"].(string); ok {
		parts = append(parts, shorten(d, 80))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func orList(types []string) string {
	names := map[string]string{"array": "a list", "object": "an object", "integer": "an integer", "null": "null", "string": "a text (string)", "number": "a number", "boolean": "true or false"}
	var out []string
	for _, t := range types {
		out = append(out, names[t])
	}
	return strings.Join(out, " or ")
}

func values(list []any) string {
	var out []string
	size := 0
	for i, v := range list {
		s := value(v)
		if size += len(s); size > 120 {
			out = append(out, fmt.Sprintf("… (%d more)", len(list)-i))
			break
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func value(v any) string {
	b, err := encode(v)
	if err != nil {
		return "?"
	}
	return shorten(string(b), maxValueBytes)
}

// number spells an exact number; those without a finite decimal form as a fraction.
func number(r *big.Rat) string {
	if r.IsInt() {
		return shorten(r.Num().String(), maxValueBytes)
	}
	if n, exact := r.FloatPrec(); exact {
		return shorten(r.FloatString(n), maxValueBytes)
	}
	return shorten(r.RatString(), maxValueBytes)
}

// shorten cuts a text to at most n bytes, between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
