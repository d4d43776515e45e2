package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

func isGenerate(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, ":generateContent") || strings.HasSuffix(path, ":streamGenerateContent")
}

// served is a model before a server that answers with recordings.
func served(t testing.TB) (*traffic.Server, model.Model) {
	s := &traffic.Server{}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, Model("gemini-test", BaseURL(h.URL), APIKey("k"))
}

func question(stream bool) *model.Request {
	return &model.Request{
		Stream: stream, Cache: &model.Cache{},
		Messages: []*loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "hello"}}}},
	}
}

// TestTrafficDecoding checks every recorded response: through HTTP whole and cut at every line, and through the decoder cut in
// all ways.
func TestTrafficDecoding(t *testing.T) {
	table := traffic.NewTable(t, "gemini, decoding")
	srv, m := served(t)
	for _, f := range traffic.Load(t, "gemini") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if !isGenerate(e.Request.Path) {
				table.LeftOut(what, "another endpoint of the vendor (ronda speaks generateContent only)")
				continue
			}
			if e.Response.Status >= 400 {
				continue
			}
			raw := e.Response.Bytes()
			ways := traffic.Cuts(raw)
			var first *model.Response
			for _, pieces := range [][][]byte{nil, ways[len(ways)-1]} {
				srv.Next(&e.Response, pieces)
				var told deltas
				got, err := m.Generate(context.Background(), question(e.Stream), told.add)
				if err != nil {
					table.Fail(what, "%v", err)
					continue
				}
				if diff := against(got, e); diff != "" {
					table.Fail(what, "%s", diff)
				}
				if diff := told.against(got); diff != "" {
					table.Fail(what, "deltas: %s", diff)
				}
				if first == nil {
					first = got
				}
			}
			for n, way := range ways {
				d := &decoder{}
				err := d.read(&pieces{way}, -1)
				if err != nil {
					table.Fail(what, "way %d: %v", n, err)
					continue
				}
				if got, err := d.response(); err != nil {
					table.Fail(what, "way %d: %v", n, err)
				} else if diff := cmp.Diff(first, got); diff != "" {
					table.Fail(what, "way %d: %s", n, diff)
				}
			}
			table.Pass(what)
		}
	}
}

// pieces gives one piece with each Read.
type pieces struct{ way [][]byte }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.way) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.way[0])
	if p.way[0] = p.way[0][n:]; len(p.way[0]) == 0 {
		p.way = p.way[1:]
	}
	return n, nil
}

// deltas collects what a sink was given.
type deltas struct{ text, thought, args string }

func (d *deltas) add(x model.Delta) {
	switch x.Channel {
	case model.Text:
		d.text += x.Text
	case model.Thought:
		d.thought += x.Text
	case model.Arguments:
		d.args += x.Name + x.ID + x.Text
	}
}

func (d *deltas) against(r *model.Response) string {
	var want deltas
	for _, b := range r.Blocks {
		switch b.Kind {
		case loop.BlockText:
			want.text += b.Text
		case loop.BlockThought:
			want.thought += b.Text
		case loop.BlockCall:
			want.args += b.Name + b.ID + b.Args
		}
	}
	return cmp.Diff([]string{want.text, want.thought, want.args}, []string{d.text, d.thought, d.args})
}

type call struct{ ID, Name, Args string }

