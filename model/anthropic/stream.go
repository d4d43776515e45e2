package anthropic

import (
	"bytes"
	"io"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// stream decodes an event stream to its end. A transport that breaks after message_stop changes nothing.
func (d *decoder) stream(r io.Reader) error {
	err := wire.Events(r, func(_, data []byte) error { return d.event(data) })
	if err != nil && d.ended {
		if _, ok := err.(*model.Error); !ok {
			return nil
		}
	}
	return err
}

// event takes one event. Its type is read from the data: gateways do not always name events.
func (d *decoder) event(data []byte) error {
	if len(data) == 0 || bytes.Equal(data, []byte("[DONE]")) {
		return nil
	}
	if !wire.Valid(data) {
		return broken("an event is no JSON", data)
	}
	var typ, delta, block, message, usage gjson.Result
	index := 0
	e := gjson.ParseBytes(data)
	e.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			typ = v
		case "index":
			index = int(v.Int())
		case "delta":
			delta = v
		case "content_block":
			block = v
		case "message":
			message = v
		case "usage":
			usage = v
		}
		return true
	})
	switch typ.Str {
	case "content_block_delta":
		if p := d.open[index]; p != nil {
			d.delta(p, delta)
		}
	case "content_block_start":
		if d.open == nil {
			d.open = map[int]*part{}
		}
		p := d.start(block)
		d.open[index] = p
		d.begun(p)
	case "content_block_stop":
		delete(d.open, index)
	case "message_start":
		clear(d.open) // indexes start again
		d.begin(message)
	case "message_delta":
		delta.ForEach(func(key, v gjson.Result) bool {
			d.stop(key.Str, v)
			return true
		})
		d.count(usage)
	case "message_stop":
		d.ended = true
	case "error":
		return inStream(data)
	}
	return nil
}

// begun gives on what a block began with. The arguments of a call begin as {} in a stream, which is no argument yet.
func (d *decoder) begun(p *part) {
	switch p.b.Kind {
	case loop.BlockText:
		d.tell(model.Text, p, string(p.text))
	case loop.BlockThought:
		d.tell(model.Thought, p, string(p.text))
	case loop.BlockCall:
		if s := string(p.args); strings.TrimSpace(s) == "{}" {
			p.args = p.args[:0]
		}
		d.tellCall(p, string(p.args))
	}
}

// delta adds a piece to a block.
func (d *decoder) delta(p *part, v gjson.Result) {
	typ, value := "", gjson.Result{}
	v.ForEach(func(key, x gjson.Result) bool {
		if key.Str == "type" {
			typ = x.Str
		} else {
			value = x
		}
		return true
	})
	switch typ {
	case "text_delta":
		s := p.held.Push(value.Str)
		p.text = append(p.text, s...)
		d.tell(model.Text, p, s)
	case "thinking_delta":
		s := p.held.Push(value.Str)
		p.text = append(p.text, s...)
		d.tell(model.Thought, p, s)
	case "input_json_delta":
		p.hasArgs = true
		p.args = append(p.args, value.Str...)
		if p.b.Kind == loop.BlockCall && value.Str != "" {
			d.tellCall(p, value.Str)
		}
	case "signature_delta":
		p.sign = append(p.sign, value.Str...)
	case "citations_delta":
		if len(p.cites) > 0 {
			p.cites = append(p.cites, ',')
		}
		p.cites = append(p.cites, value.Raw...)
	default:
		p.patch(v)
	}
}

// patch applies a delta that the loop does not understand to an opaque block: texts are added to the member of the same name,
// anything else replaces it (compaction_delta brings the content in this way).
func (p *part) patch(v gjson.Result) {
	if p.b.Kind != loop.BlockOpaque {
		return
	}
	v.ForEach(func(key, x gjson.Result) bool {
		if key.Str == "type" || key.Str == "" || strings.ContainsAny(key.Str, `.*?|#@\:!{}[]()=<>%"~`) {
			return true
		}
		raw := x.Raw
		if old := gjson.Get(p.raw, key.Str); old.Type == gjson.String && x.Type == gjson.String {
			raw = string(wire.AppendString(nil, old.Str+x.Str))
		}
		if set, err := sjson.SetRaw(p.raw, key.Str, raw); err == nil {
			p.raw = set
		}
		return true
	})
}

func (d *decoder) tell(c model.Channel, p *part, s string) {
	if d.sink != nil && s != "" {
		d.sink(model.Delta{Channel: c, Block: p.n, Text: s})
	}
}

// tellCall gives a piece of arguments on; the first names the call.
func (d *decoder) tellCall(p *part, s string) {
	if d.sink == nil {
		return
	}
	out := model.Delta{Channel: model.Arguments, Block: p.n, Text: s}
	if !p.told {
		p.told = true
		out.Name, out.ID = p.b.Name, p.b.ID
	}
	d.sink(out)
}
