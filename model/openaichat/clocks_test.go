package openaichat_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/model/wire"
)

// Each clock ends a call over a real connection and is named; the lengths of the clocks are tested without one, in package wire.
func TestClocksOverTheNetwork(t *testing.T) {
	release := make(chan struct{})
	quiet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.Header.Get("X-Test") == "begin" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream(delta(`{"content":"a"}`)))
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	defer quiet.Close()
	defer close(release)
	nowhere := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	const soon = 30 * time.Millisecond
	for _, c := range []struct {
		clock string
		t     model.Timeouts
		lost  bool
		opts  []openaichat.Option
	}{
		{wire.ClockConnect, model.Timeouts{Connect: soon}, false, []openaichat.Option{openaichat.HTTPClient(nowhere)}},
		{wire.ClockFirstByte, model.Timeouts{Connect: time.Hour, FirstByte: soon}, true, nil},
		{wire.ClockBetween, model.Timeouts{FirstByte: time.Hour, BetweenDeltas: soon}, true, []openaichat.Option{openaichat.Header("X-Test", "begin")}},
		{wire.ClockCall, model.Timeouts{FirstByte: time.Hour, BetweenDeltas: time.Hour, Call: soon}, true, []openaichat.Option{openaichat.Header("X-Test", "begin")}},
	} {
		m := openaichat.Model("m", append(c.opts, openaichat.BaseURL(quiet.URL))...)
		for range 2 { // through the SDK, and as the SDK made the first
			_, err := m.Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}, Stream: true, Timeouts: c.t}, nil)
			e, ok := err.(*model.Error)
			if !ok {
				t.Fatalf("%s: %v", c.clock, err)
			}
			want := model.Error{Class: loop.ClassTransient, Clock: c.clock, Lost: c.lost}
			if diff := cmp.Diff(want, model.Error{Class: e.Class, Clock: e.Clock, Lost: e.Lost}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.clock, diff)
			}
		}
	}
}

// A server that redirects gets the request where it points, through the SDK, whose rules say where that may be.
func TestRedirect(t *testing.T) {
	var asked []string
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path)
		if r.URL.Path == "/old/chat/completions" {
			http.Redirect(w, r, "/new/chat/completions", http.StatusTemporaryRedirect)
			return
		}
		if len(b) == 0 {
			t.Error("the body got lost")
		}
		_, _ = io.WriteString(w, ok)
	}))
	defer ts.Close()
	m := openaichat.Model("m", openaichat.BaseURL(ts.URL+"/old"), openaichat.APIKey("k"))
	for range 2 {
		if _, err := m.Generate(context.Background(), &model.Request{Messages: []*loop.Message{user("x")}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"/old/chat/completions", "/new/chat/completions", "/old/chat/completions", "/old/chat/completions", "/new/chat/completions"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
