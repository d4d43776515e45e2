package anthropic

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

const notMessages = "another endpoint of the vendor (ronda speaks Messages only)"

func isMessages(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, "/messages")
}

// served is a model before a server that answers with recordings.
func served(t testing.TB) (*traffic.Server, model.Model) {
	s := &traffic.Server{}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, Model("claude-test", BaseURL(h.URL), APIKey("k"))
}

func question(stream bool) *model.Request {
	return &model.Request{
		Stream: stream, Cache: &model.Cache{},
		Messages: []*loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "hello"}}}},
	}
}

// TestTrafficDecoding checks every recorded response: through the SDK whole and cut at every line, and through the decoder cut
// in all ways.
func TestTrafficDecoding(t *testing.T) {
	table := traffic.NewTable(t, "anthropic, decoding")
	srv, m := served(t)
	for _, f := range traffic.Load(t, "anthropic") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if !isMessages(e.Request.Path) {
				table.LeftOut(what, notMessages)
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
				if e.Response.IsText() {
					if diff := told.against(got); diff != "" {
						table.Fail(what, "deltas: %s", diff)
					}
				}
				if first == nil {
					first = got
					c := &model.Cache{}
					messages(&model.Request{Messages: []*loop.Message{{Role: loop.Assistant, Blocks: got.Blocks}}}, c)
					if diff := sealed(e, gjson.ParseBytes(c.Bytes)); diff != "" {
						table.Fail(what, "going back: %s", diff)
					}
				}
			}
			for n, way := range ways {
				d := newDecoder(nil)
				var err error
				if e.Response.IsText() {
					err = d.stream(&pieces{way})
				} else {
					err = d.whole(raw)
				}
				if err != nil {
					table.Fail(what, "way %d: %v", n, err)
					continue
				}
				got, err := d.response()
				if err != nil {
					table.Fail(what, "way %d: %v", n, err)
				} else if diff := cmp.Diff(first, got); diff != "" {
					table.Fail(what, "way %d: %s", n, diff)
				}
			}
			table.Pass(what)
		}
	}
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
type deltas struct {
	text, thought string
	args          map[string]string
	block         map[int]string
}

func (d *deltas) add(x model.Delta) {
	if d.args == nil {
		d.args, d.block = map[string]string{}, map[int]string{}
	}
	switch x.Channel {
	case model.Text:
		d.text += x.Text
	case model.Thought:
		d.thought += x.Text
	case model.Arguments:
		if x.ID != "" {
			d.block[x.Block] = x.ID
		}
		d.args[d.block[x.Block]] += x.Text
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
			if got, ok := d.args[b.ID]; ok && got != b.Args && !(got == "" && b.Args == "{}") {
				return cmp.Diff(b.Args, got)
			}
		}
	}
	return cmp.Diff(want.text+"\n"+want.thought, d.text+"\n"+d.thought)
}

// against compares a response with what an independent reader made of the recording.
func against(r *model.Response, e *traffic.Exchange) string {
	var text strings.Builder
	var items []string
	type call struct{ ID, Name, Args string }
	var calls []call
	thought := 0
	for _, b := range r.Blocks {
		switch b.Kind {
		case loop.BlockText:
			text.WriteString(b.Text)
			items = append(items, "text")
		case loop.BlockThought:
			thought += len([]rune(b.Text))
			items = append(items, "thinking")
		case loop.BlockCall:
			calls = append(calls, call{b.ID, b.Name, canonical([]byte(b.Args))})
			items = append(items, "tool_use")
		case loop.BlockOpaque:
			items = append(items, gjson.GetBytes(b.Raw, "type").Str)
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
		want = append(want, call{c.ID, c.Name, arguments(c.Arguments)})
	}
	prefilled, fromStart := prefilledCalls(e)
	for _, c := range fromStart {
		want = append(want, call{c.ID, c.Name, canonical([]byte(c.Args))})
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		out = append(out, "calls: "+diff)
	}
	if len(e.Derived.Items) > 0 && !prefilled {
		if diff := cmp.Diff(notEmpty(e, e.Derived.Items), items); diff != "" {
			out = append(out, "items: "+diff)
		}
	}
	var reason string
	json.Unmarshal(e.Derived.Finish, &reason)
	wantFinish := map[string]loop.Finish{
		"end_turn": loop.FinishStop, "stop_sequence": loop.FinishStop, "tool_use": loop.FinishCalls, "max_tokens": loop.FinishLength,
		"refusal": loop.FinishFilter, "pause_turn": loop.FinishPause,
	}[reason]
	if wantFinish == loop.FinishStop && len(calls) > 0 {
		wantFinish = loop.FinishCalls
	}
	if r.Finish != wantFinish {
		out = append(out, fmt.Sprintf("finish %q, want %q (%s)", r.Finish, wantFinish, reason))
	}
	if diff := cmp.Diff(usageOf(e.Derived.Usage), r.Usage); diff != "" {
		out = append(out, "usage: "+diff)
	}
	return strings.Join(out, "\n")
}

// prefilledCalls finds calls that a message_start brings, which the derived form leaves out.
func prefilledCalls(e *traffic.Exchange) (any bool, calls []loop.Block) {
	if !e.Response.IsText() {
		return false, nil
	}
	for _, line := range bytes.Split(e.Response.Bytes(), []byte("\n")) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || gjson.GetBytes(data, "type").Str != "message_start" {
			continue
		}
		for _, b := range gjson.GetBytes(data, "message.content").Array() {
			any = true
			calls = append(calls, loop.Block{ID: b.Get("id").Str, Name: b.Get("name").Str, Args: b.Get("input").Raw})
		}
	}
	return any, calls
}

