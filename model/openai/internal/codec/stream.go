package codec

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// item is an output item while it is streamed.
type item struct {
	index int64
	id    string
	raw   string // as it was last seen whole
	done  bool
	kind  string

	text strings.Builder // what its deltas said so far
	held wire.Held
	part gjson.Result // the index of the part that the deltas of a thought are in
	from string       // which of its texts a thought's deltas are of
	said bool         // a call's name was given on
}

// slot finds the item that an event is about, by its place in the output, else by its id.
func (a *Answer) slot(v gjson.Result) *item {
	index, id := v.Get("output_index"), v.Get("item_id").Str
	if id == "" {
		id = v.Get("item.id").Str
	}
	for i := len(a.items) - 1; i >= 0; i-- {
		it := a.items[i]
		if index.Exists() && it.index == index.Int() || !index.Exists() && id != "" && it.id == id {
			return it
		}
	}
	it := &item{index: index.Int(), id: strings.Clone(id)}
	if !index.Exists() {
		it.index = int64(len(a.items))
	}
	at := len(a.items)
	for at > 0 && a.items[at-1].index > it.index {
		at--
	}
	a.items = slices.Insert(a.items, at, it)
	return it
}

func (it *item) added(a *Answer, v gjson.Result) {
	it.raw, it.kind = v.Raw, v.Get("type").Str
	if it.kind == "function_call" {
		it.call(a, v, "")
	}
}

// ended takes the whole item. What no delta has said before (arguments that came at once) is said now.
func (it *item) ended(a *Answer, v gjson.Result) {
	it.raw, it.kind, it.done = v.Raw, v.Get("type").Str, true
	if it.text.Len() > 0 || a.Sink == nil {
		return
	}
	bs, _ := blocks([]gjson.Result{v})
	for _, b := range bs {
		switch b.Kind {
		case loop.BlockText:
			a.emit(model.Delta{Channel: model.Text, Block: a.block(it), Text: b.Text})
		case loop.BlockThought:
			a.emit(model.Delta{Channel: model.Thought, Block: a.block(it), Text: b.Text})
		case loop.BlockCall:
			it.call(a, v, b.Args)
		}
	}
}

// call gives on the name of a call with its first delta.
func (it *item) call(a *Answer, v gjson.Result, piece string) {
	d := model.Delta{Channel: model.Arguments, Block: a.block(it), Text: piece}
	if !it.said {
		it.said, d.Name, d.ID = true, strings.Clone(v.Get("name").Str), strings.Clone(v.Get("call_id").Str)
	}
	a.emit(d)
}

func (a *Answer) emit(d model.Delta) {
	if a.Sink != nil && d.Text+d.Name != "" {
		a.Sink(d)
	}
}

// block is the place of an item's block: the number of items before it, which is exact unless one of them has several texts.
func (a *Answer) block(it *item) int { return max(0, slices.Index(a.items, it)) }

func (a *Answer) delta(kind string, v gjson.Result) {
	it := a.slot(v)
	piece := it.held.Push(v.Get("delta").Str)
	channel := model.Text
	switch kind {
	case "response.function_call_arguments.delta":
		channel = model.Arguments
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		channel = model.Thought
		part := v.Get("summary_index")
		if kind == "response.reasoning_text.delta" {
			part = v.Get("content_index")
		}
		if it.from == "" {
			it.from, it.part = kind, part
		}
		if it.from != kind {
			return
		}
		if part.Raw != it.part.Raw {
			it.part = part
			piece = "\n\n" + piece
		}
	}
	it.text.WriteString(piece)
	if piece != "" {
		a.emit(model.Delta{Channel: channel, Block: a.block(it), Text: piece})
	}
}

// result is the item, whole where its end was seen, else as far as the deltas tell: a stream may end within an item when it
// ends for want of tokens.
func (it *item) result() gjson.Result {
	if it.done || it.text.Len() == 0 {
		return gjson.Parse(it.raw)
	}
	v := gjson.Parse(it.raw)
	var b []byte
	v.ForEach(func(k, v gjson.Result) bool {
		if k.Str != "arguments" && k.Str != "content" && k.Str != "summary" {
			b = append(append(append(append(b, ','), k.Raw...), ':'), v.Raw...)
		}
		return true
	})
	text := wire.AppendString(nil, it.text.String())
	switch it.kind {
	case "function_call":
		b = append(append(b, `,"arguments":`...), text...)
	case "message":
		b = append(append(append(b, `,"content":[{"type":"output_text","text":`...), text...), "}]"...)
	case "reasoning":
		b = append(append(append(b, `,"summary":[{"type":"summary_text","text":`...), text...), "}]"...)
	}
	if len(b) == 0 {
		return v
	}
	b[0] = '{'
	return gjson.ParseBytes(append(b, '}'))
}
