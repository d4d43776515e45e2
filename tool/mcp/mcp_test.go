package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

var ignoreErr cmp.Option = cmpopts.IgnoreFields(tool.Error{}, "Err")

func ptr[T any](v T) *T { return &v }

// world is a server in this process; each connection is a new pair of pipes.
type world struct {
	*sdk.Server
	sessions chan *sdk.ServerSession // of each connection, in order
}

func newWorld(name, version string) *world {
	return &world{sdk.NewServer(&sdk.Implementation{Name: name, Version: version}, nil), make(chan *sdk.ServerSession, 16)}
}

func (w *world) spec() Spec {
	return Spec{Name: "in-process", Grace: 100 * time.Millisecond, Transport: func(ctx context.Context) (sdk.Transport, error) {
		here, there := sdk.NewInMemoryTransports()
		ss, err := w.Connect(context.Background(), there, nil)
		if err != nil {
			return nil, err
		}
		w.sessions <- ss
		return here, nil
	}}
}

type handler = func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error)

func says(s string) handler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}, nil
	}
}

func (w *world) add(name string, a *sdk.ToolAnnotations, h handler) {
	w.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: a}, h)
}

func TestEffects(t *testing.T) {
	w := newWorld("effects", "1.2")
	for name, a := range map[string]*sdk.ToolAnnotations{
		"none":             nil,
		"titled":           {Title: "A title"},
		"reads":            {ReadOnlyHint: true},
		"reads_destroys":   {ReadOnlyHint: true, DestructiveHint: ptr(true)},
		"repeats":          {IdempotentHint: true},
		"repeats_adds":     {IdempotentHint: true, DestructiveHint: ptr(false)},
		"adds":             {DestructiveHint: ptr(false)},
		"destroys":         {DestructiveHint: ptr(true)},
		"override_read":    nil,
		"override_allow":   nil,
		"override_tighter": {ReadOnlyHint: true},
		"override_same":    {DestructiveHint: ptr(false)},
	} {
		w.add(name, a, says(name))
	}
	spec := w.spec()
	spec.Overrides = []tool.Override{
		{Name: "override_read", Def: tool.Def{Effect: loop.Read}, Set: []string{"effect"}},
		{Name: "override_allow", Def: tool.Def{Approval: loop.Allow}},
		{Name: "override_tighter", Def: tool.Def{Effect: loop.Once, Approval: loop.Deny, Label: "x", Timeout: time.Second, CallsMax: ptr(0)}},
		{Name: "override_same", Def: tool.Def{Effect: loop.Read, Approval: loop.Ask}},
	}
	s := open(t, spec)
	want := map[string]string{
		"none": "once ask", "titled": "once ask", "reads": "read allow", "reads_destroys": "read allow", "repeats": "idempotent ask",
		"repeats_adds": "idempotent allow", "adds": "once allow", "destroys": "once ask",
		"override_read": "read allow", "override_allow": "once allow", "override_tighter": "once deny", "override_same": "read ask",
	}
	if diff := cmp.Diff(want, effectsOf(s)); diff != "" {
		t.Error(diff)
	}
	got := pick(t, s, "override_tighter").Def()
	wantDef := tool.Def{Name: "override_tighter", Description: "Does override_tighter.", Input: json.RawMessage(`{"type":"object"}`),
		Effect: loop.Once, Approval: loop.Deny, Label: "x", Timeout: time.Second, CallsMax: ptr(0), Destination: "in-process (effects 1.2)"}
	if diff := cmp.Diff(wantDef, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamesAndOffer(t *testing.T) {
	w := newWorld("names", "1")
	long := strings.Repeat("a", 80)
	for _, n := range []string{"a.b", "a/b", "a_b", "9lives", long, long + "b", "left_out"} {
		w.add(n, nil, says(n))
	}
	spec := w.spec()
	spec.Prefix = "p-"
	spec.Only = []string{"a.b", "a/b", "a_b", "9lives", long, long + "b"}
	s := open(t, spec)
	got := map[string]string{}
	for _, tl := range s.Tools() {
		name := tl.Def().Name
		if res := call(t, tl, args{}); true {
			got[name] = res.Text
		}
		if _, err := tool.Verify(tl); err != nil {
			t.Error(err)
		}
	}
	if len(got) != 6 || got["p-9lives"] != "9lives" || got["p-a_b"] != "a.b" {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		offer tool.Offer
		want  string
	}{
		{tool.Offer{Only: []string{"nope"}}, `mcp: in-process: only: there is no tool "nope"; there are 9lives, a.b, a/b, a_b, `},
		{tool.Offer{Overrides: []tool.Override{{Name: "nope"}}}, `mcp: in-process: tools: there is no tool "nope"; there are `},
		{tool.Offer{Prefix: "a b"}, `mcp: in-process: prefix: "a b"; begin with a letter or _`},
	} {
		spec := w.spec()
		spec.Offer = c.offer
		if _, err := Connect(t.Context(), spec); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestSchemasAreTakenLeniently(t *testing.T) {
	w := newWorld("schemas", "1")
	w.AddTool(&sdk.Tool{Name: "look", InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","pattern":"^(?!x).*$"}},"required":["id"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{StructuredContent: args{"n": "seven"}}, nil
		})
	s := open(t, w.spec())
	want := `{"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"}`
	if got := string(pick(t, s, "look").Def().Input); got != want {
		t.Errorf("input %s", got)
	}
	if n := s.Notes(); len(n) != 1 || !strings.HasPrefix(n[0], "tool look: properties/id: the pattern ^(?!x).*$ is not checked: ") {
		t.Errorf("notes %q", n)
	}
	res := call(t, pick(t, s, "look"), args{"id": "x"})
	if want := "{\"n\":\"seven\"}\n[The server's result does not fit what it declares: n: must be an integer, is the text \"seven\"]"; res.Text != want {
		t.Errorf("got %q, want %q", res.Text, want)
	}
}

func TestResults(t *testing.T) {
	png := []byte("\x89PNG…")
	media := func(mime, name string, data []byte) loop.Block {
		return loop.Block{Kind: loop.BlockMedia, Media: &loop.Media{MIME: mime, Name: name, Data: data}}
	}
	text := func(s string) loop.Block { return loop.Block{Kind: loop.BlockText, Text: s} }
	for name, c := range map[string]struct {
		answer sdk.CallToolResult
		want   tool.Result
		err    *tool.Error
	}{
		"text":  {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "a"}, &sdk.TextContent{Text: "b"}}}, tool.Result{Text: "a\nb"}, nil},
		"empty": {sdk.CallToolResult{Content: []sdk.Content{}}, tool.Result{}, nil},
		"facts": {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{"result":{"a":1},"facts":{"draft":"D"}}`}}},
			tool.Result{Text: `{"a":1}`, Facts: map[string]json.RawMessage{"draft": json.RawMessage(`"D"`)}}, nil},
		"mixed": {sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "before"}, &sdk.ImageContent{Data: png, MIMEType: "image/png"}, &sdk.TextContent{Text: "after"},
			&sdk.AudioContent{Data: png, MIMEType: "audio/wav"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///d/report.pdf", MIMEType: "application/pdf", Blob: png}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///d/a.txt", Text: "words"}},
			&sdk.ResourceLink{URI: "file:///d/b.txt", Name: "b", MIMEType: "text/plain", Description: "More."},
		}}, tool.Result{Text: "before", More: []loop.Block{media("image/png", "", png), text("after"), media("audio/wav", "", png),
			media("application/pdf", "report.pdf", png), text("[Resource file:///d/a.txt]\nwords\n[Resource b file:///d/b.txt, text/plain: More.]")}}, nil},
		"structured": {sdk.CallToolResult{StructuredContent: args{"b": 1, "a": "<x>"}}, tool.Result{Text: `{"a":"<x>","b":1}`}, nil},
		"structured twice": {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `{ "b": 1.0 }`}}, StructuredContent: args{"b": 1}},
			tool.Result{Text: `{ "b": 1.0 }`}, nil},
		"structured and words": {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: `one`}}, StructuredContent: args{"b": 1}},
			tool.Result{Text: "one\n{\"b\":1}"}, nil},
		"error":       {sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such file"}}}, tool.Result{}, &tool.Error{Class: loop.ClassError, Message: "no such file"}},
		"mute error":  {sdk.CallToolResult{IsError: true, Content: []sdk.Content{}}, tool.Result{}, &tool.Error{Class: loop.ClassError, Message: "the MCP server says that the call failed, and not why"}},
		"too long":    {sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("é", 600)}}}, tool.Result{Text: strings.Repeat("é", 500) + "\n[The result was cut: more than the 1000 bytes that are kept.]"}, nil},
		"large image": {sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: make([]byte, 1001), MIMEType: "image/png"}, &sdk.TextContent{Text: "end"}}}, tool.Result{Text: "[image/png of 1001 bytes is left out: the result is too large.]\nend"}, nil},
	} {
		w := newWorld("results", "1")
		w.add("t", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return &c.answer, nil })
		spec := w.spec()
		spec.MaxResult = 1000
		res, err := try(t, pick(t, open(t, spec), "t"), args{})
		if diff := cmp.Diff(c.want, res); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.err, tool.AsError(err), ignoreErr); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheKeyIsSent(t *testing.T) {
	w := newWorld("key", "1")
	w.add("t", nil, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return says(fmt.Sprint(r.Params.Meta[KeyMeta], " ", string(r.Params.Arguments)))(nil, nil)
	})
	res := call(t, pick(t, open(t, w.spec()), "t"), args{"n": json.Number("12345678901234567890")})
	if want := `key-1 {"n":12345678901234567890}`; res.Text != want {
		t.Errorf("got %q, want %q", res.Text, want)
	}
}

// A cancelled call is unknown, and the server is told.
func TestCancel(t *testing.T) {
	w := newWorld("cancel", "1")
	began, ended := make(chan struct{}), make(chan error, 1)
	w.add("t", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	tl := pick(t, open(t, w.spec()), "t")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := tl.Run(ctx, tool.Call{Args: json.RawMessage(`{}`)})
	want := &tool.Error{Class: loop.ClassUnknown, Message: "the call was cancelled"}
	if diff := cmp.Diff(want, tool.AsError(err), ignoreErr); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	<-ended // hangs where the server is not told
	_, err = tl.Run(ctx, tool.Call{})
	if e := tool.AsError(err); e.Class != loop.ClassUnknown || !e.NotRun {
		t.Errorf("after the end: %+v", e)
	}
}

// Whatever a server answers, the result is bounded and readable.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"a":1}}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"file:///a/b","blob":"AAAA"}},{"type":"resource_link","uri":"x","name":"y"}],"isError":true}`))
	f.Add([]byte(`{"content":[{"type":"text","text":"{\"result\":\"a\",\"facts\":{\"b\":1}}"},{"type":"audio","data":"","mimeType":"\u0000"}]}`))
	const limit = 300
	r := &remote{server: &Server{spec: Spec{MaxResult: limit}}}
	schema, err := tool.Compile(json.RawMessage(`{"type":"object","required":["a"]}`))
	if err != nil {
		f.Fatal(err)
	}
	r.output = schema
	f.Fuzz(func(t *testing.T, raw []byte) {
		var answer sdk.CallToolResult
		if json.Unmarshal(raw, &answer) != nil {
			return
		}
		res, err := r.result(&session{hide: &secrets{}}, &answer)
		size, text := len(res.Text), res.Text
		for _, b := range res.More {
			size, text = size+len(b.Text), text+b.Text
			if b.Media != nil {
				size, text = size+len(b.Media.Data), text+b.Media.MIME+b.Media.Name
			}
		}
		if err != nil {
			text += err.Error()
		}
		// Remarks are not counted: one for each part that was left out, and those at the end.
		if size > limit+1000+250*len(answer.Content) || !utf8.ValidString(text) {
			t.Fatalf("%d bytes: %q", size, text)
		}
	})
}
