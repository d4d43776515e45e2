package gemini

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

// body is a request in parts: head, the contents of the cache, tail.
type body struct {
	parts [3][]byte
	notes []string
}

func (b *body) reader() *wire.Body { return wire.Splice(b.parts[:]...) }

// encode makes the body of a request. Google caches prompts by their beginning on its own, so nothing marks it.
func (a *adapter) encode(req *model.Request) (*body, error) {
	c := req.Cache
	if c == nil {
		c = &model.Cache{}
	}
	o, err := readOptions(req.Options)
	if err != nil {
		return nil, err
	}
	st, notes := a.messages(req, c)
	fresh, err := st.head.tools(req.Tools, o)
	if err != nil {
		return nil, err
	}
	b := &body{notes: append(notes, fresh...)}

	h := make([]byte, 0, 256+len(req.System)+len(req.Extra)+len(st.head.bytes))
	h = appendSystem(append(h, '{'), req)
	h = append(h, st.head.bytes...)
	b.parts[0] = append(h, `"contents":[`...)
	b.parts[1] = c.Bytes[:len(c.Bytes):len(c.Bytes)]

	t := append(make([]byte, 0, 256), ']')
	t = appendChoice(t, req)
	t, note, err := a.appendConfig(t, req, o)
	if err != nil {
		return nil, err
	}
	b.notes = append(b.notes, note...)
	if t, err = wire.AppendOptions(t, o.top, func(string) bool { return false }); err != nil {
		return nil, err
	}
	b.parts[2] = append(t, '}')
	return b, nil
}

func appendSystem(dst []byte, req *model.Request) []byte {
	if req.System == "" && req.Extra == "" {
		return dst
	}
	dst = append(dst, `"systemInstruction":{"parts":[`...)
	for i, text := range []string{req.System, req.Extra} {
		if text == "" {
			continue
		}
		if i == 1 && req.System != "" {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendString(append(dst, `{"text":`...), text), '}')
	}
	return append(dst, "]},"...)
}

// appendChoice appends toolConfig.
func appendChoice(dst []byte, req *model.Request) []byte {
	if len(req.Tools) == 0 {
		return dst
	}
	dst = append(dst, `,"toolConfig":{"functionCallingConfig":{"mode":`...)
	switch req.Choice {
	case model.ChoiceAuto:
		dst = append(dst, `"AUTO"`...)
	case model.ChoiceNone:
		dst = append(dst, `"NONE"`...)
	case model.ChoiceRequired:
		dst = append(dst, `"ANY"`...)
	default:
		dst = wire.AppendString(append(dst, `"ANY","allowedFunctionNames":[`...), string(req.Choice))
		dst = append(dst, ']')
	}
	return append(dst, "}}"...)
}

// jsonSchema is the subset of JSON Schema that the API documents for parametersJsonSchema and responseJsonSchema.
var jsonSchema = &wire.Schema{
	Known: " $id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf" +
		" oneOf properties additionalProperties required propertyOrdering ",
	Enum: true,
}

// appendConfig appends generationConfig.
func (a *adapter) appendConfig(dst []byte, req *model.Request, o *options) ([]byte, []string, error) {
	config := make([]byte, 0, 64)
	var notes []string
	if req.MaxOutput > 0 {
		config = strconv.AppendInt(append(config, `,"maxOutputTokens":`...), req.MaxOutput, 10)
	}
	if req.Output != nil {
		if !wire.Valid(req.Output) || !gjson.ParseBytes(req.Output).IsObject() {
			return nil, nil, fmt.Errorf("output schema: it is not a JSON object")
		}
		// Before Gemini 3 the API refuses a response type beside declared functions.
		if len(req.Tools) > 0 && generation(a.info.Name) < 3 {
			notes = append(notes, "output schema was not sent: this model does not take one while tools are declared; ronda checks the answer itself")
		} else {
			low, dropped := jsonSchema.Lower(req.Output)
			if len(dropped) > 0 {
				notes = append(notes, fmt.Sprintf("output schema: this API does not know %q; ronda checks them itself", dropped))
			}
			config = append(config, `,"responseMimeType":"application/json","responseJsonSchema":`...)
			config = append(config, low...)
		}
	}
	if o.thinking != "" {
		config = append(append(config, `,"thinkingConfig":`...), o.thinking...)
	}
	config, err := wire.AppendOptions(config, o.config, func(name string) bool {
		switch name {
		case "maxOutputTokens":
			return true
		case "responseMimeType", "responseJsonSchema", "responseSchema":
			return req.Output != nil
		case "candidateCount": // ronda reads one answer
			return true
		}
		return false
	})
	if err != nil {
		return nil, nil, err
	}
	if len(config) == 0 {
		return dst, notes, nil
	}
	config[0] = '{'
	dst = append(append(dst, `,"generationConfig":`...), config...)
	return append(dst, '}'), notes, nil
}

