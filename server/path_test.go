package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/server"
)

// TestOperationsOfARun asks for everything that has a run's id in its path: each must find the run, and say so where there is none.
func TestOperationsOfARun(t *testing.T) {
	script, err := scripted.Parse([]byte("- text: Hello.\n"))
	if err != nil {
		t.Fatal(err)
	}
	agent := &drive.Agent{Name: "greeter", Model: scripted.New(script, scripted.Options{}), Instructions: "Greet."}
	h, err := drive.Open(drive.Options{Store: memory.New(), Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	run, err := h.Start(t.Context(), drive.Start{Agent: agent, Input: drive.Text("Hi."), ID: "run_1"})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(t.Context(), server.Options{Host: h, Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	defer func() {
		web.Close()
		srv.Close()
		_ = h.Shutdown(context.Background())
	}()
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	for _, c := range []struct {
		method, path, body string
		want               int // for a run that has stopped
		has                string
	}{
		{"GET", "/v1/runs/{id}", "", 200, `"answer":"Hello."`},
		{"GET", "/v1/runs/{id}/events", "", 200, `"RunStopped"`},
		{"GET", "/v1/runs/{id}/explain", "", 200, `"cause":"work"`},
		{"GET", "/v1/runs/{id}/diff/run_1", "", 200, `"first":-1`},
		{"GET", "/v1/runs/{id}/recording", "", 200, `"k":"ronda"`},
		{"POST", "/v1/runs/{id}/messages", `{"text":"More."}`, 409, `run_1`},
		{"POST", "/v1/runs/{id}/extend", `{"rounds":1}`, 409, `run_1`},
	} {
		status, body := ask(c.method, strings.Replace(c.path, "{id}", run.ID, 1), c.body)
		if status != c.want || !strings.Contains(body, c.has) {
			t.Errorf("%s %s: %d, want %d with %s:\n%.400s", c.method, c.path, status, c.want, c.has, body)
		}
		if status, body := ask(c.method, strings.Replace(c.path, "{id}", "run_none", 1), c.body); status != 404 || !json.Valid([]byte(body)) {
			t.Errorf("%s %s of no run: %d, want 404 with a problem:\n%.400s", c.method, c.path, status, body)
		}
	}
}
