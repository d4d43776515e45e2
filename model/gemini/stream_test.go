package gemini

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

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

func decode(s string) (*model.Response, error) {
	d := &decoder{}
	if err := d.read(strings.NewReader(s), -1); err != nil {
		return nil, err
	}
	return d.response()
}

const hiFrame = `data: {"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":3}}` + "\r\n\r\n"

func TestFailures(t *testing.T) {
	tests := []struct {
		name, in string
		want     model.Error
	}{
		{"no finish reason", hiFrame, model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream"}},
		{"nothing", "", model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream"}},
		{"an empty array", "[]", model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream"}},
		{"no candidates", `{"usageMetadata":{"promptTokenCount":3}}`, model.Error{Class: loop.ClassTransient, Lost: true, Code: "no_candidates"}},
		{"error in mid-stream", hiFrame + `data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}` + "\r\n\r\n",
			model.Error{Class: loop.ClassTransient, Lost: true, Status: 503, Code: "UNAVAILABLE"}},
		{"error in an array, without a code", `[{"error":{"message":"no","status":"PERMISSION_DENIED"}}]`,
			model.Error{Class: loop.ClassFatal, Lost: true, Status: 403, Code: "PERMISSION_DENIED"}},
		{"a wait in mid-stream", hiFrame + `data: {"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}` + "\n\n",
			model.Error{Class: loop.ClassTransient, Lost: true, Status: 429, Code: "RESOURCE_EXHAUSTED", RetryAfter: 3500 * time.Millisecond}},
		{"cut in a frame", hiFrame + `data: {"candid`, model.Error{Class: loop.ClassTransient, Lost: true, Code: "unreadable_response"}},
		{"no JSON", "<html>", model.Error{Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream"}},
	}
	for _, tt := range tests {
		_, err := decode(tt.in)
		var e *model.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := model.Error{Class: e.Class, Lost: e.Lost, Status: e.Status, Code: e.Code, RetryAfter: e.RetryAfter}
		if diff := cmp.Diff(tt.want, got); diff != "" || e.Message == "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if _, err := decode(`[{"candidates":[{"content":`); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an array that is cut: %v", err)
	}
}

// TestQuirks are behaviours that recordings show or may show.
func TestQuirks(t *testing.T) {
	sign := json.RawMessage(`{"thoughtSignature":"s"}`)
	tests := []struct {
		name, in string
		want     model.Response
	}{
		{"texts are joined up to a signature, in any form",
			`[{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"text":"b","thought":true},{"text":"c"}]}}]}` + "\n,\r\n" +
				`{"candidates":[{"content":{"parts":[{"text":"d"},{"text":"","thoughtSignature":"s"},{"text":"e"}]},"finishReason":"STOP"}]}]`,
			model.Response{Finish: loop.FinishStop, Blocks: []loop.Block{
				{Kind: loop.BlockThought, Wire: wireName, Text: "ab"}, {Kind: loop.BlockText, Wire: wireName, Text: "cd"},
				{Kind: loop.BlockText, Wire: wireName, Raw: sign}, {Kind: loop.BlockText, Wire: wireName, Text: "e"}}}},
		{"other candidates are not read", `{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},{"index":0,"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}`,
			model.Response{Finish: loop.FinishStop, Blocks: []loop.Block{{Kind: loop.BlockText, Wire: wireName, Text: "yes"}}}},
		{"a call of no arguments, an image, code", `{"responseId":"r","modelVersion":"m","candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"inlineData":{"mimeType":"image/png","data":"YWJj"}},{"executableCode":{"code":"1"}}]},"finishReason":"STOP"}],` +
			`"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"toolUsePromptTokenCount":2,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":24}}`,
			model.Response{ID: "r", Model: "m", Finish: loop.FinishCalls, Usage: &loop.Usage{Input: 8, CacheRead: 4, Output: 12, Reasoning: 7}, Blocks: []loop.Block{
				{Kind: loop.BlockCall, Wire: wireName, Name: "f", Args: "{}"}, {Kind: loop.BlockMedia, Wire: wireName, Media: &loop.Media{MIME: "image/png", Data: []byte("abc")}},
				{Kind: loop.BlockOpaque, Wire: wireName, Raw: json.RawMessage(`{"executableCode":{"code":"1"}}`)}}}},
		{"the prompt is blocked", `{"promptFeedback":{"blockReason":"SAFETY"}}`, model.Response{Finish: loop.FinishFilter, Detail: "SAFETY"}},
		{"a reason that nobody knows", `{"candidates":[{"finishReason":"NEW"}]}`, model.Response{Finish: loop.FinishFilter, Detail: "NEW"}},
		{"a gateway's number", `{"candidates":[{"finishReason":3}]}`, model.Response{Finish: loop.FinishFilter, Detail: "SAFETY"}},
		{"paths of arguments", `[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","id":"i","willContinue":true},"thoughtSignature":"s"}]}}]},` +
			`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[1]['x y']","numberValue":1},{"jsonPath":"$.b","stringValue":"q","willContinue":true},{"jsonPath":"$.a[999999999]","boolValue":true},{"jsonPath":"$.c","nullValue":"NULL_VALUE"}],"willContinue":true}}]}}]},` +
			`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.b","stringValue":"\"r"}]}}]},"finishReason":"STOP"}]}]`,
			model.Response{Finish: loop.FinishCalls, Blocks: []loop.Block{{Kind: loop.BlockCall, Wire: wireName, Name: "f", ID: "i", Raw: sign, Args: `{"a":[null,{"x y":1}],"b":"q\"r","c":null}`}}}},
	}
	for _, tt := range tests {
		got, err := decode(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
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
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(hiFrame), silentBody{r.Context()}), silentBody{}}}, nil
		}},
		{"model_call", true, func(r *http.Request) (*http.Response, error) {
			connected(r)
			httptrace.ContextClientTrace(r.Context()).GotFirstResponseByte()
			in, out := io.Pipe()
			go func() {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(out, hiFrame); err != nil {
						return
					}
					select {
					case <-time.After(time.Second):
					case <-r.Context().Done():
					}
				}
				out.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: in}, nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.clock, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := Model("g", APIKey("k"), HTTPClient(&http.Client{Transport: tt.do}))
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
		io.WriteString(w, hiFrame)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer h.Close()
	_, err := Model("g", APIKey("k"), BaseURL(h.URL)).Generate(ctx, question(true), nil)
	var e *model.Error
	if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || !e.Lost || e.Clock != "" {
		t.Errorf("%#v", err)
	}
}

func TestConnectionCut(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, hiFrame)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer h.Close()
	_, err := Model("g", APIKey("k"), BaseURL(h.URL)).Generate(t.Context(), question(true), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Class != loop.ClassTransient || !e.Lost {
		t.Fatalf("%#v", err)
	}
	if diff := cmp.Diff(&loop.Usage{Input: 3}, e.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestMissingKey(t *testing.T) {
	t.Setenv(KeyVariable, "")
	t.Setenv(OtherKeyVariable, "")
	_, err := Model("g").Generate(t.Context(), question(false), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Class != loop.ClassFatal || !strings.Contains(e.Message, KeyVariable) {
		t.Errorf("%v", err)
	}
}

// TestAddress checks addresses and credentials as the SDK resolves them, on both backends.
func TestAddress(t *testing.T) {
	var got *http.Request
	var body []byte
	client := &http.Client{Transport: doer(func(r *http.Request) (*http.Response, error) {
		got = r
		body, _ = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"candidates":[{"finishReason":"STOP"}]}`))}, nil
	})}
	t.Setenv(KeyVariable, "from env")
	tests := []struct {
		model  string
		stream bool
		opts   []Option
		url    string
		key    string
	}{
		{"gemini-x", false, nil, "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:generateContent", "from env"},
		{"models/gemini-x", true, []Option{APIKey("k")}, "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse", "k"},
		{"gemini-x", false, []Option{Vertex("p", "us-central1")}, "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-central1/publishers/google/models/gemini-x:generateContent", ""},
		{"gemini-x", false, []Option{Vertex("p", "global"), Header("X-A", "b")}, "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google/models/gemini-x:generateContent", ""},
		{"gemini-x", false, []Option{BaseURL("http://h/base/"), APIKey("k")}, "http://h/base/v1beta/models/gemini-x:generateContent", "k"},
	}
	for _, tt := range tests {
		if _, err := Model(tt.model, append(tt.opts, HTTPClient(client))...).Generate(t.Context(), question(tt.stream), nil); err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if got.URL.String() != tt.url || got.Header.Get("X-Goog-Api-Key") != tt.key || got.ContentLength != int64(len(body)) {
			t.Errorf("%s with key %q", got.URL, got.Header.Get("X-Goog-Api-Key"))
		}
	}
}

func seeds(f *testing.F) {
	f.Add([]byte(hiFrame+`data: {"candidates":[{"finishReason":"STOP"}]}`), 3)
	f.Add([]byte(`[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{"partialArgs":[{"jsonPath":"$.a[1].b","stringValue":"x"}]}}]},"finishReason":"STOP"}]}]`), 1)
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"s"},{"x":1},{"inlineData":{"data":"YQ"}}]},"finishReason":2}]}`), 2)
	if traffic.Dir() == "" {
		return
	}
	for i, r := range traffic.Load(f, "gemini") {
		if raw := r.Exchanges[0].Response.Bytes(); len(raw) < 1500 && i%4 == 0 {
			f.Add(raw, i)
		}
	}
}

// FuzzDecode checks that where a body is cut changes nothing, and that whatever was decoded can go back as valid JSON.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		size = 1 + (size&0x7fffffff)%64
		run := func(r io.Reader) (*model.Response, error) {
			d := &decoder{sink: func(model.Delta) {}}
			if err := d.read(r, -1); err != nil {
				return nil, err
			}
			return d.response()
		}
		whole, err := run(bytes.NewReader(in))
		var way [][]byte
		for b := in; len(b) > 0; b = b[min(size, len(b)):] {
			way = append(way, b[:min(size, len(b))])
		}
		cut, err2 := run(&pieces{way})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, cut: %v", err, err2)
		}
		if diff := cmp.Diff(whole, cut); diff != "" {
			t.Fatal(diff)
		}
		if whole == nil {
			return
		}
		b, err := Model("gemini-3", APIKey("k")).(*adapter).encode(&model.Request{Messages: []*loop.Message{user("x"), {Role: loop.Assistant, Blocks: whole.Blocks}}})
		if err != nil {
			t.Fatal(err)
		}
		if out, _ := io.ReadAll(b.reader()); !json.Valid(out) {
			t.Fatalf("not valid: %q", out)
		}
	})
}
