package openaichat_test

import (
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
	"github.com/ronda-go/ronda/model/openaichat"
)

// server answers every request with one response and keeps the bodies that it got.
type server struct {
	*httptest.Server
	status int
	typ    string
	header map[string]string
	answer string
	bodies [][]byte
	last   *http.Request
}

func serve(t testing.TB, answer string) *server {
	s := &server{status: 200, typ: "application/json", answer: answer}
	if strings.HasPrefix(answer, "data:") || strings.HasPrefix(answer, ":") || strings.HasPrefix(answer, "event:") {
		s.typ = "text/event-stream"
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.bodies, s.last = append(s.bodies, b), r
		w.Header().Set("Content-Type", s.typ)
		for k, v := range s.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) model(opts ...openaichat.Option) model.Model {
	return openaichat.Model("m", append([]openaichat.Option{openaichat.BaseURL(s.URL + "/v1"), openaichat.APIKey("k")}, opts...)...)
}

func user(text string) *loop.Message {
	return &loop.Message{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: text}}}
}

// stream makes a stream of chunks; the delta or finish of each is written out.
func stream(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "data: %s\n\n", c)
	}
	return b.String()
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

func call(id, name, args string, raw ...string) loop.Block {
	b := loop.Block{Kind: loop.BlockCall, ID: id, Name: name, Args: args, Wire: openaichat.Wire}
	if raw != nil {
		b.Raw = json.RawMessage(raw[0])
	}
	return b
}

func text(s string) loop.Block { return loop.Block{Kind: loop.BlockText, Text: s} }

func thought(s, raw string) loop.Block {
	return loop.Block{Kind: loop.BlockThought, Text: s, Wire: openaichat.Wire, Raw: json.RawMessage(raw)}
}

func opaque(raw string) loop.Block {
	return loop.Block{Kind: loop.BlockOpaque, Wire: openaichat.Wire, Raw: json.RawMessage(raw)}
}

