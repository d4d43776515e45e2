package openaichat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

// said is what came through the sink.
type said struct{ text, thought, args string }

func (s *said) sink(d model.Delta) {
	if !utf8.ValidString(d.Text) {
		panic(fmt.Sprintf("delta %q is no UTF-8", d.Text))
	}
	switch d.Channel {
	case model.Text:
		s.text += d.Text
	case model.Thought:
		s.thought += d.Text
	case model.Arguments:
		s.args += d.Text
	}
}

func TestDecodeTraffic(t *testing.T) {
	table := traffic.NewTable(t, "openai-chat, decoding")
	server := &traffic.Server{}
	ts := httptest.NewServer(server)
	defer ts.Close()
	m := openaichat.Model("m", openaichat.BaseURL(ts.URL), openaichat.APIKey("k"))
	for _, f := range traffic.Load(t, "openai-chat") {
		for i := range f.Exchanges {
			ex := &f.Exchanges[i]
			name := fmt.Sprintf("%s#%d", f.Name, i)
			var first string
			for n, cut := range ways(ex) {
				server.Next(&ex.Response, cut)
				var s said
				res, err := m.Generate(context.Background(), &model.Request{
					Messages: []*loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "x"}}}},
					Stream:   ex.Stream, Cache: &model.Cache{},
				}, s.sink)
				if why := check(ex, res, err, s); why != "" {
					table.Fail(name, "cut %d: %s", n, why)
					break
				}
				b, _ := json.Marshal(res)
				if n == 0 {
					first = string(b)
				} else if first != string(b) {
					table.Fail(name, "cut %d: not the value of the whole body:\n%s", n, cmp.Diff(first, string(b)))
				}
			}
			table.Pass(f.Name)
		}
	}
}

func ways(ex *traffic.Exchange) [][][]byte {
	if !ex.Stream {
		return [][][]byte{nil}
	}
	return traffic.Cuts(ex.Response.Bytes())
}

// check compares with what an independent reader found; "" where all agrees.
func check(ex *traffic.Exchange, res *model.Response, err error, s said) string {
	d := &ex.Derived
	if len(d.Error) > 0 && string(d.Error) != "null" || ex.Response.Status >= 400 {
		return checkError(ex, res, err)
	}
	if err != nil {
		return err.Error()
	}
	d = completed(ex)
	var text, thought, args strings.Builder
	var calls []traffic.Call
	for _, b := range res.Blocks {
		switch b.Kind {
		case loop.BlockText:
			text.WriteString(b.Text)
		case loop.BlockThought:
			thought.WriteString(b.Text)
		case loop.BlockCall:
			a, _ := json.Marshal(b.Args)
			calls = append(calls, traffic.Call{ID: b.ID, Name: b.Name, Arguments: a})
			args.WriteString(b.Args)
		}
	}
	want := append([]traffic.Call(nil), d.ToolCalls...)
	for i := range want {
		if a := string(want[i].Arguments); a == `""` || a == `"null"` || a == "" {
			want[i].Arguments = json.RawMessage(`"{}"`)
		}
		var s string
		if json.Unmarshal(want[i].Arguments, &s) == nil {
			want[i].Arguments, _ = json.Marshal(s)
		}
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		return "calls: -want +got:\n" + diff
	}
	if why := d.CheckText(text.String()); why != "" {
		return why
	}
	if n := utf8.RuneCountInString(thought.String()); n != d.ThinkingChars {
		return fmt.Sprintf("thoughts have %d characters, want %d", n, d.ThinkingChars)
	}
	if d.Refusal != "" && res.Detail != d.Refusal {
		return fmt.Sprintf("refusal %q, want %q", res.Detail, d.Refusal)
	}
	if want := wantFinish(d); res.Finish != want {
		return fmt.Sprintf("finish %s, want %s (%s)", res.Finish, want, d.Finish)
	}
	if ex.Stream && (s.text != text.String() || s.thought != thought.String()) {
		return "deltas are not the blocks: " + cmp.Diff(s.text+s.thought, text.String()+thought.String())
	}
	return checkUsage(d.Usage, res.Usage)
}

