package sdks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	aoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/rondatest/fake"
)

// said is what a client made of a response.
type said struct {
	Thinking, Text, Finish string
	Calls                  []string // name args
	Usage                  loop.Usage
}

// client asks once with a vendor's SDK.
type client func(t *testing.T, url string, stream bool) (said, error)

var clients = map[string]client{
	fake.Anthropic: askAnthropic, fake.OpenAI: askResponses, fake.OpenAIChat: askChat, fake.Gemini: askGemini,
}

func askAnthropic(t *testing.T, url string, stream bool) (said, error) {
	c := anthropic.NewClient(aoption.WithBaseURL(url), aoption.WithAPIKey("k"), aoption.WithMaxRetries(0))
	p := anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
		Tools:    []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "look", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{}}}}},
	}
	var m *anthropic.Message
	if stream {
		s := c.Messages.NewStreaming(context.Background(), p)
		var acc anthropic.Message
		end := false
		for s.Next() {
			ev := s.Current()
			if err := acc.Accumulate(ev); err != nil {
				return said{}, err
			}
			end = end || ev.Type == "message_stop"
		}
		if err := s.Err(); err != nil {
			return said{}, err
		}
		if !end {
			return said{}, fmt.Errorf("no end")
		}
		m = &acc
	} else {
		var err error
		if m, err = c.Messages.New(context.Background(), p); err != nil {
			return said{}, err
		}
	}
	out := said{Finish: string(m.StopReason)}
	for _, b := range m.Content {
		switch b.Type {
		case "thinking":
			out.Thinking += b.Thinking
			if b.Signature == "" {
				t.Error("thinking without a signature")
			}
		case "text":
			out.Text += b.Text
		case "tool_use":
			if !strings.HasPrefix(b.ID, "toolu_01") {
				t.Errorf("id %q", b.ID)
			}
			out.Calls = append(out.Calls, b.Name+" "+string(b.Input))
		}
	}
	u := m.Usage
	out.Usage = loop.Usage{Input: u.InputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens, Output: u.OutputTokens}
	var extra struct {
		Details struct {
			Thinking int64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
	if raw := u.RawJSON(); raw != "" && !stream {
		if err := json.Unmarshal([]byte(raw), &extra); err != nil {
			t.Error(err)
		}
		out.Usage.Reasoning = extra.Details.Thinking
	}
	return out, nil
}

func askChat(t *testing.T, url string, stream bool) (said, error) {
	c := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("k"), option.WithMaxRetries(0))
	p := openai.ChatCompletionNewParams{
		Model: "gpt-5", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("brief"), openai.UserMessage("hello")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "look", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
		})},
	}
	var out said
	var m openai.ChatCompletion
	if stream {
		p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		s := c.Chat.Completions.NewStreaming(context.Background(), p)
		acc := openai.ChatCompletionAccumulator{}
		for s.Next() {
			ev := s.Current()
			if !acc.AddChunk(ev) {
				return out, fmt.Errorf("the event does not fit: %s", ev.RawJSON())
			}
			for _, ch := range ev.Choices {
				out.Thinking += reasoning(t, ch.Delta.RawJSON())
			}
		}
		if err := s.Err(); err != nil {
			return out, err
		}
		m = acc.ChatCompletion
	} else {
		r, err := c.Chat.Completions.New(context.Background(), p)
		if err != nil {
			return out, err
		}
		m = *r
		out.Thinking = reasoning(t, m.Choices[0].Message.RawJSON())
	}
	if len(m.Choices) == 0 || m.Choices[0].FinishReason == "" {
		return out, fmt.Errorf("no end")
	}
	ch := m.Choices[0]
	out.Text, out.Finish = ch.Message.Content, ch.FinishReason
	for _, call := range ch.Message.ToolCalls {
		if !strings.HasPrefix(call.ID, "call_") || call.Type != "function" {
			t.Errorf("call %+v", call)
		}
		out.Calls = append(out.Calls, call.Function.Name+" "+call.Function.Arguments)
	}
	u := m.Usage
	out.Usage = loop.Usage{Input: u.PromptTokens - u.PromptTokensDetails.CachedTokens, CacheRead: u.PromptTokensDetails.CachedTokens,
		Output: u.CompletionTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens}
	return out, nil
}