func TestResponses(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         model.Response
	}{
		{"leading chunk without choices", stream(`{"choices":[],"prompt_filter_results":[]}`, delta(`{"content":"a"}`), stop, "[DONE]"),
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishStop}},
		{"no [DONE]", stream(delta(`{"content":"a"}`), stop),
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishStop}},
		{"[DONE] without a finish reason", stream(delta(`{"content":"a"}`), "[DONE]"),
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishStop}},
		{"nothing but an end", stream(stop, "[DONE]"), model.Response{Finish: loop.FinishStop}},
		{"usage in the last chunk", stream(delta(`{"content":"a"}`), stop, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`, "[DONE]"),
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishStop, Usage: &loop.Usage{Input: 5, CacheRead: 4, Output: 3, Reasoning: 2}}},
		{"usage of Groq", stream(stop, `{"choices":[],"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":3}}}`),
			model.Response{Finish: loop.FinishStop, Usage: &loop.Usage{Input: 9, Output: 3}}},
		{"usage of Moonshot", stream(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":3,"cached_tokens":8}}]}`),
			model.Response{Finish: loop.FinishStop, Usage: &loop.Usage{Input: 1, CacheRead: 8, Output: 3}}},
		{"thoughts that are only in the total", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":50}}`,
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishStop, Usage: &loop.Usage{Input: 10, Output: 40, Reasoning: 38}}},
		{"parallel deltas interleaved", stream(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`),
			delta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x"}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"y\":1}"}},{"index":1,"function":{"arguments":"\":2}"}}]}`),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`),
			model.Response{Blocks: []loop.Block{call("a", "f", `{"y":1}`), call("b", "g", `{"x":2}`)}, Finish: loop.FinishCalls}},
		{"always index 0, ids differ", stream(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}`), stop),
			model.Response{Blocks: []loop.Block{call("a", "f", `{}`), call("b", "f", `{}`)}, Finish: loop.FinishCalls}},
		{"always index 0, no ids", stream(
			delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]}`), stop),
			model.Response{Blocks: []loop.Block{call("", "f", `{}`), call("", "f", `{}`)}, Finish: loop.FinishCalls}},
		{"no index", stream(
			delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}`), stop),
			model.Response{Blocks: []loop.Block{call("a", "f", `{}`), call("b", "g", `{}`)}, Finish: loop.FinishCalls}},
		{"id and name on each delta", stream(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}`), stop),
			model.Response{Blocks: []loop.Block{call("a", "f", `{"x":1}`)}, Finish: loop.FinishCalls}},
		{"the same id twice in one message", `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			model.Response{Blocks: []loop.Block{call("a", "f", `{}`), call("a", "f", `{}`)}, Finish: loop.FinishCalls}},
		{"arguments that are none", `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}},{"id":"b","function":{"name":"f","arguments":"null"}},{"id":"c","function":{"name":"f"}},{"id":"d","function":{"name":"f","arguments":{"x":1}}}]},"finish_reason":"tool_calls"}]}`,
			model.Response{Blocks: []loop.Block{call("a", "f", `{}`), call("b", "f", `{}`, `{"arguments":"null"}`), call("c", "f", `{}`), call("d", "f", `{"x":1}`)}, Finish: loop.FinishCalls}},
		{"arguments that are no JSON stay", `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\": tru"}}]},"finish_reason":"length"}]}`,
			model.Response{Blocks: []loop.Block{call("a", "f", `{"x": tru`)}, Finish: loop.FinishLength}},
		{"finish says calls and there are none", `{"choices":[{"message":{"content":"a"},"finish_reason":"tool_calls"}]}`,
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishStop}},
		{"the old form of a call", stream(delta(`{"function_call":{"name":"f","arguments":"{\"x\""}}`), delta(`{"function_call":{"arguments":":1}"}}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}`),
			model.Response{Blocks: []loop.Block{call("", "f", `{"x":1}`)}, Finish: loop.FinishCalls}},
		{"Google's signature of a call", `{"choices":[{"message":{"tool_calls":[{"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s=="}},"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			model.Response{Blocks: []loop.Block{call("a", "f", `{}`, `{"extra_content":{"google":{"thought_signature":"s=="}}}`)}, Finish: loop.FinishCalls}},
		{"Google's signature of a message", `{"choices":[{"message":{"content":"a","extra_content":{"google":{"thought_signature":"s=="}}},"finish_reason":"stop"}]}`,
			model.Response{Blocks: []loop.Block{text("a"), opaque(`{"extra_content":{"google":{"thought_signature":"s=="}}}`)}, Finish: loop.FinishStop}},
		{"thoughts in reasoning_content", stream(delta(`{"reasoning_content":"a"}`), delta(`{"reasoning_content":"b"}`), delta(`{"content":"c"}`), stop),
			model.Response{Blocks: []loop.Block{thought("ab", `{"reasoning_content":null}`), text("c")}, Finish: loop.FinishStop}},
		{"thoughts in two members", `{"choices":[{"message":{"content":"c","reasoning":"a","reasoning_content":"a"},"finish_reason":"stop"}]}`,
			model.Response{Blocks: []loop.Block{thought("a", `{"reasoning":null,"reasoning_content":null}`), text("c")}, Finish: loop.FinishStop}},
		{"reasoning_details", stream(
			delta(`{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"f","index":0,"signature":null}]}`),
			delta(`{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","format":"f","index":0,"signature":"s"}]}`),
			delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x==","format":"f","index":1}]}`), stop),
			model.Response{Blocks: []loop.Block{thought("ab", `{"reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"signature":"s","text":"ab"},{"type":"reasoning.encrypted","data":"x==","format":"f","index":1}]}`)}, Finish: loop.FinishStop}},
		{"Mistral's thoughts among the content", stream(
			delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}`),
			delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"b"}],"closed":true}]}`), delta(`{"content":"c"}`), stop),
			model.Response{Blocks: []loop.Block{thought("ab", `{"part":{"closed":true}}`), text("c")}, Finish: loop.FinishStop}},
		{"a part that nobody knows", `{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"reference","ids":[1]}]},"finish_reason":"stop"}]}`,
			model.Response{Blocks: []loop.Block{text("a"), opaque(`{"part":{"type":"reference","ids":[1]}}`)}, Finish: loop.FinishStop}},
		{"an image", `{"choices":[{"message":{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},"finish_reason":"stop"}]}`,
			model.Response{Blocks: []loop.Block{{Kind: loop.BlockMedia, Wire: openaichat.Wire, Media: &loop.Media{MIME: "image/png", Data: []byte("hi")},
				Raw: json.RawMessage(`{"part":{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}}`)}}, Finish: loop.FinishStop}},
		{"refusal", stream(delta(`{"refusal":"I "}`), delta(`{"refusal":"won't"}`), stop),
			model.Response{Blocks: []loop.Block{opaque(`{"refusal":"I won't"}`)}, Finish: loop.FinishFilter, Detail: "I won't"}},
		{"content filter", `{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`,
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishFilter, Detail: "content_filter"}},
		{"a prompt that Azure refuses", `{"error":{"message":"filtered","code":"content_filter","status":400}}`,
			model.Response{Finish: loop.FinishFilter, Detail: "filtered"}},
		{"Groq: a call that it cannot parse", stream(delta(`{"content":"a"}`)) + "event: error\ndata: {\"error\":{\"message\":\"failed\",\"code\":\"tool_use_failed\",\"failed_generation\":\"<f>\",\"status_code\":400}}\n\n",
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishMalformed, Detail: "failed: <f>"}},
		{"more choices than asked for", `{"choices":[{"index":1,"message":{"content":"b"},"finish_reason":"stop"},{"index":0,"message":{"content":"a"},"finish_reason":"length"}]}`,
			model.Response{Blocks: []loop.Block{text("a")}, Finish: loop.FinishLength}},
		{"a character in two deltas", "data: " + `{"choices":[{"index":0,"delta":{"content":"x` + "\xf0\x9f" + `"}}]}` + "\n\ndata: " + `{"choices":[{"index":0,"delta":{"content":"` + "\x98\x80" + `y"}}]}` + "\n\n" + stream(stop),
			model.Response{Blocks: []loop.Block{text("x😀y")}, Finish: loop.FinishStop}},
		{"half a character", "data: " + `{"choices":[{"index":0,"delta":{"content":"x` + "\xf0\x9f" + `"}}]}` + "\n\n" + stream(stop),
			model.Response{Blocks: []loop.Block{text("x\ufffd")}, Finish: loop.FinishStop}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			var said said
			got, err := s.model().Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: s.typ != "application/json"}, said.sink)
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
		header       map[string]string
		want         model.Error // Message is a part of it
	}{
		{"rate limit", `{"error":{"message":"Rate limit reached. Please try again in 6.5s.","type":"tokens","code":"rate_limit_exceeded"}}`, 429, nil,
			model.Error{Class: loop.ClassTransient, Status: 429, Code: "rate_limit_exceeded", RetryAfter: 6500 * time.Millisecond, Message: "Rate limit"}},
		{"Azure's wait", `{"error":{"code":"429","message":"Please retry after 7 seconds."}}`, 429, nil,
			model.Error{Class: loop.ClassTransient, Status: 429, Code: "429", RetryAfter: 7 * time.Second, Message: "retry after"}},
		{"quota", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, 429, nil,
			model.Error{Class: loop.ClassFatal, Status: 429, Code: "insufficient_quota", Message: "quota"}},
		{"out of credit", `{"error":{"message":"Insufficient credits","code":402}}`, 402, nil,
			model.Error{Class: loop.ClassFatal, Status: 402, Code: "402", Message: "credits"}},
		{"overloaded", `overloaded`, 529, map[string]string{"Retry-After": "3"},
			model.Error{Class: loop.ClassTransient, Status: 529, RetryAfter: 3 * time.Second, Message: "overloaded"}},
		{"a gateway that gave up", `<html>`, 504, nil, model.Error{Class: loop.ClassTransient, Status: 504, Lost: true, Message: "<html>"}},
		{"conflict", `{}`, 409, nil, model.Error{Class: loop.ClassTransient, Status: 409, Message: "Conflict"}},
		{"window", `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 400, nil,
			model.Error{Class: loop.ClassInvalid, Status: 400, Code: "context_length_exceeded", Window: true, Message: "maximum"}},
		{"window of llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, 400, nil,
			model.Error{Class: loop.ClassInvalid, Status: 400, Code: "exceed_context_size_error", Window: true, Message: "context size"}},
		{"too large", ``, 413, nil, model.Error{Class: loop.ClassInvalid, Status: 413, Window: true, Message: "Request Entity Too Large"}},
		{"key", `{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}`, 401, nil,
			model.Error{Class: loop.ClassFatal, Status: 401, Code: "invalid_api_key", Message: "Incorrect"}},
		{"Google's list", `[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`, 503, nil,
			model.Error{Class: loop.ClassTransient, Status: 503, Code: "503", Message: "busy"}},
		{"error in mid-stream", stream(delta(`{"content":"a"}`), `{"error":{"message":"Provider disconnected","code":502}}`), 200, nil,
			model.Error{Class: loop.ClassTransient, Status: 502, Code: "502", Lost: true, Message: "disconnected"}},
		{"error in mid-stream with usage", stream(`{"error":{"message":"busy","code":503},"usage":{"prompt_tokens":1,"completion_tokens":2}}`), 200, nil,
			model.Error{Class: loop.ClassTransient, Status: 503, Code: "503", Message: "busy", Usage: &loop.Usage{Input: 1, Output: 2}}},
		{"an error nobody has a name for", stream(`{"error":"boom"}`), 200, nil, model.Error{Class: loop.ClassTransient, Lost: true, Message: "boom"}},
		{"no end", stream(delta(`{"content":"a"}`)), 200, nil,
			model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream", Message: "neither an end marker nor a finish reason"}},
		{"an empty stream", "data:\n\n", 200, nil, model.Error{Class: loop.ClassTransient, Lost: true, Code: "no_json", Message: "no JSON"}},
		{"half an event", "data: {\"choices\":[{\"delta\":{\"content\"", 200, nil,
			model.Error{Class: loop.ClassTransient, Lost: true, Code: "no_json", Message: "no JSON"}},
		{"no choice", `{"choices":[]}`, 200, nil, model.Error{Class: loop.ClassTransient, Lost: true, Code: "no_choice", Message: "no choice"}},
		{"DeepSeek breaks off", `{"choices":[{"message":{"content":"a"},"finish_reason":"insufficient_system_resource"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, 200, nil,
			model.Error{Class: loop.ClassTransient, Code: "insufficient_system_resource", Message: "resources", Usage: &loop.Usage{Input: 1, Output: 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			s.status, s.header = c.status, c.header
			m := s.model()
			for range 2 { // the first request goes through the SDK, the second as the SDK made the first
				_, err := m.Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: true}, nil)
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
			}
		})
	}
}

func TestKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	_, err := openaichat.Model("gpt-4.1").Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}}, nil)
	if e, ok := err.(*model.Error); !ok || e.Class != loop.ClassFatal || e.Lost || !strings.Contains(e.Message, "OPENAI_API_KEY") || !strings.Contains(e.Message, "--scripted") {
		t.Errorf("OpenAI without a key: %v", err)
	}
	s := serve(t, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)
	ask := func() string {
		m := openaichat.Model("m", openaichat.BaseURL(s.URL+"/v1"))
		for range 2 {
			if _, err := m.Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		return s.last.Header.Get("Authorization") + " " + s.last.URL.Path
	}
	if got := ask(); got != " /v1/chat/completions" {
		t.Errorf("a local server without a key: %q", got)
	}
	t.Setenv("OPENAI_API_KEY", "from-env")
	t.Setenv("OPENAI_ORG_ID", "org")
	if got := ask(); got != "Bearer from-env /v1/chat/completions" || s.last.Header.Get("OpenAI-Organization") != "" {
		t.Errorf("with a key: %q, organisation %q", got, s.last.Header.Get("OpenAI-Organization"))
	}
}

