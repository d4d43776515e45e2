package codec

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/wire"
)

// Answer gathers one response. A whole message and the deltas of a stream go the same way, so both yield the same value.
type Answer struct {
	Sink func(model.Delta) // nil: nobody listens

	id, model string
	finish    string
	done      bool // the end marker of a stream was seen
	whole     bool // a message, no deltas
	usage     *loop.Usage
	failed    *model.Error

	thought text     // of the members reasoning, reasoning_content and reasoning_details
	members []string // those of them that came, in order
	details []*detail
	parts   []*part // the content
	calls   []*call
	refusal text
	extra   []byte // members of the message that go back unchanged, as ,"name":value
}

// text is a text that grows by pieces which may end within a character.
type text struct {
	b    strings.Builder
	held wire.Held
}

// add takes a piece and returns what of it is whole.
func (t *text) add(s string) string {
	s = t.held.Push(s)
	t.b.WriteString(s)
	return s
}

func (t *text) String() string {
	t.b.WriteString(t.held.Rest())
	return t.b.String()
}

// part is a run of text, a thought among the text (Mistral), a medium, or something unknown that is kept as it is.
type part struct {
	kind  loop.BlockKind
	text  text
	raw   []byte // further members of a thought as ,"name":value; the whole part of an unknown one
	media *loop.Media
}

type call struct {
	index int64 // -1: none was given
	id    string
	name  string
	args  text
	raw   []byte // further members, as ,"name":value
	said  bool   // its first delta was given on
}

// body reads a whole response or one event of a stream; the members of both are the same save for message and delta. It reports
// whether there were choices, be it none of them.
func (a *Answer) body(v gjson.Result) (choices bool) {
	v.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "id":
			a.id = keep(a.id, v.Str)
		case "model":
			a.model = keep(a.model, v.Str)
		case "choices":
			choices = true
			v.ForEach(func(_, c gjson.Result) bool {
				a.choice(c)
				return true
			})
		case "usage":
			a.setUsage(v)
		case "x_groq":
			if a.usage == nil {
				a.setUsage(v.Get("usage"))
			}
		case "error":
			if v.Type != gjson.Null {
				a.failed = openaiwire.InBody(v)
			}
		}
		return true
	})
	return choices
}

// keep takes the first value that is there, without keeping the event alive that it came in.
func keep(have, v string) string {
	if have != "" || v == "" {
		return have
	}
	return strings.Clone(v)
}

func (a *Answer) setUsage(v gjson.Result) {
	if u := openaiwire.ChatUsage(v); u != nil {
		a.usage = u
	}
}

// choice reads one choice. Only the first counts: more are never asked for.
func (a *Answer) choice(c gjson.Result) {
	if c.Get("index").Int() != 0 {
		return
	}
	c.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "message":
			a.whole = true // each call of it is one, whatever its id
			a.message(v)
		case "delta":
			a.message(v)
		case "finish_reason":
			if v.Type == gjson.String && v.Str != "" {
				a.finish = strings.Clone(v.Str)
			}
		case "usage": // Moonshot
			a.setUsage(v)
		case "error": // OpenRouter
			if v.Type != gjson.Null {
				a.failed = openaiwire.InBody(v)
			}
		}
		return true
	})
}

func (a *Answer) message(m gjson.Result) {
	m.ForEach(func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch k.Str {
		case "content":
			a.content(v)
		case "reasoning", "reasoning_content":
			a.reasoning(k.Str, v)
		case "reasoning_details":
			a.addDetails(v)
		case "tool_calls":
			v.ForEach(func(_, c gjson.Result) bool {
				a.call(c)
				return true
			})
		case "function_call": // before tools there were functions
			a.function(a.slot(0, "", v.Get("name").Str), v)
		case "refusal":
			a.refusal.add(v.Str)
		case "extra_content": // Google: the signature of a thought
			a.extra = append(append(a.extra, `,"extra_content":`...), v.Raw...)
		}
		return true
	})
}

func (a *Answer) emit(d model.Delta) {
	if a.Sink != nil && d.Text+d.Name != "" {
		a.Sink(d)
	}
}

func (a *Answer) content(v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		a.addText(v.Str)
	case v.IsArray():
		v.ForEach(func(_, p gjson.Result) bool {
			a.part(p)
			return true
		})
	default: // Cloudflare: the JSON that was asked for, not as a string
		a.addText(v.Raw)
	}
}

