package openaichat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
		Extra json.RawMessage `json:"extra_content"`
	} `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Reasoning  json.RawMessage `json:"reasoning"`
	Content2   json.RawMessage `json:"reasoning_content"`
	Details    json.RawMessage `json:"reasoning_details"`
}

// TestEncodeTraffic rebuilds the request that hands results back from our reading of the response before it, and compares it
// with the recorded one in all that the protocol fixes.
func TestEncodeTraffic(t *testing.T) {
	table := traffic.NewTable(t, "openai-chat, tool loops")
	server := &traffic.Server{}
	ts := httptest.NewServer(server)
	defer ts.Close()
	m := openaichat.Model("m", openaichat.BaseURL(ts.URL), openaichat.APIKey("k"))
	for _, f := range traffic.Load(t, "openai-chat") {
		var replies []*model.Response
		for i := range f.Exchanges {
			ex := &f.Exchanges[i]
			name := fmt.Sprintf("%s#%d", f.Name, i)
			var recorded struct{ Messages []message }
			if ex.Request.Recorded() {
				if err := json.Unmarshal(ex.Request.Body, &recorded); err != nil {
					t.Fatal(err)
				}
			}
			req := &model.Request{Stream: ex.Stream, Cache: &model.Cache{}}
			loops := ex.Continues != nil && ex.Continues.Via == "tool_result"
			why := transcript(recorded.Messages, f.Exchanges[:i], replies, req)
			server.Next(&ex.Response, nil)
			res, _ := m.Generate(context.Background(), req, nil)
			replies = append(replies, res)
			switch {
			case !loops:
				continue
			case why != "":
				table.LeftOut(name, why)
				continue
			}
			_, body := server.Last()
			var sent struct{ Messages []message }
			if err := json.Unmarshal(body, &sent); err != nil {
				table.Fail(name, "%v in %s", err, body)
				continue
			}
			if diff := cmp.Diff(fixed(recorded.Messages, recorded.Messages), fixed(sent.Messages, recorded.Messages)); diff != "" {
				table.Fail(name, "-recorded +sent:\n%s", diff)
				continue
			}
			table.Pass(name)
		}
	}
}

// transcript makes ours of the recorded messages; turns of the model that a recorded response holds are our reading of that
// response.
func transcript(ms []message, before []traffic.Exchange, replies []*model.Response, req *model.Request) (why string) {
	calls := map[string]string{}
	used := map[int]bool{}
	for n := range ms {
		m := &ms[n]
		msg := &loop.Message{Seq: int64(n)}
		switch m.Role {
		case "system", "developer":
			if len(req.Messages) > 0 {
				return "system messages in the middle of a conversation, which ronda does not have"
			}
			if req.System != "" {
				req.System += "\n\n"
			}
			req.System += textOf(m.Content)
			continue
		case "user":
			msg.Role = loop.User
			msg.Blocks = userBlocks(m.Content)
		case "assistant":
			msg.Role = loop.Assistant
			msg.Blocks = assistantBlocks(m, before, replies, used)
			for i := range msg.Blocks {
				if b := &msg.Blocks[i]; b.Kind == loop.BlockCall {
					b.Call = fmt.Sprintf("c%d.%d", n, i)
					calls[b.ID] = b.Call
				}
			}
		case "tool":
			msg.Role = loop.Tool
			b := loop.Block{Kind: loop.BlockResult, ID: m.ToolCallID, Call: calls[m.ToolCallID], Text: textOf(m.Content)}
			for _, p := range userBlocks(m.Content) {
				if p.Kind == loop.BlockMedia {
					b.More = append(b.More, p)
				}
			}
			msg.Blocks = []loop.Block{b}
		}
		req.Messages = append(req.Messages, msg)
	}
	return ""
}

func assistantBlocks(m *message, before []traffic.Exchange, replies []*model.Response, used map[int]bool) []loop.Block {
	for j := range before {
		d := &before[j].Derived
		if used[j] || replies[j] == nil || len(d.ToolCalls) != len(m.ToolCalls) {
			continue
		}
		same := len(m.ToolCalls) > 0 || textOf(m.Content) == d.Text
		for k, c := range m.ToolCalls {
			same = same && c.ID == d.ToolCalls[k].ID && c.Function.Name == d.ToolCalls[k].Name
		}
		if same {
			used[j] = true
			m.Content, _ = json.Marshal(d.Text) // some clients lose text that stands beside calls; we do not
			return append([]loop.Block(nil), replies[j].Blocks...)
		}
	}
	var bs []loop.Block
	if s := textOf(m.Content); s != "" {
		bs = append(bs, loop.Block{Kind: loop.BlockText, Text: s})
	}
	for _, c := range m.ToolCalls {
		bs = append(bs, loop.Block{Kind: loop.BlockCall, ID: c.ID, Name: c.Function.Name, Args: str(c.Function.Arguments), Wire: openaichat.Wire})
	}
	return bs
}

func str(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

func parts(raw json.RawMessage) []contentPart {
	var ps []contentPart
	if json.Unmarshal(raw, &ps) != nil {
		if s := str(raw); s != "" && s != "null" {
			return []contentPart{{Type: "text", Text: s}}
		}
	}
	return ps
}

func textOf(raw json.RawMessage) string {
	var b strings.Builder
	for _, p := range parts(raw) {
		b.WriteString(p.Text)
	}
	return b.String()
}

func userBlocks(raw json.RawMessage) []loop.Block {
	var bs []loop.Block
	for _, p := range parts(raw) {
		switch p.Type {
		case "text":
			bs = append(bs, loop.Block{Kind: loop.BlockText, Text: p.Text})
		case "image_url":
			bs = append(bs, loop.Block{Kind: loop.BlockMedia, Media: mediaOf(p.ImageURL.URL, "")})
		case "file":
			bs = append(bs, loop.Block{Kind: loop.BlockMedia, Media: mediaOf(p.File.Data, p.File.Name)})
		}
	}
	return bs
}

func mediaOf(url, name string) *loop.Media {
	if m, ok := openaiwire.FromDataURL(url); ok {
		m.Name = name
		return m
	}
	return &loop.Media{MIME: "image/png", URL: url, Name: name}
}

// fixed is what the protocol fixes of a list of messages; instructions are one text. Where a client did not send thoughts back,
// ours are not compared.
func fixed(ms, recorded []message) []any {
	var out []any
	system := ""
	for len(ms) > 0 && (ms[0].Role == "developer" || ms[0].Role == "system") {
		system += strings.ReplaceAll(textOf(ms[0].Content), "\n", "")
		ms = ms[1:]
	}
	for len(recorded) > 0 && (recorded[0].Role == "developer" || recorded[0].Role == "system") {
		recorded = recorded[1:]
	}
	out = append(out, system)
	for i, m := range ms {
		one := map[string]any{"role": m.Role, "text": textOf(m.Content)}
		var media []string
		for _, p := range parts(m.Content) {
			if u := p.ImageURL.URL + p.File.Data; u != "" {
				media = append(media, u)
			}
		}
		if media != nil {
			one["media"] = media
		}
		for _, c := range m.ToolCalls {
			var args any
			if s := str(c.Function.Arguments); json.Unmarshal([]byte(s), &args) != nil {
				args = s
			}
			if s, ok := args.(string); ok && s == "" {
				args = map[string]any{}
			}
			one["call "+c.ID] = []any{c.Function.Name, args}
		}
		if m.ToolCallID != "" {
			one["result"] = m.ToolCallID
		}
		if i < len(recorded) {
			thoughts(one, m, recorded[i])
		}
		out = append(out, one)
	}
	return out
}

// thoughts adds the thoughts in the members in which the recorded client sent them. Of reasoning_details what is signed or
// encrypted counts, since clients that lose the rest were recorded too.
func thoughts(one map[string]any, m, recorded message) {
	sealed := map[any]bool{}
	for _, d := range entries(m.Details) {
		sealed[d["data"]], sealed[d["signature"]] = true, true
	}
	var seals []any
	for _, d := range entries(recorded.Details) {
		for _, s := range []any{d["data"], d["signature"]} {
			if s != nil && sealed[s] {
				seals = append(seals, s)
			}
		}
	}
	if seals != nil {
		one["sealed"] = seals
	}
	switch empty := `""`; {
	case len(recorded.Details) > 0:
	case len(recorded.Content2) > 0 && string(recorded.Content2) != empty:
		one["thought"] = firstOf(m.Content2, m.Reasoning, textsOf(m.Details))
	case len(recorded.Reasoning) > 0 && string(recorded.Reasoning) != empty:
		one["thought"] = firstOf(m.Reasoning, m.Content2, textsOf(m.Details))
	}
}

func entries(raw json.RawMessage) (ds []map[string]any) {
	_ = json.Unmarshal(raw, &ds)
	return ds
}

func textsOf(details json.RawMessage) json.RawMessage {
	all := ""
	for _, d := range entries(details) {
		text, _ := d["text"].(string)
		all += text
	}
	b, _ := json.Marshal(all)
	return b
}

func firstOf(raws ...json.RawMessage) any {
	for _, r := range raws {
		if len(r) > 0 {
			return value(r)
		}
	}
	return nil
}

func value(raw json.RawMessage) any {
	var v any
	_ = json.Unmarshal(raw, &v)
	return v
}
