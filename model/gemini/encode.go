package gemini

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// state is what the adapter keeps in model.Cache between the calls of a run.
type state struct {
	ids      wire.IDs
	nameless map[string]bool // loop's ids of calls that came without an id: their results have none
	head     head
}

// foreignSignature is what Google has callers send for a call that its model did not make: Gemini 3 refuses calls of the
// current turn without a signature (https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQs").
const foreignSignature = `,"thoughtSignature":"skip_thought_signature_validator"`

// encoder turns messages into the elements of the array "contents".
type encoder struct {
	st    *state
	signs bool // the model wants a signature on calls
	notes []string
}

// messages encodes what the cache does not hold yet and appends it. Consecutive messages of role tool make one content: the API
// wants all results of a turn in the one that follows it.
func (a *adapter) messages(req *model.Request, c *model.Cache) (*state, []string) {
	c.Reset(wireName, req.Messages)
	st, _ := c.State.(*state)
	if st == nil || c.N == 0 {
		st = &state{nameless: map[string]bool{}}
		c.State, c.Bytes, c.N = st, nil, 0
	}
	e := encoder{st: st, signs: generation(a.info.Name) >= 3}
	for i := c.N; i < len(req.Messages); {
		end := i + 1
		if req.Messages[i].Role == loop.Tool {
			for end < len(req.Messages) && req.Messages[end].Role == loop.Tool {
				end++
			}
		}
		c.Bytes = e.content(c.Bytes, req.Messages[i:end])
		i = end
	}
	if c.N = len(req.Messages); c.N > 0 {
		c.First, c.Last = req.Messages[0], req.Messages[c.N-1]
	}
	return st, e.notes
}

// content appends one content of the wire, or nothing where it would have no parts.
func (e *encoder) content(dst []byte, group []*loop.Message) []byte {
	before := len(dst)
	if before > 0 {
		dst = append(dst, ',')
	}
	role := `{"role":"user","parts":[`
	if group[0].Role == loop.Assistant {
		role = `{"role":"model","parts":[`
	}
	dst = append(dst, role...)
	start := len(dst)
	results := group[0].Role == loop.Tool
	if results {
		for _, m := range group {
			for i := range m.Blocks {
				if b := &m.Blocks[i]; b.Kind == loop.BlockResult {
					dst = e.part(dst, start, b)
				}
			}
		}
	}
	foreign := false
	for _, m := range group {
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if results && b.Kind == loop.BlockResult {
				continue
			}
			dst = e.part(dst, start, b)
			// The first call of a step carries the signature; parallel ones after it need none.
			if e.signs && !foreign && b.Kind == loop.BlockCall && b.Wire != wireName {
				foreign = true
				dst = append(append(dst[:len(dst)-1], foreignSignature...), '}')
			}
		}
	}
	if len(dst) == start {
		return dst[:before]
	}
	return append(dst, "]}"...)
}

// part appends a part with the comma before it, or nothing.
func (e *encoder) part(dst []byte, start int, b *loop.Block) []byte {
	before := len(dst)
	if before > start {
		dst = append(dst, ',')
	}
	mark := len(dst)
	own := b.Wire == wireName
	raw := b.Raw
	if !own {
		raw = nil
	}
	switch b.Kind {
	case loop.BlockText:
		if b.Text != "" || len(raw) > 2 { // an empty text may carry a signature
			dst = closing(wire.AppendString(append(dst, `{"text":`...), b.Text), raw)
		}
	case loop.BlockThought:
		if own {
			dst = closing(append(wire.AppendString(append(dst, `{"text":`...), b.Text), `,"thought":true`...), raw)
		}
	case loop.BlockCall:
		dst = e.call(dst, b, own, raw)
	case loop.BlockResult:
		dst = e.result(dst, b)
	case loop.BlockOpaque:
		dst = append(dst, raw...)
	case loop.BlockMedia:
		dst = e.media(dst, b.Media, raw)
	}
	if len(dst) == mark {
		return dst[:before]
	}
	return dst
}

// closing appends the members that the part was received with beside those the loop knows, and ends the object.
func closing(dst, raw []byte) []byte {
	if len(raw) > 2 {
		return append(append(dst, ','), raw[1:]...)
	}
	return append(dst, '}')
}

