package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

func isGenerate(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, ":generateContent") || strings.HasSuffix(path, ":streamGenerateContent")
}

// served is a model before a server that answers with recordings.
func served(t testing.TB) (*traffic.Server, model.Model) {
	s := &traffic.Server{}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, Model("gemini-test", BaseURL(h.URL), APIKey("k"))
}

func question(stream bool) *model.Request {
	return &model.Request{
		Stream: stream, Cache: &model.Cache{},
		Messages: []*loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "hello"}}}},
	}
}

// TestTrafficDecoding checks every recorded response: through HTTP whole and cut at every line, and through the decoder cut in
// all ways.
func TestTrafficDecoding(t *testing.T) {
	table := traffic.NewTable(t, "gemini, decoding")
	srv, m := served(t)
	for _, f := range traffic.Load(t, "gemini") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if !isGenerate(e.Request.Path) {
				table.LeftOut(what, "another endpoint of the vendor (ronda speaks generateContent only)")
				continue
			}
			if e.Response.Status >= 400 {
				continue
			}
			raw := e.Response.Bytes()
			ways := traffic.Cuts(raw)
			var first *model.Response
			for _, pieces := range [][][]byte{nil, ways[len(ways)-1]} {
				srv.Next(&e.Response, pieces)
				var told deltas
				got, err := m.Generate(context.Background(), question(e.Stream), told.add)
				if err != nil {
					table.Fail(what, "%v", err)
					continue
				}
				if diff := against(got, e); diff != "" {
					table.Fail(what, "%s", diff)
				}
				if diff := told.against(got); diff != "" {
					table.Fail(what, "deltas: %s", diff)
				}
				if first == nil {
					first = got
					if diff := goesBack(got, e); diff != "" && !e.Has("streamed_partial_args") { // TestStreamedArguments
						table.Fail(what, "going back: %s", diff)
					}
				}
			}
			for n, way := range ways {
				d := &decoder{}
				err := d.read(&pieces{way}, -1)
				if err != nil {
					table.Fail(what, "way %d: %v", n, err)
					continue
				}
				if got, err := d.response(); err != nil {
					table.Fail(what, "way %d: %v", n, err)
				} else if diff := cmp.Diff(first, got); diff != "" {
					table.Fail(what, "way %d: %s", n, diff)
				}
			}
			table.Pass(what)
		}
	}
}

// goesBack checks that the turn, sent back, holds every sealed part as it came.
func goesBack(r *model.Response, e *traffic.Exchange) string {
	c := &model.Cache{}
	(&adapter{}).messages(&model.Request{Messages: []*loop.Message{{Role: loop.Assistant, Blocks: r.Blocks}}}, c)
	return sealed(e, gjson.ParseBytes(c.Bytes))
}

// pieces gives one piece with each Read.
type pieces struct{ way [][]byte }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.way) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.way[0])
	if p.way[0] = p.way[0][n:]; len(p.way[0]) == 0 {
		p.way = p.way[1:]
	}
	return n, nil
}

// deltas collects what a sink was given.
type deltas struct{ text, thought, args string }

func (d *deltas) add(x model.Delta) {
	switch x.Channel {
	case model.Text:
		d.text += x.Text
	case model.Thought:
		d.thought += x.Text
	case model.Arguments:
		d.args += x.Name + x.ID + x.Text
	}
}

func (d *deltas) against(r *model.Response) string {
	var want deltas
	for _, b := range r.Blocks {
		switch b.Kind {
		case loop.BlockText:
			want.text += b.Text
		case loop.BlockThought:
			want.thought += b.Text
		case loop.BlockCall:
			want.args += b.Name + b.ID + b.Args
		}
	}
	return cmp.Diff([]string{want.text, want.thought, want.args}, []string{d.text, d.thought, d.args})
}

type call struct{ ID, Name, Args string }