func reasoning(t *testing.T, raw string) string {
	var v struct {
		R string `json:"reasoning_content"`
	}
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Error(err)
	}
	return v.R
}

func askResponses(t *testing.T, url string, stream bool) (said, error) {
	c := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("k"), option.WithMaxRetries(0))
	p := responses.ResponseNewParams{
		Model: "gpt-5", Instructions: openai.String("brief"), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
		Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "look", Parameters: map[string]any{"type": "object", "properties": map[string]any{}}, Strict: openai.Bool(false),
		}}},
	}
	var m *responses.Response
	var text string
	args := map[int64]string{}
	if stream {
		s := c.Responses.NewStreaming(context.Background(), p)
		for s.Next() {
			switch ev := s.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				text += ev.Delta
			case responses.ResponseFunctionCallArgumentsDeltaEvent:
				args[ev.OutputIndex] += ev.Delta
			case responses.ResponseCompletedEvent:
				m = &ev.Response
			case responses.ResponseIncompleteEvent:
				m = &ev.Response
			case responses.ResponseErrorEvent:
				return said{}, fmt.Errorf("error event %s", ev.RawJSON())
			}
		}
		if err := s.Err(); err != nil {
			return said{}, err
		}
		if m == nil {
			return said{}, fmt.Errorf("no end")
		}
		if m.OutputText() != text {
			t.Errorf("the deltas say %q, the end %q", text, m.OutputText())
		}
	} else {
		var err error
		if m, err = c.Responses.New(context.Background(), p); err != nil {
			return said{}, err
		}
	}
	out := said{Text: m.OutputText(), Finish: string(m.Status) + string(m.IncompleteDetails.Reason)}
	for i, it := range m.Output {
		switch v := it.AsAny().(type) {
		case responses.ResponseReasoningItem:
			out.Thinking += v.Summary[0].Text
			if v.EncryptedContent == "" {
				t.Error("reasoning without encrypted content")
			}
		case responses.ResponseFunctionToolCall:
			out.Calls = append(out.Calls, v.Name+" "+v.Arguments)
			if stream && args[int64(i)] != v.Arguments {
				t.Errorf("the deltas of call %d say %q, the end %q", i, args[int64(i)], v.Arguments)
			}
		}
	}
	u := m.Usage
	out.Usage = loop.Usage{Input: u.InputTokens - u.InputTokensDetails.CachedTokens, CacheRead: u.InputTokensDetails.CachedTokens,
		Output: u.OutputTokens, Reasoning: u.OutputTokensDetails.ReasoningTokens}
	return out, nil
}

func askGemini(t *testing.T, url string, stream bool) (said, error) {
	ctx := context.Background()
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("brief", genai.RoleUser),
		Tools:             []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "look", ParametersJsonSchema: map[string]any{"type": "object"}}}}},
	}
	in := []*genai.Content{genai.NewContentFromText("hello", genai.RoleUser)}
	var out said
	take := func(r *genai.GenerateContentResponse) {
		for _, cand := range r.Candidates {
			if cand.FinishReason != "" {
				out.Finish = string(cand.FinishReason)
			}
			if cand.Content == nil {
				continue
			}
			for _, p := range cand.Content.Parts {
				switch {
				case p.FunctionCall != nil:
					args := []byte("{}")
					if p.FunctionCall.Args != nil {
						if args, err = json.Marshal(p.FunctionCall.Args); err != nil {
							t.Error(err)
						}
					}
					if len(out.Calls) == 0 && len(p.ThoughtSignature) == 0 {
						t.Error("the first call has no signature")
					}
					out.Calls = append(out.Calls, p.FunctionCall.Name+" "+string(args))
				case p.Thought:
					out.Thinking += p.Text
				default:
					out.Text += p.Text
				}
			}
		}
		if u := r.UsageMetadata; u != nil {
			out.Usage = loop.Usage{Input: int64(u.PromptTokenCount - u.CachedContentTokenCount), CacheRead: int64(u.CachedContentTokenCount),
				Output: int64(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int64(u.ThoughtsTokenCount)}
		}
	}
	if !stream {
		r, err := c.Models.GenerateContent(ctx, "gemini-2.5-flash", in, cfg)
		if err != nil {
			return out, err
		}
		take(r)
		return out, nil
	}
	for r, err := range c.Models.GenerateContentStream(ctx, "gemini-2.5-flash", in, cfg) {
		if err != nil {
			return out, err
		}
		take(r)
	}
	if out.Finish == "" {
		return out, fmt.Errorf("no end")
	}
	return out, nil
}

