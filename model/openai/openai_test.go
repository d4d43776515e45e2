package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openai"
)

// server answers every request with one response and keeps the bodies that it got.
type server struct {
	*httptest.Server
	status int
	answer string
	bodies [][]byte
}

func serve(t testing.TB, answer string) *server {
	s := &server{status: 200, answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, b)
		if strings.HasPrefix(s.answer, "{") || s.answer == "" {
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) model(opts ...openai.Option) model.Model {
	return openai.Model("m", append([]openai.Option{openai.BaseURL(s.URL + "/v1"), openai.APIKey("k")}, opts...)...)
}

func (s *server) last() string { return string(s.bodies[len(s.bodies)-1]) }

func text(s string) loop.Block { return loop.Block{Kind: loop.BlockText, Text: s} }

func user(s string) *loop.Message {
	return &loop.Message{Role: loop.User, Blocks: []loop.Block{text(s)}}
}

func own(kind loop.BlockKind, raw string) loop.Block {
	return loop.Block{Kind: kind, Wire: openai.Wire, Raw: json.RawMessage(raw)}
}

func with(b loop.Block, f func(*loop.Block)) loop.Block { f(&b); return b }

func events(es ...string) string {
	var b strings.Builder
	for _, e := range es {
		var v struct{ Type string }
		_ = json.Unmarshal([]byte(e), &v)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", v.Type, e)
	}
	return b.String()
}

func whole(output string) string {
	return `{"object":"response","id":"resp_1","model":"m-1","status":"completed","output":[` + output + `],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}}`
}

var usage = &loop.Usage{Input: 6, CacheRead: 4, Output: 5, Reasoning: 2}

const (
	reasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"gAAA"}`
	function  = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"q\":1}","call_id":"call_1","name":"look"}`
	message   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u"}],"logprobs":[]},{"type":"output_text","text":"b","annotations":[]}]}`
	search    = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`
	refusal   = `{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"I won't"}]}`
)

var blocks = []loop.Block{
	with(own(loop.BlockThought, reasoning), func(b *loop.Block) { b.Text = "one\n\ntwo" }),
	with(own(loop.BlockText, `{"id":"msg_1","status":"completed","phase":"commentary","annotations":[{"type":"url_citation","url":"u"}]}`), func(b *loop.Block) { b.Text = "a" }),
	with(own(loop.BlockText, `{"id":"msg_1","status":"completed","phase":"commentary"}`), func(b *loop.Block) { b.Text = "b" }),
	own(loop.BlockOpaque, search),
	with(own(loop.BlockCall, `{"id":"fc_1","status":"completed"}`), func(b *loop.Block) { b.ID, b.Name, b.Args = "call_1", "look", `{"q":1}` }),
}

func TestResponses(t *testing.T) {
	all := strings.Join([]string{reasoning, message, search, function}, ",")
	image := `{"id":"ig_1","type":"image_generation_call","status":"completed","output_format":"webp","result":"aGk="}`
	for _, c := range []struct {
		name, answer string
		want         model.Response
	}{
		{"all kinds of items", whole(all), model.Response{Blocks: blocks, Finish: loop.FinishCalls, Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"the same, streamed", events(
			`{"type":"response.created","response":{"id":"resp_1"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":`+reasoning+`}`,
			`{"type":"response.output_item.done","output_index":1,"item":`+message+`}`,
			`{"type":"response.output_item.done","output_index":2,"item":`+search+`}`,
			`{"type":"response.output_item.done","output_index":3,"item":`+function+`}`,
			`{"type":"response.completed","response":`+whole(all)+`}`),
			model.Response{Blocks: blocks, Finish: loop.FinishCalls, Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"an end without output", events(
			`{"type":"response.output_item.done","output_index":0,"item":`+function+`}`, `{"type":"response.completed","response":`+whole("")+`}`),
			model.Response{Blocks: blocks[4:], Finish: loop.FinishCalls, Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"items out of order", events(
			`{"type":"response.output_item.done","output_index":1,"item":`+function+`}`, `{"type":"response.output_item.done","output_index":0,"item":`+reasoning+`}`,
			`{"type":"response.completed","response":`+whole("")+`}`),
			model.Response{Blocks: []loop.Block{blocks[0], blocks[4]}, Finish: loop.FinishCalls, Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"cut within an item, and the end has no output", events(
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"look"}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"q\""}`,
			`{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`),
			model.Response{Blocks: []loop.Block{with(own(loop.BlockCall, `{"id":"fc_1","status":"in_progress"}`), func(b *loop.Block) { b.ID, b.Name, b.Args = "call_1", "look", `{"q"` })},
				Finish: loop.FinishLength, Detail: "max_output_tokens", ID: "resp_1"}},
		{"refusal", whole(refusal), model.Response{Blocks: []loop.Block{own(loop.BlockOpaque, refusal)}, Finish: loop.FinishFilter, Detail: "I won't", Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"filtered", `{"id":"r","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`,
			model.Response{Finish: loop.FinishFilter, Detail: "content_filter", ID: "r"}},
		{"an image of the provider's tool", whole(image), model.Response{Blocks: []loop.Block{with(own(loop.BlockMedia, `{"id":"ig_1","type":"image_generation_call","status":"completed","output_format":"webp"}`),
			func(b *loop.Block) { b.Media = &loop.Media{MIME: "image/webp", Data: []byte("hi")} })}, Finish: loop.FinishStop, Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"a thought that the model shows", whole(`{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"so"}]}`),
			model.Response{Blocks: []loop.Block{with(own(loop.BlockThought, `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"so"}]}`), func(b *loop.Block) { b.Text = "so" })},
				Finish: loop.FinishStop, Usage: usage, Model: "m-1", ID: "resp_1"}},
		{"a stream although none was asked for, with comments and a sentinel", ": hello\n\n" + events(`{"type":"response.output_item.done","item":`+function+`}`) + "data: [DONE]\n\n",
			model.Response{Blocks: blocks[4:], Finish: loop.FinishCalls}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			got, err := s.model().Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: strings.HasPrefix(c.answer, "event:")}, func(model.Delta) {})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		status       int
		want         model.Error // Message is a part of it
	}{
		{"the previous response is gone", `{"error":{"message":"Previous response with id 'r' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`, 400,
			model.Error{Class: loop.ClassTransient, Status: 400, Code: "previous_response_not_found", Gone: true, Message: "not found"}},
		{"the same without a code", `{"error":{"message":"Response not found","type":"invalid_request_error","param":"previous_response_id","code":null}}`, 404,
			model.Error{Class: loop.ClassTransient, Status: 404, Code: "invalid_request_error", Gone: true, Message: "not found"}},
		{"failed", `{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"An error"},"output":[]}`, 200,
			model.Error{Class: loop.ClassTransient, Code: "server_error", Lost: true, Message: "An error"}},
		{"failed with usage and a wait", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Please try again in 2s."},"usage":{"input_tokens":3,"output_tokens":1}}}`), 200,
			model.Error{Class: loop.ClassTransient, Code: "rate_limit_exceeded", RetryAfter: 2 * time.Second, Usage: &loop.Usage{Input: 3, Output: 1}, Message: "try again"}},
		{"window in mid-stream", events(`{"type":"error","code":"context_length_exceeded","message":"too long","param":null}`), 200,
			model.Error{Class: loop.ClassInvalid, Code: "context_length_exceeded", Window: true, Message: "too long"}},
		{"error with an object", events(`{"type":"error","error":{"type":"invalid_request_error","code":"invalid_prompt","message":"no"}}`), 200,
			model.Error{Class: loop.ClassFatal, Code: "invalid_prompt", Message: "no"}},
		{"in the background", `{"id":"r","object":"response","status":"queued","output":[]}`, 200,
			model.Error{Class: loop.ClassFatal, Code: "queued", Message: "background"}},
		{"cancelled", `{"id":"r","object":"response","status":"cancelled","output":[]}`, 200,
			model.Error{Class: loop.ClassTransient, Code: "cancelled", Lost: true, Message: "cancelled"}},
		{"no end", events(`{"type":"response.output_item.done","output_index":0,"item":` + function + `}`), 200,
			model.Error{Class: loop.ClassTransient, Code: "incomplete_stream", Lost: true, Message: "neither"}},
		{"nothing", `{}`, 200, model.Error{Class: loop.ClassTransient, Code: "no_response", Lost: true, Message: "no response"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			s.status = c.status
			_, err := s.model().Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}}, nil)
			got, ok := err.(*model.Error)
			if !ok {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(got.Message, c.want.Message) {
				t.Errorf("message %q, want %q in it", got.Message, c.want.Message)
			}
			have := *got
			have.Message, have.Err = c.want.Message, nil
			if diff := cmp.Diff(c.want, have); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

const head = `{"model":"m","store":false,"include":["reasoning.encrypted_content"]`

func TestRequest(t *testing.T) {
	look := model.Tool{Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)}
	hi := []*loop.Message{user("hi")}
	const input = `,"input":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct {
		name string
		req  model.Request
		opts []openai.Option
		want string
	}{
		{"plain", model.Request{Messages: hi}, nil, head + input},
		{"instructions, streamed, capped", model.Request{System: "Be brief.", Extra: "Close.", Messages: hi, Stream: true, MaxOutput: 99}, nil,
			`{"model":"m","stream":true,"instructions":"Be brief.\n\nClose.","max_output_tokens":99,"store":false,"include":["reasoning.encrypted_content"]` + input},
		{"tools and none of them", model.Request{Messages: hi, Tools: []model.Tool{look}, Choice: model.ChoiceNone}, nil,
			`{"model":"m","tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object","properties":{"q":{"type":"string"}}},"strict":false}],"tool_choice":"none","store":false,"include":["reasoning.encrypted_content"]` + input},
		{"named", model.Request{Messages: hi, Tools: []model.Tool{look}, Choice: "look"}, nil,
			`{"model":"m","tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object","properties":{"q":{"type":"string"}}},"strict":false}],"tool_choice":{"type":"function","name":"look"},"store":false,"include":["reasoning.encrypted_content"]` + input},
		{"stored", model.Request{Messages: hi}, []openai.Option{openai.Store()}, `{"model":"m","store":true` + input},
		{"stored by the agent file, with what to include", model.Request{Messages: hi, Options: map[string]any{"store": true, "include": []any{"web_search_call.results"}}}, nil,
			`{"model":"m","store":true,"include":["web_search_call.results"]` + input},
		{"output and verbosity, effort", model.Request{Messages: hi, Output: []byte(`{"type":"object","properties":{},"required":[]}`),
			Options: map[string]any{"text": map[string]any{"verbosity": "low"}, "reasoning_effort": "low", "reasoning": map[string]any{"summary": "auto"}}}, nil,
			head + `,"text":{"format":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true,"type":"json_schema"},"verbosity":"low"},"reasoning":{"effort":"low","summary":"auto"}` + input},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, whole(""))
			if _, err := s.model(c.opts...).Generate(context.Background(), &c.req, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.last()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, options := range []map[string]any{{"input": 1}, {"text": "low"}, {"include": "x"}, {"include": []any{1}}} {
		s := serve(t, whole(""))
		_, err := s.model().Generate(context.Background(), &model.Request{Messages: hi, Options: options}, nil)
		if e, ok := err.(*model.Error); !ok || e.Class != loop.ClassFatal || len(s.bodies) > 0 {
			t.Errorf("options %v: %v, %d requests", options, err, len(s.bodies))
		}
	}
}

// A turn of the model goes back byte for byte where it is opaque, and in its order.
func TestItemsGoBack(t *testing.T) {
	s := serve(t, whole(""))
	turn := append([]loop.Block(nil), blocks...)
	turn[4].Call = "r1.0"
	req := &model.Request{Messages: []*loop.Message{
		user("x"),
		{Role: loop.Assistant, Blocks: turn},
		{Role: loop.Tool, Blocks: []loop.Block{
			{Kind: loop.BlockResult, ID: "call_1", Call: "r1.0", Text: "found", More: []loop.Block{{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/png", Data: []byte("hi")}}}}}},
		{Role: loop.Assistant, Blocks: []loop.Block{
			{Kind: loop.BlockThought, Wire: "anthropic", Text: "t", Raw: json.RawMessage(`{"signature":"s"}`)}, {Kind: loop.BlockOpaque, Wire: "gemini", Raw: json.RawMessage(`{}`)},
			{Kind: loop.BlockText, Text: "c", Wire: "gemini", Raw: json.RawMessage(`{"id":"g"}`)},
			{Kind: loop.BlockCall, ID: "toolu_1", Call: "r2.0", Name: "look", Args: "", Wire: "anthropic", Raw: json.RawMessage(`{"id":"x"}`)}}},
		{Role: loop.Tool, Blocks: []loop.Block{{Kind: loop.BlockResult, ID: "toolu_1", Call: "r2.0", Text: "two"}}},
		{Role: loop.Assistant, Blocks: []loop.Block{own(loop.BlockOpaque, refusal)}},
		{Role: loop.User, Blocks: []loop.Block{text("see"), {Kind: loop.BlockMedia, Media: &loop.Media{MIME: "application/pdf", Data: []byte("hi")}}}},
	}}
	if _, err := s.model().Generate(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	want := head + `,"input":[{"role":"user","content":"x"},` + reasoning +
		`,{"type":"message","role":"assistant","id":"msg_1","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u"}]},{"type":"output_text","text":"b","annotations":[]}]},` + search +
		`,{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"q\":1}","id":"fc_1","status":"completed"}` +
		`,{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"found"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,aGk="}]}` +
		`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"c","annotations":[]}]}` +
		`,{"type":"function_call","call_id":"r2_0","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"r2_0","output":"two"},` + refusal +
		`,{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_file","filename":"file","file_data":"data:application/pdf;base64,aGk="}]}]}`
	if diff := cmp.Diff(want, s.last()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// OpenAI itself looks items up by their ids: a thought that was neither stored nor encrypted stays away, and the items that came
// with it lose their ids.
func TestThoughtsThatCannotGoBack(t *testing.T) {
	var body []byte
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(whole(""))), ContentLength: -1, Request: r}, nil
	})}
	t.Setenv("OPENAI_BASE_URL", "")
	bare := own(loop.BlockThought, `{"id":"rs_1","type":"reasoning","summary":[]}`)
	req := &model.Request{Messages: []*loop.Message{user("x"), {Role: loop.Assistant, Blocks: []loop.Block{bare, blocks[4]}}, user("y")}}
	for _, c := range []struct {
		name string
		opts []openai.Option
		want string
	}{
		{"not stored", nil, `{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"q\":1}"},`},
		{"stored", []openai.Option{openai.Store()}, string(bare.Raw) + `,{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"q\":1}","id":"fc_1","status":"completed"},`},
	} {
		req.Cache = &model.Cache{}
		m := openai.Model("gpt-5", append(c.opts, openai.APIKey("k"), openai.HTTPClient(client))...)
		if _, err := m.Generate(context.Background(), req, nil); err != nil {
			t.Fatal(err)
		}
		_, got, _ := bytes.Cut(body, []byte(`"input":[{"role":"user","content":"x"},`))
		if diff := cmp.Diff(c.want+`{"role":"user","content":"y"}]}`, string(got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
}

func TestEncryptedContentRefused(t *testing.T) {
	s := serve(t, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`)
	s.status = 400
	m := s.model()
	req := &model.Request{Messages: []*loop.Message{user("x")}}
	_, err := m.Generate(context.Background(), req, nil)
	if e, ok := err.(*model.Error); !ok || e.Class != loop.ClassTransient {
		t.Fatalf("%#v", err)
	}
	s.status, s.answer = 200, whole("")
	if _, err := m.Generate(context.Background(), req, nil); err != nil || strings.Contains(s.last(), "include") {
		t.Errorf("%v: %s", err, s.last())
	}
}

func TestDeltas(t *testing.T) {
	s := serve(t, events(
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"one"}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"two","obfuscation":"xx"}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+reasoning+`}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","arguments":"","call_id":"call_1","name":"look"}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"q\":1}"}`,
		`{"type":"response.output_item.done","output_index":1,"item":`+function+`}`,
		`{"type":"response.output_item.done","output_index":2,"item":`+strings.ReplaceAll(function, "_1", "_2")+`}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":3,"content_index":0,"delta":"a"}`,
		`{"type":"response.completed","response":`+whole("")+`}`))
	var got []model.Delta
	if _, err := s.model().Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: true}, func(d model.Delta) { got = append(got, d) }); err != nil {
		t.Fatal(err)
	}
	want := []model.Delta{
		{Channel: model.Thought, Text: "one"},
		{Channel: model.Thought, Text: "\n\ntwo"},
		{Channel: model.Arguments, Block: 1, Name: "look", ID: "call_1"},
		{Channel: model.Arguments, Block: 1, Text: `{"q":1}`},
		{Channel: model.Arguments, Block: 2, Name: "look", ID: "call_2", Text: `{"q":1}`},
		{Channel: model.Text, Block: 3, Text: "a"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
