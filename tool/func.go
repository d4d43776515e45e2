package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ronda-go/ronda/loop"
)

// Func makes a tool from a typed function; it is the typed layer over New.
//
// The arguments' JSON Schema comes from In, a struct or a map with string keys: `json` tags name the members, omitempty or
// omitzero makes one optional, a `jsonschema:"…"` tag describes it. Unknown arguments are refused. Run does not validate
// against the schema: the driver has done so before it asked the policy. Numbers in fields of type any arrive as float64;
// use json.Number where every digit counts.
//
// The result comes from Out: a string is the text as it is, a Result is itself, everything else is encoded as JSON. An error
// of fn is an ordinary error unless it is one of Invalid, Denied, Transient, Fatal, Unknown; Fact puts facts on record,
// beside errors too. Panics of fn are not caught here: the driver does, and books them as unknown.
//
// fn is called concurrently when the agent allows parallel calls. A mistake in the types or the options is no panic: Verify
// reports it, and Run refuses to run.
func Func[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), opts ...Option) Tool {
	m := &making{made: &made{def: Def{Name: name, Description: description}}}
	m.schema, m.err = inferInput(reflect.TypeFor[In]())
	m.def.Output = inferOutput(reflect.TypeFor[Out]())
	if fn == nil {
		m.fail("the function is nil")
	}
	m.run = func(ctx context.Context, call Call) (Result, error) {
		var in In
		if err := decodeArgs(call.Args, &in); err != nil {
			return Result{}, err
		}
		ctx, calling := begin(ctx, call)
		out, err := fn(ctx, in)
		facts := calling.end()
		if err != nil {
			e := AsError(err)
			e.Facts = merge(facts, e.Facts)
			return Result{}, e
		}
		return resultOf(out, facts)
	}
	return m.finish(opts)
}

// New makes a tool from its definition and a function over raw calls. The definition must not change afterwards.
func New(def Def, run func(ctx context.Context, call Call) (Result, error), opts ...Option) Tool {
	m := &making{made: &made{def: def, run: run}}
	if run == nil {
		m.fail("the function is nil")
	}
	return m.finish(opts)
}

func (m *making) finish(opts []Option) Tool {
	for _, o := range opts {
		o(m)
	}
	if m.def.Check && m.check == nil {
		m.fail("Check is set, but there is no check: use the option CheckCalls")
	}
	if m.schema != nil {
		raw, err := json.Marshal(m.schema)
		if err != nil {
			m.fail("encode the schema of the arguments: %w", err)
		}
		m.def.Input = raw
	}
	return m.made
}

// made is a tool of Func or New.
type made struct {
	def   Def
	run   func(context.Context, Call) (Result, error)
	check func(context.Context, Call) (string, Result, error)
	err   error // what is wrong with the making
}

func (t *made) Def() Def { return t.def }

func (t *made) Run(ctx context.Context, call Call) (Result, error) {
	if t.err != nil {
		return Result{}, &Error{Class: loop.ClassFatal, NotRun: true, Err: fmt.Errorf("tool %s: %w", t.def.Name, t.err)}
	}
	return t.run(ctx, call)
}

func (t *made) Check(ctx context.Context, call Call) (string, Result, error) {
	if t.check == nil {
		return loop.HappenedUnknown, Result{}, nil
	}
	return t.check(ctx, call)
}

// misconfigured is what Verify asks tools of this package.
func (t *made) misconfigured() error { return t.err }

// decodeArgs decodes arguments for a typed function; no arguments are {}.
func decodeArgs(args json.RawMessage, in any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	err := json.Unmarshal(args, in)
	if err == nil {
		return nil
	}
	e := &Error{Class: loop.ClassInvalid, NotRun: true, Err: err, Message: "the arguments cannot be read: " + err.Error()}
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		e.Message = fmt.Sprintf("%s: cannot be a %s here (%s)", orTop(te.Field), te.Value, te.Type)
	}
	return e
}

