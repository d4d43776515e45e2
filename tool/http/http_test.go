package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func call(args string) tool.Call {
	return tool.Call{Run: "r1", ID: "1.0", Name: "t", Key: "key-1", Attempt: 1, Args: json.RawMessage(args)}
}

func made(t *testing.T, s Spec) tool.Tool {
	t.Helper()
	s.Name = "t"
	tl, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func serve(t *testing.T, h nethttp.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func failure(t *testing.T, err error) *tool.Error {
	t.Helper()
	var e *tool.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%v is no *tool.Error", err)
	}
	return e
}

var ignoreErr = cmpopts.IgnoreFields(tool.Error{}, "Err")

// seen is what a server saw of a request.
type seen struct{ Method, URI, Body, Type, Key string }

func TestRequests(t *testing.T) {
	got := make(chan seen, 1)
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, string(b), r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key")}
		fmt.Fprint(w, "ok\n")
	})
	const js = "application/json"
	for _, c := range []struct {
		method, path, args string
		want               seen
	}{
		{"", "/replies", `{"b":"<x>","a":12345678901234567890.123}`, seen{"POST", "/replies", `{"b":"<x>","a":12345678901234567890.123}`, js, "key-1"}},
		{"put", "/cases/{id}", `{"id":"a/b ?#%","text":"<hi>"}`, seen{"PUT", "/cases/a%2Fb%20%3F%23%25", `{"text":"<hi>"}`, js, "key-1"}},
		{"PATCH", "/x", ``, seen{"PATCH", "/x", `{}`, js, "key-1"}},
		{"GET", "/cases/{id}/notes?fixed=1&q={q}", `{"id":7,"q":"a&b=c","n":1.50,"deep":{"x":[1]},"tag":["a","b",null],"none":null,"yes":true}`,
			seen{"GET", "/cases/7/notes?fixed=1&q=a%26b%3Dc&deep=%7B%22x%22%3A%5B1%5D%7D&n=1.50&tag=a&tag=b&yes=true", "", "", "key-1"}},
		{"DELETE", "/x", `{"id":"é"}`, seen{"DELETE", "/x?id=%C3%A9", "", "", "key-1"}},
		{"GET", "/x", `{}`, seen{"GET", "/x", "", "", "key-1"}},
		{"GET", "/v1/../x/{id}", `{"id":"..."}`, seen{"GET", "/v1/../x/...", "", "", "key-1"}},
	} {
		res, err := made(t, Spec{Method: c.method, URL: base + c.path}).Run(context.Background(), call(c.args))
		if err != nil || res.Text != "ok" {
			t.Errorf("%s %s: %+v, %v", c.method, c.path, res, err)
			continue
		}
		if diff := cmp.Diff(c.want, <-got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.path, diff)
		}
	}
}

