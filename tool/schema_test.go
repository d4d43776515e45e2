package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
)

const paySchema = `{
  "type": "object",
  "properties": {
    "to": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
    "amount": {"type": "number", "description": "in euros", "minimum": 0.01, "maximum": 12345678901234567890.5, "multipleOf": 0.01},
    "currency": {"enum": ["EUR", "USD"]},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": true},
    "when": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 3}]},
    "card": {"$ref": "#/$defs/card"}
  },
  "required": ["to", "amount"],
  "additionalProperties": false,
  "$defs": {"card": {"type": ["object", "null"], "properties": {"no": {"type": "string"}, "a/b": {}}, "required": ["no"], "additionalProperties": false}}
}`

func TestValidate(t *testing.T) {
	s, err := Compile(json.RawMessage(paySchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{`{"to":"ana","amount":5}`, ``},
		{`{"to":"ana","amount":12345678901234567890.5,"card":null}`, ``},
		{`{"to":"ana","amount":12345678901234567890.51}`, `amount: must be at most 12345678901234567890.5, is 12345678901234567890.51`},
		{`{"to":"ana","amount":0.1000000000000000000000000001}`, `amount: must be a multiple of 0.01, is 0.1000000000000000000000000001`},
		{`{"to":"ana"}`, `amount: missing (number; in euros)`},
		{`{}`, "2 problems:\n- amount: missing (number; in euros)\n- to: missing (string)"},
		{`{"to":"ana","amount":"5"}`, `amount: must be a number, is the text "5"`},
		{`{"to":7,"amount":[1]}`, "2 problems:\n- amount: must be a number, is a list of 1\n- to: must be a text (string), is 7"},
		{`{"to":"ana","amount":1,"currency":"GBP"}`, `currency: must be one of "EUR", "USD", is the text "GBP"`},
		{`{"to":"ana","amount":1,"amnt":2}`, `amnt: not known; known: amount, card, currency, tags, to, when`},
		{`{"to":"A","amount":1}`, "2 problems:\n- to: must have at least 2 characters, has 1\n- to: must match the pattern ^[a-z]+$, is the text \"A\""},
		{`{"to":"ana","amount":1,"tags":["a",2]}`, `tags[1]: must be a text (string), is 2`},
		{`{"to":"ana","amount":1,"tags":["a","b","a"]}`, "2 problems:\n- tags: must have at most 2 items, has 3\n- tags: must not repeat itself; items 0 and 2 are the same"},
		{`{"to":"ana","amount":1,"when":"later"}`, `when: none of the allowed forms fits (must be an integer, is the text "later"; or: must have at most 3 characters, has 5)`},
		{`{"to":"ana","amount":1,"card":{"x y":1}}`, "2 problems:\n- card.no: missing (string)\n- card[\"x y\"]: not known; known: a/b, no"},
		{`{"to":"ana","amount":1,"card":{}}`, `card.no: missing (string)`},
		{`[]`, `the value: must be an object, is a list of 0`},
		{`{"to":"ana","amount":1,"to":"bob"}`, `not usable as JSON: at the top level, byte 23: the key "to" occurs twice`},
		{`{"to":`, `not usable as JSON: at /to, byte 6: the input ends where a value should be`},
		{``, `not usable as JSON: the input is empty`},
		{`{"to":"ana","amount":1e999999999}`, `not usable as JSON: at /amount, byte 21: a number out of range (10^±9999)`},
	} {
		err := s.Validate([]byte(c.args))
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("Validate(%s)\n got %s\nwant %s", c.args, got, c.want)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Class != loop.ClassInvalid || !e.NotRun) {
			t.Errorf("Validate(%s): %#v is not of class invalid", c.args, err)
		}
	}
}