func orTop(path string) string {
	if path == "" {
		return "the arguments"
	}
	return path
}

// resultOf makes a result of what a typed function returned. Facts of a Result win over those of Fact.
func resultOf(out any, facts map[string]json.RawMessage) (Result, error) {
	var res Result
	switch out := out.(type) {
	case string:
		res.Text = out
	case Result:
		res = out
	case *Result:
		if out != nil {
			res = *out
		}
	default:
		b, err := encode(out)
		if err != nil {
			// The function has run: whatever it did to the world is done.
			return Result{}, &Error{Class: loop.ClassUnknown, Facts: facts, Err: fmt.Errorf("encode the result: %w", err)}
		}
		res.Text = string(b)
	}
	res.Text = strings.ToValidUTF8(res.Text, "\ufffd")
	res.Facts = merge(facts, res.Facts)
	return res, nil
}

func merge(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if len(a) == 0 {
		return b
	}
	maps.Copy(a, b)
	return a
}

// encode is json.Marshal without the escaping of <, > and &.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// calling is what the context of a typed function carries.
type calling struct {
	call  Call
	mu    sync.Mutex
	facts map[string]json.RawMessage
	over  bool
}

type callingKey struct{}

func begin(ctx context.Context, call Call) (context.Context, *calling) {
	c := &calling{call: call}
	return context.WithValue(ctx, callingKey{}, c), c
}

// end returns the facts; later ones are refused.
func (c *calling) end() map[string]json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.facts
}

// CallOf returns the call that a function of Func or CheckWith works on: its idempotency key, attempt, run and id.
func CallOf(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callingKey{}).(*calling)
	if !ok {
		return Call{}, false
	}
	return c.call, true
}

// Fact puts a fact on record with the call that ctx belongs to: with its result, or with its error where the function fails
// later. The value is encoded as JSON; the last value of a name holds. It fails outside of a function of Func or CheckWith,
// after that function returned, and for a value that JSON cannot hold. Safe for concurrent use.
func Fact(ctx context.Context, name string, value any) error {
	c, ok := ctx.Value(callingKey{}).(*calling)
	if !ok {
		return fmt.Errorf("fact %q: the context belongs to no tool call; pass on the one that the function got", name)
	}
	b, err := encode(value)
	if err == nil {
		b, err = loop.Canonical(b)
	}
	if err != nil {
		return fmt.Errorf("fact %q: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return fmt.Errorf("fact %q: the call is over", name)
	}
	if c.facts == nil {
		c.facts = map[string]json.RawMessage{}
	}
	c.facts[name] = b
	return nil
}

// typeSchemas are the types whose JSON is not what their Go kind suggests.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	}
}

func inferInput(t reflect.Type) (*jsonschema.Schema, error) {
	if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
		return &jsonschema.Schema{Type: "object"}, nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas()})
	if err != nil {
		return nil, fmt.Errorf("infer the schema of the arguments: %w", err)
	}
	if k := t.Kind(); k == reflect.Pointer || s.Type != "object" {
		return nil, fmt.Errorf("the arguments are a %s; they must be a struct or a map with string keys", t)
	}
	if t.Kind() == reflect.Struct && s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	plainLists(s)
	return s, nil
}

// inferOutput is nil for text, for a Result and where the type has no schema: the schema of a result is a help, no promise.
func inferOutput(t reflect.Type) json.RawMessage {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[Result](), reflect.TypeFor[*Result](), reflect.TypeFor[json.RawMessage]():
		return nil
	}
	if t.Kind() == reflect.Interface {
		return nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas()})
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return raw
}

// plainLists makes lists of the arguments lists and nothing else. The library also allows null for a slice, as Go would
// write it; models are better off with one way to say "none", and not every provider takes a list of types.
func plainLists(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Type, s.Types = "array", nil
	}
	for _, p := range s.Properties {
		plainLists(p)
	}
	plainLists(s.Items)
	plainLists(s.AdditionalProperties)
}