func (a *Answer) addText(s string) {
	if s == "" {
		return
	}
	p := a.last(loop.BlockText)
	if t := p.text.add(s); a.Sink != nil {
		a.emit(model.Delta{Channel: model.Text, Block: a.lead() + len(a.parts) - 1, Text: t})
	}
}

// last is the part at the end if it is of that kind, else a new one.
func (a *Answer) last(kind loop.BlockKind) *part {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind {
		return a.parts[n-1]
	}
	p := &part{kind: kind}
	a.parts = append(a.parts, p)
	return p
}

// lead is the number of blocks before the content.
func (a *Answer) lead() int {
	if len(a.members) > 0 {
		return 1
	}
	return 0
}

func (a *Answer) part(v gjson.Result) {
	switch v.Get("type").Str {
	case "text":
		a.addText(v.Get("text").Str)
	case "thinking":
		a.thinking(v)
	case "image_url":
		p := &part{kind: loop.BlockMedia, raw: []byte(v.Raw)}
		p.media = mediaAt(v.Get("image_url.url").Str)
		a.parts = append(a.parts, p)
	default:
		a.parts = append(a.parts, &part{kind: loop.BlockOpaque, raw: []byte(v.Raw)})
	}
}

func mediaAt(url string) *loop.Media {
	if m, ok := openaiwire.FromDataURL(url); ok {
		return m
	}
	return &loop.Media{MIME: "image/*", URL: strings.Clone(url)}
}

// thinking reads Mistral's part for thoughts.
func (a *Answer) thinking(v gjson.Result) {
	p := a.last(loop.BlockThought)
	v.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
		case "thinking":
			if v.Type == gjson.String {
				a.think(p, v.Str)
				return true
			}
			v.ForEach(func(_, t gjson.Result) bool {
				a.think(p, t.Get("text").Str)
				return true
			})
		default:
			p.raw = append(append(append(append(p.raw, ','), k.Raw...), ':'), v.Raw...)
		}
		return true
	})
}

func (a *Answer) think(p *part, s string) {
	t := p.text.add(s)
	a.emit(model.Delta{Channel: model.Thought, Block: a.lead() + len(a.parts) - 1, Text: t})
}

// call reads a tool call or a piece of one.
func (a *Answer) call(v gjson.Result) {
	index, id, f := int64(-1), "", gjson.Result{}
	var rest []byte
	v.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "index":
			if v.Type == gjson.Number {
				index = v.Int()
			}
		case "id":
			id = v.Str
		case "type":
		case "function":
			f = v
		default:
			if v.Type != gjson.Null {
				rest = append(append(append(append(rest, ','), k.Raw...), ':'), v.Raw...)
			}
		}
		return true
	})
	c := a.slot(index, id, f.Get("name").Str)
	c.raw = append(c.raw, rest...)
	a.function(c, f)
}

// slot finds the call that a piece belongs to. Servers differ: an index for each call (OpenAI), no index and each call at once
// (Mistral), always the index 0 with another id (Google) or with none at all, the id and name on each piece (some gateways).
func (a *Answer) slot(index int64, id, name string) *call {
	var c *call
	for i := len(a.calls) - 1; i >= 0; i-- {
		if index < 0 || a.calls[i].index == index {
			c = a.calls[i]
			break
		}
	}
	another := c != nil && name != "" && c.name != "" &&
		(id != "" && c.id != "" && id != c.id || id == "" && c.id == "" && wire.Valid([]byte(c.args.b.String())))
	if c == nil || another || a.whole {
		c = &call{index: index, id: strings.Clone(id)}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = strings.Clone(id)
	}
	return c
}

func (a *Answer) function(c *call, f gjson.Result) {
	if name := f.Get("name").Str; name != c.name {
		c.name += name
	}
	var piece string
	switch args := f.Get("arguments"); args.Type {
	case gjson.Null:
	case gjson.String:
		piece = c.args.add(args.Str)
	default: // an object instead of its text
		piece = c.args.add(args.Raw)
	}
	if a.Sink == nil || piece == "" && c.said {
		return
	}
	d := model.Delta{Channel: model.Arguments, Block: a.lead() + len(a.parts) + a.position(c), Text: piece}
	if !c.said {
		d.Name, d.ID, c.said = c.name, c.id, true
	}
	a.emit(d)
}

func (a *Answer) position(c *call) int {
	for i := range a.calls {
		if a.calls[i] == c {
			return i
		}
	}
	return 0
}