// against compares a response with what an independent reader made of the recording.
func against(r *model.Response, e *traffic.Exchange) string {
	var text strings.Builder
	var calls []call
	thought := 0
	for _, b := range r.Blocks {
		switch b.Kind {
		case loop.BlockText:
			text.WriteString(b.Text)
		case loop.BlockThought:
			thought += len([]rune(b.Text))
		case loop.BlockCall:
			calls = append(calls, call{b.ID, b.Name, canonical([]byte(b.Args))})
		}
	}
	var out []string
	if e.Derived.TextSHA256 == "" && text.String() != e.Derived.Text {
		out = append(out, "text: "+cmp.Diff(e.Derived.Text, text.String()))
	}
	if e.Derived.TextSHA256 != "" && len([]rune(text.String())) != e.Derived.TextChars {
		out = append(out, fmt.Sprintf("text of %d characters, want %d", len([]rune(text.String())), e.Derived.TextChars))
	}
	if e.Derived.ThinkingChars != 0 && thought != e.Derived.ThinkingChars {
		out = append(out, fmt.Sprintf("thoughts of %d characters, want %d", thought, e.Derived.ThinkingChars))
	}
	var want []call
	for _, c := range e.Derived.ToolCalls {
		if c.Name == "" && e.Has("streamed_partial_args") {
			continue // a piece of the call before it
		}
		want = append(want, call{c.ID, c.Name, canonical(c.Arguments)})
	}
	if e.Has("streamed_partial_args") { // TestStreamedArguments looks at the values
		for i := range calls {
			if i < len(want) {
				want[i].Args = calls[i].Args
			}
		}
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		out = append(out, "calls: "+diff)
	}
	reason := strings.Trim(string(e.Derived.Finish), `"`)
	wantFinish, ok := map[string]loop.Finish{
		"STOP": loop.FinishStop, "1": loop.FinishStop, "MAX_TOKENS": loop.FinishLength, "2": loop.FinishLength, "SAFETY": loop.FinishFilter,
		"MODEL_ARMOR": loop.FinishFilter, "": loop.FinishFilter, "MALFORMED_FUNCTION_CALL": loop.FinishMalformed,
		"UNEXPECTED_TOOL_CALL": loop.FinishMalformed,
	}[reason]
	if wantFinish == loop.FinishStop && len(calls) > 0 {
		wantFinish = loop.FinishCalls
	}
	if !ok || r.Finish != wantFinish {
		out = append(out, fmt.Sprintf("finish %q, want %q (%s)", r.Finish, wantFinish, reason))
	}
	if e.Derived.FinishMessage != "" && r.Detail != e.Derived.FinishMessage {
		out = append(out, fmt.Sprintf("detail %q, want %q", r.Detail, e.Derived.FinishMessage))
	}
	if diff := cmp.Diff(usageOf(e.Derived.Usage), r.Usage); diff != "" {
		out = append(out, "usage: "+diff)
	}
	return strings.Join(out, "\n")
}

func usageOf(raw json.RawMessage) *loop.Usage {
	var c struct {
		Prompt     *int64 `json:"promptTokenCount"`
		Cached     int64  `json:"cachedContentTokenCount"`
		Tools      int64  `json:"toolUsePromptTokenCount"`
		Candidates *int64 `json:"candidatesTokenCount"`
		Thoughts   int64  `json:"thoughtsTokenCount"`
		Total      int64  `json:"totalTokenCount"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil || c.Prompt == nil && c.Candidates == nil {
		return nil
	}
	if c.Prompt == nil {
		c.Prompt = new(int64)
	}
	u := &loop.Usage{Input: *c.Prompt - c.Cached + c.Tools, CacheRead: c.Cached, Output: c.Thoughts, Reasoning: c.Thoughts}
	if c.Candidates != nil {
		u.Output += *c.Candidates
	}
	return u
}

func canonical(b []byte) string {
	if len(bytes.TrimSpace(b)) == 0 || string(b) == "null" {
		return "{}"
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(b)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// TestTrafficErrors checks that recorded errors get their class.
func TestTrafficErrors(t *testing.T) {
	table := traffic.NewTable(t, "gemini, errors")
	srv, m := served(t)
	for _, f := range traffic.Load(t, "gemini") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if e.Response.Status < 400 {
				continue
			}
			srv.Next(&e.Response, nil)
			_, err := m.Generate(context.Background(), question(e.Stream), nil)
			var got *model.Error
			if !errors.As(err, &got) {
				table.Fail(what, "error %v, want a *model.Error", err)
				continue
			}
			body := gjson.ParseBytes(e.Response.Bytes())
			if body.IsArray() {
				body = body.Get("0")
			}
			want := model.Error{
				Class: loop.ClassFatal, Status: e.Response.Status,
				Code: body.Get("error.status").Str, Message: body.Get("error.message").Str,
			}
			if e.Response.Status == 429 {
				want.Class = loop.ClassTransient
				for _, d := range body.Get("error.details").Array() {
					if d.Get("retryDelay").Exists() {
						want.RetryAfter, _ = time.ParseDuration(d.Get("retryDelay").Str)
					}
				}
				if want.RetryAfter == 0 {
					want.RetryAfter = got.RetryAfter // words or headers, tested with model/wire
				}
			}
			if strings.Contains(want.Message, "input token count") {
				want.Class, want.Window = loop.ClassInvalid, true
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				table.Fail(what, "%s", diff)
				continue
			}
			t.Logf("%s: %d %s, wait %s", what, got.Status, got.Class, got.RetryAfter)
			table.Pass(what)
		}
	}
}
