package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openai/internal/codec"
	"github.com/ronda-go/ronda/model/wire"
)

// encrypted is what include asks for so that thoughts can go back without being stored at the provider.
const encrypted = "reasoning.encrypted_content"

// leastOutput is the least max_output_tokens that the API takes ("Expected a value >= 16"). What a response bills beyond a smaller cap
// is an overshoot like any other: kept, reported, and the end of the run.
const leastOutput = 16

// reserved are the members that the adapter sets itself.
func reserved(name string) bool {
	switch name {
	case "model", "input", "instructions", "previous_response_id", "conversation", "tools", "tool_choice", "stream",
		"stream_options", "max_output_tokens", "background":
		return true
	}
	return false
}

// head writes all of the body that stands before the items, which follow.
func (m *responses) head(req *model.Request, e *codec.Encoder, options map[string]any, stored bool) (b []byte, notes []string, err error) {
	declared, notes := e.Declared.Tools(req.Tools)
	b = append(make([]byte, 0, 512+len(req.System)+len(req.Extra)+len(declared)), `{"model":`...)
	b = wire.AppendString(b, m.info.Name)
	if req.Stream {
		b = append(b, `,"stream":true`...)
	}
	if req.System != "" || req.Extra != "" {
		// They do not carry over from the previous response.
		b = append(b, `,"instructions":`...)
		b = wire.AppendString(b, wire.Instructions(req.System, req.Extra))
	}
	if stored && req.Previous != "" && req.PreviousLen > 0 && req.PreviousLen < len(req.Messages) {
		b = append(b, `,"previous_response_id":`...)
		b = wire.AppendString(b, req.Previous)
	}
	b = append(b, declared...)
	if len(req.Tools) > 0 {
		b = choice(b, req.Choice)
	}
	if req.MaxOutput > 0 {
		if req.MaxOutput < leastOutput {
			notes = append(notes, fmt.Sprintf("max_output_tokens raised from %d to %d, the least that the API takes", req.MaxOutput, leastOutput))
		}
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, max(req.MaxOutput, leastOutput), 10)
	}
	if options, b, err = m.special(b, req, e, options, stored, &notes); err != nil {
		return nil, nil, err
	}
	if b, err = wire.AppendOptions(b, options, reserved); err != nil {
		return nil, nil, err
	}
	return append(b, `,"input":[`...), notes, nil
}

// special writes the members that the adapter and the options set together: store, include, and text (format and verbosity).
// It returns the options that are left.
func (m *responses) special(b []byte, req *model.Request, e *codec.Encoder, options map[string]any, stored bool, notes *[]string) (map[string]any, []byte, error) {
	rest := options
	for _, name := range []string{"store", "include", "text", "reasoning_effort"} {
		if _, ok := rest[name]; ok {
			rest = without(rest, "store", "include", "text", "reasoning_effort")
			break
		}
	}
	b = strconv.AppendBool(append(b, `,"store":`...), stored)
	include, err := list(options["include"])
	if err != nil {
		return nil, nil, fmt.Errorf("option include: %w", err)
	}
	if !stored && !m.plain.Load() && !slices.Contains(include, encrypted) {
		include = append(include, encrypted)
	}
	if len(include) > 0 {
		v, _ := json.Marshal(include)
		b = append(append(b, `,"include":`...), v...)
	}
	text, ok := options["text"].(map[string]any)
	if !ok && options["text"] != nil {
		return nil, nil, fmt.Errorf("option text: want an object, such as {verbosity: low}; have %T", options["text"])
	}
	if req.Output != nil {
		schema, strict, why := e.Declared.Output(req.Output)
		*notes = append(*notes, why...)
		text = with(text, "format", map[string]any{"type": "json_schema", "name": "answer", "schema": json.RawMessage(schema), "strict": strict})
	}
	if len(text) > 0 {
		v, err := json.Marshal(text)
		if err != nil {
			return nil, nil, fmt.Errorf("option text: %w", err)
		}
		b = append(append(b, `,"text":`...), v...)
	}
	if effort, ok := options["reasoning_effort"]; ok { // the name that Chat Completions has for it
		r, _ := rest["reasoning"].(map[string]any)
		rest = with(rest, "reasoning", with(r, "effort", effort))
	}
	return rest, b, nil
}

func without(m map[string]any, names ...string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}

func list(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []string:
		return slices.Clone(v), nil
	case []any:
		var out []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("want a list of names, have %v", x)
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, fmt.Errorf("want a list of names, have %T", v)
}

func choice(b []byte, c model.ToolChoice) []byte {
	switch c {
	case model.ChoiceAuto:
		return b
	case model.ChoiceNone, model.ChoiceRequired:
		return wire.AppendString(append(b, `,"tool_choice":`...), string(c))
	}
	b = append(b, `,"tool_choice":{"type":"function","name":`...)
	return append(wire.AppendString(b, string(c)), '}')
}
