package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

// TestTrafficEncoding rebuilds the requests that carry tool results: the model's turn as we decoded it and the recorded results
// must come out as the recorded client sent them.
func TestTrafficEncoding(t *testing.T) {
	table := traffic.NewTable(t, "anthropic, tool loops")
	for _, f := range traffic.Load(t, "anthropic") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if e.Continues == nil || !e.Request.Recorded() {
				continue
			}
			turn, err := decoded(&f.Exchanges[e.Continues.Exchange])
			if err != nil {
				table.Fail(what, "%v", err)
				continue
			}
			if e.Continues.Via == "history" { // no results: another message, or a paused turn that goes on
				if diff := repeated(turn, &f.Exchanges[e.Continues.Exchange], e.Request.Body); diff != "" {
					table.Fail(what, "%s", diff)
				} else {
					table.Pass(what)
				}
				continue
			}
			if reason := changed(turn, e.Request.Body); reason != "" {
				table.LeftOut(what, reason)
				continue
			}
			exact := e.Continues.CallsReplayedExactly == nil || *e.Continues.CallsReplayedExactly
			if diff := rebuilt(turn, &f.Exchanges[e.Continues.Exchange], e.Request.Body, exact); diff != "" {
				table.Fail(what, "%s", diff)
				continue
			}
			table.Pass(what)
		}
	}
}

