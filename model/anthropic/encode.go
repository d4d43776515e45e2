package anthropic

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// state is what the adapter keeps in model.Cache between the calls of a run.
type state struct {
	ids  wire.IDs
	head head
}

// encoder turns messages into the elements of the array "messages".
type encoder struct {
	ids   *wire.IDs
	notes []string
}

// messages encodes what the cache does not hold yet and appends it. Consecutive messages of role tool make one message of role
// user, as the API wants the results of a turn; other neighbours of one role stay apart, and the API joins them. The bytes hold
// no cache_control, so that a breakpoint can move without changing them.
func messages(req *model.Request, c *model.Cache) (*state, []string) {
	c.Reset(wireName, req.Messages)
	st, _ := c.State.(*state)
	if st == nil || c.N == 0 {
		st = &state{}
		c.State, c.Bytes, c.N = st, nil, 0
	}
	e := encoder{ids: &st.ids}
	for i := c.N; i < len(req.Messages); {
		end := i + 1
		if req.Messages[i].Role == loop.Tool {
			for end < len(req.Messages) && req.Messages[end].Role == loop.Tool {
				end++
			}
		}
		c.Bytes = e.message(c.Bytes, req.Messages[i:end])
		i = end
	}
	if c.N = len(req.Messages); c.N > 0 {
		c.First, c.Last = req.Messages[0], req.Messages[c.N-1]
	}
	return st, e.notes
}

// message appends one message of the wire, made of one message or of several of role tool. One that has no content that the
// API takes is left out.
func (e *encoder) message(dst []byte, group []*loop.Message) []byte {
	before := len(dst)
	if before > 0 {
		dst = append(dst, ',')
	}
	role := `{"role":"user","content":[`
	if group[0].Role == loop.Assistant {
		role = `{"role":"assistant","content":[`
	}
	dst = append(dst, role...)
	start := len(dst)
	results := group[0].Role == loop.Tool
	if results { // first in their message, else the API refuses it
		for _, m := range group {
			for i := range m.Blocks {
				if b := &m.Blocks[i]; b.Kind == loop.BlockResult {
					dst = e.block(dst, start, m.Role, b)
				}
			}
		}
	}
	for _, m := range group {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; !results || b.Kind != loop.BlockResult {
				dst = e.block(dst, start, m.Role, b)
			}
		}
	}
	if len(dst) == start {
		return dst[:before]
	}
	return append(dst, "]}"...)
}

// block appends a block with the comma before it, or nothing.
func (e *encoder) block(dst []byte, start int, role loop.Role, b *loop.Block) []byte {
	before := len(dst)
	if before > start {
		dst = append(dst, ',')
	}
	mark := len(dst)
	own := b.Wire == wireName
	switch b.Kind {
	case loop.BlockText:
		if strings.TrimSpace(b.Text) != "" { // the API refuses blank text
			dst = wire.AppendString(append(dst, `{"type":"text","text":`...), b.Text)
			dst = closing(dst, own, b.Raw)
		}
	case loop.BlockThought:
		// The API takes only thoughts that it signed itself.
		if own && gjson.GetBytes(b.Raw, "signature").Exists() {
			dst = wire.AppendString(append(dst, `{"type":"thinking","thinking":`...), b.Text)
			dst = closing(dst, own, b.Raw)
		}
	case loop.BlockCall:
		dst = wire.AppendString(append(dst, `{"type":"tool_use","id":`...), e.ids.Call(b, own))
		dst = wire.AppendString(append(dst, `,"name":`...), b.Name)
		dst = appendInput(append(dst, `,"input":`...), b.Args)
		dst = closing(dst, own, b.Raw)
	case loop.BlockResult:
		dst = e.result(dst, b)
	case loop.BlockOpaque:
		if own {
			dst = append(dst, b.Raw...)
		}
	case loop.BlockMedia:
		if role == loop.Assistant {
			e.note("a picture or file of the assistant's own was left out: this API takes them from users only")
		} else {
			dst = e.media(dst, b.Media)
		}
	}
	if len(dst) == mark {
		return dst[:before]
	}
	return dst
}