func TestArgumentsThatDoNotFitTheAddress(t *testing.T) {
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { t.Errorf("a request for %s arrived", r.RequestURI) })
	for _, c := range []struct{ args, want string }{
		{`{}`, `id: missing; it is a part of the address`},
		{`{"id":null}`, `id: missing; it is a part of the address`},
		{`{"id":""}`, `id: must not be empty; it is a part of the address`},
		{`{"id":["a"]}`, `id: must be a text, a number, true or false; it is a part of the address`},
		{`{"id":".."}`, `".." is no name in an address`},
		{`{"id":"."}`, `"." is no name in an address`},
		{`[]`, `the arguments are no JSON object: `},
	} {
		_, err := made(t, Spec{Method: "GET", URL: base + "/cases/{id}/x"}).Run(context.Background(), call(c.args))
		e := failure(t, err)
		if e == nil || e.Class != loop.ClassInvalid || !e.NotRun || !strings.HasPrefix(e.Error(), c.want) {
			t.Errorf("%s: got %+v, want %s", c.args, e, c.want)
		}
	}
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   tool.Result
	}{
		{200, `{"result": {"b": 1, "a": 2}, "facts": {"sent": "R-1"}}`, tool.Result{Text: `{"b":1,"a":2}`, Facts: map[string]json.RawMessage{"sent": json.RawMessage(`"R-1"`)}}},
		{201, `{"id": 7}`, tool.Result{Text: `{"id": 7}`}},
		{204, ``, tool.Result{}},
		{200, "caf\xe9\n", tool.Result{Text: "caf\ufffd"}},
		{200, strings.Repeat("x", 40), tool.Result{Text: strings.Repeat("x", 40)}},
	} {
		base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		for _, maxBody := range []int{0, 60} {
			res, err := made(t, Spec{URL: base, MaxBody: maxBody}).Run(context.Background(), call(`{}`))
			if diff := cmp.Diff(c.want, res); err != nil || diff != "" {
				t.Errorf("%d %s: %v (-want +got):\n%s", c.status, c.body, err, diff)
			}
		}
	}
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		fmt.Fprint(w, `{"result":"`+strings.Repeat("y", 1<<20)+`"}`)
	})
	res, err := made(t, Spec{URL: base, MaxBody: 12}).Run(context.Background(), call(`{}`))
	if want := "{\"result\":\"y\n[The answer was cut: its first 12 bytes are shown.]"; err != nil || res.Text != want {
		t.Errorf("got %.80q, %v, want %q", res.Text, err, want)
	}
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		status int
		header map[string]string
		body   string
		want   tool.Error
	}{
		{400, nil, "amount: too much", tool.Error{Class: loop.ClassInvalid, Message: "HTTP 400 Bad Request: amount: too much"}},
		{422, nil, `{"result":"amount: too much","facts":{"max":4}}`, tool.Error{Class: loop.ClassInvalid, Message: "HTTP 422 Unprocessable Entity: amount: too much", Facts: map[string]json.RawMessage{"max": json.RawMessage("4")}}},
		{401, nil, "", tool.Error{Class: loop.ClassDenied, Message: "HTTP 401 Unauthorized"}},
		{403, nil, "", tool.Error{Class: loop.ClassDenied, Message: "HTTP 403 Forbidden"}},
		{404, nil, "no such case\n", tool.Error{Class: loop.ClassError, Message: "HTTP 404 Not Found: no such case"}},
		{409, nil, "", tool.Error{Class: loop.ClassError, Message: "HTTP 409 Conflict"}},
		{410, nil, "", tool.Error{Class: loop.ClassError, Message: "HTTP 410 Gone"}},
		{408, nil, "", tool.Error{Class: loop.ClassUnknown, Message: "HTTP 408 Request Timeout"}},
		{425, nil, "", tool.Error{Class: loop.ClassTransient, Message: "HTTP 425 Too Early", NotRun: true}},
		{429, map[string]string{"Retry-After": "7"}, "slow down", tool.Error{Class: loop.ClassTransient, Message: "HTTP 429 Too Many Requests: slow down", NotRun: true, RetryAfter: 7 * time.Second}},
		{503, map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", tool.Error{Class: loop.ClassTransient, Message: "HTTP 503 Service Unavailable", NotRun: true}},
		{500, nil, "oops", tool.Error{Class: loop.ClassError, Message: "HTTP 500 Internal Server Error: oops"}},
		{502, nil, "", tool.Error{Class: loop.ClassUnknown, Message: "HTTP 502 Bad Gateway"}},
		{504, nil, "", tool.Error{Class: loop.ClassUnknown, Message: "HTTP 504 Gateway Timeout"}},
		{599, nil, "", tool.Error{Class: loop.ClassError, Message: "HTTP 599"}},
		{404, nil, strings.Repeat("é", 5000), tool.Error{Class: loop.ClassError, Message: "HTTP 404 Not Found: " + strings.Repeat("é", 2048) + " …"}},
		{302, map[string]string{"Location": "https://elsewhere.example/"}, "", tool.Error{Class: loop.ClassError,
			Message: "HTTP 302 Found; the redirect to https://elsewhere.example/ was not followed: it leads to another host, changes the method or cannot be repeated"}},
	} {
		base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			for k, v := range c.header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		res, err := made(t, Spec{URL: base}).Run(context.Background(), call(`{}`))
		if diff := cmp.Diff(&c.want, failure(t, err), ignoreErr); diff != "" {
			t.Errorf("%d (-want +got):\n%s", c.status, diff)
		}
		if diff := cmp.Diff(tool.Result{}, res); diff != "" {
			t.Errorf("%d: a result beside the error: %s", c.status, diff)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, " 120 ": 2 * time.Minute, "-5": 0, "soon": 0, "99999999999": 1 << 31 * time.Second,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0, "Sunday, 01-Mar-26 12:00:05 GMT": 5 * time.Second,
	} {
		if got := retryAfter(nethttp.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: got %v, want %v", v, got, want)
		}
	}
}

func TestRedirects(t *testing.T) {
	var posts atomic.Int32
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/old":
			w.Header().Set("Location", "/new")
			w.WriteHeader(302)
		case "/repeat":
			w.Header().Set("Location", "/new")
			w.WriteHeader(307)
		case "/loop":
			w.Header().Set("Location", "/loop")
			w.WriteHeader(302)
		case "/new":
			if r.Method == "POST" {
				posts.Add(1)
			}
			fmt.Fprint(w, r.Method, " ", r.Header.Get("X-Token"))
		}
	})
	headers := map[string]string{"X-Token": "T"}
	res, err := made(t, Spec{Method: "GET", URL: base + "/old", Headers: headers}).Run(context.Background(), call(`{}`))
	if err != nil || res.Text != "GET T" {
		t.Errorf("a GET on the same host: %+v, %v", res, err)
	}
	for _, path := range []string{"/old", "/repeat"} {
		_, err := made(t, Spec{URL: base + path}).Run(context.Background(), call(`{"a":1}`))
		if e := failure(t, err); e == nil || e.Class != loop.ClassError || !strings.Contains(e.Message, "the redirect to /new was not followed") {
			t.Errorf("POST %s: %+v", path, e)
		}
	}
	if n := posts.Load(); n != 0 {
		t.Errorf("%d requests were repeated", n)
	}
	_, err = made(t, Spec{Method: "GET", URL: base + "/loop"}).Run(context.Background(), call(`{}`))
	if e := failure(t, err); e == nil || e.Class != loop.ClassError {
		t.Errorf("a loop: %+v", e)
	}
	elsewhere := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		t.Error("the redirect to another host was followed")
	})
	from := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { nethttp.Redirect(w, r, elsewhere, 302) })
	_, err = made(t, Spec{Method: "GET", URL: from}).Run(context.Background(), call(`{}`))
	if e := failure(t, err); e == nil || e.Class != loop.ClassError {
		t.Errorf("another host: %+v", e)
	}
}

