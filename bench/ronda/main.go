// Command ronda is ronda as a contender of the side-by-side benchmark.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/ronda-go/ronda/bench/harness"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/journal/sqlite"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/anthropic"
	"github.com/ronda-go/ronda/model/gemini"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/tool"
)

type key struct {
	Q string `json:"q"`
}

func main() { harness.Main("ronda", setup) }

func setup(c harness.Config) (*harness.Contender, error) {
	m, err := port(c)
	if err != nil {
		return nil, err
	}
	store, err := open(c)
	if err != nil {
		return nil, err
	}
	opts := []tool.Option{tool.Read()}
	if c.Mode == "pause" {
		opts = []tool.Option{tool.Ask()}
	}
	lookup := tool.Func("lookup", "Look up a fact by its key.", func(ctx context.Context, k key) (string, error) { return harness.Lookup(k.Q, c.Bytes), nil }, opts...)
	agent := &drive.Agent{Name: "bench", Model: m, Instructions: harness.System, Tools: []tool.Tool{lookup}, Limits: drive.Limits{Rounds: c.Rounds + 1}}
	h, err := drive.Open(drive.Options{Store: store, Stream: c.Stream})
	if err != nil {
		return nil, err
	}
	h.Register(agent)
	finished := func(r *drive.Run, err error) error {
		if err != nil {
			return err
		}
		if r.Stop != loop.StopCompleted || !strings.HasPrefix(r.Answer, "token ") {
			return fmt.Errorf("stopped %s with %.40q %+v", r.Stop, r.Answer, r.Stopped)
		}
		return nil
	}
	k := &harness.Contender{
		Run: func(ctx context.Context, i int) error {
			return finished(h.Start(ctx, drive.Start{Agent: agent, Input: drive.Text(harness.Prompt(i))}))
		},
		Pause: func(ctx context.Context, i int) (any, error) {
			r, err := h.Start(ctx, drive.Start{Agent: agent, Input: drive.Text(harness.Prompt(i))})
			if err != nil {
				return nil, err
			}
			if len(r.Pending) != 1 {
				return nil, fmt.Errorf("want one pending call, got %s", r.Status)
			}
			return r.ID + " " + r.Pending[0].Call, nil
		},
		Resume: func(ctx context.Context, i int, paused any) error {
			run, call, _ := strings.Cut(paused.(string), " ")
			if err := h.Decide(ctx, run, call, drive.Decision{Decision: loop.Approve, By: "bench"}); err != nil {
				return err
			}
			return finished(h.Resume(ctx, run))
		},
		Close: store.Close,
	}
	return k, nil
}

func open(c harness.Config) (journal.Store, error) {
	if c.Durable == "" {
		return memory.New(), nil
	}
	durability := os.Getenv("DURABILITY") // full or normal
	return sqlite.Open(c.Durable, sqlite.Options{Durability: durability})
}

func port(c harness.Config) (model.Model, error) {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 2048
	name := c.Model()
	switch c.Provider {
	case "openai-chat":
		return openaichat.Model(name, openaichat.BaseURL(c.BaseURL+"/v1"), openaichat.APIKey("bench")), nil
	case "openai-responses":
		return openai.Model(name, openai.BaseURL(c.BaseURL+"/v1"), openai.APIKey("bench")), nil
	case "anthropic":
		return anthropic.Model(name, anthropic.BaseURL(c.BaseURL), anthropic.APIKey("bench")), nil
	case "gemini":
		return gemini.Model(name, gemini.BaseURL(c.BaseURL), gemini.APIKey("bench")), nil
	}
	return nil, fmt.Errorf("provider %q is unknown", c.Provider)
}