// TestSDKsUnderstand decodes what the servers make with the vendors' SDKs, whole and streamed, in order and mixed, cut anywhere.
func TestSDKsUnderstand(t *testing.T) {
	finishes := map[string]map[loop.Finish]string{
		fake.Anthropic:  {loop.FinishStop: "end_turn", loop.FinishCalls: "tool_use", loop.FinishLength: "max_tokens", loop.FinishFilter: "refusal"},
		fake.OpenAI:     {loop.FinishStop: "completed", loop.FinishCalls: "completed", loop.FinishLength: "incompletemax_output_tokens", loop.FinishFilter: "incompletecontent_filter"},
		fake.OpenAIChat: {loop.FinishStop: "stop", loop.FinishCalls: "tool_calls", loop.FinishLength: "length", loop.FinishFilter: "content_filter"},
		fake.Gemini:     {loop.FinishStop: "STOP", loop.FinishCalls: "STOP", loop.FinishLength: "MAX_TOKENS", loop.FinishFilter: "SAFETY"},
	}
	usage := &loop.Usage{Input: 100, CacheRead: 30, CacheWrite: 0, Output: 25, Reasoning: 5}
	items := []scripted.Item{
		{Text: "Two and two is four – вот so, 日本語 and 🦜.", Usage: usage},
		{Thinking: "The history first; ¿cómo?", Text: "Looking…", Calls: []scripted.Call{{Name: "look", Args: `{"q":"é"}`}, {Name: "look", Args: `{}`}, {Name: "other", Args: `{"a":[1,2.5],"b":{"c":null}}`}}, Usage: usage},
		{Calls: []scripted.Call{{Name: "look", Args: `{}`}}, Usage: usage},
		{Text: "cut he", Finish: loop.FinishLength, Usage: usage},
		{Text: "I will n", Finish: loop.FinishFilter, Usage: usage},
		{Usage: usage},
		{Text: "no usage"},
	}
	for wire, ask := range clients {
		for n, item := range items {
			for _, stream := range []bool{false, true} {
				for seed, opts := range []fake.Options{{}, {Cut: true, Interleave: true}, {Cut: true}} {
					t.Run(fmt.Sprintf("%s/%d/stream=%v/%d", wire, n, stream, seed), func(t *testing.T) {
						opts.Seed = uint64(seed*100 + n)
						s := fake.New(wire, opts)
						defer s.Close()
						s.Serve(func(*fake.Seen) (scripted.Item, error) { return item, nil })
						got, err := ask(t, s.URL, stream)
						if err != nil {
							t.Fatalf("%v; the server says %q", err, s.Errors())
						}
						want := said{Thinking: item.Thinking, Text: item.Text, Finish: finishes[wire][item.FinishOf()]}
						if item.Usage != nil {
							want.Usage = *item.Usage
						}
						if wire == fake.Anthropic && stream {
							got.Usage.Reasoning = want.Usage.Reasoning // the SDK's accumulation drops the details
						}
						for _, c := range item.Calls {
							want.Calls = append(want.Calls, c.Name+" "+c.Args)
						}
						if d := cmp.Diff(want, got); d != "" {
							t.Error(d)
						}
						if n := len(s.Requests()); n != 1 || len(s.Errors()) > 0 {
							t.Errorf("%d requests, errors %q", n, s.Errors())
						}
					})
				}
			}
		}
	}
}
