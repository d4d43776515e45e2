package openaichat

import (
	"strconv"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openaichat/internal/codec"
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
func (m *chat) head(req *model.Request, e *codec.Encoder) (b []byte, notes []string, err error) {
	declared, notes := e.Declared.Tools(req.Tools)
	b = append(make([]byte, 0, 512+len(req.System)+len(req.Extra)+len(declared)), `{"model":`...)
	b = wire.AppendString(b, m.info.Name)
	if req.Stream {
		b = append(b, `,"stream":true`...)
		if !m.quirks.NoStreamOptions {
			b = append(b, `,"stream_options":{"include_usage":true}`...)
		}
	}
	b = append(b, declared...)
	if len(req.Tools) > 0 {
		b = choice(b, req.Choice)
	}
	if req.MaxOutput > 0 {
		b = wire.AppendString(append(b, ','), m.quirks.MaxTokens)
		b = strconv.AppendInt(append(b, ':'), req.MaxOutput, 10)
	}
	if req.Output != nil {
		schema, strict, more := e.Declared.Output(req.Output)
		notes = append(notes, more...)
		b = append(append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":`...), schema...)
		b = append(strconv.AppendBool(append(b, `,"strict":`...), strict), "}}"...)
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
