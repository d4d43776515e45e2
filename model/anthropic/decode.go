package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// decoder puts a response together, from one body or from events. It is for one response.
type decoder struct {
	sink     func(model.Delta)
	parts    []*part
	open     map[int]*part // by the index on the wire
	id       string
	model    string
	reason   string
	detail   string
	ended    bool // message_stop, or a whole body
	counts   counts
	reported bool // usage came
}

// part is a block under way.
type part struct {
	b       loop.Block
	n       int // index in the response, as far as it is known while it streams
	text    []byte
	args    []byte
	hasArgs bool // pieces of arguments came, be they empty
	held    wire.Held
	sign    []byte
	cites   []byte // elements of the array of citations
	raw     string // opaque: the block as it began
	told    bool   // the first delta of a call was given on
}

func newDecoder(sink func(model.Delta)) *decoder { return &decoder{sink: sink} }

// whole decodes a response that came as one body.
func (d *decoder) whole(b []byte) error {
	if !wire.Valid(b) {
		return broken("the response is no JSON", b)
	}
	m := gjson.ParseBytes(b)
	if m.Get("type").Str == "error" {
		return inStream(b)
	}
	if !m.Get("content").IsArray() {
		return broken("the response has no content", b)
	}
	d.begin(m)
	d.ended = true
	return nil
}

// broken is the error of a response that cannot be read. It may have been billed; another attempt may be whole.
func broken(what string, b []byte) *model.Error {
	return &model.Error{
		Class: loop.ClassTransient, Lost: true, Code: "unreadable_response",
		Message: fmt.Sprintf("%s: %s: %.200q", doing, what, b),
	}
}

// begin takes what a message says of itself: all of it in a whole response, its beginning in a stream. In a stream that goes on
// after its own tools it comes again, with blocks of its own at times.
func (d *decoder) begin(m gjson.Result) {
	m.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			d.id = strings.Clone(v.Str)
		case "model":
			d.model = strings.Clone(v.Str)
		case "content":
			v.ForEach(func(_, block gjson.Result) bool {
				d.start(block)
				return true
			})
		case "usage":
			d.counts = counts{}
			d.count(v)
		default:
			d.stop(key.Str, v)
		}
		return true
	})
}

// stop takes the members that say why the message ended.
func (d *decoder) stop(name string, v gjson.Result) {
	switch name {
	case "stop_reason":
		if v.Str != "" {
			d.reason = strings.Clone(v.Str)
		}
	case "stop_details":
		if v.IsObject() {
			d.detail = v.Get("explanation").String()
			if c := v.Get("category").Str; c != "" {
				d.detail = strings.TrimPrefix(c+": "+d.detail, ": ")
			}
			d.detail = strings.Clone(strings.TrimSuffix(d.detail, ": "))
		}
	}
}

// start adds a block as it stands in a message, or as it begins in a stream.
func (d *decoder) start(v gjson.Result) *part {
	p := &part{n: len(d.parts), b: loop.Block{Wire: wireName}}
	d.parts = append(d.parts, p)
	switch v.Get("type").Str {
	case "text":
		p.b.Kind = loop.BlockText
		p.text = append(p.text, v.Get("text").String()...)
		p.b.Raw = members(v, "type", "text")
	case "thinking":
		p.b.Kind = loop.BlockThought
		p.text = append(p.text, v.Get("thinking").String()...)
		p.b.Raw = members(v, "type", "thinking")
	case "tool_use":
		p.b.Kind = loop.BlockCall
		p.b.ID, p.b.Name = strings.Clone(v.Get("id").String()), strings.Clone(v.Get("name").String())
		p.args = append(p.args, v.Get("input").Raw...)
		p.b.Raw = members(v, "type", "id", "name", "input")
	default:
		p.b.Kind = loop.BlockOpaque
		p.raw = strings.Clone(v.Raw)
	}
	return p
}

// members collects the members of a block that the loop has no field for, as they were received. Those that say nothing (null,
// an empty list, an empty string) are left out: a stream begins blocks with them.
func members(v gjson.Result, known ...string) json.RawMessage {
	var out []byte
	v.ForEach(func(key, value gjson.Result) bool {
		for _, k := range known {
			if key.Str == k {
				return true
			}
		}
		switch value.Raw {
		case "null", "[]", `""`:
			return true
		}
		out = appendMember(out, key.Raw, value.Raw)
		return true
	})
	if out == nil {
		return nil
	}
	return append(out, '}')
}

