package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	table := traffic.NewTable(t, "gemini, tool loops")
	for _, f := range traffic.Load(t, "gemini") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if e.Continues == nil || e.Continues.Via != "tool_result" || !e.Request.Recorded() {
				continue
			}
			first := &f.Exchanges[e.Continues.Exchange]
			d := &decoder{}
			if err := d.read(bytes.NewReader(first.Response.Bytes()), -1); err != nil {
				table.Fail(what, "%v", err)
				continue
			}
			turn, err := d.response()
			if err != nil {
				table.Fail(what, "%v", err)
				continue
			}
			diff, left := rebuilt(turn, first, e.Request.Body)
			switch {
			case left != "":
				table.LeftOut(what, left)
			case diff != "":
				table.Fail(what, "%s", diff)
			default:
				table.Pass(what)
			}
		}
	}
}

// field finds a member under its name on the wire or as old clients write it.
func field(v gjson.Result, names ...string) gjson.Result {
	for _, n := range names {
		if x := v.Get(n); x.Exists() {
			return x
		}
	}
	return gjson.Result{}
}

func callOf(p gjson.Result) gjson.Result   { return field(p, "functionCall", "function_call") }
func resultOf(p gjson.Result) gjson.Result { return field(p, "functionResponse", "function_response") }
func signature(p gjson.Result) string {
	// base64 is written with and without padding and in both alphabets; the bytes are the same.
	s := field(p, "thoughtSignature", "thought_signature").Str
	return strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(s)
}

func rebuilt(turn *model.Response, first *traffic.Exchange, body []byte) (diff, left string) {
	var made []call
	for i := range turn.Blocks {
		if b := &turn.Blocks[i]; b.Kind == loop.BlockCall {
			b.Call = fmt.Sprintf("c1.%d", i+1)
			made = append(made, call{b.ID, b.Name, canonical([]byte(b.Args))})
		}
	}
	contents := gjson.GetBytes(body, "contents").Array()
	at := place(contents, made)
	if at < 0 || at+1 >= len(contents) {
		return "", "the recorded client changed the calls of the turn; ronda sends turns back as received"
	}
	results := &loop.Message{Role: loop.Tool}
	var want []gjson.Result
	n := 0
	var calls []loop.Block
	for _, b := range turn.Blocks {
		if b.Kind == loop.BlockCall {
			calls = append(calls, b)
		}
	}
	for _, c := range contents[at+1:] {
		for _, p := range c.Get("parts").Array() {
			r := resultOf(p)
			if !r.Exists() || n == len(calls) {
				continue
			}
			want = append(want, r)
			results.Blocks = append(results.Blocks, resultBlock(calls[n], r))
			n++
		}
		if n == len(calls) || c.Get("role").Str == "model" {
			break
		}
	}
	if n != len(calls) {
		return "", fmt.Sprintf("the recorded client answered %d of %d calls; ronda answers each", n, len(calls))
	}
	req := &model.Request{Messages: []*loop.Message{
		{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "hello"}}},
		{Role: loop.Assistant, Blocks: turn.Blocks}, results,
	}}
	a := Model("gemini-3-test", APIKey("k")).(*adapter)
	b, err := a.encode(req)
	if err != nil {
		return err.Error(), ""
	}
	sent, _ := io.ReadAll(b.reader())
	got := gjson.GetBytes(sent, "contents").Array()
	if !json.Valid(sent) || len(got) != 3 {
		return fmt.Sprintf("not three contents: %s", sent), ""
	}
	if diff := sameTurn(contents[at], got[1]); diff != "" {
		return diff, ""
	}
	if diff := sealed(first, got[1]); diff != "" {
		return diff, ""
	}
	have := got[2].Get("parts").Array()
	if len(have) != len(want) {
		return fmt.Sprintf("%d results, want %d", len(have), len(want)), ""
	}
	for i, w := range want {
		h := have[i].Get("functionResponse")
		if h.Get("name").Str != w.Get("name").Str || w.Get("id").Str != "" && calls[i].ID != "" && h.Get("id").Str != w.Get("id").Str {
			return fmt.Sprintf("result %d is %s, want %s", i, h.Raw, w.Raw), ""
		}
		if calls[i].ID != h.Get("id").Str {
			return fmt.Sprintf("result %d has the id %q, its call %q", i, h.Get("id").Str, calls[i].ID), ""
		}
	}
	return "", ""
}

// place finds the content that repeats the calls, the last one if there are more.
func place(contents []gjson.Result, made []call) int {
	for i := len(contents) - 1; i >= 0; i-- {
		var calls []call
		for _, p := range contents[i].Get("parts").Array() {
			if c := callOf(p); c.Exists() {
				calls = append(calls, call{"", c.Get("name").Str, canonical([]byte(c.Get("args").Raw))})
			}
		}
		if len(calls) != len(made) {
			continue
		}
		same := len(calls) > 0
		for n := range calls {
			same = same && calls[n].Name == made[n].Name && calls[n].Args == made[n].Args
		}
		if same {
			return i
		}
	}
	return -1
}

