package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// decoder puts a response together from one frame or many. It is for one response.
type decoder struct {
	sink    func(model.Delta)
	blocks  []loop.Block
	text    []byte // of the last block, while it grows
	grows   bool
	held    wire.Held
	partial *args // arguments that come in pieces, of the last block
	whole   bool
	seen    bool // a candidate came
	id      string
	model   string
	reason  string
	detail  string
	blocked bool
	counts  counts
}

// broken is the error of a response that cannot be read. It may have been billed; another attempt may be whole.
func broken(what string, b []byte) *model.Error {
	return &model.Error{
		Class: loop.ClassTransient, Lost: true, Code: "unreadable_response",
		Message: fmt.Sprintf("%s: %s: %.200q", doing, what, b),
	}
}

// frame takes a GenerateContentResponse: the whole one, or the next of a stream.
func (d *decoder) frame(data []byte) error {
	if len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	if !wire.Valid(data) {
		return broken("a frame is no JSON", data)
	}
	var fault error
	gjson.ParseBytes(data).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "candidates":
			v.ForEach(func(_, c gjson.Result) bool {
				if i := c.Get("index"); i.Exists() && i.Int() != 0 {
					return true // further answers are not asked for
				}
				d.candidate(c)
				return false
			})
		case "usageMetadata":
			d.counts.take(v)
		case "modelVersion":
			d.model = keep(d.model, v.Str)
		case "responseId":
			d.id = keep(d.id, v.Str)
		case "promptFeedback":
			if r := v.Get("blockReason"); r.Exists() {
				d.blocked, d.seen = true, true
				d.reason = strings.Clone(r.String())
				d.detail = strings.TrimSuffix(d.reason+": "+v.Get("blockReasonMessage").String(), ": ")
			}
		case "error":
			fault = inStream(data)
			return false
		}
		return true
	})
	return fault
}

// keep is the new value, unless it is empty; equal values are not copied again.
func keep(old, next string) string {
	if next == "" || next == old {
		return old
	}
	return strings.Clone(next)
}

func (d *decoder) candidate(c gjson.Result) {
	d.seen = true
	c.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "content":
			v.Get("parts").ForEach(func(_, p gjson.Result) bool {
				d.part(p)
				return true
			})
		case "finishReason":
			if r := reasonOf(v); r != "" {
				d.reason = keep(d.reason, r)
			}
		case "finishMessage":
			d.detail = keep(d.detail, v.Str)
		}
		return true
	})
}

// reasonOf is the name of a finish reason; gateways in front of Vertex AI send the number of the enum
// (google.cloud.aiplatform.v1.Candidate.FinishReason).
func reasonOf(v gjson.Result) string {
	if v.Type == gjson.String && v.Str != "FINISH_REASON_UNSPECIFIED" {
		return v.Str
	}
	names := []string{
		"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL",
		"MODEL_ARMOR",
	}
	if n := v.Int(); v.Type == gjson.Number && n >= 0 {
		if n < int64(len(names)) {
			return names[n]
		}
		return fmt.Sprintf("FINISH_REASON_%d", n)
	}
	return ""
}

// part takes one part of the content.
func (d *decoder) part(v gjson.Result) {
	var text, call, data, file gjson.Result
	thought, other := false, false
	var rest []byte
	v.ForEach(func(key, x gjson.Result) bool {
		switch key.Str {
		case "text":
			text = x
		case "thought":
			thought = x.Bool()
		case "functionCall":
			call = x
		case "inlineData":
			data = x
		case "fileData":
			file = x
		default:
			if x.Type == gjson.Null {
				return true
			}
			// What says something about the part beside its content: a signature, metadata.
			switch key.Str {
			case "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution":
			default:
				other = true
			}
			rest = appendMember(rest, key.Raw, x.Raw)
		}
		return true
	})
	if rest != nil {
		rest = append(rest, '}')
	}
	switch {
	case call.IsObject():
		d.call(call, rest)
	case data.IsObject():
		d.media(&loop.Media{MIME: data.Get("mimeType").String(), Data: bytesOf(data.Get("data").Str)}, rest)
	case file.IsObject():
		d.media(&loop.Media{MIME: file.Get("mimeType").String(), URL: file.Get("fileUri").String()}, rest)
	case text.Exists():
		d.words(text.Str, thought, rest)
	case other:
		d.settle()
		d.blocks = append(d.blocks, loop.Block{Kind: loop.BlockOpaque, Wire: wireName, Raw: json.RawMessage(v.Raw)})
	case rest != nil: // a signature alone
		d.words("", thought, rest)
	}
}

func appendMember(dst []byte, key, value string) []byte {
	if dst == nil {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	return append(append(append(dst, key...), ':'), value...)
}

func bytesOf(s string) []byte {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		if b, err := enc.DecodeString(s); err == nil {
			return b
		}
	}
	return nil
}

// words adds text. A part without a signature goes on with the block before it if that is of its kind and has no signature;
// one with a signature is a block of its own, as Google asks ("don't merge a part with a signature with another part").
func (d *decoder) words(s string, thought bool, rest []byte) {
	kind, channel := loop.BlockText, model.Text
	if thought {
		kind, channel = loop.BlockThought, model.Thought
	}
	if s == "" && rest == nil {
		return
	}
	if !d.grows || rest != nil || d.blocks[len(d.blocks)-1].Kind != kind {
		d.settle()
		d.blocks = append(d.blocks, loop.Block{Kind: kind, Wire: wireName, Raw: rest})
		d.grows = true
	}
	s = d.held.Push(s)
	d.text = append(d.text, s...)
	if d.sink != nil && s != "" {
		d.sink(model.Delta{Channel: channel, Block: len(d.blocks) - 1, Text: s})
	}
	if rest != nil {
		d.settle()
	}
}