// completed adds what the independent reader does not look at: content that is an object, calls in the form from before there were
// tools, and thoughts that are in reasoning_details alone.
func completed(ex *traffic.Exchange) *traffic.Derived {
	d := ex.Derived
	var body struct {
		Choices []struct {
			Message struct {
				Content   json.RawMessage
				Function  *struct{ Name, Arguments string } `json:"function_call"`
				Reasoning *string
				Details   []struct{ Text, Summary string } `json:"reasoning_details"`
			}
		}
	}
	if ex.Stream || json.Unmarshal(ex.Response.Body, &body) != nil || len(body.Choices) == 0 {
		return &d
	}
	m := body.Choices[0].Message
	if len(m.Content) > 0 && m.Content[0] == '{' {
		d.Text = string(m.Content)
	}
	if m.Reasoning == nil && d.ThinkingChars == 0 {
		for _, r := range m.Details {
			d.ThinkingChars += utf8.RuneCountInString(r.Text + r.Summary)
		}
	}
	if m.Function != nil {
		a, _ := json.Marshal(m.Function.Arguments)
		d.ToolCalls = append(d.ToolCalls, traffic.Call{Name: m.Function.Name, Arguments: a})
	}
	return &d
}

func wantFinish(d *traffic.Derived) loop.Finish {
	var s string
	_ = json.Unmarshal(d.Finish, &s)
	switch {
	case d.Refusal != "" || s == "content_filter":
		return loop.FinishFilter
	case s == "length":
		return loop.FinishLength
	case len(d.ToolCalls) > 0:
		return loop.FinishCalls
	}
	return loop.FinishStop
}

func checkUsage(raw json.RawMessage, got *loop.Usage) string {
	if len(raw) == 0 || string(raw) == "null" {
		if got != nil {
			return fmt.Sprintf("usage %v, want none", *got)
		}
		return ""
	}
	var u struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
		Hit        int64 `json:"prompt_cache_hit_tokens"`
		In         struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return err.Error()
	}
	if got == nil {
		return "no usage, want " + string(raw)
	}
	want := map[string]int64{"prefix": u.Prompt, "output": max(u.Completion, u.Total-u.Prompt), "read": min(max(u.Hit, u.In.Cached), u.Prompt)} // Azure's grok reports more cached tokens than it reports at all
	have := map[string]int64{"prefix": got.Prefix(), "output": got.Output, "read": got.CacheRead}
	if diff := cmp.Diff(want, have); diff != "" {
		return "usage: -want +got:\n" + diff
	}
	if got.Reasoning > got.Output || got.Reasoning < min(u.Out.Reasoning, got.Output) {
		return fmt.Sprintf("reasoning %d, recorded %d", got.Reasoning, u.Out.Reasoning)
	}
	return ""
}

func checkError(ex *traffic.Exchange, res *model.Response, err error) string {
	code := string(ex.Derived.Error)
	switch {
	case strings.Contains(code, "tool_use_failed"):
		if err != nil || res.Finish != loop.FinishMalformed {
			return fmt.Sprintf("got %v %v, want finish malformed", res, err)
		}
		return ""
	case strings.Contains(code, `"content_filter"`):
		if err != nil || res.Finish != loop.FinishFilter {
			return fmt.Sprintf("got %v %v, want finish filter", res, err)
		}
		return ""
	}
	var e *model.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("no error but %v, want %s", res, code)
	}
	want := model.Error{Class: loop.ClassFatal, Status: ex.Response.Status}
	switch text := string(ex.Response.Bytes()); {
	case strings.Contains(text, "max context length"), strings.Contains(text, "too_many_prompt_tokens"):
		want.Class, want.Window = loop.ClassInvalid, true
	case ex.Response.Status == 429 || ex.Response.Status >= 500:
		want.Class = loop.ClassTransient
	case ex.Response.Status == 200: // in mid-stream, with a status of its own
		var own struct{ Code int }
		_ = json.Unmarshal(ex.Derived.Error, &own)
		want.Status = own.Code
	}
	got := model.Error{Class: e.Class, Status: e.Status, Window: e.Window}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Sprintf("%v: -want +got:\n%s", err, diff)
	}
	if e.Message == "" {
		return "an error without a message"
	}
	for k, v := range ex.Response.Headers {
		if strings.EqualFold(k, "retry-after") && v != "0" && e.RetryAfter == 0 {
			return "retry-after " + v + " is not there"
		}
	}
	return ""
}
