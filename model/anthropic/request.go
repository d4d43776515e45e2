package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// body is a request in parts: head, the messages of the cache, tail.
type body struct {
	parts [3][]byte
	betas []string
	notes []string
}

func (b *body) reader() *wire.Body { return wire.Splice(b.parts[:]...) }

// set are the members of the body that the adapter writes itself.
func set(name string) bool {
	switch name {
	case "model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens":
		return true
	}
	return false
}

// encode makes the body of a request. The prompt cache: the system instructions carry a breakpoint (tools come before them in
// the API's order, so they are cached too), and the top-level cache_control puts one on the last block of the messages, where
// it moves forward by itself. The instructions of this call alone stand behind the first breakpoint.
func (a *adapter) encode(req *model.Request) (*body, error) {
	c := req.Cache
	if c == nil {
		c = &model.Cache{}
	}
	o, err := readOptions(req.Options)
	if err != nil {
		return nil, err
	}
	st, notes := messages(req, c)
	b := &body{betas: o.betas, notes: notes}
	fresh, err := st.head.tools(req.Tools, o)
	if err != nil {
		return nil, err
	}
	b.notes = append(b.notes, fresh...)

	limit := a.maxTokens(req)
	h := make([]byte, 0, 256+len(req.System)+len(req.Extra)+len(st.head.bytes))
	h = wire.AppendString(append(h, `{"model":`...), a.info.Name)
	h = strconv.AppendInt(append(h, `,"max_tokens":`...), limit, 10)
	if req.Stream {
		h = append(h, `,"stream":true`...)
	}
	h = appendSystem(h, req, o.cache)
	h = append(h, st.head.bytes...)
	b.parts[0] = append(h, `,"messages":[`...)
	b.parts[1] = c.Bytes[:len(c.Bytes):len(c.Bytes)]

	t := append(make([]byte, 0, 256), ']')
	t, note := appendChoice(t, req, o)
	b.notes = append(b.notes, note...)
	if o.cache != "" {
		t = append(append(t, `,"cache_control":`...), o.cache...)
	}
	t, note = appendThinking(t, o, limit)
	b.notes = append(b.notes, note...)
	if t, note, err = appendOutput(t, req.Output, o); err != nil {
		return nil, err
	}
	b.notes = append(b.notes, note...)
	if t, err = wire.AppendOptions(t, o.rest, set); err != nil {
		return nil, err
	}
	b.parts[2] = append(t, '}')
	return b, nil
}

func (a *adapter) maxTokens(req *model.Request) int64 {
	switch {
	case req.MaxOutput > 0:
		return req.MaxOutput
	case a.info.OutputCap > 0:
		return a.info.OutputCap
	}
	return defaultCap
}

func appendSystem(dst []byte, req *model.Request, cache string) []byte {
	if req.System == "" && req.Extra == "" {
		return dst
	}
	dst = append(dst, `,"system":[`...)
	if req.System != "" {
		dst = wire.AppendString(append(dst, `{"type":"text","text":`...), req.System)
		if cache != "" {
			dst = append(append(dst, `,"cache_control":`...), cache...)
		}
		dst = append(dst, '}')
	}
	if req.Extra != "" {
		if req.System != "" {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendString(append(dst, `{"type":"text","text":`...), req.Extra), '}')
	}
	return append(dst, ']')
}

// appendChoice appends tool_choice. With thinking on, the API refuses to force a call ("thinking may not be enabled when
// tool_choice forces tool use"): the choice becomes auto, with a note.
func appendChoice(dst []byte, req *model.Request, o *options) ([]byte, []string) {
	if len(req.Tools) == 0 {
		return dst, nil
	}
	choice := req.Choice
	var notes []string
	if choice != model.ChoiceAuto && choice != model.ChoiceNone && o.thinks() {
		notes = []string{fmt.Sprintf("tool choice %q became auto: this API does not force a call while the model thinks", choice)}
		choice = model.ChoiceAuto
	}
	switch choice {
	case model.ChoiceAuto:
		if !o.serial {
			return dst, notes
		}
		dst = append(dst, `,"tool_choice":{"type":"auto"`...)
	case model.ChoiceNone:
		return append(dst, `,"tool_choice":{"type":"none"}`...), notes
	case model.ChoiceRequired:
		dst = append(dst, `,"tool_choice":{"type":"any"`...)
	default:
		dst = wire.AppendString(append(dst, `,"tool_choice":{"type":"tool","name":`...), string(choice))
	}
	if o.serial {
		dst = append(dst, `,"disable_parallel_tool_use":true`...)
	}
	return append(dst, '}'), notes
}

