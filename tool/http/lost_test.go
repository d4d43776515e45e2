package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// roundTrip is a transport of one function.
type roundTrip func(*nethttp.Request) (*nethttp.Response, error)

func (f roundTrip) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) { return f(r) }

func TestServersThatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	l.Close()
	secure := httptest.NewTLSServer(nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {}))
	secure.Config.ErrorLog = nil
	defer secure.Close()
	for _, c := range []struct {
		name  string
		spec  Spec
		class loop.Class
		want  string
	}{
		{"refused", Spec{URL: refused}, loop.ClassTransient, "the server was not reached: dial tcp 127.0.0.1:"},
		{"no such name", Spec{URL: "http://a.example", Transport: roundTrip(func(*nethttp.Request) (*nethttp.Response, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}
		})}, loop.ClassTransient, "the server was not reached: lookup a.example: no such host"},
		{"no TLS there", Spec{URL: strings.Replace(serve(t, func(nethttp.ResponseWriter, *nethttp.Request) {}), "http:", "https:", 1)}, loop.ClassTransient, "the server was not reached: "},
		{"a certificate of nobody", Spec{URL: secure.URL}, loop.ClassError, "the server's certificate was not accepted: "},
	} {
		_, err := made(t, c.spec).Run(context.Background(), call(`{}`))
		if e := failure(t, err); e == nil || e.Class != c.class || !e.NotRun || !strings.HasPrefix(e.Message, c.want) {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

func TestConnectionsThatAreCut(t *testing.T) {
	for name, answer := range map[string]string{
		"at once":          "",
		"in the head":      "HTTP/1.1 200 OK\r\nContent-Le",
		"in the body":      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"no HTTP":          "SSH-2.0-OpenSSH_9.6\r\n",
		"in a chunked one": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		var requests atomic.Int32
		base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			requests.Add(1)
			conn, _, err := w.(nethttp.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		})
		_, err := made(t, Spec{URL: base}).Run(context.Background(), call(`{}`))
		e := failure(t, err)
		if e == nil || e.Class != loop.ClassUnknown || e.NotRun || !strings.HasPrefix(e.Message, "the connection was cut before the whole answer was there: ") {
			t.Errorf("%s: %+v", name, e)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		conn, _, _ := w.(nethttp.Hijacker).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nnot y")
		conn.Close()
	})
	_, err := made(t, Spec{URL: base}).Run(context.Background(), call(`{}`))
	if diff := cmp.Diff(&tool.Error{Class: loop.ClassDenied, Message: "HTTP 403 Forbidden: not y"}, failure(t, err), ignoreErr); diff != "" {
		t.Errorf("a refusal that is cut (-want +got):\n%s", diff)
	}
}

// A dead connection that was kept alive must not make net/http send a request with an effect twice.
func TestNothingIsSentTwice(t *testing.T) {
	for _, method := range []string{"POST", "DELETE", "GET"} {
		var requests atomic.Int32
		base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			if requests.Add(1) == 1 {
				fmt.Fprint(w, "first")
				return
			}
			conn, _, _ := w.(nethttp.Hijacker).Hijack()
			conn.Close()
		})
		tl := made(t, Spec{Method: method, URL: base})
		if _, err := tl.Run(context.Background(), call(`{}`)); err != nil {
			t.Fatal(err)
		}
		_, err := tl.Run(context.Background(), call(`{}`))
		if e := failure(t, err); e == nil || e.Class != loop.ClassUnknown {
			t.Errorf("%s: %+v", method, e)
		}
		if n := requests.Load(); n != 2 {
			t.Errorf("%s: %d requests reached the server, want 2", method, n)
		}
	}
}

func TestTime(t *testing.T) {
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	base := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { arrived <- struct{}{}; <-release })
	defer close(release)
	_, err := made(t, Spec{Def: tool.Def{Timeout: 100 * time.Millisecond}, URL: base}).Run(context.Background(), call(`{}`))
	want := &tool.Error{Class: loop.ClassUnknown, Clock: "tool", Message: "no answer within the time of the tool"}
	if e := failure(t, err); e == nil || e.Clock != "tool" || !e.NotRun && cmp.Diff(want, e, ignoreErr) != "" {
		t.Errorf("%+v", e)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; <-arrived; cancel() }()
	_, err = made(t, Spec{URL: base}).Run(ctx, call(`{}`))
	want = &tool.Error{Class: loop.ClassUnknown, Message: "the request was cancelled"}
	if diff := cmp.Diff(want, failure(t, err), ignoreErr); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = made(t, Spec{URL: base}).Run(ctx, call(`{}`))
	want = &tool.Error{Class: loop.ClassTransient, NotRun: true, Message: "the request was cancelled"}
	if diff := cmp.Diff(want, failure(t, err), ignoreErr); diff != "" {
		t.Errorf("before it began (-want +got):\n%s", diff)
	}
}
