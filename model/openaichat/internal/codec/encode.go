// Package codec writes transcripts as messages of Chat Completions and reads its responses and streams.
package codec

import (
	"crypto/sha256"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/wire"
)

// Wire is the name of the protocol, as references to models and blocks carry it.
const Wire = "openaichat"

// Rules say how a transcript is written.
type Rules struct {
	NoThoughts bool // thoughts do not go back
	ShortIDs   bool // ids of calls that come from elsewhere have nine letters and digits
}

// Encoder is what the cache keeps beside the bytes.
type Encoder struct {
	Declared openaiwire.Declared
	Notes    []string // what was left out of the messages that were encoded last

	ids wire.IDs
	b   []byte
	// media of results wait here until the results of the turn are all written: the protocol takes images from users alone, and
	// no message may stand between results.
	media    []media
	thoughts bool
}

type media struct {
	id, tool string
	block    *loop.Block
}

// Encode appends to the cache the messages that it does not have yet.
func Encode(c *model.Cache, msgs []*loop.Message, r Rules) *Encoder {
	c.Reset(Wire, msgs)
	e, ok := c.State.(*Encoder)
	if !ok {
		*c = model.Cache{Wire: Wire}
		e = &Encoder{thoughts: !r.NoThoughts, Declared: openaiwire.Declared{Open: `{"type":"function","function":{"name":`, Close: "}}"}}
		if r.ShortIDs {
			e.ids.Make = shortID
		}
		c.State = e
	}
	e.b, e.Notes = c.Bytes, nil
	if len(msgs) == 0 {
		return e
	}
	for _, msg := range msgs[c.N:] {
		e.message(msg)
	}
	e.flush()
	c.Bytes, c.N, c.First = e.b, len(msgs), msgs[0]
	return e
}