// repeated checks that a turn without open calls goes back as the recorded client sent it.
func repeated(turn *model.Response, first *traffic.Exchange, body []byte) string {
	c := &model.Cache{}
	messages(&model.Request{Messages: []*loop.Message{{Role: loop.Assistant, Blocks: turn.Blocks}}}, c)
	got := gjson.ParseBytes(c.Bytes)
	diff := "the recorded request has no turn of the assistant"
	for _, m := range gjson.GetBytes(body, "messages").Array() {
		if m.Get("role").Str != "assistant" {
			continue
		}
		if m.Get("content").Type == gjson.String {
			m = gjson.Parse(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}]}`, m.Get("content").Raw))
		}
		if diff = sameTurn(m, got, true); diff == "" {
			return sealed(first, got)
		}
	}
	return diff
}

// changed says what the recorded client did to the turn that ronda never does: the turn goes back as it was received.
func changed(turn *model.Response, body []byte) string {
	names, texts := map[string]string{}, ""
	for _, b := range turn.Blocks {
		if b.Kind == loop.BlockCall {
			names[b.ID] = b.Name
		}
		texts += b.Text
	}
	for _, m := range gjson.GetBytes(body, "messages").Array() {
		ours := false
		text := ""
		for _, b := range m.Get("content").Array() {
			switch b.Get("type").Str {
			case "tool_use":
				name, ok := names[b.Get("id").Str]
				ours = ours || ok
				if ok && name != b.Get("name").Str {
					return "the recorded client renamed the call; ronda sends turns back as received"
				}
			case "text":
				text = b.Get("text").Str
			case "tool_result":
				for _, c := range b.Get("content").Array() {
					if c.Get("type").Str == "search_result" {
						return "results of type search_result (ronda's results are text, images and files)"
					}
				}
			}
		}
		if ours && strings.TrimSpace(text) != "" && !strings.Contains(texts, text) {
			return "the recorded client wrote other text into the turn; ronda sends turns back as received"
		}
	}
	return ""
}

func decoded(e *traffic.Exchange) (*model.Response, error) {
	d := newDecoder(nil)
	var err error
	if e.Response.IsText() {
		err = d.stream(bytes.NewReader(e.Response.Bytes()))
	} else {
		err = d.whole(e.Response.Bytes())
	}
	if err != nil {
		return nil, err
	}
	return d.response()
}

func rebuilt(turn *model.Response, first *traffic.Exchange, body []byte, exact bool) string {
	ids := map[string]bool{}
	for i := range turn.Blocks {
		if b := &turn.Blocks[i]; b.Kind == loop.BlockCall {
			b.Call = fmt.Sprintf("c1.%d", i+1)
			ids[b.ID] = true
		}
	}
	recorded := gjson.GetBytes(body, "messages").Array()
	at := -1
	for i, m := range recorded {
		for _, b := range m.Get("content").Array() {
			if b.Get("type").Str == "tool_use" && ids[b.Get("id").Str] {
				at = i
			}
		}
	}
	if at < 0 || at+1 >= len(recorded) {
		return "the recorded request has no such turn"
	}
	results := &loop.Message{Role: loop.Tool}
	for _, b := range recorded[at+1].Get("content").Array() {
		if b.Get("type").Str == "tool_result" {
			results.Blocks = append(results.Blocks, resultBlock(turn, b))
		}
	}
	req := &model.Request{Messages: []*loop.Message{
		{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "hello"}}},
		{Role: loop.Assistant, Blocks: turn.Blocks}, results,
	}, Tools: []model.Tool{{Name: "t", Schema: []byte(`{"type":"object"}`)}}}
	a := Model("claude-test", APIKey("k")).(*adapter)
	b, err := a.encode(req)
	if err != nil {
		return err.Error()
	}
	sent, _ := io.ReadAll(b.reader())
	got := gjson.GetBytes(sent, "messages").Array()
	if !json.Valid(sent) || len(got) != 3 {
		return fmt.Sprintf("not three messages: %s", sent)
	}
	if diff := sameTurn(recorded[at], got[1], exact); diff != "" {
		return diff
	}
	if diff := sealed(first, got[1]); diff != "" {
		return diff
	}
	var want, have []string
	for _, b := range recorded[at+1].Get("content").Array() {
		if b.Get("type").Str == "tool_result" {
			want = append(want, comparable(b))
		}
	}
	for _, b := range got[2].Get("content").Array() {
		have = append(have, comparable(b))
	}
	return cmp.Diff(want, have)
}

// sameTurn compares the assistant's turn as recorded (a client may have dropped blocks) with ours.
func sameTurn(recorded, got gjson.Result, exact bool) string {
	have := got.Get("content").Array()
	n := 0
	for _, want := range recorded.Get("content").Array() {
		w := comparable(want)
		if want.Get("type").Str == "text" && strings.TrimSpace(want.Get("text").Str) == "" {
			continue
		}
		found := false
		for ; n < len(have) && !found; n++ {
			if want.Get("type").Str == "tool_use" && !exact {
				found = have[n].Get("id").Str == want.Get("id").Str && have[n].Get("name").Str == want.Get("name").Str
			} else {
				found = comparable(have[n]) == w
			}
		}
		if !found {
			return fmt.Sprintf("no block like %s\nin %s", w, got.Raw)
		}
	}
	return ""
}

// sealed checks that what the provider signed or encrypted goes back byte for byte, and all that it does not know as well.
func sealed(e *traffic.Exchange, got gjson.Result) string {
	if e.Response.IsText() {
		return "" // the recorded request is the measure
	}
	have := got.Get("content").Array()
	n := 0
	for _, b := range gjson.GetBytes(e.Response.Bytes(), "content").Array() {
		typ := b.Get("type").Str
		if typ == "text" && strings.TrimSpace(b.Get("text").Str) == "" {
			continue
		}
		if n >= len(have) || have[n].Get("type").Str != typ {
			return fmt.Sprintf("block %d is not the %s that was received: %s", n, typ, got.Raw)
		}
		switch typ {
		case "text":
			if have[n].Get("text").Str != b.Get("text").Str {
				return cmp.Diff(b.Raw, have[n].Raw)
			}
		case "thinking":
			if have[n].Get("thinking").Str != b.Get("thinking").Str || have[n].Get("signature").Raw != b.Get("signature").Raw {
				return cmp.Diff(b.Raw, have[n].Raw)
			}
		case "tool_use":
			if have[n].Get("input").Raw != b.Get("input").Raw || have[n].Get("id").Raw != b.Get("id").Raw {
				return cmp.Diff(b.Raw, have[n].Raw)
			}
		default:
			if have[n].Raw != b.Raw {
				return cmp.Diff(b.Raw, have[n].Raw)
			}
		}
		n++
	}
	return ""
}

func resultBlock(turn *model.Response, b gjson.Result) loop.Block {
	r := loop.Block{Kind: loop.BlockResult, ID: b.Get("tool_use_id").Str, Error: b.Get("is_error").Bool()}
	for _, c := range turn.Blocks {
		if c.Kind == loop.BlockCall && c.ID == r.ID {
			r.Call, r.Name = c.Call, c.Name
		}
	}
	c := b.Get("content")
	if c.Type == gjson.String {
		r.Text = c.Str
		return r
	}
	for i, x := range c.Array() {
		switch {
		case x.Get("type").Str == "text" && i == 0:
			r.Text = x.Get("text").Str
		case x.Get("type").Str == "text":
			r.More = append(r.More, loop.Block{Kind: loop.BlockText, Text: x.Get("text").Str})
		default:
			m := &loop.Media{MIME: x.Get("source.media_type").Str, URL: x.Get("source.url").Str}
			json.Unmarshal([]byte(x.Get("source.data").Raw), &m.Data)
			r.More = append(r.More, loop.Block{Kind: loop.BlockMedia, Media: m})
		}
	}
	return r
}

// comparable is a block without what a client is free to add or leave out.
func comparable(b gjson.Result) string {
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(b.Raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return b.Raw
	}
	for k, x := range v {
		if x == nil || k == "cache_control" || k == "caller" || k == "citations" || k == "is_error" && x == false || reflect.DeepEqual(x, []any{}) {
			delete(v, k)
		}
	}
	if v["type"] == "tool_result" {
		if list, ok := v["content"].([]any); ok {
			for _, x := range list {
				if m, ok := x.(map[string]any); ok {
					delete(m, "cache_control")
				}
			}
			if len(list) == 1 {
				if m, ok := list[0].(map[string]any); ok && m["type"] == "text" {
					v["content"] = m["text"]
				}
			}
		}
		if v["content"] == "" {
			delete(v, "content")
		}
	}
	out, _ := json.Marshal(v)
	return typography.Replace(string(out))
}

// typography is what the recorder of some requests did to characters.
var typography = strings.NewReplacer("–", "-", "—", "-", "‘", "'", "’", "'", "“", `\"`, "”", `\"`, "…", "...", "\u00a0", " ")
