package openai_test

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
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

// item is one item of a recorded or sent input.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Content   json.RawMessage `json:"content"`
	Encrypted string          `json:"encrypted_content"`
	Phase     string          `json:"phase"`
	Summary   json.RawMessage `json:"summary"`

	whole json.RawMessage
}

func items(t *testing.T, raw json.RawMessage) (its []item) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		b, _ := json.Marshal(s)
		return []item{{Type: "message", Role: "user", Content: b}}
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		t.Fatal(err)
	}
	for _, r := range raws {
		it := item{whole: r}
		if err := json.Unmarshal(r, &it); err != nil {
			t.Fatal(err)
		}
		if it.Type == "" {
			it.Type = "message"
		}
		its = append(its, it)
	}
	return its
}

// TestEncodeTraffic rebuilds the request that hands results back from our reading of the response before it, and compares it
// with the recorded one in all that the protocol fixes.
func TestEncodeTraffic(t *testing.T) {
	table := traffic.NewTable(t, "openai-responses, tool loops")
	server := &traffic.Server{}
	ts := httptest.NewServer(server)
	defer ts.Close()
	m := openai.Model("m", openai.BaseURL(ts.URL), openai.APIKey("k"))
	for _, f := range traffic.Load(t, "openai-responses") {
		var replies []*model.Response
		for i := range f.Exchanges {
			ex := &f.Exchanges[i]
			name := fmt.Sprintf("%s#%d", f.Name, i)
			var recorded struct {
				Input    json.RawMessage
				Previous string `json:"previous_response_id"`
			}
			req := &model.Request{Stream: ex.Stream, Cache: &model.Cache{}}
			var want []item
			why := ""
			if ex.Request.Recorded() {
				if err := json.Unmarshal(ex.Request.Body, &recorded); err != nil {
					t.Fatal(err)
				}
				want = items(t, recorded.Input)
				b := builder{before: f.Exchanges[:i], replies: replies, req: req, calls: map[string]string{}}
				if recorded.Previous != "" {
					b.chain(recorded.Previous)
				}
				why = b.transcript(want)
			}
			server.Next(&ex.Response, nil)
			res, _ := m.Generate(context.Background(), req, nil)
			replies = append(replies, res)
			switch {
			case ex.Continues == nil || ex.Continues.Via != "tool_result" && ex.Continues.Via != "previous_response_id":
				continue
			case why != "":
				table.LeftOut(name, why)
				continue
			}
			_, body := server.Last()
			var sent struct {
				Input    json.RawMessage
				Previous string `json:"previous_response_id"`
			}
			if err := json.Unmarshal(body, &sent); err != nil {
				table.Fail(name, "%v in %s", err, body)
				continue
			}
			if diff := cmp.Diff(recorded.Previous, sent.Previous) + compare(want, items(t, sent.Input)); diff != "" {
				table.Fail(name, "-recorded +sent:\n%s", diff)
				continue
			}
			table.Pass(name)
		}
	}
}

type builder struct {
	before  []traffic.Exchange
	replies []*model.Response
	req     *model.Request
	calls   map[string]string // id on the wire: our id
	used    map[int]bool
}

// chain puts the response that a request goes on from before its input, as a run does that stores.
func (b *builder) chain(previous string) {
	b.req.Options = map[string]any{"store": true}
	for j, r := range b.replies {
		if r == nil || r.ID != previous {
			continue
		}
		b.req.Previous = previous
		b.add(loop.User, loop.Block{Kind: loop.BlockText, Text: "what was sent before"})
		b.add(loop.Assistant, r.Blocks...)
		if b.used == nil {
			b.used = map[int]bool{}
		}
		b.used[j] = true
		b.req.PreviousLen = len(b.req.Messages)
	}
	if b.req.Previous == "" { // the response is not in the file: only that its id is sent can be seen
		b.req.Previous = previous
		b.add(loop.User, loop.Block{Kind: loop.BlockText, Text: "what was sent before"})
		b.req.PreviousLen = 1
	}
}

func (b *builder) add(role loop.Role, blocks ...loop.Block) {
	blocks = append([]loop.Block(nil), blocks...)
	for i := range blocks {
		if c := &blocks[i]; c.Kind == loop.BlockCall {
			c.Call = fmt.Sprintf("c%d.%d", len(b.req.Messages), i)
			b.calls[c.ID] = c.Call
		}
	}
	b.req.Messages = append(b.req.Messages, &loop.Message{Role: role, Blocks: blocks})
}