// closing appends the members that the block was received with beside those the loop knows, and ends the object.
func closing(dst []byte, own bool, raw []byte) []byte {
	if own && len(raw) > 2 {
		return append(append(dst, ','), raw[1:]...)
	}
	return append(dst, '}')
}

// appendInput appends arguments as they were received. The API takes only an object: what is none (a call that was cut, or one
// from a wire where arguments are text) goes in as text in an object, so that the model sees what it wrote.
func appendInput(dst []byte, args string) []byte {
	trimmed := strings.TrimSpace(args)
	switch {
	case trimmed == "" || trimmed == "null":
		return append(dst, "{}"...)
	case trimmed[0] == '{' && wire.Valid([]byte(trimmed)):
		return append(dst, args...)
	}
	return append(wire.AppendString(append(dst, `{"invalid_arguments":`...), args), '}')
}

func (e *encoder) result(dst []byte, b *loop.Block) []byte {
	dst = wire.AppendString(append(dst, `{"type":"tool_result","tool_use_id":`...), e.ids.Result(b))
	text := b.Text
	if text == "" && b.Error && b.Media == nil && len(b.More) == 0 {
		text = "error" // the API refuses an error without content
	}
	switch {
	case b.Media == nil && len(b.More) == 0:
		if text != "" {
			dst = wire.AppendString(append(dst, `,"content":`...), text)
		}
	default:
		dst = append(dst, `,"content":[`...)
		start := len(dst)
		more := make([]loop.Block, 0, len(b.More)+2)
		if text != "" {
			more = append(more, loop.Block{Kind: loop.BlockText, Text: text})
		}
		if b.Media != nil {
			more = append(more, loop.Block{Kind: loop.BlockMedia, Media: b.Media})
		}
		more = append(more, b.More...)
		for i := range more {
			if k := more[i].Kind; k == loop.BlockText || k == loop.BlockMedia {
				dst = e.block(dst, start, loop.Tool, &more[i])
			}
		}
		dst = append(dst, ']')
	}
	if b.Error {
		dst = append(dst, `,"is_error":true`...)
	}
	return append(dst, '}')
}

// media appends an image or a document block; what the API does not take becomes a line of text that says so.
func (e *encoder) media(dst []byte, m *loop.Media) []byte {
	if m == nil {
		return dst
	}
	mime, _, _ := strings.Cut(strings.ToLower(m.MIME), ";")
	kind := ""
	switch mime = strings.TrimSpace(mime); mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		kind = "image"
	case "application/pdf", "text/plain":
		kind = "document"
	}
	switch {
	case kind != "" && m.URL != "" && len(m.Data) == 0 && mime != "text/plain":
		dst = append(append(append(dst, `{"type":"`...), kind...), `","source":{"type":"url","url":`...)
		dst = append(wire.AppendString(dst, m.URL), '}')
	case kind != "" && len(m.Data) > 0 && mime == "text/plain":
		dst = append(dst, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":`...)
		dst = append(wire.AppendString(dst, string(m.Data)), '}')
	case kind != "" && len(m.Data) > 0:
		dst = append(append(append(dst, `{"type":"`...), kind...), `","source":{"type":"base64","media_type":"`...)
		dst = append(append(dst, mime...), `","data":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, m.Data), `"}`...)
	default:
		e.note(fmt.Sprintf("a file of type %q was replaced by its name: this API takes images, PDF and plain text", m.MIME))
		text := fmt.Sprintf("[file %q of type %s: not shown]", m.Name, m.MIME)
		return append(wire.AppendString(append(dst, `{"type":"text","text":`...), text), '}')
	}
	if m.Name != "" && kind == "document" {
		dst = wire.AppendString(append(dst, `,"title":`...), m.Name)
	}
	return append(dst, '}')
}

func (e *encoder) note(s string) { e.notes = append(e.notes, s) }
