package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ronda-go/ronda/loop"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	root *jsonschema.Schema
	doc  any // the schema itself, for what the messages say is allowed
}

// schemaURL is the address of a schema while it is compiled; references from it to elsewhere are refused.
const schemaURL = "schema:///tool"

// Compile compiles a schema. Empty means an object with anything in it; without $schema it is read as draft 2020-12, drafts 4
// to 2019-09 are known by their $schema. Nothing is loaded: a reference to another document is an error. Patterns are those
// of Go's regexp package, so lookarounds are refused. As the drafts since 2019-09 say, `format` is a remark and is not asserted.
// The error names the place in the schema.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	canonical, err := loop.Canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(canonical))
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoading{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	root, err := c.Compile(schemaURL)
	var bad *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if errors.As(err, &bad) && errors.As(bad.Err, &ve) {
		return nil, fmt.Errorf("the schema is not valid: %s", problems{top: "the schema", instance: doc}.text(ve))
	}
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %s", strings.ReplaceAll(err.Error(), schemaURL, ""))
	}
	return &Schema{root: root, doc: doc}, nil
}

// noLoading keeps schemas from reading files and addresses.
type noLoading struct{}

func (noLoading) Load(url string) (any, error) {
	return nil, errors.New("a schema must hold all it refers to; put it under $defs")
}

// Validate checks a JSON value, by the exact values of its numbers. The error is an *Error of class invalid whose text a
// model can mend the value by: for each problem the member, what is wrong and what is allowed; at most 2 KiB.
func (s *Schema) Validate(value []byte) error {
	canonical, err := loop.Canonical(value)
	if err != nil {
		return &Error{Class: loop.ClassInvalid, NotRun: true, Message: "not usable as JSON: " + strings.TrimPrefix(err.Error(), "canonical JSON: "), Err: err}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(canonical))
	if err != nil {
		return &Error{Class: loop.ClassInvalid, NotRun: true, Err: err}
	}
	err = s.root.Validate(v)
	if err == nil {
		return nil
	}
	e := &Error{Class: loop.ClassInvalid, NotRun: true, Err: err}
	var ve *jsonschema.ValidationError
	if errors.As(err, &ve) {
		e.Message = problems{top: "the value", instance: v, schema: s.doc}.text(ve)
	}
	return e
}

// object reports whether the schema says that it is of objects, as all providers want it of arguments.
func (s *Schema) object() bool {
	m, _ := s.doc.(map[string]any)
	return m["type"] == "object"
}

// property returns the schema of a top-level member; nil where it is not named.
func (s *Schema) property(name string) any {
	m, _ := s.doc.(map[string]any)
	p, _ := m["properties"].(map[string]any)
	return p[name]
}

var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// Verify checks what a tool declares, before a run uses it, and returns the compiled schema of its arguments. The error
// names the tool and the field. Names are those that every provider takes: a letter or _, then letters, digits, _ and -, at
// most 64.
func Verify(t Tool) (*Schema, error) {
	d := t.Def()
	wrap := func(err error) (*Schema, error) { return nil, fmt.Errorf("tool %q: %w", d.Name, err) }
	if !toolName.MatchString(d.Name) {
		return wrap(errors.New("the name must begin with a letter or _ and go on with letters, digits, _ or -, at most 64"))
	}
	if m, ok := t.(interface{ misconfigured() error }); ok && m.misconfigured() != nil {
		return wrap(m.misconfigured())
	}
	s, err := Compile(d.Input)
	if err != nil {
		return wrap(fmt.Errorf("input: %w", err))
	}
	if !s.object() {
		return wrap(errors.New(`input: the schema must say "type": "object"`))
	}
	if len(d.Output) > 0 {
		if _, err := Compile(d.Output); err != nil {
			return wrap(fmt.Errorf("output: %w", err))
		}
	}
	if err := d.verify(s); err != nil {
		return wrap(err)
	}
	if _, ok := t.(Checker); d.Check && !ok {
		return wrap(errors.New("check: the tool says that it can check, but is no Checker"))
	}
	return s, nil
}

// verify checks the fields that need no library.
func (d *Def) verify(s *Schema) error {
	switch d.Effect {
	case "", loop.Read, loop.Idempotent, loop.Once:
	default:
		return fmt.Errorf("effect: %q is none; use read, idempotent or once", d.Effect)
	}
	switch d.Approval {
	case "", loop.Allow, loop.Ask, loop.Deny:
	default:
		return fmt.Errorf("approval: %q is none; use allow, ask or deny", d.Approval)
	}
	switch d.OnReject {
	case "", "tell", "stop":
	default:
		return fmt.Errorf("on_reject: %q is none; use tell or stop", d.OnReject)
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"timeout", int64(d.Timeout)}, {"retries", int64(d.Retries)}, {"result_cap", int64(d.ResultCap)},
		{"calls_max", orZero(d.CallsMax)}, {"poll.calls_max", d.Poll.calls()}, {"poll.interval", d.Poll.interval()},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s: %d is negative", f.name, f.value)
		}
	}
	for _, r := range d.Requires {
		if r.Tool == "" || r.Tool == d.Name {
			return fmt.Errorf("requires: %q; name another tool", r.Tool)
		}
	}
	return d.verifyArgs(s)
}

// verifyArgs checks that the arguments that rules speak of exist, where the schema names its members.
func (d *Def) verifyArgs(s *Schema) error {
	m, _ := s.doc.(map[string]any)
	if _, named := m["properties"]; !named {
		return nil
	}
	for _, a := range d.Grounded {
		if s.property(a) == nil {
			return fmt.Errorf("grounded: the input has no argument %q", a)
		}
	}
	for _, r := range d.Requires {
		for _, a := range r.Same {
			if s.property(a) == nil {
				return fmt.Errorf("requires: the input has no argument %q to compare with %s", a, r.Tool)
			}
		}
	}
	return nil
}

func orZero(p *int) int64 {
	if p == nil {
		return 0
	}
	return int64(*p)
}

func (p *Poll) calls() int64 {
	if p == nil {
		return 0
	}
	return orZero(p.CallsMax)
}

func (p *Poll) interval() int64 {
	if p == nil {
		return 0
	}
	return int64(p.Interval)
}
