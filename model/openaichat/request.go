package openaichat

import (
	"strconv"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaisdk"
	"github.com/ronda-go/ronda/model/wire"
)

// reserved are the members that the adapter sets itself.
func reserved(name string) bool {
	switch name {
	case "model", "messages", "tools", "tool_choice", "stream", "stream_options", "response_format", "max_tokens", "max_completion_tokens", "n":
		return true
	}
	return false
}

// head writes all of the body that stands before the transcript: the members in a fixed order, then the list of messages up to
// and with the instructions. The transcript follows, so that nothing before it has to be known when a message is encoded.
func (m *chat) head(req *model.Request) (b []byte, notes []string, err error) {
	size := 512 + len(req.System) + len(req.Extra)
	for i := range req.Tools {
		size += len(req.Tools[i].Schema) + len(req.Tools[i].Description) + 128
	}
	b = append(make([]byte, 0, size), `{"model":`...)
	b = wire.AppendString(b, m.info.Name)
	if req.Stream {
		b = append(b, `,"stream":true`...)
		if !m.quirks.NoStreamOptions {
			b = append(b, `,"stream_options":{"include_usage":true}`...)
		}
	}
	b, notes = tools(b, req.Tools)
	if len(req.Tools) > 0 {
		b = choice(b, req.Choice)
	}
	if req.MaxOutput > 0 {
		b = wire.AppendString(append(b, ','), m.quirks.MaxTokens)
		b = strconv.AppendInt(append(b, ':'), req.MaxOutput, 10)
	}
	if req.Output != nil {
		var more []string
		b, more = output(b, req.Output)
		notes = append(notes, more...)
	}
	if b, err = wire.AppendOptions(b, m.client.Options(req.Options), reserved); err != nil {
		return nil, nil, err
	}
	b = append(b, `,"messages":[`...)
	if req.System != "" || req.Extra != "" {
		b = append(b, `{"role":`...)
		b = wire.AppendString(b, m.quirks.SystemRole)
		b = append(b, `,"content":`...)
		b = wire.AppendString(b, wire.Instructions(req.System, req.Extra))
		b = append(b, '}')
		if len(req.Messages) > 0 {
			b = append(b, ',')
		}
	}
	return b, notes, nil
}

func tools(b []byte, tools []model.Tool) ([]byte, []string) {
	if len(tools) == 0 {
		return b, nil
	}
	var notes []string
	b = append(b, `,"tools":[`...)
	for i := range tools {
		t := &tools[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = wire.AppendString(b, t.Name)
		if t.Description != "" {
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, t.Description)
		}
		schema, strict := t.Schema, false
		if t.Strict {
			lowered, why, ok := openaisdk.Strict(t.Schema)
			for _, w := range why {
				notes = append(notes, "tool "+t.Name+": "+w)
			}
			if strict = ok; ok {
				schema = lowered
			}
		}
		b = append(b, `,"parameters":`...)
		b = append(b, schema...)
		if strict {
			b = append(b, `,"strict":true`...)
		}
		b = append(b, "}}"...)
	}
	return append(b, ']'), notes
}

func choice(b []byte, c model.ToolChoice) []byte {
	switch c {
	case model.ChoiceAuto:
		return b
	case model.ChoiceNone, model.ChoiceRequired:
		return wire.AppendString(append(b, `,"tool_choice":`...), string(c))
	}
	b = append(b, `,"tool_choice":{"type":"function","function":{"name":`...)
	return append(wire.AppendString(b, string(c)), "}}"...)
}

func output(b []byte, schema []byte) ([]byte, []string) {
	lowered, notes, ok := openaisdk.Strict(schema)
	for i := range notes {
		notes[i] = "output: " + notes[i]
	}
	b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":`...)
	if ok {
		b = append(append(b, lowered...), `,"strict":true`...)
	} else {
		b = append(b, schema...)
	}
	return append(b, "}}"...), notes
}
