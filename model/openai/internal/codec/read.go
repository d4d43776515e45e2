package codec

import (
	"bytes"
	"slices"
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
	switch {
	case a.failed != nil:
		return nil, a.failed
	case a.final.Exists():
		return a.response(doing)
	case stream && !a.done:
		return nil, wire.Ended(doing)
	case len(a.items) > 0:
		return a.response(doing)
	}
	return nil, &model.Error{Class: loop.ClassTransient, Lost: true, Code: "no_response", Message: doing + ": it holds no response"}
}

// Answer gathers one response.
type Answer struct {
	Sink   func(model.Delta) // nil: nobody listens
	items  []*item
	final  gjson.Result // the response object, of a whole response or of the last event
	done   bool         // [DONE] was seen
	failed *model.Error
}

// skipped are events that say nothing that others do not say. The first two repeat the whole request, tools included.
var skipped = map[string]bool{
	"response.created": true, "response.in_progress": true, "response.content_part.added": true, "response.content_part.done": true,
	"response.output_text.done": true, "response.function_call_arguments.done": true, "response.reasoning_summary_text.done": true,
	"response.reasoning_summary_part.added": true, "response.reasoning_summary_part.done": true, "response.reasoning_text.done": true,
	"response.output_text.annotation.added": true,
}

var sentinel = []byte("[DONE]")

// Event reads a whole response or the data of one event; it returns wire.ErrStop at the end of a stream.
func (a *Answer) Event(name, data []byte) error {
	if bytes.Equal(bytes.TrimSpace(data), sentinel) {
		a.done = true
		return wire.ErrStop
	}
	if skipped[string(name)] {
		return nil
	}
	if !wire.Valid(data) {
		return openaiwire.NoJSON(data)
	}
	v := gjson.ParseBytes(data)
	kind := v.Get("type").Str
	switch kind {
	case "response.output_text.delta", "response.function_call_arguments.delta", "response.reasoning_summary_text.delta",
		"response.reasoning_text.delta":
		a.delta(kind, v)
	case "response.output_item.added":
		a.slot(v).added(a, v.Get("item"))
	case "response.output_item.done":
		a.slot(v).ended(a, v.Get("item"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		a.final = v.Get("response")
		// The end: nothing follows but the sentinel of some gateways.
		return wire.ErrStop
	case "error":
		a.failed = openaiwire.InBody(v)
		return wire.ErrStop
	case "":
		switch {
		case v.Get("object").Str == "response" || v.Get("output").IsArray():
			a.final = v
		case string(name) == "error" || openaiwire.IsError(v):
			a.failed = openaiwire.InBody(v)
			return wire.ErrStop
		}
	}
	return nil
}

// response makes the value of what was read. Items that were streamed to their end count, since those are what clients were made
// to send back: the final response has none of them at some backends (ChatGPT's), and other encryptions of the same thoughts at
// OpenAI's own. Where an item was not streamed to its end the final response counts, if it has any.
func (a *Answer) response(doing string) (*model.Response, *model.Error) {
	output := a.final.Get("output")
	count := 0
	output.ForEach(func(_, _ gjson.Result) bool { count++; return true })
	var items []gjson.Result
	if len(a.items) >= count && (count == 0 || !slices.ContainsFunc(a.items, func(it *item) bool { return !it.done })) {
		for _, it := range a.items {
			items = append(items, it.result())
		}
	} else {
		items = output.Array()
	}
	usage := openaiwire.ResponsesUsage(a.final.Get("usage"))
	if e := ended(a.final, usage, doing); e != nil {
		return nil, e
	}
	bs, refusal := blocks(items)
	r := &model.Response{Blocks: bs, Usage: usage, Model: strings.Clone(a.final.Get("model").Str), ID: strings.Clone(a.final.Get("id").Str)}
	r.Finish = loop.FinishStop
	for i := range bs {
		if bs[i].Kind == loop.BlockCall {
			r.Finish = loop.FinishCalls
		}
	}
	switch {
	case refusal != "":
		r.Finish, r.Detail = loop.FinishFilter, refusal
	case a.final.Get("status").Str == "incomplete":
		r.Detail = strings.Clone(a.final.Get("incomplete_details.reason").Str)
		if r.Finish = loop.FinishLength; r.Detail == "content_filter" {
			r.Finish = loop.FinishFilter
		}
	}
	return r, nil
}

// ended is the error of a response that is none.
func ended(final gjson.Result, usage *loop.Usage, doing string) *model.Error {
	var e *model.Error
	switch status := final.Get("status").Str; status {
	case "failed":
		e = openaiwire.InBody(final.Get("error"))
	case "cancelled":
		e = &model.Error{Class: loop.ClassTransient, Lost: true, Code: status, Message: doing + ": the response was cancelled at the provider"}
	case "queued", "in_progress":
		return &model.Error{Class: loop.ClassFatal, Code: status,
			Message: doing + ": the response runs in the background, which is not offered; do not set background"}
	default:
		return nil
	}
	if usage != nil {
		e.Usage, e.Lost = usage, false
	}
	return e
}
