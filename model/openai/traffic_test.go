package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openai"
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
	table := traffic.NewTable(t, "openai-responses, decoding")
	server := &traffic.Server{}
	ts := httptest.NewServer(server)
	defer ts.Close()
	m := openai.Model("m", openai.BaseURL(ts.URL), openai.APIKey("k"))
	for _, f := range traffic.Load(t, "openai-responses") {
		for i := range f.Exchanges {
			ex := &f.Exchanges[i]
			name := fmt.Sprintf("%s#%d", f.Name, i)
			if why := notOffered(ex); why != "" {
				table.LeftOut(name, why)
				continue
			}
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

func notOffered(ex *traffic.Exchange) string {
	var finish string
	_ = json.Unmarshal(ex.Derived.Finish, &finish)
	if finish == "queued" || finish == "in_progress" {
		return "a response in the background, to be polled: ronda does not offer it (and says so in the error)"
	}
	return ""
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
	var want []traffic.Call
	for _, c := range d.ToolCalls {
		if c.Custom {
			continue // a custom tool, which nobody can declare: its item is kept as it is
		}
		var s string
		if json.Unmarshal(c.Arguments, &s) == nil {
			if s == "" {
				s = "{}"
			}
			c.Arguments, _ = json.Marshal(s)
		}
		want = append(want, c)
	}
	if diff := cmp.Diff(want, calls, cmpopts.EquateEmpty()); diff != "" {
		return "calls: -want +got:\n" + diff
	}
	if why := d.CheckText(text.String()); why != "" {
		return why
	}
	if d.Refusal != "" && res.Detail != d.Refusal {
		return fmt.Sprintf("refusal %q, want %q", res.Detail, d.Refusal)
	}
	if want := wantFinish(d, len(want)); res.Finish != want {
		return fmt.Sprintf("finish %s, want %s (%s)", res.Finish, want, d.Finish)
	}
	if d.ID != "" && res.ID != d.ID {
		return fmt.Sprintf("id %q, want %q", res.ID, d.ID)
	}
	if d.ThinkingChars > 0 && thought.Len() == 0 {
		return fmt.Sprintf("no thoughts, want %d characters", d.ThinkingChars)
	}
	if why := checkItems(d.Items, res.Blocks); why != "" && d.Refusal == "" {
		return why
	}
	if ex.Stream && (s.text != text.String() || s.thought != thought.String() || s.args != args.String()) {
		return "deltas are not the blocks: " + cmp.Diff(s.text+"|"+s.thought+"|"+s.args, text.String()+"|"+thought.String()+"|"+args.String())
	}
	return checkUsage(d.Usage, res.Usage)
}

// checkItems compares the order of kinds: each item is a block, and nothing is lost.
func checkItems(items []string, blocks []loop.Block) string {
	var want, got []string
	for _, it := range items {
		switch it {
		case "message":
			it = "text"
		case "reasoning":
			it = "thought"
		case "function_call":
			it = "call"
		case "image_generation_call":
			it = "media"
		default:
			it = "opaque"
		}
		want = append(want, it)
	}
	for i, b := range blocks {
		if i > 0 && b.Kind == loop.BlockText && blocks[i-1].Kind == loop.BlockText && bytes.Equal(b.Raw, blocks[i-1].Raw) {
			continue
		}
		kind := string(b.Kind)
		if len(got) < len(want) && want[len(got)] == "media" && kind == "opaque" {
			kind = "media" // one recording has its image cut short: what is no image stays as it is
		}
		got = append(got, kind)
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func wantFinish(d *traffic.Derived, calls int) loop.Finish {
	var s string
	_ = json.Unmarshal(d.Finish, &s)
	switch {
	case d.Refusal != "":
		return loop.FinishFilter
	case s == "incomplete":
		return loop.FinishLength
	case calls > 0:
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
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Total  int64 `json:"total_tokens"`
		In     struct {
			Cached int64 `json:"cached_tokens"`
			Write  int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return err.Error()
	}
	if got == nil {
		return "no usage, want " + string(raw)
	}
	want := loop.Usage{
		Input: u.Input - u.In.Cached - u.In.Write, CacheRead: u.In.Cached, CacheWrite: u.In.Write,
		Output: max(u.Output, u.Total-u.Input), Reasoning: u.Out.Reasoning,
	}
	return cmp.Diff(want, *got)
}

func checkError(ex *traffic.Exchange, res *model.Response, err error) string {
	var e *model.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("no error but %v, want %s", res, ex.Derived.Error)
	}
	want := model.Error{Class: loop.ClassFatal, Status: ex.Response.Status}
	switch text := string(ex.Response.Bytes()); {
	case strings.Contains(text, "previous_response_not_found"):
		want.Class, want.Gone = loop.ClassTransient, true
	case strings.Contains(text, "rate_limit_exceeded"):
		want.Class, want.Status = loop.ClassTransient, e.Status
	}
	got := model.Error{Class: e.Class, Status: e.Status, Window: e.Window, Gone: e.Gone}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Sprintf("%v: -want +got:\n%s", err, diff)
	}
	if e.Message == "" {
		return "an error without a message"
	}
	return ""
}