// appendThinking keeps the budget below max_tokens, as the API demands; where fewer than its minimum of 1,024 tokens are left
// (a closing call), thinking is off for this call.
func appendThinking(dst []byte, o *options, limit int64) ([]byte, []string) {
	switch {
	case o.thinking != "":
		return append(append(dst, `,"thinking":`...), o.thinking...), nil
	case o.budget == 0:
		return dst, nil
	case limit <= 1024:
		return dst, []string{fmt.Sprintf("thinking is off: %d tokens of output leave no room for it", limit)}
	}
	var notes []string
	budget := o.budget
	if budget >= limit {
		budget = max(1024, limit/2)
		notes = []string{fmt.Sprintf("thinking_budget was lowered from %d to %d, below the %d tokens of output", o.budget, budget, limit)}
	}
	dst = strconv.AppendInt(append(dst, `,"thinking":{"type":"enabled","budget_tokens":`...), budget, 10)
	return append(dst, '}'), notes
}

// outputSchema is the subset of JSON Schema that the API takes for structured output and strict tools.
var outputSchema = &wire.Schema{
	Known: " $ref $defs definitions type anyOf allOf description title enum const properties additionalProperties required" +
		" items minItems format pattern ",
	Formats: " date-time time date duration email hostname uri ipv4 ipv6 uuid ",
	Closed:  true,
	AnyOf:   true,
}

// appendOutput appends output_config: the schema of the answer beside what the options say of it (effort).
func appendOutput(dst, schema []byte, o *options) ([]byte, []string, error) {
	if schema == nil {
		if o.output != "" {
			dst = append(append(dst, `,"output_config":`...), o.output...)
		}
		return dst, nil, nil
	}
	if !wire.Valid(schema) || !gjson.ParseBytes(schema).IsObject() {
		return nil, nil, fmt.Errorf("output schema: it is not a JSON object")
	}
	low, dropped := outputSchema.Lower(schema)
	var notes []string
	if len(dropped) > 0 {
		notes = []string{fmt.Sprintf("output schema: this API does not know %q; ronda checks them itself", dropped)}
	}
	dst = append(dst, `,"output_config":{`...)
	gjson.Parse(o.output).ForEach(func(k, v gjson.Result) bool {
		if k.Str != "format" {
			dst = append(append(append(append(dst, k.Raw...), ':'), v.Raw...), ',')
		}
		return true
	})
	dst = append(append(dst, `"format":{"type":"json_schema","schema":`...), low...)
	return append(dst, "}}"...), notes, nil
}

// options are what the agent file says for this wire, taken apart.
type options struct {
	betas    []string
	cache    string // JSON of cache_control, "" none
	thinking string // JSON
	budget   int64
	output   string // JSON of output_config
	server   []json.RawMessage
	serial   bool
	rest     map[string]any
}

const ephemeral = `{"type":"ephemeral"}`

var noOptions = &options{cache: ephemeral}

func readOptions(in map[string]any) (*options, error) {
	if len(in) == 0 {
		return noOptions, nil
	}
	o := &options{cache: ephemeral, rest: map[string]any{}}
	for name, v := range in {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("option %q: %w", name, err)
		}
		switch name {
		case "betas":
			err = json.Unmarshal(b, &o.betas)
		case "cache_control":
			if o.cache = string(b); o.cache == "false" || o.cache == "null" {
				o.cache = ""
			} else if o.cache == "true" {
				o.cache = ephemeral
			}
		case "thinking":
			o.thinking = string(b)
		case "thinking_budget":
			err = json.Unmarshal(b, &o.budget)
		case "output_config":
			o.output = string(b)
		case "server_tools":
			err = json.Unmarshal(b, &o.server)
		case "disable_parallel_tool_use":
			err = json.Unmarshal(b, &o.serial)
		default:
			o.rest[name] = v
		}
		if err != nil {
			return nil, fmt.Errorf("option %q: %w", name, err)
		}
	}
	return o, nil
}