func appendMember(dst []byte, key, value string) []byte {
	if dst == nil {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	return append(append(append(dst, key...), ':'), value...)
}

// finished makes the block that p stands for; ok is false for a text that never came.
func (p *part) finished() (b loop.Block, ok bool) {
	b = p.b
	switch b.Kind {
	case loop.BlockText:
		b.Text = string(p.text) + p.held.Rest()
		if len(p.cites) > 0 {
			b.Raw = json.RawMessage(`{"citations":[` + string(p.cites) + `]}`)
		}
		return b, b.Text != "" || b.Raw != nil
	case loop.BlockThought:
		b.Text = string(p.text) + p.held.Rest()
		if len(p.sign) > 0 {
			b.Raw = append(wire.AppendString([]byte(`{"signature":`), string(p.sign)), '}')
		}
		return b, b.Text != "" || b.Raw != nil
	case loop.BlockCall:
		if b.Args = string(p.args); strings.TrimSpace(b.Args) == "" {
			b.Args = "{}" // a call without arguments streams none, or one empty piece
		}
		return b, true
	}
	raw := p.raw
	if p.hasArgs {
		args := p.args
		if !wire.Valid(args) {
			args = []byte("{}")
		}
		if set, err := sjson.SetRaw(raw, "input", string(args)); err == nil {
			raw = set
		}
	}
	b.Raw = json.RawMessage(raw)
	return b, true
}

// response is the whole response, or the error of a stream that has no end.
func (d *decoder) response() (*model.Response, error) {
	if !d.ended && d.reason == "" {
		return nil, wire.Ended(doing)
	}
	r := &model.Response{Model: d.model, ID: d.id, Usage: d.usage(), Detail: d.detail}
	calls := false
	if len(d.parts) > 0 {
		r.Blocks = make([]loop.Block, 0, len(d.parts))
	}
	for _, p := range d.parts {
		if b, ok := p.finished(); ok {
			r.Blocks = append(r.Blocks, b)
			calls = calls || b.Kind == loop.BlockCall
		}
	}
	r.Finish = finish(d.reason, calls)
	if r.Detail == "" && (r.Finish != loop.FinishStop && r.Finish != loop.FinishCalls || !known(d.reason)) {
		r.Detail = d.reason
	}
	return r, nil
}

// finish maps stop_reason. A turn that asks for client tools is one, whatever else it says, save that it was cut or refused.
func finish(reason string, calls bool) loop.Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return loop.FinishLength
	case "refusal":
		return loop.FinishFilter
	}
	switch {
	case calls:
		return loop.FinishCalls
	case reason == "pause_turn" || reason == "compaction":
		return loop.FinishPause
	}
	return loop.FinishStop
}

func known(reason string) bool {
	switch reason {
	case "", "end_turn", "stop_sequence", "tool_use":
		return true
	}
	return false
}

// counts is the usage as the API reports it, in a stream more than once: what came last holds.
type counts struct {
	input, read, write, output, reasoning int64
	extra                                 loop.Usage // of iterations that the totals leave out
}

// count takes a usage object; a gateway sends null for what it does not know yet.
func (d *decoder) count(v gjson.Result) {
	c := &d.counts
	v.ForEach(func(key, n gjson.Result) bool {
		if n.Type == gjson.Null {
			return true
		}
		switch key.Str {
		case "input_tokens":
			c.input = max(0, n.Int())
		case "cache_read_input_tokens":
			c.read = max(0, n.Int())
		case "cache_creation_input_tokens":
			c.write = max(0, n.Int())
		case "output_tokens":
			c.output = max(0, n.Int())
		case "output_tokens_details":
			c.reasoning = max(0, n.Get("thinking_tokens").Int())
		case "iterations":
			c.extra = iterations(n)
		default:
			return true
		}
		d.reported = true
		return true
	})
}

// iterations sums the server's own calls that are billed and not part of the totals: compaction and advisors
// (https://platform.claude.com/docs/en/build-with-claude/compaction, "understanding usage").
func iterations(v gjson.Result) (sum loop.Usage) {
	v.ForEach(func(_, it gjson.Result) bool {
		switch it.Get("type").Str {
		case "compaction", "advisor_message":
			sum = sum.Add(loop.Usage{
				Input: it.Get("input_tokens").Int(), CacheRead: it.Get("cache_read_input_tokens").Int(),
				CacheWrite: it.Get("cache_creation_input_tokens").Int(), Output: it.Get("output_tokens").Int(),
			})
		}
		return true
	})
	return sum
}

// usage is what was reported so far, in disjoint parts: input_tokens does not count what the cache read or wrote. Nil where
// nothing was reported.
func (d *decoder) usage() *loop.Usage {
	if !d.reported {
		return nil
	}
	c := d.counts
	u := loop.Usage{Input: c.input, CacheRead: c.read, CacheWrite: c.write, Output: c.output, Reasoning: c.reasoning}.Add(c.extra)
	return &u
}
