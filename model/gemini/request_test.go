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
)

func text(s string) loop.Block { return loop.Block{Kind: loop.BlockText, Text: s} }

func user(s string) *loop.Message {
	return &loop.Message{Role: loop.User, Blocks: []loop.Block{text(s)}}
}

func ai(blocks ...loop.Block) *loop.Message {
	return &loop.Message{Role: loop.Assistant, Blocks: blocks}
}

func results(blocks ...loop.Block) *loop.Message {
	return &loop.Message{Role: loop.Tool, Blocks: blocks}
}

func made(wire, id, own, name, args string) loop.Block {
	return loop.Block{Kind: loop.BlockCall, Wire: wire, ID: id, Call: own, Name: name, Args: args}
}

func result(id, own, name, s string) loop.Block {
	return loop.Block{Kind: loop.BlockResult, ID: id, Call: own, Name: name, Text: s}
}

var lookup = []model.Tool{{Name: "lookup", Description: "Look up.", Schema: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)}}

const lookupJSON = `"tools":[{"functionDeclarations":[{"name":"lookup","description":"Look up.","parametersJsonSchema":{"type":"object","properties":{"q":{"type":"string"}}}}]}]`

func TestRequest(t *testing.T) {
	hello := []*loop.Message{user("hi")}
	const hi = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	tests := []struct {
		name, model string
		req         model.Request
		want        string
		notes       []string
	}{
		{name: "plain", req: model.Request{Messages: hello}, want: `{` + hi + `}`},
		{
			name: "closing call", req: model.Request{
				Messages: hello, System: "Be good.", Extra: "Answer now.", Tools: lookup, Choice: model.ChoiceNone, MaxOutput: 500,
			},
			want: `{"systemInstruction":{"parts":[{"text":"Be good."},{"text":"Answer now."}]},` + lookupJSON + `,` + hi +
				`,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"generationConfig":{"maxOutputTokens":500}}`,
		},
		{
			name: "required", req: model.Request{Messages: hello, Tools: lookup, Choice: model.ChoiceRequired},
			want: `{` + lookupJSON + `,` + hi + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`,
		},
		{
			name: "named", req: model.Request{Messages: hello, Tools: lookup, Choice: "lookup"},
			want: `{` + lookupJSON + `,` + hi + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["lookup"]}}}`,
		},
		{
			name: "options", req: model.Request{Messages: hello, Options: map[string]any{
				"thinking_budget": 128, "temperature": 0.5, "serviceTier": "flex", "server_tools": []any{map[string]any{"googleSearch": map[string]any{}}},
			}},
			want: `{"tools":[{"googleSearch":{}}],` + hi +
				`,"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":128},"temperature":0.5},"serviceTier":"flex"}`,
		},
		{
			name: "structured output", req: model.Request{Messages: hello, Output: []byte(`{"type":"object","properties":{"k":{"const":"a","maxLength":3}},"$schema":"x"}`)},
			want:  `{` + hi + `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"k":{"enum":["a"]}}}}}`,
			notes: []string{`output schema: this API does not know ["maxLength"]; ronda checks them itself`},
		},
		{
			name: "structured output beside tools, old model", req: model.Request{Messages: hello, Tools: lookup, Output: []byte(`{"type":"object"}`)},
			want:  `{` + lookupJSON + `,` + hi + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`,
			notes: []string{"output schema was not sent: this model does not take one while tools are declared; ronda checks the answer itself"},
		},
		{
			name: "structured output beside tools, new model", model: "gemini-3-pro-preview", req: model.Request{Messages: hello, Tools: lookup, Output: []byte(`{"type":"object"}`)},
			want: `{` + lookupJSON + `,` + hi + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}}`,
		},
		{
			name: "schemas", req: model.Request{Messages: hello, Tools: []model.Tool{
				{Name: "a", Schema: []byte(`{"type":"object","properties":{}}`)},
				{Name: "b", Schema: []byte(`{"type":"object","title":"B","properties":{"title":{"type":"string","pattern":"x"},"n":{"anyOf":[{"type":"integer","exclusiveMinimum":0},{"$ref":"#/$defs/m","description":"d"}]}},"$defs":{"m":{"type":"null"}},"additionalProperties":false}`)},
			}},
			want: `{"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b","parametersJsonSchema":{"type":"object","title":"B","properties":{"title":{"type":"string"},` +
				`"n":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/m"}]}},"$defs":{"m":{"type":"null"}},"additionalProperties":false}}]}],` + hi +
				`,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`,
			notes: []string{`tool "b": this API does not know ["description" "exclusiveMinimum" "pattern"] in schemas; ronda checks them itself`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := tt.model
			if name == "" {
				name = "gemini-2.5-flash"
			}
			b, err := Model(name, APIKey("k")).(*adapter).encode(&tt.req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(b.reader())
			if diff := cmp.Diff(tt.want, string(got)); diff != "" || !json.Valid(got) {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.notes, b.notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	tests := map[string]model.Request{
		`tool "1a": Gemini takes names`: {Tools: []model.Tool{{Name: "1a"}}},
		`the schema says "string"`:      {Tools: []model.Tool{{Name: "a", Schema: []byte(`{"type":"string"}`)}}},
		`is not a JSON object`:          {Tools: []model.Tool{{Name: "a", Schema: []byte(`{`)}}},
		`option "maxOutputTokens"`:      {Options: map[string]any{"maxOutputTokens": 1}},
		`option "contents"`:             {Options: map[string]any{"contents": 1}},
		`output schema`:                 {Output: []byte(`[]`)},
	}
	for want, req := range tests {
		_, err := Model("m", APIKey("k"), BaseURL("http://127.0.0.1:1")).Generate(t.Context(), &req, nil)
		e, ok := err.(*model.Error)
		if !ok || e.Class != loop.ClassFatal || e.Lost || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestMessages checks the rules of the wire on blocks, other wires' blocks and ids.
func TestMessages(t *testing.T) {
	sign := json.RawMessage(`{"thoughtSignature":"s=="}`)
	tests := []struct {
		name, model string
		in          []*loop.Message
		want        string
	}{
		{
			name: "own turn goes back as it came; calls without ids keep none",
			in: []*loop.Message{
				ai(loop.Block{Kind: loop.BlockThought, Wire: wireName, Text: "hm"},
					loop.Block{Kind: loop.BlockCall, Wire: wireName, Call: "c1.1", Name: "f", Args: `{"b": 1, "a":1.0}`, Raw: sign},
					made(wireName, "", "c1.2", "f", "{}"), made(wireName, "id3", "c1.3", "g", "{}"),
					loop.Block{Kind: loop.BlockText, Wire: wireName, Raw: sign},
					loop.Block{Kind: loop.BlockOpaque, Wire: wireName, Raw: json.RawMessage(`{"executableCode":{"code":"1"}}`)}),
				results(result("", "c1.1", "f", "one")),
				results(loop.Block{Kind: loop.BlockResult, Call: "c1.2", Name: "f", Text: "bad", Error: true}, result("id3", "c1.3", "g", "three"), text("hint")),
			},
			want: `{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{"b": 1, "a":1.0}},"thoughtSignature":"s=="},` +
				`{"functionCall":{"name":"f","args":{}}},{"functionCall":{"id":"id3","name":"g","args":{}}},{"text":"","thoughtSignature":"s=="},{"executableCode":{"code":"1"}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}},{"functionResponse":{"name":"f","response":{"error":"bad"}}},` +
				`{"functionResponse":{"id":"id3","name":"g","response":{"output":"three"}}},{"text":"hint"}]}`,
		},
		{
			name: "another wire's turn on a model that wants signatures", model: "gemini-3-flash-preview",
			in: []*loop.Message{
				ai(loop.Block{Kind: loop.BlockThought, Wire: "anthropic", Text: "hm", Raw: json.RawMessage(`{"signature":"s"}`)},
					loop.Block{Kind: loop.BlockOpaque, Wire: "openai", Raw: json.RawMessage(`{"type":"reasoning"}`)},
					loop.Block{Kind: loop.BlockText, Wire: "anthropic", Text: "ok", Raw: json.RawMessage(`{"citations":[1]}`)},
					made("anthropic", "toolu_1", "c1.1", "f", `{}`), made("openaichat", "", "c1.2", "f", `{"cut`)),
				results(result("toolu_1", "c1.1", "f", "one"), result("", "c1.2", "f", "two")),
			},
			want: `{"role":"model","parts":[{"text":"ok"},{"functionCall":{"id":"c1_1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},` +
				`{"functionCall":{"id":"c1_2","name":"f","args":{"invalid_arguments":"{\"cut"}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"c1_1","name":"f","response":{"output":"one"}}},{"functionResponse":{"id":"c1_2","name":"f","response":{"output":"two"}}}]}`,
		},
		{
			name: "the loop's ids begin again with each run of a session",
			in: []*loop.Message{
				ai(made(wireName, "", "c1.1", "f", "{}")), results(result("", "c1.1", "f", "one")),
				ai(made(wireName, "x", "c1.1", "f", "{}")), results(result("x", "c1.1", "f", "two")),
			},
			want: `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}}]},` +
				`{"role":"model","parts":[{"functionCall":{"id":"x","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{"output":"two"}}}]}`,
		},
		{
			name: "files",
			in: []*loop.Message{
				{Role: loop.User, Blocks: []loop.Block{
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/png", Data: []byte("abc")}},
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "video/mp4", URL: "gs://b/v"}},
					{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/png", Name: "x.png", Ref: "sha256:0"}},
				}},
				ai(loop.Block{Kind: loop.BlockMedia, Wire: wireName, Raw: sign, Media: &loop.Media{MIME: "image/png", Data: []byte("abc")}}, made(wireName, "x", "c1.1", "f", "")),
				results(loop.Block{Kind: loop.BlockResult, ID: "x", Call: "c1.1", Name: "f", Text: "see", More: []loop.Block{text("this"), {Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/jpeg", Data: []byte("abc")}}}}),
			},
			want: `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"YWJj"}},{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/v"}},` +
				`{"text":"[file \"x.png\" of type image/png: not shown]"}]},` +
				`{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"YWJj"},"thoughtSignature":"s=="},{"functionCall":{"id":"x","name":"f","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{"output":"see\nthis"},"parts":[{"inlineData":{"mimeType":"image/jpeg","data":"YWJj"}}]}}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &model.Cache{}
			a := &adapter{info: model.Info{Name: tt.model}}
			a.messages(&model.Request{Messages: tt.in}, c)
			if diff := cmp.Diff(tt.want, string(c.Bytes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPrefix checks that each request's contents begin with those of the one before, byte for byte, and are what an adapter that
// sees the whole transcript at once would write.
func TestPrefix(t *testing.T) {
	a := Model("gemini-3-x", APIKey("k")).(*adapter)
	msgs := []*loop.Message{user("begin")}
	c := &model.Cache{}
	var before []byte
	for n := range 20 {
		req := &model.Request{Messages: msgs, Cache: c, Tools: lookup, System: "s"}
		if n == 19 {
			req.Extra, req.Choice = "close", model.ChoiceNone
		}
		b, err := a.encode(req)
		if err != nil {
			t.Fatal(err)
		}
		got := bytes.Clone(b.parts[1])
		if !bytes.HasPrefix(got, before) || n > 0 && len(got) == len(before) {
			t.Fatalf("round %d: the prefix broke", n)
		}
		fresh := &model.Cache{}
		a.messages(&model.Request{Messages: msgs}, fresh)
		if diff := cmp.Diff(string(fresh.Bytes), string(got)); diff != "" {
			t.Fatal(diff)
		}
		before = got
		own := fmt.Sprintf("c%d.", n)
		id := "g" + own
		if n%3 == 1 {
			id = "same"
		}
		msgs = append(msgs, ai(text("é"), made(wireName, id, own+"1", "lookup", `{"q":"x"}`), made("openai", "", own+"2", "lookup", `{}`), made(wireName, "", own+"3", "lookup", `{}`)),
			results(result(id, own+"1", "lookup", "one")), results(result("", own+"2", "lookup", "two"), result("", own+"3", "lookup", "three")))
	}
	ids := map[string]bool{}
	for _, m := range gjson.GetBytes(append(append([]byte(`{"m":[`), before...), "]}"...), "m").Array() {
		for _, p := range m.Get("parts").Array() {
			id := p.Get("functionCall.id").Str
			if id != "" && ids[id] {
				t.Errorf("id %q twice", id)
			}
			ids[id] = true
		}
	}
	short := []*loop.Message{user("summary")}
	a.messages(&model.Request{Messages: short}, c)
	if want := `{"role":"user","parts":[{"text":"summary"}]}`; string(c.Bytes) != want {
		t.Errorf("after compaction: %s", c.Bytes)
	}
}

// TestCompactedInTheMiddle keeps the first message and the number of messages, which a look at the first alone would not see.
func TestCompactedInTheMiddle(t *testing.T) {
	task := user("task")
	c := &model.Cache{}
	encode := func(in ...*loop.Message) string {
		(&adapter{}).messages(&model.Request{Messages: in}, c)
		return string(c.Bytes)
	}
	encode(task, ai(text("a")), user("b"), ai(text("c")), user("d"))
	got := encode(task, user("summary"), ai(text("c")), user("d"), ai(text("e")), user("f"))
	c = &model.Cache{}
	if want := encode(task, user("summary"), ai(text("c")), user("d"), ai(text("e")), user("f")); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
