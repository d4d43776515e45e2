package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

func text(s string) loop.Block { return loop.Block{Kind: loop.BlockText, Text: s} }

func user(s string) *loop.Message {
	return &loop.Message{Role: loop.User, Blocks: []loop.Block{text(s)}}
}

func ai(blocks ...loop.Block) *loop.Message {
	return &loop.Message{Role: loop.Assistant, Blocks: blocks}
}

func results(blocks ...loop.Block) *loop.Message {
	return &loop.Message{Role: loop.Tool, Blocks: blocks}
}

func call(wire, id, own, name, args string) loop.Block {
	return loop.Block{Kind: loop.BlockCall, Wire: wire, ID: id, Call: own, Name: name, Args: args}
}

func result(id, own, name, s string) loop.Block {
	return loop.Block{Kind: loop.BlockResult, ID: id, Call: own, Name: name, Text: s}
}

func sent(t *testing.T, req *model.Request, opts ...Option) (string, []string) {
	t.Helper()
	b, err := Model("claude-x", append(opts, APIKey("k"))...).(*adapter).encode(req)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(b.reader())
	if !json.Valid(out) {
		t.Fatalf("no JSON: %s", out)
	}
	return string(out), b.notes
}

var lookup = []model.Tool{{Name: "lookup", Description: "Look up.", Schema: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)}}

const lookupJSON = `"tools":[{"name":"lookup","description":"Look up.","input_schema":{"type":"object","properties":{"q":{"type":"string"}}}}]`

