// Package codec writes transcripts as items of the Responses API and reads its responses and streams.
package codec

import (
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/wire"
)

// Wire is the name of the protocol, as references to models and blocks carry it.
const Wire = "openai"

// Rules say how a transcript is written.
type Rules struct {
	Stored bool // the provider keeps responses
	// Strict says that the provider looks items up by their ids, so that a thought it neither stored nor gave encrypted must not
	// go back.
	Strict bool
}

// Encoder is what the cache keeps beside the bytes.
type Encoder struct {
	Declared openaiwire.Declared
	Notes    []string // what was left out of the messages that were encoded last
	Ends     []int    // where in the cache's bytes the items of each message end

	rules Rules
	ids   wire.IDs
	b     []byte
}

// Encode appends to the cache the items of the messages that it does not have yet.
func Encode(c *model.Cache, msgs []*loop.Message, r Rules) *Encoder {
	c.Reset(Wire, msgs)
	e, ok := c.State.(*Encoder)
	if !ok || e.rules != r {
		*c = model.Cache{Wire: Wire}
		// Here strict is the API's default, so it is said in each case.
		e = &Encoder{rules: r, Declared: openaiwire.Declared{Open: `{"type":"function","name":`, Close: "}", Strict: true}}
		c.State = e
	}
	e.b, e.Notes = c.Bytes, nil
	if len(msgs) == 0 {
		return e
	}
	for _, msg := range msgs[c.N:] {
		e.message(msg)
		e.Ends = append(e.Ends, len(e.b))
	}
	c.Bytes, c.N, c.First = e.b, len(msgs), msgs[0]
	return e
}

func (e *Encoder) str(s string) { e.b = wire.AppendString(e.b, s) }

// item begins an item.
func (e *Encoder) item(open string) {
	if len(e.b) > 0 {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, open...)
}

func (e *Encoder) message(msg *loop.Message) {
	switch msg.Role {
	case loop.Assistant:
		e.assistant(msg)
	case loop.Tool:
		for i := range msg.Blocks {
			if b := &msg.Blocks[i]; b.Kind == loop.BlockResult {
				e.result(b)
			}
		}
	default:
		e.item(`{"role":"user","content":`)
		if len(msg.Blocks) == 1 && msg.Blocks[0].Kind == loop.BlockText {
			e.str(msg.Blocks[0].Text)
		} else {
			e.parts(msg.Blocks)
		}
		e.b = append(e.b, '}')
	}
}

// parts writes texts and media as a list.
func (e *Encoder) parts(blocks []loop.Block) {
	e.b = append(e.b, '[')
	n := len(e.b)
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != loop.BlockText && b.Kind != loop.BlockMedia {
			continue
		}
		if len(e.b) > n {
			e.b = append(e.b, ',')
		}
		if b.Kind == loop.BlockText {
			e.text(b.Text)
		} else {
			e.media(b.Media)
		}
	}
	if len(e.b) == n {
		e.text("")
	}
	e.b = append(e.b, ']')
}

func (e *Encoder) text(s string) {
	e.b = append(e.b, `{"type":"input_text","text":`...)
	e.str(s)
	e.b = append(e.b, '}')
}

func (e *Encoder) media(m *loop.Media) {
	addr, ok := openaiwire.Address(nil, m)
	switch {
	case !ok:
		e.Notes = append(e.Notes, "media left out: "+openaiwire.Missing(m))
		e.text(openaiwire.Missing(m))
		return
	case openaiwire.IsImage(m):
		e.b = append(append(e.b, `{"type":"input_image","detail":"auto","image_url":`...), addr...)
	case m.URL != "":
		e.b = append(append(e.b, `{"type":"input_file","file_url":`...), addr...)
	default:
		e.b = append(e.b, `{"type":"input_file","filename":`...)
		name := m.Name
		if name == "" {
			name = "file"
		}
		e.str(name)
		e.b = append(append(e.b, `,"file_data":`...), addr...)
	}
	e.b = append(e.b, '}')
}

func (e *Encoder) result(b *loop.Block) {
	e.item(`{"type":"function_call_output","call_id":`)
	e.str(e.ids.Result(b))
	e.b = append(e.b, `,"output":`...)
	if len(b.More) == 0 && b.Media == nil {
		e.str(b.Text)
	} else {
		all := make([]loop.Block, 0, 2+len(b.More))
		if b.Text != "" {
			all = append(all, loop.Block{Kind: loop.BlockText, Text: b.Text})
		}
		if b.Media != nil {
			all = append(all, loop.Block{Kind: loop.BlockMedia, Media: b.Media})
		}
		e.parts(append(all, b.More...))
	}
	e.b = append(e.b, '}')
}