// options are what the agent file says for this wire, taken apart.
type options struct {
	thinking string // JSON of thinkingConfig
	server   []json.RawMessage
	config   map[string]any // members of generationConfig
	top      map[string]any // members of the request
}

var noOptions = &options{}

func readOptions(in map[string]any) (*options, error) {
	if len(in) == 0 {
		return noOptions, nil
	}
	o := &options{config: map[string]any{}, top: map[string]any{}}
	for name, v := range in {
		switch name {
		case "safetySettings", "cachedContent", "labels", "serviceTier", "modelArmorConfig":
			o.top[name] = v
		case "thinking_budget", "thinkingConfig", "server_tools":
			b, err := json.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("option %q: %w", name, err)
			}
			switch name {
			case "thinking_budget":
				var n int64
				if err = json.Unmarshal(b, &n); err == nil && o.thinking == "" {
					o.thinking = fmt.Sprintf(`{"includeThoughts":true,"thinkingBudget":%d}`, n)
				}
			case "thinkingConfig":
				o.thinking = string(b)
			case "server_tools":
				err = json.Unmarshal(b, &o.server)
			}
			if err != nil {
				return nil, fmt.Errorf("option %q: %w", name, err)
			}
		case "contents", "systemInstruction", "tools", "toolConfig", "generationConfig":
			return nil, fmt.Errorf("option %q: the adapter sets it itself; give the members of generationConfig by their names", name)
		default:
			o.config[name] = v
		}
	}
	return o, nil
}

// head keeps the encoded tools, which are the same at each call of a run.
type head struct {
	from   []model.Tool
	server []json.RawMessage
	bytes  []byte // "tools":[…], or nothing
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
	dst := append([]byte(nil), `"tools":[`...)
	if len(tools) > 0 {
		dst = append(dst, `{"functionDeclarations":[`...)
		for i := range tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = h.tool(dst, &tools[i]); err != nil {
				return nil, err
			}
		}
		dst = append(dst, "]}"...)
	}
	for i, s := range o.server {
		if i+len(tools) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, s...)
	}
	h.bytes, h.done = append(dst, "],"...), true
	return h.notes, nil
}

func sameJSON(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

func sameTool(a, b model.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && bytes.Equal(a.Schema, b.Schema)
}

// tool appends a declaration. A tool without arguments declares no parameters: the API refuses objects without properties.
func (h *head) tool(dst []byte, t *model.Tool) ([]byte, error) {
	if !nameOK(t.Name) {
		return nil, fmt.Errorf("tool %q: Gemini takes names that begin with a letter or _, of letters, digits, _ . : and -, at most 64; rename the tool", t.Name)
	}
	dst = wire.AppendString(append(dst, `{"name":`...), t.Name)
	if t.Description != "" {
		dst = wire.AppendString(append(dst, `,"description":`...), t.Description)
	}
	if len(t.Schema) == 0 {
		return append(dst, '}'), nil
	}
	root := gjson.ParseBytes(t.Schema)
	if !wire.Valid(t.Schema) || !root.IsObject() {
		return nil, fmt.Errorf("tool %q: its input schema is not a JSON object", t.Name)
	}
	if typ := root.Get("type"); typ.Exists() && typ.Str != "object" {
		return nil, fmt.Errorf("tool %q: Gemini takes arguments that are an object, and the schema says %s", t.Name, typ.Raw)
	}
	low, dropped := jsonSchema.Lower(t.Schema)
	if len(dropped) > 0 {
		h.notes = append(h.notes, fmt.Sprintf("tool %q: this API does not know %q in schemas; ronda checks them itself", t.Name, dropped))
	}
	if empty(gjson.ParseBytes(low)) {
		return append(dst, '}'), nil
	}
	return append(append(append(dst, `,"parametersJsonSchema":`...), low...), '}'), nil
}

// empty reports whether a schema allows no arguments, or says nothing of them.
func empty(s gjson.Result) bool {
	props := s.Get("properties")
	return (!props.Exists() || props.Raw == "{}") && !s.Get("anyOf").Exists() && !s.Get("oneOf").Exists() &&
		!s.Get("$ref").Exists() && !s.Get("additionalProperties").IsObject()
}

func nameOK(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '.' || c == ':' || c == '-')) {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}

// refused is the error of a request that cannot be expressed on this wire; nothing was sent.
func refused(err error) *model.Error {
	return &model.Error{Class: loop.ClassFatal, Code: "request_not_expressible", Message: "gemini: " + err.Error(), Err: err}
}