// against compares a response with what an independent reader made of the recording.
func against(r *model.Response, e *traffic.Exchange) string {
	var text strings.Builder
	var calls []call
	thought := 0
	for _, b := range r.Blocks {
		switch b.Kind {
		case loop.BlockText:
			text.WriteString(b.Text)
		case loop.BlockThought:
			thought += len([]rune(b.Text))
		case loop.BlockCall:
			calls = append(calls, call{b.ID, b.Name, canonical([]byte(b.Args))})
		}
	}
	var out []string
	if e.Derived.TextSHA256 == "" && text.String() != e.Derived.Text {
		out = append(out, "text: "+cmp.Diff(e.Derived.Text, text.String()))
	}
	if e.Derived.TextSHA256 != "" && len([]rune(text.String())) != e.Derived.TextChars {
		out = append(out, fmt.Sprintf("text of %d characters, want %d", len([]rune(text.String())), e.Derived.TextChars))
	}
	if e.Derived.ThinkingChars != 0 && thought != e.Derived.ThinkingChars {
		out = append(out, fmt.Sprintf("thoughts of %d characters, want %d", thought, e.Derived.ThinkingChars))
	}
	var want []call
	for _, c := range e.Derived.ToolCalls {
		if c.Name == "" && e.Has("streamed_partial_args") {
			continue // a piece of the call before it
		}
		want = append(want, call{c.ID, c.Name, canonical(c.Arguments)})
	}
	if e.Has("streamed_partial_args") { // TestStreamedArguments looks at the values
		for i := range calls {
			if i < len(want) {
				want[i].Args = calls[i].Args
			}
		}
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		out = append(out, "calls: "+diff)
	}
	reason := strings.Trim(string(e.Derived.Finish), `"`)
	wantFinish, ok := map[string]loop.Finish{
		"STOP": loop.FinishStop, "1": loop.FinishStop, "MAX_TOKENS": loop.FinishLength, "2": loop.FinishLength, "SAFETY": loop.FinishFilter,
		"MODEL_ARMOR": loop.FinishFilter, "": loop.FinishFilter, "MALFORMED_FUNCTION_CALL": loop.FinishMalformed,
		"UNEXPECTED_TOOL_CALL": loop.FinishMalformed,
	}[reason]
	if wantFinish == loop.FinishStop && len(calls) > 0 {
		wantFinish = loop.FinishCalls
	}
	if !ok || r.Finish != wantFinish {
		out = append(out, fmt.Sprintf("finish %q, want %q (%s)", r.Finish, wantFinish, reason))
	}
	if e.Derived.FinishMessage != "" && r.Detail != e.Derived.FinishMessage {
		out = append(out, fmt.Sprintf("detail %q, want %q", r.Detail, e.Derived.FinishMessage))
	}
	if diff := cmp.Diff(usageOf(e.Derived.Usage), r.Usage); diff != "" {
		out = append(out, "usage: "+diff)
	}
	return strings.Join(out, "\n")
}

func usageOf(raw json.RawMessage) *loop.Usage {
	var c struct {
		Prompt     *int64 `json:"promptTokenCount"`
		Cached     int64  `json:"cachedContentTokenCount"`
		Tools      int64  `json:"toolUsePromptTokenCount"`
		Candidates *int64 `json:"candidatesTokenCount"`
		Thoughts   int64  `json:"thoughtsTokenCount"`
		Total      int64  `json:"totalTokenCount"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil || c.Prompt == nil && c.Candidates == nil {
		return nil
	}
	if c.Prompt == nil {
		c.Prompt = new(int64)
	}
	u := &loop.Usage{Input: *c.Prompt - c.Cached + c.Tools, CacheRead: c.Cached, Output: c.Thoughts, Reasoning: c.Thoughts}
	if c.Candidates != nil {
		u.Output += *c.Candidates
	}
	return u
}

func canonical(b []byte) string {
	if len(bytes.TrimSpace(b)) == 0 || string(b) == "null" {
		return "{}"
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(b)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// TestTrafficErrors checks that recorded errors get their class.
func TestTrafficErrors(t *testing.T) {
	table := traffic.NewTable(t, "gemini, errors")
	srv, m := served(t)
	for _, f := range traffic.Load(t, "gemini") {
		for i := range f.Exchanges {
			e, what := &f.Exchanges[i], fmt.Sprintf("%s#%d", f.Name, i)
			if e.Response.Status < 400 {
				continue
			}
			srv.Next(&e.Response, nil)
			_, err := m.Generate(context.Background(), question(e.Stream), nil)
			var got *model.Error
			if !errors.As(err, &got) {
				table.Fail(what, "error %v, want a *model.Error", err)
				continue
			}
			body := gjson.ParseBytes(e.Response.Bytes())
			if body.IsArray() {
				body = body.Get("0")
			}
			want := model.Error{
				Class: loop.ClassFatal, Status: e.Response.Status,
				Code: body.Get("error.status").Str, Message: body.Get("error.message").Str,
			}
			if e.Response.Status == 429 {
				want.Class = loop.ClassTransient
				for _, d := range body.Get("error.details").Array() {
					if d.Get("retryDelay").Exists() {
						want.RetryAfter, _ = time.ParseDuration(d.Get("retryDelay").Str)
					}
				}
				if want.RetryAfter == 0 {
					want.RetryAfter = got.RetryAfter // words or headers, tested with model/wire
				}
			}
			if strings.Contains(want.Message, "input token count") {
				want.Class, want.Window = loop.ClassInvalid, true
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				table.Fail(what, "%s", diff)
				continue
			}
			t.Logf("%s: %d %s, wait %s", what, got.Status, got.Class, got.RetryAfter)
			table.Pass(what)
		}
	}
}

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
