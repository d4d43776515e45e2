package fake

import (
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

// responses renders a response as "Responses: create" and "Streaming responses" describe it and
// rig__openai_responses_sessions_reasoning_session_two_tool_calls_streaming shows it.
func (s *Server) responses(seen *Seen, item *scripted.Item, r *rand.Rand) *rendered {
	p := s.reply(seen, item, r, "call_", 24)
	for i := range p.calls {
		if p.calls[i].id == "" { // this wire has no calls without ids
			p.calls[i].id = makeID(r, "call_", 24)
		}
	}
	out := &rendered{id: requestID(r, s.wire)}
	w := &responsesWriter{out: out, r: r, seen: seen, id: makeHexID(r, "resp_"), kept: map[string]*servedCall{}}
	w.stored = !gjson.GetBytes(seen.Body, "store").Exists() || gjson.GetBytes(seen.Body, "store").Bool()
	for _, v := range gjson.GetBytes(seen.Body, "include").Array() {
		w.encrypted = w.encrypted || v.Str == "reasoning.encrypted_content"
	}
	t := &turn{}
	for _, name := range []string{"response.created", "response.in_progress"} {
		w.event(opening, name, "response", w.response("in_progress", nil, nil, nil))
	}
	if p.thinking != "" {
		w.reasoning(s, p.thinking, t)
	}
	if p.text != "" {
		w.message(p.text)
	}
	w.calls(p, s.opts.Interleave)
	s.led.serve(t, p.calls)
	status, name, reason := "completed", "response.completed", ""
	switch p.finish {
	case loop.FinishLength:
		status, name, reason = "incomplete", "response.incomplete", "max_output_tokens"
	case loop.FinishFilter:
		status, name, reason = "incomplete", "response.incomplete", "content_filter"
	}
	out.whole = w.response(status, null(reason), w.items, p.usage)
	w.event(ending, name, "response", out.whole)
	if w.stored {
		s.led.store(w.id, w.keep(p), w.kept)
	}
	return out
}

type responsesWriter struct {
	out               *rendered
	r                 *rand.Rand
	seen              *Seen
	id                string
	stored, encrypted bool
	seq               int
	items             []json.RawMessage
	kept              map[string]*servedCall // items by id; nil for those that are no call
}

func (w *responsesWriter) event(kind frameKind, name string, kv ...any) {
	e := object("type", name, "sequence_number", w.seq)
	w.seq++
	w.out.add(kind, sse(name, with(e, kv...), "\n\n"))
}

// response is the response object, with what the request said in it.
func (w *responsesWriter) response(status string, incomplete any, items []json.RawMessage, usage *loop.Usage) json.RawMessage {
	body := gjson.ParseBytes(w.seen.Body)
	echo := func(path string, def any) any {
		if v := body.Get(path); v.Exists() {
			return json.RawMessage(v.Raw)
		}
		return def
	}
	if reason, ok := incomplete.(string); ok {
		incomplete = object("reason", reason)
	}
	var used any
	if usage != nil {
		used = responsesUsage(*usage)
	}
	return object("id", w.id, "object", "response", "created_at", created, "status", status, "background", false, "error", nil,
		"incomplete_details", incomplete, "instructions", echo("instructions", nil), "max_output_tokens", echo("max_output_tokens", nil),
		"max_tool_calls", nil, "model", w.seen.Model, "output", array(items...), "parallel_tool_calls", echo("parallel_tool_calls", true),
		"previous_response_id", echo("previous_response_id", nil), "prompt_cache_key", echo("prompt_cache_key", nil),
		"reasoning", object("effort", nil, "summary", nil), "safety_identifier", nil, "service_tier", "default", "store", w.stored,
		"temperature", 1, "text", object("format", object("type", "text")), "tool_choice", echo("tool_choice", "auto"),
		"tools", echo("tools", array()), "top_logprobs", 0, "top_p", 1, "truncation", "disabled", "usage", used, "user", nil,
		"metadata", object())
}

// item opens an output item and returns its index; done closes it.
func (w *responsesWriter) item(id string, started json.RawMessage) int {
	i := len(w.items)
	w.items = append(w.items, nil)
	w.kept[id] = nil
	w.event(opening, "response.output_item.added", "output_index", i, "item", started)
	return i
}

func (w *responsesWriter) done(i int, item json.RawMessage) {
	w.items[i] = item
	w.event(opening, "response.output_item.done", "output_index", i, "item", item)
}

func (w *responsesWriter) reasoning(s *Server, text string, t *turn) {
	id := makeHexID(w.r, "rs_")
	i := w.item(id, object("id", id, "type", "reasoning", "summary", array()))
	at := []any{"item_id", id, "output_index", i, "summary_index", 0}
	part := func(text string) json.RawMessage { return object("type", "summary_text", "text", text) }
	w.event(opening, "response.reasoning_summary_part.added", append(slices.Clone(at), "part", part(""))...)
	for _, d := range pieces(w.r, text) {
		w.event(delta, "response.reasoning_summary_text.delta", append(slices.Clone(at), "delta", d, "obfuscation", makeID(w.r, "", 6))...)
	}
	w.event(opening, "response.reasoning_summary_text.done", append(slices.Clone(at), "text", text)...)
	w.event(opening, "response.reasoning_summary_part.done", append(slices.Clone(at), "part", part(text))...)
	item := object("id", id, "type", "reasoning", "summary", array(part(text)))
	if w.encrypted {
		item = with(item, "encrypted_content", s.led.seal("reasoning", id+"\n"+text))
	}
	w.done(i, item)
	if w.encrypted || w.stored { // else the client cannot give it back
		t.thoughts = append(t.thoughts, id)
	}
}

func (w *responsesWriter) message(text string) {
	id := makeHexID(w.r, "msg_")
	i := w.item(id, object("id", id, "type", "message", "status", "in_progress", "role", "assistant", "content", array()))
	at := []any{"item_id", id, "output_index", i, "content_index", 0}
	part := func(text string) json.RawMessage {
		return object("type", "output_text", "text", text, "annotations", array(), "logprobs", array())
	}
	w.event(opening, "response.content_part.added", append(slices.Clone(at), "part", part(""))...)
	for _, d := range pieces(w.r, text) {
		w.event(delta, "response.output_text.delta", append(slices.Clone(at), "delta", d, "logprobs", array(), "obfuscation", makeID(w.r, "", 6))...)
	}
	w.event(opening, "response.output_text.done", append(slices.Clone(at), "text", text, "logprobs", array())...)
	w.event(opening, "response.content_part.done", append(slices.Clone(at), "part", part(text))...)
	w.done(i, object("id", id, "type", "message", "status", "completed", "role", "assistant", "content", array(part(text))))
}

// calls writes the calls one after the other, or opens all and mixes their deltas.
func (w *responsesWriter) calls(p *reply, interleave bool) {
	type piece struct {
		i    int
		id   string
		text string
	}
	var queues [][]piece
	ids := make([]string, len(p.calls))
	at := make([]int, len(p.calls))
	item := func(n int, args, status string) json.RawMessage {
		c := p.calls[n]
		return object("id", ids[n], "type", "function_call", "status", status, "arguments", args, "call_id", c.id, "name", c.name)
	}
	send := func(queues [][]piece) {
		for _, d := range mix(w.r, queues, true) {
			w.event(delta, "response.function_call_arguments.delta", "item_id", d.id, "output_index", d.i, "delta", d.text, "obfuscation", makeID(w.r, "", 6))
		}
	}
	finish := func(n int) {
		status := "completed"
		if p.broken && n == len(p.calls)-1 {
			status = "incomplete"
		}
		w.event(opening, "response.function_call_arguments.done", "item_id", ids[n], "output_index", at[n], "arguments", p.calls[n].args)
		w.done(at[n], item(n, p.calls[n].args, status))
	}
	for n, c := range p.calls {
		ids[n] = makeHexID(w.r, "fc_")
		at[n] = w.item(ids[n], item(n, "", "in_progress"))
		w.kept[ids[n]] = &p.calls[n]
		var q []piece
		for _, t := range pieces(w.r, c.args) {
			q = append(q, piece{at[n], ids[n], t})
		}
		if interleave {
			if len(q) > 0 {
				queues = append(queues, q)
			}
			continue
		}
		if len(q) > 0 {
			send([][]piece{q})
		}
		finish(n)
	}
	if interleave {
		send(queues)
		for n := range p.calls {
			finish(n)
		}
	}
}

// keep is the conversation with this response at its end.
func (w *responsesWriter) keep(p *reply) *stored {
	st := &stored{messages: slices.Clone(w.seen.Messages)}
	var blocks []loop.Block
	if p.thinking != "" {
		blocks = append(blocks, loop.Block{Kind: loop.BlockThought, Text: p.thinking, Wire: OpenAI})
	}
	if p.text != "" {
		blocks = append(blocks, loop.Block{Kind: loop.BlockText, Text: p.text, Wire: OpenAI})
	}
	for _, c := range p.calls {
		blocks = append(blocks, loop.Block{Kind: loop.BlockCall, ID: c.id, Name: c.name, Args: c.args, Wire: OpenAI})
		st.open = append(st.open, c.id)
	}
	if len(blocks) > 0 {
		st.messages = append(st.messages, loop.Message{Role: loop.Assistant, Blocks: blocks})
	}
	return st
}

func responsesUsage(u loop.Usage) json.RawMessage {
	return object("input_tokens", u.Prefix(), "input_tokens_details", object("cached_tokens", u.CacheRead, "cache_write_tokens", u.CacheWrite),
		"output_tokens", u.Output, "output_tokens_details", object("reasoning_tokens", u.Reasoning), "total_tokens", u.Total())
}
