//go:build live

// Package live runs a small set of checks against real providers: go test -tags live ./rondatest/live, or make live. A provider takes part
// when its key is in the environment; a local server that speaks OpenAI's chat protocol when RONDA_LIVE_URL is set (RONDA_LIVE_MODEL names
// its model). What takes no part is named as skipped.
package live

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/anthropic"
	"github.com/ronda-go/ronda/model/gemini"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/tool"
)

type provider struct {
	name string
	keys []string // one of them must be set
	make func() model.Model
}

func or(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

var providers = []provider{
	{"anthropic", []string{"ANTHROPIC_API_KEY"}, func() model.Model { return anthropic.Model(or("RONDA_LIVE_ANTHROPIC", "claude-haiku-4-5")) }},
	{"openai", []string{"OPENAI_API_KEY"}, func() model.Model { return openai.Model(or("RONDA_LIVE_OPENAI", "gpt-5-mini")) }},
	{"openaichat", []string{"OPENAI_API_KEY"}, func() model.Model { return openaichat.Model(or("RONDA_LIVE_OPENAI", "gpt-5-mini")) }},
	{"gemini", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, func() model.Model { return gemini.Model(or("RONDA_LIVE_GEMINI", "gemini-2.5-flash")) }},
	{"local server", []string{"RONDA_LIVE_URL"}, func() model.Model {
		return openaichat.Model(or("RONDA_LIVE_MODEL", "default"), openaichat.BaseURL(os.Getenv("RONDA_LIVE_URL")))
	}},
}

type page struct {
	N int `json:"n"`
}

func look(ctx context.Context, p page) (string, error) {
	if p.N == 1 {
		return "Page 1. The word is QUARTZ. The rest is on page 2.", nil
	}
	return "Page 2. The number is 7341.", nil
}

func TestLive(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			ok := false
			for _, k := range p.keys {
				ok = ok || os.Getenv(k) != ""
			}
			if !ok {
				t.Skipf("%s is not set", strings.Join(p.keys, " or "))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			read := tool.Func("read_page", "Reads a page of the book by its number.", look, tool.Read())
			base := ronda.Agent{Name: "live", Model: p.make(), Instructions: "Answer in one short sentence. Read pages with the tool.", Tools: []ronda.Tool{read}, Limits: ronda.Limits{Rounds: 4}}

			t.Run("tool round trip", func(t *testing.T) {
				a := base
				run, err := a.Run(ctx, "Which word is on page 1, and which number is on page 2?")
				if err != nil {
					t.Fatal(err)
				}
				if run.Stop != loop.StopCompleted || !strings.Contains(run.Answer, "QUARTZ") || !strings.Contains(run.Answer, "7341") {
					t.Fatalf("%s: %q %+v", run.Stop, run.Answer, run.Stopped)
				}
				t.Logf("%+v", run.Counts)
			})
			t.Run("streamed", func(t *testing.T) {
				a := base
				deltas := 0
				for it, err := range a.Stream(ctx, "Which word is on page 1?") {
					if err != nil {
						t.Fatal(err)
					}
					if it.Delta != nil {
						deltas++
					}
				}
				if deltas == 0 {
					t.Fatal("no delta came")
				}
			})
			t.Run("closing call", func(t *testing.T) {
				a := base
				a.Limits.Rounds = 1
				run, err := a.Run(ctx, "Read page 1 first. Only when you have seen it, read page 2 in another call. Which number is on page 2?")
				if err != nil {
					t.Fatal(err)
				}
				if run.Stop == loop.StopLimit && run.Answer == "" {
					t.Fatalf("the closing call gave no answer: %+v", run.Stopped)
				}
				t.Logf("%s %q", run.Stop, run.Answer)
			})
		})
	}
}
