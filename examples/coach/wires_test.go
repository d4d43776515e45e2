package coach

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/anthropic"
	"github.com/ronda-go/ronda/model/gemini"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/rondatest/fake"
)

// adapters make the real adapter of a wire for a provider on loopback.
var adapters = map[string]func(url string) model.Model{
	fake.Anthropic: func(url string) model.Model {
		return anthropic.Model("script", anthropic.BaseURL(url), anthropic.APIKey("test"))
	},
	fake.OpenAI: func(url string) model.Model {
		return openai.Model("script", openai.BaseURL(url), openai.APIKey("test"))
	},
	fake.OpenAIChat: func(url string) model.Model {
		return openaichat.Model("script", openaichat.BaseURL(url), openaichat.APIKey("test"))
	},
	fake.Gemini: func(url string) model.Model {
		return gemini.Model("script", gemini.BaseURL(url), gemini.APIKey("test"))
	},
}

// Each conversation, served by a strict provider of each wire, streamed and not, to the vendor's SDK: the outcomes and answers are
// those of the script itself. With -short only the conversation over the limit.
func TestEveryWire(t *testing.T) {
	direct := map[string]string{}
	for wire, adapter := range adapters {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", wire, stream), func(t *testing.T) {
				scriptsDo(t, func(t *testing.T, info ScriptInfo, want []outcome) {
					limit := strings.HasPrefix(info.Name, "coach-limit")
					if testing.Short() && !limit {
						t.Skip("only the conversation over the limit with -short")
					}
					decisions := []string{loop.Approve}
					if limit {
						decisions = append(decisions, loop.Reject)
					}
					for _, decision := range decisions {
						key := info.Name + " " + decision
						if direct[key] == "" {
							direct[key] = converse(t, newGym(t), info, want, decision).Answer
						}
						if got := overWire(t, wire, adapter, stream, info, want, decision); got != direct[key] {
							t.Errorf("%s answers %q, the script %q", decision, got, direct[key])
						}
					}
				})
			})
		}
	}
}

func overWire(t *testing.T, wire string, adapter func(url string) model.Model, stream bool, info ScriptInfo, want []outcome, decision string) string {
	t.Helper()
	server := fake.New(wire, fake.Options{Cut: true, Seed: 1})
	defer server.Close()
	script, _, err := Script(info.Say[0])
	if err != nil {
		t.Fatal(err)
	}
	server.Play(script)
	g := newGym(t)
	g.asks = stream
	g.model = func() model.Model { return adapter(server.URL) }
	run := converse(t, g, info, want, decision)
	for _, e := range server.Errors() {
		t.Error(e)
	}
	return run.Answer
}