// thinks reports whether the request turns thinking on.
func (o *options) thinks() bool {
	if o.thinking != "" {
		return gjson.Get(o.thinking, "type").Str != "disabled"
	}
	return o.budget > 0
}

// head keeps the encoded tools, which are the same at each call of a run.
type head struct {
	from   []model.Tool
	server []json.RawMessage
	bytes  []byte // ,"tools":[…] or nothing
	notes  []string
	done   bool
}

// tools encodes the declarations where they changed, and returns the notes on what it lowered then.
func (h *head) tools(tools []model.Tool, o *options) ([]string, error) {
	if h.done && slices.EqualFunc(h.from, tools, sameTool) && slices.EqualFunc(h.server, o.server, sameJSON) {
		return nil, nil
	}
	*h = head{from: slices.Clone(tools), server: o.server}
	if len(tools)+len(o.server) == 0 {
		h.done = true
		return nil, nil
	}
	dst := append([]byte(nil), `,"tools":[`...)
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = h.tool(dst, &tools[i]); err != nil {
			return nil, err
		}
	}
	for i, s := range o.server {
		if i+len(tools) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, s...)
	}
	h.bytes, h.done = append(dst, ']'), true
	return h.notes, nil
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

func sameTool(a, b model.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && bytes.Equal(a.Schema, b.Schema)
}

func (h *head) tool(dst []byte, t *model.Tool) ([]byte, error) {
	if t.Name == "" || len(t.Name) > 128 || wire.PlainID(t.Name, 128) != t.Name {
		return nil, fmt.Errorf("tool %q: Anthropic takes names of letters, digits, _ and -, at most 128; rename the tool", t.Name)
	}
	schema, err := h.schema(t)
	if err != nil {
		return nil, err
	}
	dst = wire.AppendString(append(dst, `{"name":`...), t.Name)
	if t.Description != "" {
		dst = wire.AppendString(append(dst, `,"description":`...), t.Description)
	}
	dst = append(append(dst, `,"input_schema":`...), schema...)
	if t.Strict {
		dst = append(dst, `,"strict":true`...)
	}
	return append(dst, '}'), nil
}

// schema makes the input schema one that the API takes: its type must be object, it must not be a choice at the top
// (anyOf, oneOf, allOf), and a strict tool has the subset of structured output.
func (h *head) schema(t *model.Tool) ([]byte, error) {
	s := t.Schema
	if len(s) == 0 {
		return []byte(`{"type":"object"}`), nil
	}
	root := gjson.ParseBytes(s)
	if !wire.Valid(s) || !root.IsObject() {
		return nil, fmt.Errorf("tool %q: its input schema is not a JSON object", t.Name)
	}
	if typ := root.Get("type"); typ.Exists() && typ.Str != "object" {
		return nil, fmt.Errorf("tool %q: Anthropic takes arguments that are an object, and the schema says %s", t.Name, typ.Raw)
	}
	if t.Strict {
		low, dropped := outputSchema.Lower(s)
		if len(dropped) > 0 {
			h.notes = append(h.notes, fmt.Sprintf("tool %q: strict schemas of this API do not know %q; ronda checks them itself", t.Name, dropped))
		}
		s, root = low, gjson.ParseBytes(low)
	}
	choice := root.Get("anyOf").Exists() || root.Get("oneOf").Exists() || root.Get("allOf").Exists()
	if root.Get("type").Exists() && !choice {
		return s, nil
	}
	out := []byte(`{"type":"object"`)
	root.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
		case "anyOf", "oneOf", "allOf":
			h.notes = append(h.notes, fmt.Sprintf("tool %q: %s at the top of the schema was left out: this API does not take it there; ronda checks it itself", t.Name, k.Str))
		default:
			out = append(append(append(append(out, ','), k.Raw...), ':'), v.Raw...)
		}
		return true
	})
	return append(out, '}'), nil
}

// refused is the error of a request that cannot be expressed on this wire; nothing was sent.
func refused(err error) *model.Error {
	return &model.Error{Class: loop.ClassFatal, Code: "request_not_expressible", Message: "anthropic: " + err.Error(), Err: err}
}