func TestValidateIsBounded(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"type":"object","properties":{"` + strings.Repeat("p", 5000) + `":{}},"additionalProperties":false,"required":["r"]}`))
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]string{}
	for i := range 500 {
		args[strings.Repeat("é", i+1)] = strings.Repeat("x", 1000)
	}
	b, _ := json.Marshal(args)
	got := s.Validate(b).Error()
	if len(got) > 2048 || !utf8.ValidString(got) || !strings.HasPrefix(got, "31 problems:") || !strings.HasSuffix(got, " more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"objekt"}`, `the schema is not valid: type: `},
		{`{"properties":{"q":{"type":"string","minLength":-1}}}`, `the schema is not valid: properties.q.minLength: must be at least 0, is -1`},
		{`{"properties":[]}`, `the schema is not valid: properties: must be an object, is a list of 0`},
		{`7`, `the schema is not valid: the schema: must be true or false or an object, is 7`},
		{`{"$ref":"https://example.com/s.json"}`, `a schema must hold all it refers to; put it under $defs`},
		{`{"$ref":"other.json"}`, `a schema must hold all it refers to; put it under $defs`},
		{`{"$ref":"file:///etc/passwd"}`, `a schema must hold all it refers to; put it under $defs`},
		{`{"$schema":"https://example.com/meta"}`, `a schema must hold all it refers to; put it under $defs`},
		{`{"$ref":"#/$defs/none"}`, `"#/$defs/none" not found`},
		{`{"pattern":"(?=x)"}`, `(?=x)`},
		{`{"type":"object","type":"array"}`, `the schema cannot be read: canonical JSON: at the top level, byte 17: the key "type" occurs twice`},
		{`{`, `the schema cannot be read: canonical JSON: at the top level, byte 1: the input ends`},
	} {
		if s, err := Compile(json.RawMessage(c.schema)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Compile(%s) = %v\n got %v\nwant …%s…", c.schema, s, err, c.want)
		}
	}
}

func TestCompileKnowsOlderDrafts(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Validate([]byte(`{"n":1.5}`))), `n: must be an integer, is 1.5`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := s.Validate([]byte(`{"n":3.0}`)); err != nil {
		t.Errorf("3.0 is an integer: %v", err)
	}
}

func TestVerify(t *testing.T) {
	run := func(ctxless Def) error {
		_, err := Verify(New(ctxless, runNothing))
		return err
	}
	minus := -1
	input := json.RawMessage(`{"type":"object","properties":{"id":{}}}`)
	for _, c := range []struct {
		def  Def
		want string
	}{
		{Def{Name: "ok"}, ""},
		{Def{Name: "ok", Input: input, Grounded: []string{"id"}, Requires: []Requirement{{Tool: "find", Same: []string{"id"}}}}, ""},
		{Def{Name: "has space"}, `tool "has space": the name must begin with a letter or _ and go on with letters, digits, _ or -, at most 64`},
		{Def{Name: strings.Repeat("n", 65)}, `tool "` + strings.Repeat("n", 65) + `": the name must begin with a letter or _ and go on with letters, digits, _ or -, at most 64`},
		{Def{Name: "a", Effect: "write"}, `tool "a": effect: "write" is none; use read, idempotent or once`},
		{Def{Name: "a", Approval: "maybe"}, `tool "a": approval: "maybe" is none; use allow, ask or deny`},
		{Def{Name: "a", OnReject: "cry"}, `tool "a": on_reject: "cry" is none; use tell or stop`},
		{Def{Name: "a", Timeout: -1}, `tool "a": timeout: -1 is negative`},
		{Def{Name: "a", Poll: &Poll{CallsMax: &minus}}, `tool "a": poll.calls_max: -1 is negative`},
		{Def{Name: "a", Input: json.RawMessage(`{"type":"array"}`)}, `tool "a": input: the schema must say "type": "object"`},
		{Def{Name: "a", Input: json.RawMessage(`{"type":3}`)}, `tool "a": input: the schema is not valid: type: `},
		{Def{Name: "a", Output: json.RawMessage(`[]`)}, `tool "a": output: the schema is not valid: the schema: must be true or false or an object, is a list of 0`},
		{Def{Name: "a", Input: input, Grounded: []string{"x"}}, `tool "a": grounded: the input has no argument "x"`},
		{Def{Name: "a", Input: input, Requires: []Requirement{{Tool: "f", Same: []string{"x"}}}}, `tool "a": requires: the input has no argument "x" to compare with f`},
		{Def{Name: "a", Requires: []Requirement{{Tool: "a"}}}, `tool "a": requires: "a"; name another tool`},
		{Def{Name: "a", Check: true}, `tool "a": Check is set, but there is no check: use the option CheckCalls`},
	} {
		err := run(c.def)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("Verify(%+v)\n got %v\nwant %s", c.def, err, c.want)
		}
	}
}