// settle ends the text or the call that is under way.
func (d *decoder) settle() {
	if d.grows {
		d.blocks[len(d.blocks)-1].Text = string(d.text) + d.held.Rest()
		d.text, d.grows = d.text[:0], false
	}
	if d.partial != nil {
		b := &d.blocks[len(d.blocks)-1]
		b.Args = string(d.partial.json())
		d.partial = nil
		d.tellCall(b)
	}
}

func (d *decoder) tellCall(b *loop.Block) {
	if d.sink != nil {
		d.sink(model.Delta{Channel: model.Arguments, Block: len(d.blocks) - 1, Name: b.Name, ID: b.ID, Text: b.Args})
	}
}

// call takes a functionCall: a whole one, or a piece of one whose arguments stream (willContinue; Vertex AI with
// streamFunctionCallArguments).
func (d *decoder) call(v gjson.Result, rest []byte) {
	name, more := v.Get("name").Str, v.Get("willContinue").Bool()
	if d.partial == nil || name != "" {
		d.settle()
		b := loop.Block{Kind: loop.BlockCall, Wire: wireName, Raw: rest, Name: strings.Clone(name), ID: strings.Clone(v.Get("id").Str)}
		if !more && !v.Get("partialArgs").Exists() {
			if b.Args = strings.Clone(v.Get("args").Raw); b.Args == "" || b.Args == "null" {
				b.Args = "{}"
			}
			d.blocks = append(d.blocks, b)
			d.tellCall(&b)
			return
		}
		d.blocks = append(d.blocks, b)
		d.partial = &args{}
		d.partial.begin(v.Get("args"))
	}
	last := &d.blocks[len(d.blocks)-1]
	if rest != nil {
		last.Raw = rest
	}
	v.Get("partialArgs").ForEach(func(_, p gjson.Result) bool {
		d.partial.set(p)
		return true
	})
	if !more {
		d.settle()
	}
}

func (d *decoder) media(m *loop.Media, rest []byte) {
	d.settle()
	d.blocks = append(d.blocks, loop.Block{Kind: loop.BlockMedia, Wire: wireName, Raw: rest, Media: m})
}

// response is the whole response, or the error of a stream that has no end.
func (d *decoder) response() (*model.Response, error) {
	d.settle()
	if d.reason == "" && !d.whole {
		return nil, wire.Ended(doing)
	}
	if !d.seen {
		return nil, &model.Error{
			Class: loop.ClassTransient, Lost: true, Code: "no_candidates", Message: doing + ": the response has neither candidates nor a reason",
		}
	}
	calls := false
	for i := range d.blocks {
		calls = calls || d.blocks[i].Kind == loop.BlockCall
	}
	r := &model.Response{
		Blocks: d.blocks, Usage: d.usage(), Model: d.model, ID: d.id, Detail: d.detail,
		Finish: finish(d.reason, calls, d.blocked),
	}
	if d.detail == "" && d.reason != "STOP" {
		r.Detail = d.reason
	}
	return r, nil
}

// finish maps finishReason. Reasons that nobody knows yet count as filtered: the response is cut, and why is in the detail.
func finish(reason string, calls, blocked bool) loop.Finish {
	switch {
	case blocked:
		return loop.FinishFilter
	case reason == "MAX_TOKENS":
		return loop.FinishLength
	case reason == "MALFORMED_FUNCTION_CALL", reason == "UNEXPECTED_TOOL_CALL", reason == "TOO_MANY_TOOL_CALLS",
		reason == "MISSING_THOUGHT_SIGNATURE", reason == "MALFORMED_RESPONSE":
		return loop.FinishMalformed
	case reason != "STOP" && reason != "":
		return loop.FinishFilter
	case calls:
		return loop.FinishCalls
	}
	return loop.FinishStop
}

// counts is usageMetadata; in a stream it comes with each frame, and what came last holds, member by member.
type counts struct {
	prompt, cached, tools, candidates, thoughts, total int64
	any                                                bool
}

func (c *counts) take(v gjson.Result) {
	v.ForEach(func(key, n gjson.Result) bool {
		switch key.Str {
		case "promptTokenCount":
			c.prompt = n.Int()
		case "cachedContentTokenCount":
			c.cached = n.Int()
		case "toolUsePromptTokenCount":
			c.tools = n.Int()
		case "candidatesTokenCount":
			c.candidates = n.Int()
		case "thoughtsTokenCount":
			c.thoughts = n.Int()
		case "totalTokenCount":
			c.total = n.Int()
		default:
			return true
		}
		c.any = true
		return true
	})
}

// usage is what was reported so far in disjoint parts: promptTokenCount counts what the cache held too, thoughts are billed as
// output beside the candidates, and results of Google's own tools as input. Where candidates are not counted the total says
// what they were.
func (d *decoder) usage() *loop.Usage {
	c := d.counts
	if !c.any {
		return nil
	}
	if c.candidates == 0 {
		c.candidates = max(0, c.total-c.prompt-c.tools-c.thoughts)
	}
	return &loop.Usage{
		Input: max(0, c.prompt-c.cached) + max(0, c.tools), CacheRead: max(0, c.cached),
		Output: max(0, c.candidates) + max(0, c.thoughts), Reasoning: max(0, c.thoughts),
	}
}
