package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// otlpDoc is a batch of spans in OTLP's JSON; the collector's file exporter writes one a line.
type otlpDoc struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []otlpAttr `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Spans []otlpSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type otlpSpan struct {
	TraceID    string      `json:"traceId"`
	Name       string      `json:"name"`
	Start      json.Number `json:"startTimeUnixNano"`
	End        json.Number `json:"endTimeUnixNano"`
	Attributes []otlpAttr  `json:"attributes"`
	Events     []struct {
		Name       string     `json:"name"`
		Attributes []otlpAttr `json:"attributes"`
	} `json:"events"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
}

type otlpAttr struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	String *string      `json:"stringValue"`
	Int    *json.Number `json:"intValue"`
	Array  *struct {
		Values []otlpValue `json:"values"`
	} `json:"arrayValue"`
}

// otlpDocs reads batches, from one document or one a line; nil where it is something else.
func otlpDocs(data []byte) []otlpDoc {
	var out []otlpDoc
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		var d otlpDoc
		if dec.Decode(&d) != nil || len(d.ResourceSpans) == 0 {
			return nil
		}
		out = append(out, d)
	}
	return out
}

// attrs gives the texts of a span's attributes by their names, those of its events among them.
func (s *otlpSpan) attrs() map[string]string {
	out := map[string]string{}
	add := func(list []otlpAttr) {
		for _, a := range list {
			switch {
			case a.Value.String != nil:
				out[a.Key] = *a.Value.String
			case a.Value.Int != nil:
				out[a.Key] = a.Value.Int.String()
			case a.Value.Array != nil && len(a.Value.Array.Values) > 0 && a.Value.Array.Values[0].String != nil:
				out[a.Key] = *a.Value.Array.Values[0].String
			}
		}
	}
	for _, e := range s.Events {
		add(e.Attributes)
	}
	add(s.Attributes)
	return out
}

func nanos(n json.Number) loop.Micros {
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v < 0 {
		return 0
	}
	return loop.Micros(v / 1000)
}

// readOTLP makes a run of each trace: its chat spans are model calls, its execute_tool spans the calls between them.
func readOTLP(docs []otlpDoc) ([]*recording.Recording, error) {
	traces := map[string][]otlpSpan{}
	var order []string
	for _, d := range docs {
		for _, rs := range d.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, sp := range ss.Spans {
					if op := sp.attrs()["gen_ai.operation.name"]; op == "" {
						continue
					}
					if traces[sp.TraceID] == nil {
						order = append(order, sp.TraceID)
					}
					traces[sp.TraceID] = append(traces[sp.TraceID], sp)
				}
			}
		}
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("foreign: %w: OTLP without gen_ai spans", ErrUnknown)
	}
	var out []*recording.Recording
	for _, id := range order {
		rec, err := traceSource(id, traces[id]).build()
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

func traceSource(id string, spans []otlpSpan) *source {
	slices.SortStableFunc(spans, func(a, b otlpSpan) int { return int(nanos(a.Start) - nanos(b.Start)) })
	s := &source{name: OTLP, wire: "otlp", run: "run_" + id, session: id, pace: recording.PaceBlock}
	content := false
	var cur *reply // the last model call: tools without a call of their own belong to it
	for i := range spans {
		sp := &spans[i]
		a := sp.attrs()
		switch a["gen_ai.operation.name"] {
		case "invoke_agent":
			if s.agent == "" {
				s.agent = a["gen_ai.agent.name"]
			}
			if conv := a["gen_ai.conversation.id"]; conv != "" {
				s.session = conv
			}
		case "chat", "generate_content", "text_completion":
			if p := first(a["gen_ai.provider.name"], a["gen_ai.system"]); p != "" {
				s.wire = p
			}
			if m := first(a["gen_ai.response.model"], a["gen_ai.request.model"]); m != "" {
				s.model = m
			}
			cur = s.chat(sp, a)
			content = content || len(cur.blocks) > 0
		case "execute_tool":
			s.tool(sp, a, cur)
		}
	}
	for i := range s.says {
		if r := s.says[i].reply; r != nil && len(r.blocks) == 0 && r.failed == "" {
			r.blocks = text("(the span carries no content)")
		}
	}
	if !content {
		s.notes = append(s.notes, "the spans carry no content: only names, times and counts")
	}
	return s
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// otlpMessage is a message of gen_ai.input.messages and gen_ai.output.messages.
type otlpMessage struct {
	Role  string `json:"role"`
	Parts []struct {
		Type      string          `json:"type"`
		Content   json.RawMessage `json:"content"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"parts"`
}

func (s *source) chat(sp *otlpSpan, a map[string]string) *reply {
	if len(s.says) == 0 {
		var list []otlpMessage
		if json.Unmarshal([]byte(a["gen_ai.input.messages"]), &list) == nil {
			for _, m := range list {
				if m.Role == "user" {
					for _, p := range m.Parts {
						if t := textOf(p.Content); p.Type == "text" && strings.TrimSpace(t) != "" {
							s.says = append(s.says, say{at: nanos(sp.Start), user: t})
						}
					}
				}
			}
		}
	}
	r := &reply{model: s.model, id: a["gen_ai.response.id"]}
	var list []otlpMessage
	if json.Unmarshal([]byte(a["gen_ai.output.messages"]), &list) == nil {
		for _, m := range list {
			for _, p := range m.Parts {
				switch p.Type {
				case "text":
					r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockText, Text: textOf(p.Content)})
				case "reasoning", "thinking":
					r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockThought, Text: textOf(p.Content)})
				case "tool_call":
					r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockCall, ID: p.ID, Name: p.Name, Args: argsOf(p.Arguments)})
					r.ids = append(r.ids, p.ID)
				}
			}
		}
	}
	n := func(names ...string) int64 {
		for _, name := range names {
			if v, err := strconv.ParseInt(a[name], 10, 64); err == nil && v > 0 {
				return v
			}
		}
		return 0
	}
	read := n("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_input_tokens")
	write := n("gen_ai.usage.cache_creation.input_tokens")
	r.usage = &loop.Usage{Input: max(n("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")-read-write, 0), CacheRead: read, CacheWrite: write,
		Output: n("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")}
	if sp.Status.Code == 2 && len(r.blocks) == 0 {
		r.failed = first(sp.Status.Message, a["error.type"], "error")
	}
	s.says = append(s.says, say{at: nanos(sp.End), began: nanos(sp.Start), reply: r})
	return r
}

// tool adds the result of a call, and the call where the response does not show it.
func (s *source) tool(sp *otlpSpan, a map[string]string, cur *reply) {
	id := first(a["gen_ai.tool.call.id"], sp.Name+" "+sp.Start.String())
	if cur == nil || cur.failed != "" {
		cur = &reply{}
		s.says = append(s.says, say{at: nanos(sp.Start), reply: cur})
	}
	if !slices.Contains(cur.ids, id) {
		cur.blocks = append(cur.blocks, loop.Block{Kind: loop.BlockCall, ID: id, Name: first(a["gen_ai.tool.name"], sp.Name), Args: first(a["gen_ai.tool.call.arguments"], "{}")})
		cur.ids = append(cur.ids, id)
	}
	r := &result{call: id, text: a["gen_ai.tool.call.result"], fail: sp.Status.Code == 2}
	if r.fail && r.text == "" {
		r.text = first(sp.Status.Message, a["error.type"], "error")
	}
	s.says = append(s.says, say{at: nanos(sp.End), result: r})
}