// notEmpty leaves texts out that have no content: they are no blocks of a response.
func notEmpty(e *traffic.Exchange, items []string) []string {
	if e.Response.IsText() {
		full := map[int64]bool{}
		var keep []string
		n := 0
		for _, line := range bytes.Split(e.Response.Bytes(), []byte("\n")) {
			data, _ := bytes.CutPrefix(line, []byte("data: "))
			j := gjson.ParseBytes(data)
			switch j.Get("type").Str {
			case "content_block_start":
				full[j.Get("index").Int()] = j.Get("content_block.text").Str != "" || j.Get("content_block.type").Str != "text"
			case "content_block_delta":
				full[j.Get("index").Int()] = true
			case "content_block_stop":
				if n < len(items) && full[j.Get("index").Int()] {
					keep = append(keep, items[n])
				}
				n++
			}
		}
		return keep
	}
	var keep []string
	for i, b := range gjson.GetBytes(e.Response.Bytes(), "content").Array() {
		if i < len(items) && (b.Get("type").Str != "text" || b.Get("text").Str != "") {
			keep = append(keep, items[i])
		}
	}
	return keep
}

func usageOf(raw json.RawMessage) *loop.Usage {
	type counts struct {
		Input   int64 `json:"input_tokens"`
		Read    int64 `json:"cache_read_input_tokens"`
		Write   int64 `json:"cache_creation_input_tokens"`
		Output  int64 `json:"output_tokens"`
		Type    string
		Details struct {
			Thinking int64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
		Iterations []json.RawMessage
	}
	var c counts
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil {
		return nil
	}
	u := loop.Usage{Input: c.Input, CacheRead: c.Read, CacheWrite: c.Write, Output: c.Output, Reasoning: c.Details.Thinking}
	for _, it := range c.Iterations {
		var i counts
		if json.Unmarshal(it, &i) == nil && (i.Type == "compaction" || i.Type == "advisor_message") {
			u.Input += i.Input
			u.Output += i.Output
			u.CacheRead += i.Read
			u.CacheWrite += i.Write
		}
	}
	return &u
}

// arguments makes derived arguments comparable: a JSON value, or text that is no JSON.
func arguments(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		return canonical([]byte(s))
	}
	return canonical(raw)
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
	table := traffic.NewTable(t, "anthropic, errors")
	srv, m := served(t)
	for _, f := range traffic.Load(t, "anthropic") {
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
			raw := e.Response.Bytes()
			want := model.Error{
				Class: loop.ClassFatal, Status: e.Response.Status,
				Code: gjson.GetBytes(raw, "error.type").Str, Message: gjson.GetBytes(raw, "error.message").Str,
			}
			if e.Response.Status == 429 {
				want.Class = loop.ClassTransient
				for k, v := range e.Response.Headers {
					if strings.EqualFold(k, "retry-after") {
						want.RetryAfter, _ = time.ParseDuration(v + "s")
					}
				}
			}
			if strings.Contains(want.Message, "prompt is too long") {
				want.Class, want.Window = loop.ClassInvalid, true
			}
			g := *got
			g.Err = nil
			if diff := cmp.Diff(want, g); diff != "" {
				table.Fail(what, "%s", diff)
				continue
			}
			table.Pass(what)
		}
	}
}
