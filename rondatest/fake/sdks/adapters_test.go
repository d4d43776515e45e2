package sdks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/anthropic"
	"github.com/ronda-go/ronda/model/gemini"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/rondatest/fake"
)

var adapters = map[string]func(url string) model.Model{
	fake.Anthropic: func(url string) model.Model {
		return anthropic.Model("claude-sonnet-4-5", anthropic.BaseURL(url), anthropic.APIKey("k"))
	},
	fake.OpenAI: func(url string) model.Model {
		return openai.Model("gpt-5", openai.BaseURL(url), openai.APIKey("k"))
	},
	"openai stored": func(url string) model.Model {
		return openai.Model("gpt-5", openai.BaseURL(url), openai.APIKey("k"), openai.Store())
	},
	fake.OpenAIChat: func(url string) model.Model {
		return openaichat.Model("gpt-5", openaichat.BaseURL(url), openaichat.APIKey("k"))
	},
	fake.Gemini: func(url string) model.Model {
		return gemini.Model("gemini-3-pro", gemini.BaseURL(url), gemini.APIKey("k"))
	},
}

// conversation is what a run does with a model, without a run.
type conversation struct {
	m        model.Model
	req      model.Request
	calls    int
	previous string
	sentUpTo int
}

func (c *conversation) say(text string) {
	c.req.Messages = append(c.req.Messages, &loop.Message{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: text}}})
	c.previous = "" // a new message brings the whole conversation
}

// ask makes one model call and hands results back for its calls.
func (c *conversation) ask(t *testing.T, stream bool, choice model.ToolChoice) *model.Response {
	t.Helper()
	c.req.Call++
	c.req.Attempt, c.req.Stream, c.req.Choice = 1, stream, choice
	c.req.Previous, c.req.PreviousLen = c.previous, c.sentUpTo
	res, err := c.m.Generate(context.Background(), &c.req, func(model.Delta) {})
	if err != nil {
		t.Fatalf("call %d: %v", c.req.Call, err)
	}
	turn := &loop.Message{Role: loop.Assistant, Seq: c.req.Call}
	results := &loop.Message{Role: loop.Tool, Seq: c.req.Call}
	for _, b := range res.Blocks {
		if b.Kind == loop.BlockCall {
			c.calls++
			b.Call = fmt.Sprintf("c%d", c.calls)
			results.Blocks = append(results.Blocks, loop.Block{Kind: loop.BlockResult, ID: b.ID, Call: b.Call, Name: b.Name, Text: "result " + b.Call, Error: c.calls%3 == 0})
		}
		turn.Blocks = append(turn.Blocks, b)
	}
	c.req.Messages = append(c.req.Messages, turn)
	c.previous, c.sentUpTo = res.ID, len(c.req.Messages)
	if len(results.Blocks) > 0 {
		c.req.Messages = append(c.req.Messages, results)
	}
	return res
}

// TestAdaptersSatisfyTheServers runs a conversation of several rounds through each adapter: nothing may be refused, prefixes
// stay, and what the adapter yields is what the script says, the same whole and streamed.
func TestAdaptersSatisfyTheServers(t *testing.T) {
	usage := &loop.Usage{Input: 100, CacheRead: 30, Output: 25, Reasoning: 5}
	items := []scripted.Item{
		{Thinking: "The history – first.", Text: "Looking…", Calls: []scripted.Call{{Name: "look", Args: `{"q":"é🦜"}`}, {Name: "pay", Args: `{}`}}, Usage: usage},
		{Calls: []scripted.Call{{Name: "look", Args: `{}`, ID: "one"}, {Name: "pay", Args: `{}`}}, Usage: usage},
		{Calls: []scripted.Call{{Name: "unknown_tool", Args: `{"b":1.50,"a":[]}`}}},
		{Thinking: "Enough.", Text: "So far: two.", When: &scripted.When{Tools: "none"}, Usage: usage},
		{Calls: []scripted.Call{{Name: "look", Args: `{"q":"again"}`}}, Usage: usage},
		{Text: "Done.", Usage: usage},
	}
	for name, adapter := range adapters {
		for _, opts := range []fake.Options{{}, {Cut: true, Interleave: true, Redact: true, ReasoningBack: true}, {Cut: true, NoCallIDs: true, Repeat: true}} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%+v/stream=%v", name, opts, stream), func(t *testing.T) {
					wire, _, _ := strings.Cut(name, " ")
					s := fake.New(wire, opts)
					defer s.Close()
					s.Play(&scripted.Script{Items: items})
					schema := []byte(`{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false}`)
					c := &conversation{m: adapter(s.URL), req: model.Request{Run: "r", System: "Be brief.", Cache: &model.Cache{}, MaxOutput: 4096,
						Tools: []model.Tool{{Name: "look", Description: "Looks.", Schema: schema}, {Name: "pay", Schema: []byte(`{"type":"object"}`)}}}}
					c.say("How much?")
					for i := range items {
						choice := model.ChoiceAuto
						if items[i].When != nil {
							choice, c.req.Extra = model.ChoiceNone, "The limit is reached."
						}
						res := c.ask(t, stream, choice)
						c.req.Extra = ""
						compare(t, wire, &items[i], res, opts)
						if items[i].When != nil {
							c.say("Yes, go on.")
						}
					}
					if e := s.Errors(); len(e) > 0 {
						t.Fatalf("refused: %q", e)
					}
					seen := s.Requests()
					for i := 1; i < len(seen); i++ {
						if err := fake.PrefixStable(seen[i-1], seen[i]); err != nil {
							t.Error(err)
						}
						if !strings.Contains(seen[i].System, "Be brief.") || !seen[i].ToolsDeclared() || (seen[i].Choice == "none") != (items[i].When != nil) {
							t.Errorf("request %d: system %q, tools %v, choice %q", i+1, seen[i].System, seen[i].ToolsDeclared(), seen[i].Choice)
						}
					}
					if got := results(seen[1].Results()); !cmp.Equal(got, []string{"look result c1", "pay result c2"}) {
						t.Errorf("results %q", got)
					}
					if last := seen[len(seen)-1]; last.UserLast() != "Yes, go on." || len(last.AllResults()) != 6 {
						t.Errorf("last request: %q, %d results", last.UserLast(), len(last.AllResults()))
					}
				})
			}
		}
	}
}

