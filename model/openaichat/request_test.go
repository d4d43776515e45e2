package openaichat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openaichat"
)

const ok = `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`

const person = `{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}`

// sent is the body that a request becomes.
func sent(t testing.TB, req *model.Request, opts ...openaichat.Option) (string, *model.Response) {
	t.Helper()
	s := serve(t, ok)
	res, err := s.model(opts...).Generate(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.bodies[0]), res
}

func TestRequest(t *testing.T) {
	look := model.Tool{Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)}
	hi := []*loop.Message{user("hi")}
	for _, c := range []struct {
		name  string
		req   model.Request
		opts  []openaichat.Option
		want  string
		notes []string
	}{
		{"plain", model.Request{Messages: hi}, nil, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"streamed", model.Request{Messages: hi, Stream: true}, nil,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`, nil},
		{"instructions of the agent and of this call", model.Request{System: "Be brief.", Extra: "Close.", Messages: hi}, nil,
			`{"model":"m","messages":[{"role":"system","content":"Be brief.\n\nClose."},{"role":"user","content":"hi"}]}`, nil},
		{"tools and none of them", model.Request{Messages: hi, Tools: []model.Tool{look, {Name: "now", Schema: []byte(`{"type":"object"}`)}}, Choice: model.ChoiceNone}, nil,
			`{"model":"m","tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}},` +
				`{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],"tool_choice":"none","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"a choice without tools", model.Request{Messages: hi, Choice: model.ChoiceNone}, nil, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"required", model.Request{Messages: hi, Tools: []model.Tool{{Name: "now", Schema: []byte(`{}`)}}, Choice: model.ChoiceRequired}, nil,
			`{"model":"m","tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],"tool_choice":"required","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"named, strict", model.Request{Messages: hi, Tools: []model.Tool{{Name: "add", Schema: []byte(person), Strict: true}}, Choice: "add"}, nil,
			`{"model":"m","tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false},"strict":true}}],` +
				`"tool_choice":{"type":"function","function":{"name":"add"}},"messages":[{"role":"user","content":"hi"}]}`,
			[]string{"tool add: strict: name: minLength is left out"}},
		{"strict where it cannot be", model.Request{Messages: hi, Tools: []model.Tool{{Name: "look", Schema: look.Schema, Strict: true}}}, nil,
			`{"model":"m","tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}}],"messages":[{"role":"user","content":"hi"}]}`,
			[]string{"tool look: not strict: q: it is optional"}},
		{"output", model.Request{Messages: hi, Output: []byte(person)}, nil,
			`{"model":"m","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false},"strict":true}},` +
				`"messages":[{"role":"user","content":"hi"}]}`, []string{"output: strict: name: minLength is left out"}},
		{"a cap at a compatible server, and options", model.Request{Messages: hi, MaxOutput: 100, Options: map[string]any{"seed": 7, "reasoning_effort": "low"}},
			[]openaichat.Option{openaichat.Defaults(map[string]any{"seed": 1, "top_p": 0.5})},
			`{"model":"m","max_tokens":100,"reasoning_effort":"low","seed":7,"top_p":0.5,"messages":[{"role":"user","content":"hi"}]}`, nil},
		{"quirks", model.Request{System: "s", Messages: hi, MaxOutput: 100, Stream: true},
			[]openaichat.Option{openaichat.Vary(openaichat.Quirks{MaxTokens: "max_completion_tokens", NoStreamOptions: true, SystemRole: "developer"})},
			`{"model":"m","stream":true,"max_completion_tokens":100,"messages":[{"role":"developer","content":"s"},{"role":"user","content":"hi"}]}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, res := sent(t, &c.req, c.opts...)
			if diff := cmp.Diff(c.want, got) + cmp.Diff(c.notes, res.Notes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReservedOption(t *testing.T) {
	s := serve(t, ok)
	_, err := s.model().Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Options: map[string]any{"messages": 1}}, nil)
	if e, is := err.(*model.Error); !is || e.Class != loop.ClassFatal || len(s.bodies) != 0 {
		t.Errorf("%v, %d requests", err, len(s.bodies))
	}
}

// Everything that a transcript can hold, also what came from other wires.
func TestMessages(t *testing.T) {
	png := &loop.Media{MIME: "image/png", Data: []byte("hi")}
	own := func(b loop.Block, id string) loop.Block { b.Call = id; return b }
	result := func(call, wire, text string, more ...loop.Block) loop.Block {
		return loop.Block{Kind: loop.BlockResult, Call: call, ID: wire, Name: "f", Text: text, More: more}
	}
	turn := func(bs ...loop.Block) *loop.Message { return &loop.Message{Role: loop.Assistant, Blocks: bs} }
	hand := func(bs ...loop.Block) *loop.Message { return &loop.Message{Role: loop.Tool, Blocks: bs} }
	msgs := []*loop.Message{
		{Role: loop.User, Blocks: []loop.Block{text("look"), {Kind: loop.BlockMedia, Media: png}, {Kind: loop.BlockMedia, Media: &loop.Media{MIME: "application/pdf", Name: "a.pdf", Data: []byte("hi")}},
			{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/png", URL: "https://x/y.png"}}, {Kind: loop.BlockMedia, Media: &loop.Media{Name: "lost.png", Ref: "sha256:1"}}}},
		turn(thought("hm", `{"reasoning_content":null}`), text("<a>"), own(call("w1", "f", `{"x":1}`), "r1.0"), own(call("w1", "g", `{}`, `{"arguments":"null","extra_content":{"s":1}}`), "r1.1")),
		hand(result("r1.0", "w1", "one")),
		hand(result("r1.1", "w1", "two", text("more"), loop.Block{Kind: loop.BlockMedia, Media: png})),
		turn(loop.Block{Kind: loop.BlockThought, Text: "other", Wire: "anthropic", Raw: json.RawMessage(`{"signature":"s"}`)},
			loop.Block{Kind: loop.BlockOpaque, Wire: "openai", Raw: json.RawMessage(`{"type":"x"}`)},
			text("a"), text("b"), loop.Block{Kind: loop.BlockCall, ID: "toolu_1", Call: "r2.0", Name: "f", Args: "", Wire: "anthropic"}),
		hand(result("r2.0", "toolu_1", "three")),
		turn(thought("deep", `{"part":{"closed":true}}`), text("c"), opaque(`{"part":{"type":"reference","ids":[1]}}`)),
		user("go on"),
		turn(thought("d", `{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`), opaque(`{"refusal":"no"}`)),
	}
	got, res := sent(t, &model.Request{Messages: msgs})
	want := `{"model":"m","messages":[` +
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,aGk="}},{"type":"image_url","image_url":{"url":"https://x/y.png"}},{"type":"text","text":"[lost.png is not available]"}]},` +
		`{"role":"assistant","content":"<a>","reasoning_content":"hm","tool_calls":[{"id":"w1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"r1_1","type":"function","function":{"name":"g","arguments":"null"},"extra_content":{"s":1}}]},` +
		`{"role":"tool","tool_call_id":"w1","content":"one"},` +
		`{"role":"tool","tool_call_id":"r1_1","content":"two\nmore"},` +
		`{"role":"user","content":[{"type":"text","text":"Content of the result of f (r1_1):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},` +
		`{"role":"assistant","content":"a\n\nb","tool_calls":[{"id":"r2_0","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"r2_0","content":"three"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"deep"}],"closed":true},{"type":"text","text":"c"},{"type":"reference","ids":[1]}]},` +
		`{"role":"user","content":"go on"},` +
		`{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"refusal":"no"}]}`
	if diff := cmp.Diff(want, got) + cmp.Diff([]string{"media left out: [lost.png is not available]"}, res.Notes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	got, _ = sent(t, &model.Request{Messages: msgs[1:3]}, openaichat.Vary(openaichat.Quirks{NoThoughts: true, ShortIDs: true}))
	var short struct {
		Messages []struct {
			Thought *string `json:"reasoning_content"`
			ID      string  `json:"tool_call_id"`
			Calls   []struct{ ID string }
		}
	}
	if err := json.Unmarshal([]byte(got), &short); err != nil || short.Messages[0].Thought != nil {
		t.Errorf("%v: %s", err, got)
	}
}

func TestShortIDs(t *testing.T) {
	foreign := loop.Block{Kind: loop.BlockCall, ID: "toolu_01", Call: "r1.0", Name: "f", Args: "{}", Wire: "anthropic"}
	got, _ := sent(t, &model.Request{Messages: []*loop.Message{
		{Role: loop.Assistant, Blocks: []loop.Block{foreign}},
		{Role: loop.Tool, Blocks: []loop.Block{{Kind: loop.BlockResult, ID: "toolu_01", Call: "r1.0", Name: "f", Text: "x"}}},
	}}, openaichat.Vary(openaichat.Quirks{ShortIDs: true}))
	var b struct {
		Messages []struct {
			Calls []struct{ ID string } `json:"tool_calls"`
			ID    string                `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatal(err)
	}
	id := b.Messages[0].Calls[0].ID
	if len(id) != 9 || id != b.Messages[1].ID {
		t.Errorf("call %q, result %q", id, b.Messages[1].ID)
	}
}

// Request n+1 begins with the messages of request n, byte for byte, whatever else changes from call to call; a run that starts
// anew from the same transcript has the same bytes.
func TestPrefixStays(t *testing.T) {
	s := serve(t, ok)
	m := s.model()
	cache := &model.Cache{}
	req := &model.Request{System: "Be brief.", Messages: []*loop.Message{user("start")}, Cache: cache,
		Tools: []model.Tool{{Name: "f", Schema: []byte(`{"type":"object"}`)}}}
	png := &loop.Media{MIME: "image/png", Data: []byte("hi")}
	var before []byte
	for round := range 20 {
		req.Stream, req.Extra = round%2 == 0, fmt.Sprintf("round %d", round)
		req.Choice = []model.ToolChoice{model.ChoiceAuto, model.ChoiceNone}[round%2]
		if _, err := m.Generate(context.Background(), req, nil); err != nil {
			t.Fatal(err)
		}
		now := transcriptOf(t, s.bodies[len(s.bodies)-1])
		if !bytes.HasPrefix(now, before) {
			t.Fatalf("round %d: the request does not begin with the one before it:\n%s", round, cmp.Diff(string(before), string(now)))
		}
		before = now
		id := fmt.Sprintf("r%d.0", round)
		b := call([]string{"same", "", "own" + id}[round%3], "f", `{"n":`+fmt.Sprint(round)+`}`)
		b.Call = id
		res := loop.Block{Kind: loop.BlockResult, Call: id, ID: b.ID, Name: "f", Text: "é <b>"}
		if round%4 == 3 {
			res.More = []loop.Block{{Kind: loop.BlockMedia, Media: png}}
		}
		req.Messages = append(req.Messages,
			&loop.Message{Role: loop.Assistant, Blocks: []loop.Block{thought("hm", `{"reasoning_content":null}`), text("t"), b}},
			&loop.Message{Role: loop.Tool, Blocks: []loop.Block{res}})
		if round%5 == 4 {
			req.Messages = append(req.Messages, user("and?"))
		}
	}
	req.Cache = &model.Cache{}
	if _, err := m.Generate(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	if now := transcriptOf(t, s.bodies[len(s.bodies)-1]); !bytes.HasPrefix(now, before) {
		t.Errorf("encoded anew:\n%s", cmp.Diff(string(before), string(now)))
	}
}

// transcriptOf cuts what stands between the instructions and the end of the list.
func transcriptOf(t *testing.T, body []byte) []byte {
	_, after, ok := bytes.Cut(body, []byte(`"messages":[{"role":"system"`))
	if !ok {
		t.Fatalf("no messages in %s", body)
	}
	_, after, _ = bytes.Cut(after, []byte(`"},`))
	return bytes.TrimSuffix(after, []byte("]}"))
}
