package fake

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

const created = 1700000000 // Unix time that all responses claim

// chat renders a response as "Chat Completions: create" and "Chat Completions: streaming" describe it and
// braintrust-js__cloudflare-think-instrumentation_cloudflare-think-v0-auto shows it; reasoning as DeepSeek sends it.
func (s *Server) chat(seen *Seen, item *scripted.Item, r *rand.Rand) *rendered {
	p := s.reply(seen, item, r, "call_", 24)
	out := &rendered{id: requestID(r, s.wire)}
	t := &turn{}
	if p.thinking != "" {
		t.thoughts = []string{p.thinking}
	}
	id := makeID(r, "chatcmpl-", 29)
	s.led.serve(t, p.calls)
	out.whole = s.chatWhole(seen, p, id)
	c := &chatWriter{out: out, r: r, usage: gjson.GetBytes(seen.Body, "stream_options.include_usage").Bool(),
		head: object("id", id, "object", "chat.completion.chunk", "created", created, "model", seen.Model, "system_fingerprint", "fp_fake")}
	c.stream(s, p)
	return out
}

func (s *Server) chatWhole(seen *Seen, p *reply, id string) json.RawMessage {
	var content any = p.text
	if p.text == "" && len(p.calls) > 0 {
		content = nil
	}
	msg := object("role", "assistant", "content", content)
	if p.thinking != "" {
		msg = with(msg, "reasoning_content", p.thinking)
	}
	if len(p.calls) > 0 {
		var calls []json.RawMessage
		for _, c := range p.calls {
			calls = append(calls, object("id", c.id, "type", "function", "function", object("name", c.name, "arguments", c.args)))
		}
		msg = with(msg, "tool_calls", array(calls...))
	}
	msg = with(msg, "refusal", nil, "annotations", array())
	whole := object("id", id, "object", "chat.completion", "created", created, "model", seen.Model, "choices",
		array(object("index", 0, "message", msg, "logprobs", nil, "finish_reason", chatFinish(p.finish))))
	if p.usage != nil {
		whole = with(whole, "usage", chatUsage(*p.usage))
	}
	return with(whole, "service_tier", "default", "system_fingerprint", "fp_fake")
}

type chatWriter struct {
	out   *rendered
	r     *rand.Rand
	head  json.RawMessage
	usage bool // the client asked for usage: other events than the last say null
}

func (c *chatWriter) event(kind frameKind, d json.RawMessage, finish string) {
	e := with(c.head, "choices", array(object("index", 0, "delta", d, "logprobs", nil, "finish_reason", null(finish))))
	if c.usage {
		e = with(e, "usage", nil)
	}
	c.out.add(kind, sse("", e, "\n\n"))
}

func (c *chatWriter) stream(s *Server, p *reply) {
	c.event(opening, object("role", "assistant", "content", "", "refusal", nil), "")
	for _, t := range pieces(c.r, p.thinking) {
		c.event(delta, object("reasoning_content", t), "")
	}
	for _, t := range pieces(c.r, p.text) {
		c.event(delta, object("content", t), "")
	}
	c.calls(s, p.calls)
	if p.malformed { // pydantic-ai__test_groq_test_tool_use_failed_error_streaming_with_text
		c.out.add(ending, sse("error", object("error", with(toolUseFailed(), "status_code", http.StatusBadRequest)), "\n\n"))
		return
	}
	c.event(ending, object(), chatFinish(p.finish))
	if c.usage && p.usage != nil {
		c.out.add(ending, sse("", with(c.head, "choices", array(), "usage", chatUsage(*p.usage)), "\n\n"))
	}
	c.out.add(ending, sse("", []byte("[DONE]"), "\n\n"))
}

// calls writes the deltas of the calls one call after the other, or mixed.
func (c *chatWriter) calls(s *Server, calls []servedCall) {
	var queues [][]json.RawMessage
	for i, call := range calls {
		first := object("index", i, "id", call.id, "type", "function", "function", object("name", call.name, "arguments", ""))
		q := []json.RawMessage{first}
		for _, t := range pieces(c.r, call.args) {
			d := object("index", i, "function", object("arguments", t))
			if s.opts.Repeat { // llm__test_tools_streaming_test_tools_streaming_variant_a
				d = object("index", i, "id", call.id, "type", "function", "function", object("name", call.name, "arguments", t))
			}
			q = append(q, d)
		}
		queues = append(queues, q)
	}
	for _, d := range mix(c.r, queues, s.opts.Interleave) {
		c.event(delta, object("tool_calls", array(d)), "")
	}
}

// mix joins queues, keeping the order within each. Mixed or not, the queues begin in their order: a call is never opened before
// the one with a smaller index.
func mix[T any](r *rand.Rand, queues [][]T, interleave bool) []T {
	var out []T
	begun := 0 // how many of the queues that are left have begun
	for len(queues) > 0 {
		i := 0
		if interleave {
			i = r.IntN(min(begun+1, len(queues)))
		}
		begun = max(begun, i+1)
		out = append(out, queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = append(queues[:i:i], queues[i+1:]...)
			begun--
		}
	}
	return out
}

func toolUseFailed() json.RawMessage {
	return object("message", "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
		"type", "invalid_request_error", "code", "tool_use_failed", "failed_generation", `{"name": "`)
}

// toolUseFailed answers as Groq does when the model wrote a call that it cannot parse ("Tool use: error handling", Groq).
func (s *Server) toolUseFailed(w http.ResponseWriter) {
	w.Header().Set("Content-Type", contentJSON(s.wire))
	w.WriteHeader(http.StatusBadRequest)
	w.Write(object("error", toolUseFailed()))
}

func chatFinish(f loop.Finish) string {
	switch f {
	case loop.FinishCalls:
		return "tool_calls"
	case loop.FinishLength:
		return "length"
	case loop.FinishFilter:
		return "content_filter"
	}
	return "stop"
}

func chatUsage(u loop.Usage) json.RawMessage {
	return object("prompt_tokens", u.Prefix(), "completion_tokens", u.Output, "total_tokens", u.Total(),
		// cache_write_tokens as OpenRouter has it (rig__openrouter_tool_lifecycle_matrix_*)
		"prompt_tokens_details", object("cached_tokens", u.CacheRead, "cache_write_tokens", u.CacheWrite, "audio_tokens", 0),
		"completion_tokens_details", object("reasoning_tokens", u.Reasoning, "audio_tokens", 0, "accepted_prediction_tokens", 0, "rejected_prediction_tokens", 0))
}
