package codec

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

// blocks reads the items of a response into blocks, in their order, and the refusal if there is one.
func blocks(items []gjson.Result) (bs []loop.Block, refusal string) {
	for _, item := range items {
		switch item.Get("type").Str {
		case "message":
			texts, refused := texts(item)
			bs = append(bs, texts...)
			refusal += refused
		case "reasoning":
			bs = append(bs, loop.Block{Kind: loop.BlockThought, Text: thought(item), Wire: Wire, Raw: []byte(item.Raw)})
		case "function_call":
			bs = append(bs, call(item))
		case "image_generation_call":
			bs = append(bs, image(item))
		default: // tools of the provider, compactions, what is yet to come
			bs = append(bs, opaque(item))
		}
	}
	return bs, refusal
}

func opaque(item gjson.Result) loop.Block {
	return loop.Block{Kind: loop.BlockOpaque, Wire: Wire, Raw: []byte(item.Raw)}
}

// texts reads a message: a block for each text. One that holds anything else (a refusal) goes back as it came.
func texts(item gjson.Result) (bs []loop.Block, refusal string) {
	header := []byte{'{'}
	for _, name := range []string{"id", "status", "phase"} {
		if v := item.Get(name); v.Exists() && v.Type != gjson.Null {
			header = append(append(append(append(header, '"'), name...), '"', ':'), v.Raw...)
			header = append(header, ',')
		}
	}
	whole := true
	item.Get("content").ForEach(func(_, p gjson.Result) bool {
		switch p.Get("type").Str {
		case "output_text", "text":
			raw := header[:len(header):len(header)]
			if a := p.Get("annotations"); a.IsArray() && len(a.Raw) > 2 {
				raw = append(append(append(raw, `"annotations":`...), a.Raw...), ',')
			}
			if len(raw) > 1 {
				raw = raw[:len(raw)-1]
			}
			bs = append(bs, loop.Block{Kind: loop.BlockText, Text: valid(p.Get("text").Str), Wire: Wire, Raw: append(raw[:len(raw):len(raw)], '}')})
		case "refusal":
			refusal += valid(p.Get("refusal").Str)
			whole = false
		default:
			whole = false
		}
		return true
	})
	if !whole && len(bs) == 0 {
		bs = append(bs, opaque(item))
	}
	return bs, refusal
}

// valid is a copy of s that keeps nothing else alive.
func valid(s string) string {
	if !utf8.ValidString(s) {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return strings.Clone(s)
}

// thought is the text of a reasoning item: the parts of its summary, or of its content where the model shows it.
func thought(item gjson.Result) string {
	var b strings.Builder
	for _, member := range []string{"summary", "content"} {
		if b.Len() > 0 {
			break
		}
		item.Get(member).ForEach(func(_, p gjson.Result) bool {
			if t := p.Get("text").Str; t != "" {
				if b.Len() > 0 {
					b.WriteString("\n\n")
				}
				b.WriteString(t)
			}
			return true
		})
	}
	return valid(b.String())
}

// call reads a call. What has no field of its own stays in Raw.
func call(item gjson.Result) loop.Block {
	b := loop.Block{Kind: loop.BlockCall, Wire: Wire}
	var raw []byte
	item.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
		case "call_id":
			b.ID = strings.Clone(v.Str)
		case "name":
			b.Name = valid(v.Str)
		case "arguments":
			b.Args = valid(v.String())
		default:
			raw = append(append(append(append(raw, ','), k.Raw...), ':'), v.Raw...)
		}
		return true
	})
	if strings.TrimSpace(b.Args) == "" {
		b.Args = "{}"
	}
	if len(raw) > 0 {
		raw[0] = '{'
		b.Raw = append(raw, '}')
	}
	return b
}

// image reads an image that the provider's tool made: its bytes are a medium, the rest stays in Raw.
func image(item gjson.Result) loop.Block {
	data, err := base64.StdEncoding.DecodeString(item.Get("result").Str)
	if err != nil || len(data) == 0 {
		return opaque(item)
	}
	format := item.Get("output_format").Str
	if format == "" {
		format = "png"
	}
	var raw []byte
	item.ForEach(func(k, v gjson.Result) bool {
		if k.Str != "result" {
			raw = append(append(append(append(raw, ','), k.Raw...), ':'), v.Raw...)
		}
		return true
	})
	raw[0] = '{'
	return loop.Block{
		Kind: loop.BlockMedia, Wire: Wire, Raw: append(raw, '}'),
		Media: &loop.Media{MIME: "image/" + strings.Clone(format), Data: data},
	}
}