func TestParseOutput(t *testing.T) {
	facts := func(kv ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = json.RawMessage(kv[i+1])
		}
		return m
	}
	for _, c := range []struct {
		out  string
		want Result
	}{
		{"plain\n", Result{Text: "plain"}},
		{"", Result{}},
		{"a\xffb", Result{Text: "a\ufffdb"}},
		{`{"result":"done"}`, Result{Text: "done"}},
		{"{\"result\": {\"z\": 1.0, \"a\": [1, 2]}, \"facts\": {\"paid\": {\"b\":1.0,\"a\":2}}}\n",
			Result{Text: `{"z":1.0,"a":[1,2]}`, Facts: facts("paid", `{"a":2,"b":1}`)}},
		{`{"result":null}`, Result{Text: "null"}},
		{`{"result":"a\nb","facts":{}}`, Result{Text: "a\nb", Facts: facts()}},
		{`{"result":1,"more":2}`, Result{Text: `{"result":1,"more":2}`}},
		{`{"result":1,"facts":{},"x":2}`, Result{Text: `{"result":1,"facts":{},"x":2}`}},
		{`{"facts":{"a":1}}`, Result{Text: `{"facts":{"a":1}}`}},
		{`{"result":1,"facts":[1]}`, Result{Text: `{"result":1,"facts":[1]}`}},
		{`{"result":1,"facts":null}`, Result{Text: `{"result":1,"facts":null}`}},
		{`{"result":1,"result":2}`, Result{Text: `{"result":1,"result":2}`}},
		{`{"result":1} x`, Result{Text: `{"result":1} x`}},
	} {
		if diff := cmp.Diff(c.want, ParseOutput([]byte(c.out))); diff != "" {
			t.Errorf("ParseOutput(%s) (-want +got):\n%s", c.out, diff)
		}
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte(`{"result": {"a": 1}, "facts": {"f": "\ud83d\ude00"}}`))
	f.Add([]byte("text\xff\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := ParseOutput(b)
		if !utf8.ValidString(r.Text) {
			t.Fatalf("invalid UTF-8 from %q", b)
		}
		for name, v := range r.Facts {
			if c, err := loop.Canonical(v); err != nil || string(c) != string(v) {
				t.Fatalf("fact %q = %s is not canonical", name, v)
			}
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(paySchema), []byte(`{"to":"ana","amount":"5","card":{"x":1}}`))
	f.Add([]byte(`{"oneOf":[{"type":"object"},{}],"not":{"const":1}}`), []byte(`{}`))
	f.Add([]byte(`{"prefixItems":[{"$ref":"#"}],"items":false,"contains":{"const":1}}`), []byte(`[[],2]`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := Compile(schema)
		if err != nil {
			return
		}
		if err := s.Validate(value); err != nil && (len(err.Error()) > 2048 || !utf8.ValidString(err.Error())) {
			t.Fatalf("%d bytes of error for %q against %q", len(err.Error()), value, schema)
		}
	})
}

func TestSecrets(t *testing.T) {
	env := map[string]string{"KEY": "hunter22", "KEY2": "hunter22longer", "SHORT": "1"}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	var s Secrets
	got, err := s.Expand("Bearer ${KEY} ${KEY2} ${SHORT} $KEY", lookup)
	if want := "Bearer hunter22 hunter22longer 1 $KEY"; got != want || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	if got, want := s.Hide("you sent hunter22longer and hunter22 (1)"), "you sent ${KEY2} and ${KEY} (1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	res := s.HideResult(Result{Text: "hunter22", Facts: map[string]json.RawMessage{"f": json.RawMessage(`"hunter22"`)}})
	want := Result{Text: "${KEY}", Facts: map[string]json.RawMessage{"f": json.RawMessage(`"${KEY}"`)}}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("HideResult (-want +got):\n%s", diff)
	}
	if _, err := s.Expand("${NONE}", lookup); err == nil || err.Error() != "the environment variable NONE is not set" {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"${a b}", "${", "${}", "${1a}"} {
		if err := CheckReferences(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := Compile(json.RawMessage(paySchema))
	if err != nil {
		b.Fatal(err)
	}
	args := []byte(`{"amount":5,"currency":"EUR","tags":["a","b"],"to":"ana"}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(json.RawMessage(paySchema)); err != nil {
			b.Fatal(err)
		}
	}
}