// results reads name and text of results; Gemini's are objects.
func results(blocks []loop.Block) []string {
	var out []string
	for _, b := range blocks {
		text := b.Text
		var v map[string]any
		if json.Unmarshal([]byte(text), &v) == nil {
			for _, x := range v {
				text = fmt.Sprint(x)
			}
		}
		out = append(out, b.Name+" "+text)
	}
	return out
}

func compare(t *testing.T, wire string, item *scripted.Item, res *model.Response, opts fake.Options) {
	t.Helper()
	var thinking, text string
	var calls []string
	for _, b := range res.Blocks {
		switch b.Kind {
		case loop.BlockThought:
			thinking += b.Text
		case loop.BlockText:
			text += b.Text
		case loop.BlockCall:
			calls = append(calls, b.Name+" "+b.Args)
		}
	}
	var want []string
	for _, c := range item.Calls {
		want = append(want, c.Name+" "+c.Args)
	}
	if text != item.Text || !cmp.Equal(calls, want) || thinking != item.Thinking && !(opts.Redact && wire == fake.Anthropic) {
		t.Errorf("got %q %q %q, want %q %q %q", thinking, text, calls, item.Thinking, item.Text, want)
	}
	if d := cmp.Diff(item.Usage, res.Usage); d != "" || res.Finish != item.FinishOf() {
		t.Errorf("%sfinish %s, want %s", d, res.Finish, item.FinishOf())
	}
}

// TestAdaptersMapFailures: each way of failing is an error with the class, the wait and the doubt that it should have.
func TestAdaptersMapFailures(t *testing.T) {
	two := 2
	for name, adapter := range adapters {
		wire, _, _ := strings.Cut(name, " ")
		for _, c := range []struct {
			fail  scripted.Fail
			class loop.Class
			lost  bool
			wait  time.Duration
		}{
			{scripted.Fail{Status: 429, RetryAfter: 2 * time.Second}, loop.ClassTransient, false, 2 * time.Second},
			{scripted.Fail{Status: 529}, loop.ClassTransient, false, 0},
			{scripted.Fail{Status: 503, RetryAfter: time.Second}, loop.ClassTransient, false, time.Second},
			{scripted.Fail{Status: 500}, loop.ClassTransient, false, 0},
			{scripted.Fail{Status: 401}, loop.ClassFatal, false, 0},
			{scripted.Fail{Status: 400}, loop.ClassFatal, false, 0},
			{scripted.Fail{CutAfter: &two}, loop.ClassTransient, true, 0},
			{scripted.Fail{NoEnd: true}, loop.ClassTransient, true, 0},
			{scripted.Fail{Timeout: true}, loop.ClassTransient, true, 0},
			{scripted.Fail{ErrorEvent: "overloaded"}, loop.ClassTransient, true, 0},
		} {
			for _, stream := range []bool{false, true} {
				s := fake.New(wire, fake.Options{Cut: true, Hang: time.Millisecond})
				s.Play(&scripted.Script{Items: []scripted.Item{{Fail: &c.fail}}})
				m := adapter(s.URL)
				req := &model.Request{Run: "r", Call: 1, Attempt: 1, Cache: &model.Cache{}, Stream: stream, MaxOutput: 100,
					Messages: []*loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "Hello."}}}}}
				res, err := m.Generate(context.Background(), req, func(model.Delta) {})
				e, ok := err.(*model.Error)
				lost := c.lost && (stream || c.fail.ErrorEvent == "")
				if !ok || e.Class != c.class || e.Lost != lost || e.RetryAfter != c.wait {
					t.Errorf("%s stream=%v %+v: got %v %#v", name, stream, c.fail, res, err)
				}
				if n := len(s.Requests()); n != 1 || len(s.Errors()) > 0 {
					t.Errorf("%s %+v: %d requests, %q", name, c.fail, n, s.Errors())
				}
				s.Close()
			}
		}
	}
}