func resultBlock(c loop.Block, r gjson.Result) loop.Block {
	return loop.Block{Kind: loop.BlockResult, Call: c.Call, ID: c.ID, Name: r.Get("name").Str, Text: r.Get("response").Raw}
}

// sameTurn checks that ours holds the parts that the recorded client sent, in order: calls, texts, signatures.
func sameTurn(recorded, got gjson.Result) string {
	have := got.Get("parts").Array()
	n := 0
	for _, want := range recorded.Get("parts").Array() {
		found := false
		for ; n < len(have) && !found; n++ {
			h := have[n]
			switch c := callOf(want); {
			case c.Exists():
				found = h.Get("functionCall.name").Str == c.Get("name").Str
			case want.Get("text").Str != "":
				found = h.Get("text").Str == want.Get("text").Str && h.Get("thought").Bool() == want.Get("thought").Bool()
			default:
				found = true
				n--
			}
			// A client may copy a signature to parallel calls that came without; sealed checks that none is lost.
			if found && signature(want) != "" && signature(h) != "" && signature(h) != signature(want) {
				return fmt.Sprintf("signature of %s\nis not that of %s", h.Raw, want.Raw)
			}
		}
		if !found && want.Get("text").Str != "" {
			return fmt.Sprintf("no part like %s\nin %s", want.Raw, got.Raw)
		}
	}
	return ""
}

// sealed checks that each signature, each call and each part that the loop does not know goes back byte for byte.
func sealed(e *traffic.Exchange, got gjson.Result) string {
	var want, have []string
	collect := func(parts gjson.Result) (out []string) {
		for _, p := range parts.Array() {
			switch {
			case p.Get("functionCall.name").Exists():
				c := p.Get("functionCall")
				args := c.Get("args").Raw
				if args == "" {
					args = "{}"
				}
				if c.Get("willContinue").Bool() {
					args = "" // put together from pieces
				}
				out = append(out, c.Get("id").Raw+c.Get("name").Raw+args+p.Get("thoughtSignature").Raw)
			case p.Get("functionCall").Exists():
			case p.Get("thoughtSignature").Exists():
				out = append(out, p.Get("text").Raw+p.Get("thoughtSignature").Raw)
			case !p.Get("text").Exists():
				out = append(out, p.Raw)
			}
		}
		return out
	}
	raw := e.Response.Bytes()
	switch {
	case e.Response.IsText():
		for _, line := range bytes.Split(raw, []byte("\n")) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				want = append(want, collect(gjson.GetBytes(data, "candidates.0.content.parts"))...)
			}
		}
	case raw[0] == '[':
		for _, x := range gjson.ParseBytes(raw).Array() {
			want = append(want, collect(x.Get("candidates.0.content.parts"))...)
		}
	default:
		want = collect(gjson.GetBytes(raw, "candidates.0.content.parts"))
	}
	have = collect(got.Get("parts"))
	return cmp.Diff(want, have)
}

// TestStreamedArguments checks arguments that come as values at paths.
func TestStreamedArguments(t *testing.T) {
	for _, f := range traffic.Load(t, "gemini") {
		if !f.Has("streamed_partial_args") {
			continue
		}
		for i := range f.Exchanges {
			raw := f.Exchanges[i].Response.Bytes()
			want := map[string]string{}
			for _, line := range bytes.Split(raw, []byte("\n")) {
				data, _ := bytes.CutPrefix(line, []byte("data:"))
				for _, p := range gjson.GetBytes(data, "candidates.0.content.parts").Array() {
					for _, a := range p.Get("functionCall.partialArgs").Array() {
						path := strings.NewReplacer("$.", "", "[", ".", "]", "").Replace(a.Get("jsonPath").Str)
						want[path] += field(a, "stringValue", "numberValue", "boolValue", "nullValue").String()
					}
				}
			}
			d := &decoder{}
			if err := d.read(bytes.NewReader(raw), -1); err != nil {
				t.Fatal(err)
			}
			r, err := d.response()
			if err != nil {
				t.Fatal(err)
			}
			have := map[string]string{}
			for _, b := range r.Blocks {
				if b.Kind != loop.BlockCall || !json.Valid([]byte(b.Args)) {
					continue
				}
				for path := range want {
					if x := gjson.Get(b.Args, path); x.Exists() {
						have[path] += x.String()
					}
				}
			}
			if diff := cmp.Diff(want, have); diff != "" || len(want) == 0 {
				t.Errorf("%s#%d: %s", f.Name, i, diff)
			}
		}
	}
}
