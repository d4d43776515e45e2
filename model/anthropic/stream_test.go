package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

func decodeStream(s string) (*model.Response, error) {
	d := newDecoder(nil)
	if err := d.stream(strings.NewReader(s)); err != nil {
		return nil, err
	}
	return d.response()
}

const startEvent = `data: {"type":"message_start","message":{"id":"m","model":"c","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n"

func TestStreamFailures(t *testing.T) {
	tests := []struct {
		name, in string
		want     model.Error
	}{
		{"no end", startEvent + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}` + "\n\n",
			model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream"}},
		{"nothing", "", model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream"}},
		{"overloaded", startEvent + `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n",
			model.Error{Class: loop.ClassTransient, Lost: true, Status: 529, Code: "overloaded_error"}},
		{"bad request", `data: {"type":"error","error":{"type":"invalid_request_error","message":"no"}}` + "\n\n",
			model.Error{Class: loop.ClassFatal, Lost: true, Status: 400, Code: "invalid_request_error"}},
		{"cut in an event", startEvent + `data: {"type":"message_st`, model.Error{Class: loop.ClassTransient, Lost: true, Code: "unreadable_response"}},
	}
	for _, tt := range tests {
		_, err := decodeStream(tt.in)
		var e *model.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := model.Error{Class: e.Class, Lost: e.Lost, Status: e.Status, Code: e.Code}
		if diff := cmp.Diff(tt.want, got); diff != "" || e.Message == "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestStreamQuirks are behaviours of gateways and of the API that recordings show or may show.
func TestStreamQuirks(t *testing.T) {
	end := `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}` + "\n\n"
	tests := []struct {
		name, in string
		want     model.Response
	}{
		{"no message_stop, usage null at first, CRLF and comments", ": hi\r\n\r\n" +
			`data: {"type":"message_start","message":{"id":"m","model":"c","content":[],"usage":{"input_tokens":null,"output_tokens":null}}}` + "\r\n\r\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"output_tokens":5}}` + "\r\n\r\n" + "event: data\r\ndata: [DONE]\r\n\r\n",
			model.Response{ID: "m", Model: "c", Finish: loop.FinishStop, Usage: &loop.Usage{Input: 7, Output: 5}}},
		{"no usage at all", `data: {"type":"message_stop"}` + "\n\n", model.Response{Finish: loop.FinishStop}},
		{"a call without arguments", startEvent +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}` + "\n\n" + end,
			model.Response{ID: "m", Model: "c", Finish: loop.FinishCalls, Usage: &loop.Usage{Input: 3, Output: 5},
				Blocks: []loop.Block{{Kind: loop.BlockCall, Wire: wireName, ID: "t", Name: "f", Args: "{}"}}}},
		{"an unknown delta goes into its block", startEvent +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"a"}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"b"}}` + "\n\n" + end,
			model.Response{ID: "m", Model: "c", Finish: loop.FinishStop, Usage: &loop.Usage{Input: 3, Output: 5},
				Blocks: []loop.Block{{Kind: loop.BlockOpaque, Wire: wireName, Raw: json.RawMessage(`{"type":"compaction","content":"ab"}`)}}}},
		{"server tool input", startEvent +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":"}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1}"}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":5}}` + "\n\n",
			model.Response{ID: "m", Model: "c", Finish: loop.FinishPause, Detail: "pause_turn", Usage: &loop.Usage{Input: 3, Output: 5},
				Blocks: []loop.Block{{Kind: loop.BlockOpaque, Wire: wireName, Raw: json.RawMessage(`{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}`)}}}},
		{"the window is full", startEvent + `data: {"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}` + "\n\n",
			model.Response{ID: "m", Model: "c", Finish: loop.FinishLength, Detail: "model_context_window_exceeded", Usage: &loop.Usage{Input: 3, Output: 1}}},
		{"refused", startEvent + `data: {"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"no"}}}` + "\n\n",
			model.Response{ID: "m", Model: "c", Finish: loop.FinishFilter, Detail: "bio: no", Usage: &loop.Usage{Input: 3, Output: 1}}},
	}
	for _, tt := range tests {
		got, err := decodeStream(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got.Blocks != nil && len(got.Blocks) == 0 {
			got.Blocks = nil
		}
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// doer is a transport made of a function.
type doer func(*http.Request) (*http.Response, error)

func (f doer) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// silent blocks until the request's context is done.
func silent(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

type silentBody struct{ ctx context.Context }

func (b silentBody) Read([]byte) (int, error) { return 0, silent(b.ctx) }
func (silentBody) Close() error               { return nil }

func TestClocks(t *testing.T) {
	connected := func(r *http.Request) { httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{}) }
	sse := func(r *http.Request, first string) *http.Response {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(first), silentBody{r.Context()}), silentBody{}}}
	}
	tests := []struct {
		clock string
		lost  bool
		do    doer
	}{
		{"connect", false, func(r *http.Request) (*http.Response, error) { return nil, silent(r.Context()) }},
		{"first_byte", true, func(r *http.Request) (*http.Response, error) {
			connected(r)
			httptrace.ContextClientTrace(r.Context()).WroteHeaders()
			return nil, silent(r.Context())
		}},
		{"between_deltas", true, func(r *http.Request) (*http.Response, error) {
			connected(r)
			httptrace.ContextClientTrace(r.Context()).GotFirstResponseByte()
			return sse(r, startEvent), nil
		}},
		{"model_call", true, func(r *http.Request) (*http.Response, error) {
			connected(r)
			httptrace.ContextClientTrace(r.Context()).GotFirstResponseByte()
			in, out := io.Pipe()
			go func() {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(out, "data: {\"type\":\"ping\"}\n\n"); err != nil {
						return
					}
					select {
					case <-time.After(time.Second):
					case <-r.Context().Done():
					}
				}
				out.CloseWithError(r.Context().Err())
			}()
			res := sse(r, "")
			res.Body = in
			return res, nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.clock, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := Model("c", APIKey("k"), HTTPClient(&http.Client{Transport: tt.do}))
				req := question(true)
				req.Timeouts = model.Timeouts{Connect: 2 * time.Second, FirstByte: 3 * time.Second, BetweenDeltas: 4 * time.Second, Call: 30 * time.Second}
				_, err := m.Generate(t.Context(), req, nil)
				var e *model.Error
				if !errors.As(err, &e) || e.Clock != tt.clock || e.Class != loop.ClassTransient || e.Lost != tt.lost {
					t.Errorf("%#v", err)
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, startEvent)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer h.Close()
	_, err := Model("c", APIKey("k"), BaseURL(h.URL)).Generate(ctx, question(true), nil)
	var e *model.Error
	if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || !e.Lost || e.Clock != "" {
		t.Errorf("%#v", err)
	}
}

func TestConnectionCut(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, startEvent)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer h.Close()
	_, err := Model("c", APIKey("k"), BaseURL(h.URL)).Generate(t.Context(), question(true), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Class != loop.ClassTransient || !e.Lost {
		t.Fatalf("%#v", err)
	}
	if diff := cmp.Diff(&loop.Usage{Input: 3, Output: 1}, e.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestMissingKey(t *testing.T) {
	for _, name := range []string{KeyVariable, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID"} {
		t.Setenv(name, "")
	}
	_, err := Model("c").Generate(t.Context(), question(false), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Class != loop.ClassFatal || !strings.Contains(e.Message, KeyVariable) {
		t.Errorf("%v", err)
	}
}

// TestHeaders checks that the SDK's authentication and headers are there, on the first request and on the later ones that go the
// direct way, that a retry of the SDK is not, and the wait of a refusal.
func TestHeaders(t *testing.T) {
	var got []*http.Request
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.ContentLength != int64(len(body)) || !json.Valid(body) {
			t.Errorf("length %d: %s", r.ContentLength, body)
		}
		got = append(got, r)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(529)
		io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	}))
	defer h.Close()
	tests := map[string][]Option{
		"key": {APIKey("secret")}, "SDK's options": {APIKey("secret"), SDK(option.WithHeader("X-Own", "1"))},
	}
	for name, opts := range tests {
		got = nil
		m := Model("c", append(opts, BaseURL(h.URL))...)
		for i := range 3 {
			req := question(false)
			req.Options = map[string]any{"betas": []string{"a", "b"}}
			if i == 2 {
				req.Options = nil
			}
			_, err := m.Generate(t.Context(), req, nil)
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			e.Err = nil
			if diff := cmp.Diff(&model.Error{Class: loop.ClassTransient, Status: 529, Code: "overloaded_error", Message: "Overloaded", RetryAfter: 7 * time.Second}, e); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if len(got) != 3 {
			t.Fatalf("%s: %d requests, want 3", name, len(got))
		}
		r := got[0]
		if r.Header.Get("X-Api-Key") != "secret" || r.Header.Get("Anthropic-Version") == "" || r.URL.Path != "/v1/messages" || r.Header.Get("Anthropic-Beta") != "a,b" {
			t.Errorf("%s: %v", name, r)
		}
		if diff := cmp.Diff(r.Header, got[1].Header); diff != "" || r.URL.Path != got[1].URL.Path || r.Host != got[1].Host {
			t.Errorf("%s: the second request differs: %s", name, diff)
		}
		if got[2].Header.Get("Anthropic-Beta") != "" {
			t.Errorf("%s: betas of an earlier call", name)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(startEvent+`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`+"\n\ndata: {\"type\":\"message_stop\"}\n\n"), 3)
	f.Add([]byte(`data: {"type":"content_block_start","content_block":{"type":"x"}}`+"\n\n"+`data: {"type":"content_block_delta","delta":{"type":"y","z":"é"}}`+"\n\n"), 1)
	f.Add([]byte(`data: {"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}`+"\r\n\r\n"+`data: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`+"\n\n"+`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}`+"\n\n"), 2)
	if traffic.Dir() != "" {
		for i, r := range traffic.Load(f, "anthropic") {
			if e := &r.Exchanges[0]; e.Response.IsText() && len(e.Response.Bytes()) < 3000 && i%3 == 0 {
				f.Add(e.Response.Bytes(), i)
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		size = 1 + (size&0x7fffffff)%64
		var whole, cut *model.Response
		d := newDecoder(func(model.Delta) {})
		err := d.stream(bytes.NewReader(in))
		if err == nil {
			whole, err = d.response()
		}
		var way [][]byte
		for b := in; len(b) > 0; b = b[min(size, len(b)):] {
			way = append(way, b[:min(size, len(b))])
		}
		d = newDecoder(nil)
		err2 := d.stream(&pieces{way})
		if err2 == nil {
			cut, err2 = d.response()
		}
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, cut: %v", err, err2)
		}
		if diff := cmp.Diff(whole, cut); diff != "" {
			t.Fatal(diff)
		}
		checkTurn(t, whole)
	})
}

func FuzzWhole(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"thinking","thinking":"a","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{"a":1}},{"type":"x","y":[]}],"stop_reason":"tool_use","usage":{"input_tokens":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := newDecoder(nil)
		if d.whole(in) != nil {
			return
		}
		r, err := d.response()
		if err != nil {
			t.Fatal(err)
		}
		checkTurn(t, r)
	})
}

// checkTurn checks that whatever was decoded can go back as valid JSON.
func checkTurn(t *testing.T, r *model.Response) {
	if r == nil {
		return
	}
	b, err := Model("c", APIKey("k")).(*adapter).encode(&model.Request{Messages: []*loop.Message{user("x"), {Role: loop.Assistant, Blocks: r.Blocks}}})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := io.ReadAll(b.reader()); !json.Valid(out) {
		t.Fatalf("not valid: %q", out)
	}
}
