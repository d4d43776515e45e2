package fake

import (
	"encoding/json"
	"math/rand/v2"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

// gemini renders a response as "Generate content" describes it and
// adk-go__llminternal_TestParallelFunctionCalls_test_parallel_function_calls_gemini-3-1-pro-preview shows it: a signature on the
// first call of a turn, else on an empty last part of the stream.
func (s *Server) gemini(seen *Seen, item *scripted.Item, r *rand.Rand) *rendered {
	p := s.reply(seen, item, r, "", 8)
	out := &rendered{id: requestID(r, s.wire)}
	g := &geminiWriter{out: out, usage: p.usage, tail: object("modelVersion", seen.Model, "responseId", makeID(r, "", 23))}
	if p.malformed { // braintrust-js__google-genai-instrumentation_google-genai-v1-latest-p08
		c := object("finishReason", "MALFORMED_FUNCTION_CALL", "index", 0, "finishMessage", "Malformed function call: print(default_")
		out.whole = g.body(c, true)
		g.event(ending, c, true)
		return out
	}
	s.led.serve(&turn{}, p.calls)
	var parts []json.RawMessage
	if p.thinking != "" {
		parts = append(parts, object("text", p.thinking, "thought", true))
		for _, t := range pieces(r, p.thinking) {
			g.part(object("text", t, "thought", true))
		}
	}
	last := object("text", "")
	if p.text != "" {
		part := object("text", p.text)
		for _, t := range pieces(r, p.text) {
			g.part(object("text", t))
		}
		if p.thinking != "" && len(p.calls) == 0 {
			part = with(part, "thoughtSignature", s.led.sign("text", p.text))
			last = with(last, "thoughtSignature", s.led.sign("text", ""))
		}
		parts = append(parts, part)
	}
	for i, c := range p.calls {
		f := object("name", c.name)
		if c.args != "{}" || r.IntN(2) == 0 { // a call without arguments comes with and without args
			f = with(f, "args", json.RawMessage(c.args))
		}
		if c.id != "" {
			f = with(f, "id", c.id)
		}
		part := object("functionCall", f)
		if i == 0 {
			part = with(part, "thoughtSignature", s.led.sign("call", c.name+canonical(c.args)))
		}
		parts = append(parts, part)
		g.part(part)
	}
	if len(parts) == 0 {
		parts = []json.RawMessage{object("text", "")}
	}
	finish := geminiFinish(p.finish)
	out.whole = g.body(object("content", object("parts", array(parts...), "role", "model"), "finishReason", finish, "index", 0), true)
	g.event(ending, object("content", object("parts", array(last), "role", "model"), "finishReason", finish, "index", 0), true)
	return out
}

type geminiWriter struct {
	out   *rendered
	usage *loop.Usage
	tail  json.RawMessage
}

func (g *geminiWriter) part(p json.RawMessage) {
	g.event(delta, object("content", object("parts", array(p), "role", "model"), "index", 0), false)
}

func (g *geminiWriter) event(kind frameKind, candidate json.RawMessage, full bool) {
	g.out.add(kind, sse("", g.body(candidate, full), "\r\n\r\n"))
}

// body writes a response with one candidate. Each event carries usage; only the last has all of it.
func (g *geminiWriter) body(candidate json.RawMessage, full bool) json.RawMessage {
	b := object("candidates", array(candidate))
	if u := g.usage; u != nil {
		m := object("promptTokenCount", u.Prefix())
		if full {
			// candidatesTokenCount does not contain the thoughts; cached tokens are a part of the prompt's. There is no count of
			// cache writes on this wire.
			m = with(m, "candidatesTokenCount", u.Output-u.Reasoning, "totalTokenCount", u.Total())
			if u.CacheRead > 0 {
				m = with(m, "cachedContentTokenCount", u.CacheRead)
			}
			if u.Reasoning > 0 {
				m = with(m, "thoughtsTokenCount", u.Reasoning)
			}
		} else {
			m = with(m, "totalTokenCount", u.Prefix())
		}
		b = with(b, "usageMetadata", m)
	}
	return append(append(b[:len(b)-1:len(b)-1], ','), g.tail[1:]...)
}

func geminiFinish(f loop.Finish) string {
	switch f {
	case loop.FinishLength:
		return "MAX_TOKENS"
	case loop.FinishFilter:
		return "SAFETY"
	}
	return "STOP"
}