// transcript makes ours of recorded items; turns of the model that a recorded response holds are our reading of that response.
func (b *builder) transcript(its []item) (why string) {
	if b.used == nil {
		b.used = map[int]bool{}
	}
	for i := 0; i < len(its); i++ {
		it := &its[i]
		switch {
		case it.Type == "message" && (it.Role == "system" || it.Role == "developer"):
			if len(b.req.Messages) > 0 && b.req.PreviousLen == 0 {
				return "system messages in the middle of a conversation, which ronda does not have"
			}
			b.req.System += textOf(it.Content)
		case it.Type == "message" && it.Role == "user":
			b.add(loop.User, userBlocks(it.Content)...)
		case it.Type == "function_call_output":
			r := loop.Block{Kind: loop.BlockResult, ID: it.CallID, Call: b.calls[it.CallID]}
			if ps := userBlocks(it.Output); len(ps) == 1 && ps[0].Kind == loop.BlockText {
				r.Text = ps[0].Text
			} else {
				r.More = ps
			}
			b.add(loop.Tool, r)
		default:
			n := i
			for n < len(its) && its[n].Type != "function_call_output" && (its[n].Type != "message" || its[n].Role == "assistant") {
				n++
			}
			b.turns(its[i:n])
			i = n - 1
		}
	}
	return ""
}

// turns adds the turns of the model that items of its are of.
func (b *builder) turns(its []item) {
	for len(its) > 0 {
		j, n := b.match(its)
		if n == 0 {
			b.add(loop.Assistant, foreign(its[0]))
			its = its[1:]
			continue
		}
		b.used[j] = true
		b.add(loop.Assistant, b.replies[j].Blocks...)
		its = its[n:]
	}
}

// match finds the response whose calls, or whose text, the next items repeat, and how many items those are.
func (b *builder) match(its []item) (j, n int) {
	for j := range b.before {
		if b.used[j] || b.replies[j] == nil {
			continue
		}
		ids := map[string]bool{}
		texts := map[string]bool{}
		for _, blk := range b.replies[j].Blocks {
			if blk.Kind == loop.BlockCall {
				ids[blk.ID] = true
			}
			if blk.Kind == loop.BlockText {
				texts[blk.Text] = true
			}
			var raw struct{ ID string }
			_ = json.Unmarshal(blk.Raw, &raw)
			if raw.ID != "" {
				ids[raw.ID] = true
			}
		}
		n := 0
		for n < len(its) && (ids[its[n].CallID] || ids[its[n].ID] || its[n].Type == "message" && texts[textOf(its[n].Content)] || its[n].Type == "reasoning") {
			n++
		}
		for n > 0 && its[n-1].Type == "reasoning" && !ids[its[n-1].ID] {
			n--
		}
		if n > 0 {
			return j, n
		}
	}
	return 0, 0
}

func foreign(it item) loop.Block {
	switch it.Type {
	case "message":
		return loop.Block{Kind: loop.BlockText, Text: textOf(it.Content)}
	case "function_call":
		return loop.Block{Kind: loop.BlockCall, ID: it.CallID, Name: it.Name, Args: it.Arguments, Wire: openai.Wire}
	case "reasoning":
		return loop.Block{Kind: loop.BlockThought, Wire: openai.Wire, Raw: it.whole}
	}
	return loop.Block{Kind: loop.BlockOpaque, Wire: openai.Wire, Raw: it.whole}
}

type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
	FileURL  string `json:"file_url"`
	FileData string `json:"file_data"`
	Name     string `json:"filename"`
}

func parts(raw json.RawMessage) []contentPart {
	var ps []contentPart
	if json.Unmarshal(raw, &ps) != nil {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return []contentPart{{Type: "input_text", Text: s}}
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
		case "input_text", "text", "output_text":
			bs = append(bs, loop.Block{Kind: loop.BlockText, Text: p.Text})
		case "input_image":
			bs = append(bs, loop.Block{Kind: loop.BlockMedia, Media: mediaOf(p.ImageURL, "", "image/png")})
		case "input_file":
			bs = append(bs, loop.Block{Kind: loop.BlockMedia, Media: mediaOf(p.FileURL+p.FileData, p.Name, "application/pdf")})
		}
	}
	return bs
}

func mediaOf(url, name, mime string) *loop.Media {
	if m, ok := openaiwire.FromDataURL(url); ok {
		m.Name = name
		return m
	}
	return &loop.Media{MIME: mime, URL: url, Name: name}
}
