package codec

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/wire"
)

// Response is what was read: a response, or the error that came instead of one. Stream says that it came as a stream, doing what
// was being done, for the error.
func (a *Answer) Response(stream bool, doing string) (*model.Response, *model.Error) {
	if a.failed != nil {
		if r, ok := openaiwire.Refused(a.failed); ok {
			r.Blocks, r.Usage, r.Model, r.ID = a.blocks(), a.usage, a.model, a.id
			return r, nil
		}
		if a.usage != nil {
			a.failed.Usage, a.failed.Lost = a.usage, false
		}
		return nil, a.failed
	}
	switch {
	case stream && !a.done && a.finish == "":
		return nil, wire.Ended(doing)
	case a.finish == "insufficient_system_resource": // DeepSeek: generation was broken off
		return nil, &model.Error{Class: loop.ClassTransient, Code: a.finish, Usage: a.usage, Lost: a.usage == nil,
			Message: doing + ": the provider broke off for want of resources"}
	case !stream && a.finish == "" && a.empty():
		return nil, &model.Error{Class: loop.ClassTransient, Code: "no_choice", Usage: a.usage, Lost: a.usage == nil,
			Message: doing + ": it holds no choice"}
	}
	return a.response(), nil
}

var done = []byte("[DONE]")

// Event reads a whole body or the data of one event; it returns wire.ErrStop at the end of a stream.
func (a *Answer) Event(name, data []byte) error {
	if bytes.Equal(bytes.TrimSpace(data), done) {
		a.done = true
		return wire.ErrStop
	}
	if !wire.Valid(data) {
		return openaiwire.NoJSON(data)
	}
	v := gjson.ParseBytes(data)
	if !a.body(v) && a.failed == nil && (string(name) == "error" || openaiwire.IsError(v)) {
		a.failed = openaiwire.InBody(v)
	}
	if a.failed != nil {
		return wire.ErrStop
	}
	return nil
}

func (a *Answer) empty() bool {
	return len(a.members)+len(a.parts)+len(a.calls) == 0 && a.refusal.b.Len() == 0
}

func (a *Answer) response() *model.Response {
	r := &model.Response{Blocks: a.blocks(), Finish: finish(a.finish), Usage: a.usage, Model: a.model, ID: a.id}
	switch {
	case a.refusal.b.Len() > 0:
		r.Finish, r.Detail = loop.FinishFilter, a.refusal.String()
	case r.Finish == loop.FinishFilter:
		r.Detail = a.finish
	case r.Finish == loop.FinishStop && len(a.calls) > 0:
		r.Finish = loop.FinishCalls // a named choice, and servers that always say stop
	case r.Finish == loop.FinishCalls && len(a.calls) == 0:
		r.Finish = loop.FinishStop
	}
	return r
}

// finish maps the words of OpenAI and its likes. A word that nobody knows is an ordinary end: the server did send an end.
func finish(s string) loop.Finish {
	switch strings.ToLower(s) {
	case "tool_calls", "function_call", "tool_use":
		return loop.FinishCalls
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return loop.FinishLength
	case "content_filter", "safety", "refusal", "sensitive":
		return loop.FinishFilter
	}
	return loop.FinishStop
}

// blocks are the response in the order in which it goes back.
func (a *Answer) blocks() []loop.Block {
	if a.empty() && len(a.extra) == 0 {
		return nil
	}
	bs := make([]loop.Block, 0, 1+len(a.parts)+1+len(a.calls))
	if len(a.members) > 0 {
		bs = append(bs, loop.Block{Kind: loop.BlockThought, Text: a.thought.String(), Wire: Wire, Raw: a.thoughtMembers()})
	}
	for _, p := range a.parts {
		b := loop.Block{Kind: p.kind, Text: p.text.String(), Media: p.media}
		if p.kind != loop.BlockText {
			b.Wire, b.Raw = Wire, append([]byte(`{"part":`), p.raw...)
			if p.kind == loop.BlockThought {
				b.Raw = object(`{"part":{`, p.raw, "}")
			} else {
				b.Raw = append(b.Raw, '}')
			}
		}
		bs = append(bs, b)
	}
	if a.refusal.b.Len() > 0 {
		raw := wire.AppendString([]byte(`,"refusal":`), a.refusal.String())
		bs = append(bs, loop.Block{Kind: loop.BlockOpaque, Wire: Wire, Raw: object("{", raw, "")})
	}
	if len(a.extra) > 0 {
		bs = append(bs, loop.Block{Kind: loop.BlockOpaque, Wire: Wire, Raw: object("{", a.extra, "")})
	}
	for _, c := range a.calls {
		bs = append(bs, c.block())
	}
	return bs
}

// object makes an object of members that are written as ,"name":value.
func object(open string, members []byte, end string) []byte {
	b := append([]byte(open), members[min(1, len(members)):]...)
	return append(append(b, '}'), end...)
}

// thoughtMembers names the members in which the thought came; null stands for its text. Where reasoning_details came, reasoning
// says nothing that they do not say and stays away (OpenRouter takes one of them); reasoning_content does not, since servers that
// put a gateway's details beside it (Avian) still look there.
func (a *Answer) thoughtMembers() []byte {
	b := []byte{'{'}
	for _, name := range a.members {
		if name == detailsMember && len(a.details) == 0 || name == "reasoning" && len(a.details) > 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(wire.AppendString(b, name), ':')
		if name != detailsMember {
			b = append(b, "null"...)
			continue
		}
		b = append(b, '[')
		for i, d := range a.details {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.append(b)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// block is the call. Arguments that are no object but mean none ("" and null, which some models write for a tool without
// arguments) become {}; null is kept, so that the call goes back as it came.
func (c *call) block() loop.Block {
	b := loop.Block{Kind: loop.BlockCall, ID: c.id, Name: c.name, Args: c.args.String(), Wire: Wire}
	raw := c.raw
	switch strings.TrimSpace(b.Args) {
	case "":
		b.Args = "{}"
	case "null":
		raw = wire.AppendString(append(raw, `,"arguments":`...), b.Args)
		b.Args = "{}"
	}
	if len(raw) > 0 {
		b.Raw = object("{", raw, "")
	}
	return b
}