func TestConnectionRefused(t *testing.T) {
	s := serve(t, "")
	m := s.model()
	s.Close()
	_, err := m.Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}}, nil)
	if e, ok := err.(*model.Error); !ok || e.Class != loop.ClassTransient || e.Lost {
		t.Errorf("%#v", err)
	}
}

// A call that is cancelled while the provider is silent ends at once and says that the request had left.
func TestCancel(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(arrived)
		<-release
	}))
	defer ts.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	_, err := openaichat.Model("m", openaichat.BaseURL(ts.URL)).Generate(ctx, &model.Request{Messages: []*loop.Message{user("x")}, Stream: true}, nil)
	if e, ok := err.(*model.Error); !ok || !e.Lost || e.Err != context.Canceled {
		t.Errorf("%#v", err)
	}
}

// A connection that is cut in the body of a whole response, and in a stream, is a lost attempt.
func TestCutConnection(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			c, _, _ := w.(http.Hijacker).Hijack()
			head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"choices\":"
			if streamed {
				head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 500\r\n\r\ndata: " + stop + "\n\n"
			}
			_, _ = io.WriteString(c, head)
			_ = c.Close()
		}))
		_, err := openaichat.Model("m", openaichat.BaseURL(ts.URL)).Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: streamed}, nil)
		if e, ok := err.(*model.Error); !ok || !e.Lost || e.Class != loop.ClassTransient {
			t.Errorf("stream %v: %#v", streamed, err)
		}
		ts.Close()
	}
}

func TestDeltas(t *testing.T) {
	s := serve(t, stream(
		delta(`{"reasoning_content":"hm"}`), delta(`{"content":"a"}`), delta(`{"content":""}`),
		delta(`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":""}}]}`),
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`),
		delta(`{"tool_calls":[{"index":1,"id":"j","function":{"name":"g","arguments":"{}"}}]}`),
		stop, "[DONE]"))
	var got []model.Delta
	if _, err := s.model().Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: true}, func(d model.Delta) { got = append(got, d) }); err != nil {
		t.Fatal(err)
	}
	want := []model.Delta{
		{Channel: model.Thought, Text: "hm"},
		{Channel: model.Text, Block: 1, Text: "a"},
		{Channel: model.Arguments, Block: 2, Name: "f", ID: "i"},
		{Channel: model.Arguments, Block: 2, Text: "{}"},
		{Channel: model.Arguments, Block: 3, Name: "g", ID: "j", Text: "{}"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