// shortID makes nine letters and digits of any id (Mistral: "must be a-z, A-Z, 0-9, with a length of 9").
func shortID(id string) string {
	if len(id) == 9 && wire.PlainID(id, 9) == id && id != "" && !containsAny(id, "_-") {
		return id
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	sum := sha256.Sum256([]byte(id))
	b := make([]byte, 9)
	for i := range b {
		b[i] = letters[int(sum[i])%len(letters)]
	}
	return string(b)
}

func containsAny(s, chars string) bool {
	for i := range len(s) {
		for j := range len(chars) {
			if s[i] == chars[j] {
				return true
			}
		}
	}
	return false
}

func (e *Encoder) open(role string) {
	if len(e.b) > 0 {
		e.b = append(e.b, ',')
	}
	e.b = append(append(append(e.b, `{"role":"`...), role...), '"')
}

func (e *Encoder) str(s string) { e.b = wire.AppendString(e.b, s) }

func (e *Encoder) message(msg *loop.Message) {
	if msg.Role != loop.Tool {
		e.flush()
	}
	switch msg.Role {
	case loop.Assistant:
		e.assistant(msg)
	case loop.Tool:
		for i := range msg.Blocks {
			if msg.Blocks[i].Kind == loop.BlockResult {
				e.result(&msg.Blocks[i])
			}
		}
	default:
		e.user(msg)
	}
}

func (e *Encoder) user(msg *loop.Message) {
	e.open("user")
	e.b = append(e.b, `,"content":`...)
	if len(msg.Blocks) == 1 && msg.Blocks[0].Kind == loop.BlockText {
		e.str(msg.Blocks[0].Text)
	} else {
		e.b = append(e.b, '[')
		n := 0
		for i := range msg.Blocks {
			n += e.part(&msg.Blocks[i], n)
		}
		if n == 0 {
			e.b = append(e.b, `{"type":"text","text":""}`...)
		}
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, '}')
}

// part writes one part of a user's content and returns 1, or 0 where there is nothing to write.
func (e *Encoder) part(b *loop.Block, n int) int {
	switch b.Kind {
	case loop.BlockText:
		e.textPart(b.Text, n)
	case loop.BlockMedia:
		e.mediaPart(b.Media, n)
	default:
		return 0
	}
	return 1
}

func (e *Encoder) textPart(text string, n int) {
	if n > 0 {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, `{"type":"text","text":`...)
	e.str(text)
	e.b = append(e.b, '}')
}

func (e *Encoder) mediaPart(m *loop.Media, n int) {
	addr, ok := openaiwire.Address(nil, m)
	if !ok {
		e.Notes = append(e.Notes, "media left out: "+openaiwire.Missing(m))
		e.textPart(openaiwire.Missing(m), n)
		return
	}
	if n > 0 {
		e.b = append(e.b, ',')
	}
	if openaiwire.IsImage(m) {
		e.b = append(append(e.b, `{"type":"image_url","image_url":{"url":`...), addr...)
	} else {
		e.b = append(e.b, `{"type":"file","file":{"filename":`...)
		e.str(m.Name)
		e.b = append(append(e.b, `,"file_data":`...), addr...)
	}
	e.b = append(e.b, "}}"...)
}

func (e *Encoder) result(b *loop.Block) {
	id := e.ids.Result(b)
	e.open("tool")
	e.b = append(e.b, `,"tool_call_id":`...)
	e.str(id)
	e.b = append(e.b, `,"content":`...)
	text := b.Text
	for i := range b.More {
		switch more := &b.More[i]; more.Kind {
		case loop.BlockText:
			text += "\n" + more.Text
		case loop.BlockMedia:
			e.media = append(e.media, media{id, b.Name, more})
		}
	}
	if b.Media != nil {
		e.media = append(e.media, media{id, b.Name, &loop.Block{Kind: loop.BlockMedia, Media: b.Media}})
	}
	e.str(text)
	e.b = append(e.b, '}')
}

// flush writes the media of results as a message of the user.
func (e *Encoder) flush() {
	if len(e.media) == 0 {
		return
	}
	e.open("user")
	e.b = append(e.b, `,"content":[`...)
	last := ""
	n := 0
	for _, m := range e.media {
		if m.id != last {
			e.textPart("Content of the result of "+m.tool+" ("+m.id+"):", n)
			last = m.id
			n++
		}
		e.mediaPart(m.block.Media, n)
		n++
	}
	e.b = append(e.b, "]}"...)
	e.media = e.media[:0]
}

// assistant writes a turn of the model. Blocks of other wires that have no meaning here (their thoughts and opaque blocks) are
// left out.
func (e *Encoder) assistant(msg *loop.Message) {
	e.open("assistant")
	e.content(msg)
	for i := range msg.Blocks {
		b := &msg.Blocks[i]
		if b.Wire != Wire {
			continue
		}
		switch {
		case b.Kind == loop.BlockOpaque:
			e.members(b.Raw, "")
		case b.Kind == loop.BlockThought && e.thoughts:
			e.members(b.Raw, b.Text)
		}
	}
	calls := 0
	for i := range msg.Blocks {
		if b := &msg.Blocks[i]; b.Kind == loop.BlockCall {
			if calls == 0 {
				e.b = append(e.b, `,"tool_calls":[`...)
			} else {
				e.b = append(e.b, ',')
			}
			calls++
			e.call(b)
		}
	}
	if calls > 0 {
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, '}')
}

// content writes the texts of a turn: null beside calls where there are none, a list where thoughts stand among them (Mistral).
func (e *Encoder) content(msg *loop.Message) {
	text, calls, parts := "", false, false
	for i := range msg.Blocks {
		switch b := &msg.Blocks[i]; b.Kind {
		case loop.BlockText:
			if text != "" && b.Text != "" {
				text += "\n\n"
			}
			text += b.Text
		case loop.BlockCall:
			calls = true
		case loop.BlockThought, loop.BlockMedia, loop.BlockOpaque:
			parts = parts || e.isPart(b)
		}
	}
	e.b = append(e.b, `,"content":`...)
	switch {
	case parts:
		e.contentParts(msg)
	case text == "" && calls:
		e.b = append(e.b, "null"...)
	default:
		e.str(text)
	}
}

// isPart reports whether a block came as a part of the content, which its Raw then holds under "part".
func (e *Encoder) isPart(b *loop.Block) bool {
	return b.Wire == Wire && len(b.Raw) > 0 && (e.thoughts || b.Kind != loop.BlockThought) && gjson.GetBytes(b.Raw, "part").Exists()
}

func (e *Encoder) contentParts(msg *loop.Message) {
	e.b = append(e.b, '[')
	n := 0
	for i := range msg.Blocks {
		switch b := &msg.Blocks[i]; {
		case b.Kind == loop.BlockText:
			e.textPart(b.Text, n)
		case e.isPart(b):
			if n > 0 {
				e.b = append(e.b, ',')
			}
			e.rawPart(b)
		default:
			continue
		}
		n++
	}
	e.b = append(e.b, ']')
}

// rawPart writes a part that is no text: a thought from its text and the further members that came with it, all else as it came.
func (e *Encoder) rawPart(b *loop.Block) {
	part := gjson.GetBytes(b.Raw, "part")
	if b.Kind != loop.BlockThought {
		e.b = append(e.b, part.Raw...)
		return
	}
	e.b = append(e.b, `{"type":"thinking","thinking":[{"type":"text","text":`...)
	e.str(b.Text)
	e.b = append(e.b, "}]"...)
	part.ForEach(func(k, v gjson.Result) bool {
		e.b = append(append(append(append(e.b, ','), k.Raw...), ':'), v.Raw...)
		return true
	})
	e.b = append(e.b, '}')
}

// members writes what came beside the fields of a message, member by member; null stands for the text of the block.
func (e *Encoder) members(raw []byte, text string) {
	gjson.ParseBytes(raw).ForEach(func(k, v gjson.Result) bool {
		if k.Str == "part" {
			return true
		}
		e.b = append(append(append(e.b, ','), k.Raw...), ':')
		if v.Type == gjson.Null {
			e.str(text)
		} else {
			e.b = append(e.b, v.Raw...)
		}
		return true
	})
}

func (e *Encoder) call(b *loop.Block) {
	own := b.Wire == Wire
	args := b.Args
	if args == "" {
		args = "{}"
	}
	e.b = append(e.b, `{"id":`...)
	e.str(e.ids.Call(b, own))
	e.b = append(e.b, `,"type":"function","function":{"name":`...)
	e.str(b.Name)
	var rest []byte
	if own && len(b.Raw) > 0 {
		gjson.ParseBytes(b.Raw).ForEach(func(k, v gjson.Result) bool {
			if k.Str == "arguments" {
				args = v.String()
				return true
			}
			rest = append(append(append(append(rest, ','), k.Raw...), ':'), v.Raw...)
			return true
		})
	}
	e.b = append(e.b, `,"arguments":`...)
	e.str(args)
	e.b = append(append(append(e.b, '}'), rest...), '}')
}