func TestRequest(t *testing.T) {
	hello := []*loop.Message{user("hi")}
	const hi = `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	tests := []struct {
		name  string
		req   model.Request
		want  string
		notes []string
	}{
		{
			name: "plain", req: model.Request{Messages: hello, Stream: true},
			want: `{"model":"claude-x","max_tokens":32000,"stream":true,` + hi + `,"cache_control":{"type":"ephemeral"}}`,
		},
		{
			name: "closing call", req: model.Request{
				Messages: hello, System: "Be good.", Extra: "Answer now.", Tools: lookup, Choice: model.ChoiceNone, MaxOutput: 500,
			},
			want: `{"model":"claude-x","max_tokens":500,"system":[{"type":"text","text":"Be good.","cache_control":{"type":"ephemeral"}},` +
				`{"type":"text","text":"Answer now."}],` + lookupJSON + `,` + hi + `,"tool_choice":{"type":"none"},"cache_control":{"type":"ephemeral"}}`,
		},
		{
			name: "required, one at a time, no cache", req: model.Request{
				Messages: hello, Tools: lookup, Choice: model.ChoiceRequired, MaxOutput: 9,
				Options: map[string]any{"disable_parallel_tool_use": true, "cache_control": false, "temperature": 0.5, "service_tier": "auto"},
			},
			want: `{"model":"claude-x","max_tokens":9,` + lookupJSON + `,` + hi +
				`,"tool_choice":{"type":"any","disable_parallel_tool_use":true},"service_tier":"auto","temperature":0.5}`,
		},
		{
			name: "named tool gives way to thinking", req: model.Request{
				Messages: hello, Tools: lookup, Choice: "lookup", MaxOutput: 3000,
				Options: map[string]any{"thinking_budget": 4096, "cache_control": false},
			},
			want: `{"model":"claude-x","max_tokens":3000,` + lookupJSON + `,` + hi + `,"thinking":{"type":"enabled","budget_tokens":1500}}`,
			notes: []string{
				`tool choice "lookup" became auto: this API does not force a call while the model thinks`,
				"thinking_budget was lowered from 4096 to 1500, below the 3000 tokens of output",
			},
		},
		{
			name: "named tool", req: model.Request{Messages: hello, Tools: lookup, Choice: "lookup", MaxOutput: 9, Options: map[string]any{"cache_control": false}},
			want: `{"model":"claude-x","max_tokens":9,` + lookupJSON + `,` + hi + `,"tool_choice":{"type":"tool","name":"lookup"}}`,
		},
		{
			name: "structured output", req: model.Request{
				Messages: hello, MaxOutput: 9, Output: []byte(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"$schema":"x"}`),
				Options: map[string]any{"cache_control": false, "output_config": map[string]any{"effort": "low"}},
			},
			want: `{"model":"claude-x","max_tokens":9,` + hi + `,"output_config":{"effort":"low","format":{"type":"json_schema",` +
				`"schema":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}}}}`,
			notes: []string{`output schema: this API does not know ["minimum"]; ronda checks them itself`},
		},
		{
			name: "schemas that the API refuses", req: model.Request{
				Messages: hello, MaxOutput: 9, Options: map[string]any{"cache_control": false},
				Tools: []model.Tool{
					{Name: "a", Schema: []byte(`{"properties":{}}`)},
					{Name: "b", Schema: []byte(`{"type":"object","anyOf":[{"required":["x"]}],"properties":{"x":{}}}`)},
					{Name: "c", Strict: true, Schema: []byte(`{"type":"object","properties":{"x":{"type":"string","maxLength":3}}}`)},
				},
			},
			want: `{"model":"claude-x","max_tokens":9,"tools":[{"name":"a","input_schema":{"type":"object","properties":{}}},` +
				`{"name":"b","input_schema":{"type":"object","properties":{"x":{}}}},` +
				`{"name":"c","input_schema":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false},"strict":true}],` + hi + `}`,
			notes: []string{
				`tool "b": anyOf at the top of the schema was left out: this API does not take it there; ronda checks it itself`,
				`tool "c": strict schemas of this API do not know ["maxLength"]; ronda checks them itself`,
			},
		},
		{
			name: "server tools and betas", req: model.Request{
				Messages: hello, MaxOutput: 9,
				Options: map[string]any{"cache_control": map[string]any{"type": "ephemeral", "ttl": "1h"}, "betas": []string{"x"}, "server_tools": []any{map[string]any{"type": "web_search_20250305", "name": "web_search"}}},
			},
			want: `{"model":"claude-x","max_tokens":9,"tools":[{"name":"web_search","type":"web_search_20250305"}],` + hi +
				`,"cache_control":{"ttl":"1h","type":"ephemeral"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, notes := sent(t, &tt.req)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	tests := map[string]model.Request{
		`tool "a b": Anthropic takes names`: {Tools: []model.Tool{{Name: "a b"}}},
		`the schema says "string"`:          {Tools: []model.Tool{{Name: "a", Schema: []byte(`{"type":"string"}`)}}},
		`is not a JSON object`:              {Tools: []model.Tool{{Name: "a", Schema: []byte(`{`)}}},
		`option "max_tokens"`:               {Options: map[string]any{"max_tokens": 1}},
		`option "betas"`:                    {Options: map[string]any{"betas": 1}},
		`output schema`:                     {Output: []byte(`[]`)},
	}
	for want, req := range tests {
		_, err := Model("m", APIKey("k"), BaseURL("http://127.0.0.1:1")).Generate(t.Context(), &req, nil)
		e, ok := err.(*model.Error)
		if !ok || e.Class != loop.ClassFatal || e.Lost || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestMessages checks the rules of the wire on blocks, other wires' blocks and ids.
func TestMessages(t *testing.T) {
	signed := loop.Block{Kind: loop.BlockThought, Wire: wireName, Text: "hm", Raw: json.RawMessage(`{"signature":"s=="}`)}
	tests := []struct {
		name string
		in   []*loop.Message
		want string
	}{
		{
			name: "own turn goes back as it came, results first and in one message",
			in: []*loop.Message{
				user("hi"),
				ai(signed, loop.Block{Kind: loop.BlockOpaque, Wire: wireName, Raw: json.RawMessage(`{"type":"redacted_thinking","data":"x"}`)},
					text("ok"), call(wireName, "toolu_1", "c1.1", "f", `{"b": 1, "a":1.0}`),
					loop.Block{Kind: loop.BlockCall, Wire: wireName, ID: "toolu_2", Call: "c1.2", Name: "g", Args: "{}", Raw: json.RawMessage(`{"caller":{"type":"direct"}}`)}),
				results(text("2 rounds left"), result("toolu_1", "c1.1", "f", "one")),
				results(loop.Block{Kind: loop.BlockResult, ID: "toolu_2", Call: "c1.2", Error: true}),
				user("more"),
			},
			want: `{"role":"user","content":[{"type":"text","text":"hi"}]},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"ok"},` +
				`{"type":"tool_use","id":"toolu_1","name":"f","input":{"b": 1, "a":1.0}},{"type":"tool_use","id":"toolu_2","name":"g","input":{},"caller":{"type":"direct"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"one"},` +
				`{"type":"tool_result","tool_use_id":"toolu_2","content":"error","is_error":true},{"type":"text","text":"2 rounds left"}]},` +
				`{"role":"user","content":[{"type":"text","text":"more"}]}`,
		},
		{
			name: "another wire's turn: text and calls stay, thoughts and opaque blocks do not, ids are made",
			in: []*loop.Message{
				ai(loop.Block{Kind: loop.BlockThought, Wire: "gemini", Text: "hm", Raw: json.RawMessage(`{"thoughtSignature":"s"}`)},
					loop.Block{Kind: loop.BlockOpaque, Wire: "openai", Raw: json.RawMessage(`{"type":"reasoning"}`)},
					loop.Block{Kind: loop.BlockText, Wire: "gemini", Text: "ok", Raw: json.RawMessage(`{"thoughtSignature":"s"}`)},
					call("gemini", "", "c1.1", "f", `{}`), call("openaichat", "call|1", "c1.2", "f", `{"cut`)),
				results(result("", "c1.1", "f", "one"), result("call|1", "c1.2", "f", "two")),
			},
			want: `{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"c1_1","name":"f","input":{}},` +
				`{"type":"tool_use","id":"c1_2","name":"f","input":{"invalid_arguments":"{\"cut"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1_1","content":"one"},{"type":"tool_result","tool_use_id":"c1_2","content":"two"}]}`,
		},
		{
			name: "a repeated id is used once",
			in: []*loop.Message{
				ai(call(wireName, "x", "c1.1", "f", `{}`)), results(result("x", "c1.1", "f", "one")),
				ai(call(wireName, "x", "c2.1", "f", `{}`)), results(result("x", "c2.1", "f", "two")),
			},
			want: `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"one"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"c2_1","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2_1","content":"two"}]}`,
		},
		{
			name: "blank text and unsigned thoughts are left out, an empty message too",
			in: []*loop.Message{
				user("hi"), ai(text(" \n"), loop.Block{Kind: loop.BlockThought, Wire: wireName, Text: "hm"}), user("go on"),
			},
			want: `{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"user","content":[{"type":"text","text":"go on"}]}`,
		},
		{
			name: "files",
			in: []*loop.Message{
				{Role: loop.User, Blocks: []loop.Block{
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/png", Data: []byte("abc")}},
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "application/pdf", Name: "a.pdf", URL: "https://x/a.pdf"}},
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "text/plain", Data: []byte("t")}},
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "audio/wav", Name: "a.wav", Data: []byte("x")}},
				}},
				ai(call(wireName, "x", "c1.1", "f", `{}`)),
				results(loop.Block{Kind: loop.BlockResult, ID: "x", Call: "c1.1", Text: "see", More: []loop.Block{{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/jpeg", Data: []byte("abc")}}}}),
			},
			want: `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YWJj"}},` +
				`{"type":"document","source":{"type":"url","url":"https://x/a.pdf"},"title":"a.pdf"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"t"}},` +
				`{"type":"text","text":"[file \"a.wav\" of type audio/wav: not shown]"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"see"},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"YWJj"}}]}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &model.Cache{}
			messages(&model.Request{Messages: tt.in}, c)
			if diff := cmp.Diff(tt.want, string(c.Bytes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPrefix checks that each request's messages begin with those of the one before, byte for byte, and are what an adapter
// that sees the whole transcript at once would write.
func TestPrefix(t *testing.T) {
	a := Model("claude-x", APIKey("k")).(*adapter)
	msgs := []*loop.Message{user("begin")}
	c := &model.Cache{}
	var before []byte
	for n := range 20 {
		req := &model.Request{Messages: msgs, Cache: c, Tools: lookup, System: "s"}
		if n == 19 {
			req.Extra, req.Choice = "close", model.ChoiceNone
		}
		b, err := a.encode(req)
		if err != nil {
			t.Fatal(err)
		}
		got := bytes.Clone(b.parts[1])
		if !bytes.HasPrefix(got, before) || n > 0 && len(got) == len(before) {
			t.Fatalf("round %d: the prefix broke", n)
		}
		fresh := &model.Cache{}
		messages(&model.Request{Messages: msgs}, fresh)
		if diff := cmp.Diff(string(fresh.Bytes), string(got)); diff != "" {
			t.Fatal(diff)
		}
		if strings.Contains(string(got), "cache_control") {
			t.Fatal("a cache breakpoint in the bytes that must not change")
		}
		before = got
		own := fmt.Sprintf("c%d.", n)
		id := "toolu_" + own
		if n%3 == 1 {
			id = "toolu_same"
		}
		msgs = append(msgs, ai(text("é"), call(wireName, id, own+"1", "lookup", `{"q":"x"}`), call("gemini", "", own+"2", "lookup", `{}`)),
			results(result(id, own+"1", "lookup", "one")), results(result("", own+"2", "lookup", "two")))
		if n%5 == 4 {
			msgs = append(msgs, user("by the way"))
		}
	}
	ids := map[string]bool{}
	for _, m := range gjson.GetBytes(append(append([]byte(`{"m":[`), before...), "]}"...), "m").Array() {
		for _, b := range m.Get("content").Array() {
			if b.Get("type").Str == "tool_use" && ids[b.Get("id").Str] {
				t.Errorf("id %q twice", b.Get("id").Str)
			}
			ids[b.Get("id").Str] = true
		}
	}
	// A compacted transcript begins anew.
	short := []*loop.Message{user("summary"), user("go on")}
	messages(&model.Request{Messages: short}, c)
	if want := `{"role":"user","content":[{"type":"text","text":"summary"}]},{"role":"user","content":[{"type":"text","text":"go on"}]}`; string(c.Bytes) != want {
		t.Errorf("after compaction: %s", c.Bytes)
	}
}

// TestCompactedInTheMiddle keeps the first message and the number of messages, which a look at the first alone would not see.
func TestCompactedInTheMiddle(t *testing.T) {
	task := user("task")
	c := &model.Cache{}
	encode := func(in ...*loop.Message) string {
		messages(&model.Request{Messages: in}, c)
		return string(c.Bytes)
	}
	encode(task, ai(text("a")), user("b"), ai(text("c")), user("d"))
	got := encode(task, user("summary"), ai(text("c")), user("d"), ai(text("e")), user("f"))
	c = &model.Cache{}
	if want := encode(task, user("summary"), ai(text("c")), user("d"), ai(text("e")), user("f")); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