func TestHeaders(t *testing.T) {
	t.Setenv("RONDA_TEST_TOKEN", "hunter2222")
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Query().Get("fail") != "" {
			w.WriteHeader(400)
		}
		fmt.Fprintf(w, `{"result":"%s, %s","facts":{"said":"%[1]s"}}`, r.Header.Get("Authorization"), r.Host)
	})
	s := Spec{Method: "GET", URL: base, Headers: map[string]string{"Authorization": "Bearer ${RONDA_TEST_TOKEN}", "Host": "named.example"}}
	res, err := made(t, s).Run(context.Background(), call(`{}`))
	want := tool.Result{Text: "Bearer ${RONDA_TEST_TOKEN}, named.example", Facts: map[string]json.RawMessage{"said": json.RawMessage(`"Bearer ${RONDA_TEST_TOKEN}"`)}}
	if diff := cmp.Diff(want, res); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = made(t, s).Run(context.Background(), call(`{"fail":1}`))
	wantErr := &tool.Error{Class: loop.ClassInvalid, Message: "HTTP 400 Bad Request: Bearer ${RONDA_TEST_TOKEN}, named.example", Facts: want.Facts}
	if diff := cmp.Diff(wantErr, failure(t, err), ignoreErr); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for value, want := range map[string]string{
		"${RONDA_TEST_UNSET}": "header A: the environment variable RONDA_TEST_UNSET is not set",
		"${RONDA_TEST_LINES}": "header A: the value of a variable holds characters that a header cannot",
	} {
		t.Setenv("RONDA_TEST_LINES", "a\r\nInjected: yes")
		_, err = made(t, Spec{URL: base, Headers: map[string]string{"A": value}}).Run(context.Background(), call(`{}`))
		if e := failure(t, err); e == nil || e.Class != loop.ClassFatal || !e.NotRun || e.Error() != want {
			t.Errorf("%s: %+v", value, e)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	input := json.RawMessage(`{"type":"object","properties":{"id":{}}}`)
	const ok = "https://a.example/x"
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, `url: "" is not absolute; begin with http:// or https://`},
		{Spec{URL: "/x"}, `url: "/x" is not absolute; begin with http:// or https://`},
		{Spec{URL: "ftp://a/x"}, `url: "ftp://a/x" is not absolute; begin with http:// or https://`},
		{Spec{URL: "https://{host}/x"}, `url: an argument must not choose the host`},
		{Spec{URL: "HTTP://a{host}/x"}, `url: an argument must not choose the host`},
		{Spec{URL: "http{s}://a/x"}, `url: "http{s}://a/x" is not absolute; begin with http:// or https://`},
		{Spec{URL: "https://a.example:{port}/x"}, `url: "https://a.example:{port}/x" cannot be read`},
		{Spec{URL: "https://u:p@a.example/"}, `url: credentials do not belong here; send a header with ${NAME}`},
		{Spec{URL: "https://a.example/?key=${KEY}"}, `url: references to the environment are for headers only`},
		{Spec{URL: ok + "#part"}, `url: a fragment (#…) is never sent`},
		{Spec{URL: ok + "/{a b}"}, `url: {a b} names no argument`},
		{Spec{URL: ok + "/{a"}, `url: a brace has no partner`},
		{Spec{URL: ok + "/{no}", Def: tool.Def{Input: input}}, `url: the input has no argument "no"`},
		{Spec{URL: ok, Method: "CONNECT"}, `method: "CONNECT" is none; use GET, HEAD, DELETE, POST, PUT or PATCH`},
		{Spec{URL: ok, MaxBody: -1}, `max_body must not be negative`},
		{Spec{URL: ok, Headers: map[string]string{"a b": ""}}, `headers: a b: this is no name of a header`},
		{Spec{URL: ok, Headers: map[string]string{"A": "x\ny"}}, `headers: A: the value holds characters that a header cannot`},
		{Spec{URL: ok, Headers: map[string]string{"idempotency-key": "x"}}, `headers: idempotency-key: this header is not yours to set`},
		{Spec{URL: ok, Headers: map[string]string{"A": "${"}}, `headers: A: "${" is no reference; write ${NAME}`},
		{Spec{URL: ok, Def: tool.Def{Check: true}}, `check: an HTTP tool cannot check an effect; use the key`},
		{Spec{URL: ok, Def: tool.Def{Input: json.RawMessage(`[]`)}}, `input: the schema is not valid: `},
	} {
		c.spec.Name = "t"
		if _, err := New(c.spec); err == nil || !strings.HasPrefix(err.Error(), `tool "t": `+c.want) {
			t.Errorf("New(%+v)\n got %v\nwant tool \"t\": %s", c.spec, err, c.want)
		}
	}
	tl := made(t, Spec{URL: ok + "/{id}", Def: tool.Def{Input: input}})
	if got := tl.Def().Destination; got != "POST https://a.example/x/{id}" {
		t.Errorf("destination %q", got)
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("../x", "a&b#?%2e")
	f.Add("%2e%2e", "\x00")
	tmpl, err := parseTemplate("https://a.example/v1/cases/{id}/x?q={q}&z=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, q string) {
		args := map[string]json.RawMessage{}
		args["id"], _ = json.Marshal(id)
		args["q"], _ = json.Marshal(q)
		u, err := tmpl.expand(args)
		if err != nil {
			return
		}
		id, q = strings.ToValidUTF8(id, "\ufffd"), strings.ToValidUTF8(q, "\ufffd")
		if parts := strings.Split(u.EscapedPath(), "/"); u.Host != "a.example" || u.Scheme != "https" || u.Fragment != "" || len(parts) != 5 || parts[1] != "v1" || parts[4] != "x" || parts[3] == ".." {
			t.Fatalf("id %q, q %q: %s", id, q, u)
		}
		if got := u.Query(); len(got) != 2 || got.Get("z") != "1" {
			t.Fatalf("q %q: %v", q, got)
		}
	})
}