// TestAdaptersAndMalformedCalls: a call that the provider could not parse, or with broken arguments, never looks like a good one.
func TestAdaptersAndMalformedCalls(t *testing.T) {
	for name, adapter := range adapters {
		wire, _, _ := strings.Cut(name, " ")
		for _, stream := range []bool{false, true} {
			items := []scripted.Item{{Malformed: true}, {Calls: []scripted.Call{{Name: "look", Args: `{"q": "a`, Raw: true}}}, {Text: "Done."}}
			if wire == fake.Gemini {
				items = append(items[:1], items[2])
			}
			s := fake.New(wire, fake.Options{})
			s.Play(&scripted.Script{Items: items})
			c := &conversation{m: adapter(s.URL), req: model.Request{Run: "r", Cache: &model.Cache{}, MaxOutput: 100,
				Tools: []model.Tool{{Name: "look", Schema: []byte(`{"type":"object","properties":{}}`)}}}}
			c.say("Hello.")
			res := c.ask(t, stream, model.ChoiceAuto)
			if res.Finish == loop.FinishMalformed {
				c.req.Messages = c.req.Messages[:1] // the loop leaves such turns out
				c.previous = ""
			} else if len(res.Blocks) != 1 || isObject(res.Blocks[0].Args) {
				t.Errorf("%s stream=%v: %+v", name, stream, res)
			}
			if wire != fake.Gemini {
				if res := c.ask(t, stream, model.ChoiceAuto); len(res.Blocks) != 1 || isObject(res.Blocks[0].Args) {
					t.Errorf("%s stream=%v: %+v", name, stream, res)
				}
			}
			if res := c.ask(t, stream, model.ChoiceAuto); len(res.Blocks) != 1 || res.Blocks[0].Text != "Done." {
				t.Errorf("%s stream=%v: %+v", name, stream, res)
			}
			if e := s.Errors(); len(e) > 0 {
				t.Errorf("%s: %q", name, e)
			}
			s.Close()
		}
	}
}

// TestAdaptersAndRepeatedIDs: two calls of one turn with the same id stay two calls, and each gets its own result.
func TestAdaptersAndRepeatedIDs(t *testing.T) {
	for name, adapter := range adapters {
		wire, _, _ := strings.Cut(name, " ")
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", name, stream), func(t *testing.T) {
				if name == "openai stored" {
					t.Skip("OpenAI makes ids unique; a stored response with one id twice cannot be continued by previous_response_id")
				}
				s := fake.New(wire, fake.Options{})
				defer s.Close()
				item := scripted.Item{Calls: []scripted.Call{{Name: "look", Args: `{"q":"a"}`, ID: "same"}, {Name: "look", Args: `{"q":"b"}`, ID: "same"}}}
				s.Play(&scripted.Script{Items: []scripted.Item{item, item, {Text: "Done."}}})
				c := &conversation{m: adapter(s.URL), req: model.Request{Run: "r", Cache: &model.Cache{}, MaxOutput: 100,
					Tools: []model.Tool{{Name: "look", Schema: []byte(`{"type":"object","properties":{}}`)}}}}
				c.say("Hello.")
				for range 3 {
					c.ask(t, stream, model.ChoiceAuto)
				}
				if e := s.Errors(); len(e) > 0 || c.calls != 4 {
					t.Errorf("%d calls, refused: %q", c.calls, e)
				}
				if got := results(s.Requests()[2].AllResults()); !cmp.Equal(got, []string{"look result c1", "look result c2", "look result c3", "look result c4"}) {
					t.Errorf("results %q", got)
				}
			})
		}
	}
}

func isObject(s string) bool {
	var v map[string]any
	return json.Unmarshal([]byte(s), &v) == nil
}
