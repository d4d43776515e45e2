package fake

import (
	"encoding/json"
	"math/rand/v2"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

// anthropic renders a response as "Messages" and "Streaming messages" describe it and
// braintrust-js__flue-instrumentation_flue-v1-0-0-beta-3 shows it.
func (s *Server) anthropic(seen *Seen, item *scripted.Item, r *rand.Rand) *rendered {
	p := s.reply(seen, item, r, "toolu_01", 22)
	for i := range p.calls {
		if p.calls[i].id == "" { // this wire has no calls without ids
			p.calls[i].id = makeID(r, "toolu_01", 22)
		}
	}
	out := &rendered{id: requestID(r, s.wire)}
	a := &anthropicWriter{out: out, r: r}
	t := &turn{}
	var content []json.RawMessage
	start := object("model", seen.Model, "id", makeID(r, "msg_01", 22), "type", "message", "role", "assistant")
	open := with(start, "content", array(), "stop_reason", nil, "stop_sequence", nil)
	if p.usage != nil {
		u := *p.usage
		u.Output, u.Reasoning = 1, 0
		open = with(open, "usage", anthropicUsage(u, false))
	}
	a.event(opening, "message_start", object("type", "message_start", "message", open))
	if p.thinking != "" {
		content = append(content, a.thinking(s, p.thinking, t))
	}
	if p.text != "" {
		b := object("type", "text", "text", p.text)
		a.block(object("type", "text", "text", ""), "text_delta", "text", pieces(r, p.text))
		content = append(content, b)
	}
	for _, c := range p.calls {
		content = append(content, a.call(c))
	}
	s.led.serve(t, p.calls)
	stop := anthropicStop(p.finish)
	end := object("type", "message_delta", "delta", object("stop_reason", stop, "stop_sequence", nil))
	out.whole = with(start, "content", array(content...), "stop_reason", stop, "stop_sequence", nil)
	if p.usage != nil {
		end = with(end, "usage", anthropicUsage(*p.usage, true))
		out.whole = with(out.whole, "usage", anthropicUsage(*p.usage, true))
	}
	a.event(ending, "message_delta", end)
	a.event(ending, "message_stop", object("type", "message_stop"))
	return out
}

type anthropicWriter struct {
	out   *rendered
	r     *rand.Rand
	index int
}

func (a *anthropicWriter) event(kind frameKind, name string, data []byte) {
	a.out.add(kind, sse(name, data, "\n\n"))
}

// block writes the events of one content block. Blocks never overlap on this wire.
func (a *anthropicWriter) block(start json.RawMessage, typ, field string, parts []string, more ...json.RawMessage) {
	a.event(opening, "content_block_start", object("type", "content_block_start", "index", a.index, "content_block", start))
	if a.index == 0 {
		a.event(opening, "ping", object("type", "ping"))
	}
	for _, p := range parts {
		a.delta(object("type", typ, field, p))
	}
	for _, m := range more {
		a.delta(m)
	}
	a.event(opening, "content_block_stop", object("type", "content_block_stop", "index", a.index))
	a.index++
}

func (a *anthropicWriter) delta(d json.RawMessage) {
	a.event(delta, "content_block_delta", object("type", "content_block_delta", "index", a.index, "delta", d))
}

func (a *anthropicWriter) thinking(s *Server, text string, t *turn) json.RawMessage {
	if s.opts.Redact { // rig__anthropic_messages_thinking_redacted_thinking_*
		b := object("type", "redacted_thinking", "data", s.led.seal("redacted", text))
		t.thoughts = append(t.thoughts, s.led.seal("redacted", text))
		a.block(b, "", "", nil)
		return b
	}
	sig := s.led.sign("thinking", text)
	t.thoughts = append(t.thoughts, sig)
	a.block(object("type", "thinking", "thinking", "", "signature", ""), "thinking_delta", "thinking", pieces(a.r, text),
		object("type", "signature_delta", "signature", sig))
	return object("type", "thinking", "thinking", text, "signature", sig)
}

func (a *anthropicWriter) call(c servedCall) json.RawMessage {
	direct := object("type", "direct")
	parts := []string{""}
	if c.args != "{}" { // a call without arguments has one empty delta, or none
		parts = append(parts, pieces(a.r, c.args)...)
	} else if a.r.IntN(2) == 0 {
		parts = nil
	}
	a.block(object("type", "tool_use", "id", c.id, "name", c.name, "input", object(), "caller", direct), "input_json_delta", "partial_json", parts)
	var input any = c.args // broken arguments can only come as text in a whole response
	if jsonObject(c.args) {
		input = json.RawMessage(c.args)
	}
	return object("type", "tool_use", "id", c.id, "name", c.name, "input", input, "caller", direct)
}

func anthropicStop(f loop.Finish) string {
	switch f {
	case loop.FinishCalls:
		return "tool_use"
	case loop.FinishLength:
		return "max_tokens"
	case loop.FinishFilter:
		return "refusal"
	case loop.FinishPause:
		return "pause_turn"
	}
	return "end_turn"
}

func anthropicUsage(u loop.Usage, details bool) json.RawMessage {
	o := object("input_tokens", u.Input, "cache_creation_input_tokens", u.CacheWrite, "cache_read_input_tokens", u.CacheRead,
		"cache_creation", object("ephemeral_5m_input_tokens", u.CacheWrite, "ephemeral_1h_input_tokens", 0), "output_tokens", u.Output)
	if details {
		o = with(o, "output_tokens_details", object("thinking_tokens", u.Reasoning))
	}
	return with(o, "service_tier", "standard")
}
