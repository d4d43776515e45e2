package mcp

import (
	"context"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func overHTTP(t *testing.T, w *world, before func(nethttp.ResponseWriter, *nethttp.Request) bool) (*httptest.Server, Spec) {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(func(*nethttp.Request) *sdk.Server { return w.Server }, nil)
	srv := httptest.NewServer(nethttp.HandlerFunc(func(rw nethttp.ResponseWriter, r *nethttp.Request) {
		if before == nil || before(rw, r) {
			h.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv, Spec{URL: srv.URL + "/mcp", Grace: 100 * time.Millisecond}
}

func TestHeadersAndSecrets(t *testing.T) {
	t.Setenv("RONDA_TEST_TOKEN", "hunter2222")
	w := newWorld("http", "1")
	w.add("t", nil, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return says("token: "+r.Extra.Header.Get("Authorization"))(nil, nil)
	})
	_, spec := overHTTP(t, w, func(rw nethttp.ResponseWriter, r *nethttp.Request) bool {
		if r.Header.Get("Authorization") != "Bearer hunter2222" {
			rw.WriteHeader(401)
			return false
		}
		return true
	})
	if _, err := Connect(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("without the header: %v", err)
	}
	spec.Headers = map[string]string{"Authorization": "Bearer ${RONDA_TEST_TOKEN}"}
	if res := call(t, pick(t, open(t, spec), "t"), args{}); res.Text != "token: Bearer ${RONDA_TEST_TOKEN}" {
		t.Errorf("got %q", res.Text)
	}
	spec.Headers = map[string]string{"Authorization": "Bearer ${RONDA_TEST_UNSET}"}
	if _, err := Connect(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "headers: Authorization: the environment variable RONDA_TEST_UNSET is not set") {
		t.Errorf("not set: %v", err)
	}
}

func TestStatuses(t *testing.T) {
	w := newWorld("statuses", "1")
	w.add("t", nil, says("done"))
	var answer atomic.Pointer[func(rw nethttp.ResponseWriter)]
	_, spec := overHTTP(t, w, func(rw nethttp.ResponseWriter, r *nethttp.Request) bool {
		if f := answer.Load(); f != nil && r.Method == "POST" {
			(*f)(rw)
			return false
		}
		return true
	})
	status := func(code int, header ...string) func(nethttp.ResponseWriter) {
		return func(rw nethttp.ResponseWriter) {
			for i := 0; i < len(header); i += 2 {
				rw.Header().Set(header[i], header[i+1])
			}
			rw.WriteHeader(code)
		}
	}
	for _, c := range []struct {
		answer func(nethttp.ResponseWriter)
		want   tool.Error
	}{
		{status(401), tool.Error{Class: loop.ClassDenied, Message: "the MCP server answers HTTP 401 Unauthorized"}},
		{status(403), tool.Error{Class: loop.ClassDenied, Message: "the MCP server answers HTTP 403 Forbidden"}},
		{status(429, "Retry-After", "7"), tool.Error{Class: loop.ClassTransient, NotRun: true, RetryAfter: 7 * time.Second, Message: "the MCP server answers HTTP 429 Too Many Requests"}},
		{status(503), tool.Error{Class: loop.ClassTransient, NotRun: true, Message: "the MCP server answers HTTP 503 Service Unavailable"}},
		{status(502), tool.Error{Class: loop.ClassUnknown, Message: "the MCP server answers HTTP 502 Bad Gateway"}},
		{status(504), tool.Error{Class: loop.ClassUnknown, Message: "the MCP server answers HTTP 504 Gateway Timeout"}},
		{status(500), tool.Error{Class: loop.ClassError, Message: "the MCP server answers HTTP 500 Internal Server Error"}},
		{status(307, "Location", "http://elsewhere.example/"), tool.Error{Class: loop.ClassError, Message: "the MCP server answers HTTP 307 Temporary Redirect"}},
		{func(rw nethttp.ResponseWriter) { // a stream that ends without an answer
			rw.Header().Set("Content-Type", "text/event-stream")
			rw.WriteHeader(200)
		}, tool.Error{Class: loop.ClassUnknown}},
	} {
		answer.Store(nil)
		s := open(t, spec)
		answer.Store(&c.answer)
		_, err := try(t, pick(t, s, "t"), args{})
		e := tool.AsError(err)
		if c.want.Message == "" && e != nil {
			e.Message = ""
		}
		if diff := cmp.Diff(&c.want, e, ignoreErr); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		answer.Store(nil)
		if res := call(t, pick(t, s, "t"), args{}); res.Text != "done" {
			t.Errorf("afterwards: %+v", res)
		}
	}
}