// call appends a functionCall. An own call without an id stays without: its result is matched by name and order.
func (e *encoder) call(dst []byte, b *loop.Block, own bool, raw []byte) []byte {
	dst = append(dst, `{"functionCall":{`...)
	if own && b.ID == "" {
		e.st.nameless[b.Call] = true
	} else {
		delete(e.st.nameless, b.Call) // the loop's ids begin again with each run of a session
		dst = append(wire.AppendString(append(dst, `"id":`...), e.st.ids.Call(b, own)), ',')
	}
	dst = wire.AppendString(append(dst, `"name":`...), b.Name)
	dst = append(appendArgs(append(dst, `,"args":`...), b.Args), '}')
	return closing(dst, raw)
}

// appendArgs appends arguments as they were received. The API takes only an object: what is none goes in as text in an object.
func appendArgs(dst []byte, args string) []byte {
	trimmed := strings.TrimSpace(args)
	switch {
	case trimmed == "" || trimmed == "null":
		return append(dst, "{}"...)
	case trimmed[0] == '{' && wire.Valid([]byte(trimmed)):
		return append(dst, args...)
	}
	return append(wire.AppendString(append(dst, `{"invalid_arguments":`...), args), '}')
}

// result appends a functionResponse: the text as "output" or "error", the names that the API gives a meaning, and files in
// "parts".
func (e *encoder) result(dst []byte, b *loop.Block) []byte {
	dst = append(dst, `{"functionResponse":{`...)
	if !e.st.nameless[b.Call] {
		dst = append(wire.AppendString(append(dst, `"id":`...), e.st.ids.Result(b)), ',')
	}
	dst = wire.AppendString(append(dst, `"name":`...), b.Name)
	key := `,"response":{"output":`
	if b.Error {
		key = `,"response":{"error":`
	}
	text := b.Text
	var files []*loop.Media
	if b.Media != nil {
		files = append(files, b.Media)
	}
	for i := range b.More {
		switch m := &b.More[i]; m.Kind {
		case loop.BlockText:
			text = strings.TrimPrefix(text+"\n"+m.Text, "\n")
		case loop.BlockMedia:
			if m.Media != nil {
				files = append(files, m.Media)
			}
		}
	}
	dst = append(wire.AppendString(append(dst, key...), text), '}')
	if len(files) > 0 {
		dst = append(dst, `,"parts":[`...)
		start := len(dst)
		for _, m := range files {
			if len(m.Data) == 0 && m.URL == "" {
				e.note(fmt.Sprintf("file %q of a result was left out: its bytes are not at hand", m.Name))
				continue
			}
			if len(dst) > start {
				dst = append(dst, ',')
			}
			dst = e.media(dst, m, nil)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}"...)
}

// media appends inlineData or fileData; without bytes and address a line of text says what is missing.
func (e *encoder) media(dst []byte, m *loop.Media, raw []byte) []byte {
	switch {
	case m == nil:
		return dst
	case len(m.Data) > 0:
		dst = wire.AppendString(append(dst, `{"inlineData":{"mimeType":`...), m.MIME)
		dst = append(base64.StdEncoding.AppendEncode(append(dst, `,"data":"`...), m.Data), `"}`...)
	case m.URL != "":
		dst = wire.AppendString(append(dst, `{"fileData":{"mimeType":`...), m.MIME)
		dst = append(wire.AppendString(append(dst, `,"fileUri":`...), m.URL), '}')
	default:
		e.note(fmt.Sprintf("file %q was replaced by its name: its bytes are not at hand", m.Name))
		text := fmt.Sprintf("[file %q of type %s: not shown]", m.Name, m.MIME)
		return append(wire.AppendString(append(dst, `{"text":`...), text), '}')
	}
	return closing(dst, raw)
}

func (e *encoder) note(s string) { e.notes = append(e.notes, s) }

// generation is the major version in a model's name (gemini-2.5-flash: 2), 0 where there is none.
func generation(name string) int {
	_, rest, ok := strings.Cut(name, "gemini-")
	n := 0
	for ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' && n < 1000 {
		n = n*10 + int(rest[0]-'0')
		rest = rest[1:]
	}
	return n
}