// assistant writes the items of a turn of the model in their order. Thoughts and opaque items of other wires are left out.
func (e *Encoder) assistant(msg *loop.Message) {
	// A thought that the provider has not stored and did not encrypt cannot go back, and items that came with one are refused
	// without it unless they go back without their ids, as if they were the client's.
	bare := false
	for i := range msg.Blocks {
		b := &msg.Blocks[i]
		bare = bare || b.Kind == loop.BlockThought && b.Wire == Wire && e.unsendable(b)
	}
	for i := 0; i < len(msg.Blocks); i++ {
		b := &msg.Blocks[i]
		own := b.Wire == Wire
		switch b.Kind {
		case loop.BlockText:
			i += e.output(msg.Blocks[i:], bare) - 1
		case loop.BlockCall:
			e.call(b, own && !bare)
		case loop.BlockThought, loop.BlockOpaque:
			if own && len(b.Raw) > 0 && !(b.Kind == loop.BlockThought && e.unsendable(b)) {
				e.item(string(b.Raw))
			}
		case loop.BlockMedia:
			e.image(b, own)
		}
	}
}

func (e *Encoder) unsendable(b *loop.Block) bool {
	return e.rules.Strict && !e.rules.Stored && gjson.GetBytes(b.Raw, "encrypted_content").Str == ""
}

// output writes a message of the model: all texts from the first of bs on that came in one item. It returns how many.
func (e *Encoder) output(bs []loop.Block, bare bool) int {
	raw := gjson.Result{}
	if bs[0].Wire == Wire && len(bs[0].Raw) > 0 {
		raw = gjson.ParseBytes(bs[0].Raw)
	}
	id := raw.Get("id")
	e.item(`{"type":"message","role":"assistant"`)
	for _, name := range []string{"id", "status", "phase"} {
		if v := raw.Get(name); v.Type == gjson.String && v.Str != "" && !(bare && name == "id") {
			e.b = append(append(append(append(e.b, ',', '"'), name...), '"', ':'), v.Raw...)
		}
	}
	e.b = append(e.b, `,"content":[`...)
	n := 0
	for n < len(bs) && bs[n].Kind == loop.BlockText {
		if n > 0 && (bs[n].Wire != Wire || id.Str == "" || gjson.GetBytes(bs[n].Raw, "id").Str != id.Str) {
			break
		}
		if n > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, `{"type":"output_text","text":`...)
		e.str(bs[n].Text)
		e.b = append(e.b, `,"annotations":`...)
		if a := gjson.GetBytes(bs[n].Raw, "annotations"); bs[n].Wire == Wire && a.IsArray() {
			e.b = append(e.b, a.Raw...)
		} else {
			e.b = append(e.b, "[]"...)
		}
		e.b = append(e.b, '}')
		n++
	}
	e.b = append(e.b, "]}"...)
	return n
}

// callMembers are the members of a call that the API takes back beside those that have a field.
var callMembers = []string{"id", "status", "namespace", "caller", "async"}

func (e *Encoder) call(b *loop.Block, own bool) {
	e.item(`{"type":"function_call","call_id":`)
	e.str(e.ids.Call(b, b.Wire == Wire))
	e.b = append(e.b, `,"name":`...)
	e.str(b.Name)
	e.b = append(e.b, `,"arguments":`...)
	args := b.Args
	if args == "" {
		args = "{}"
	}
	e.str(args)
	if own && len(b.Raw) > 0 {
		raw := gjson.ParseBytes(b.Raw)
		for _, name := range callMembers {
			if v := raw.Get(name); v.Exists() && v.Type != gjson.Null && v.Raw != `""` {
				e.b = append(append(append(append(e.b, ',', '"'), name...), '"', ':'), v.Raw...)
			}
		}
	}
	e.b = append(e.b, '}')
}

// image writes an image that the provider's own tool made; media of the model that came elsewhere have no place in its turn.
func (e *Encoder) image(b *loop.Block, own bool) {
	if !own || len(b.Raw) < 2 || b.Media == nil || len(b.Media.Data) == 0 {
		e.Notes = append(e.Notes, "an image of the model is left out")
		return
	}
	addr, _ := openaiwire.Address(nil, &loop.Media{Data: b.Media.Data})
	e.item(string(b.Raw[:len(b.Raw)-1]))
	e.b = append(e.b, `,"result":"`...)
	e.b = append(append(e.b, addr[len(`"data:;base64,`):]...), '}')
}
