package openaiwire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStrict(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		notes          []string
	}{
		{"closed and required", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, nil},
		{"open by default", `{"properties":{"a":{"type":"string"}},"type":"object","required":["a"]}`,
			`{"properties":{"a":{"type":"string"}},"type":"object","required":["a"],"additionalProperties":false}`, nil},
		{"narrowing keywords", `{"$schema":"x","type":"object","properties":{"a":{"type":"array","uniqueItems":true,"items":{"type":"string","minLength":2,"pattern":"^x"}}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"^x"}}},"required":["a"],"additionalProperties":false}`,
			[]string{"strict: $schema is left out", "strict: a: uniqueItems is left out", "strict: a[]: minLength is left out"}},
		{"alternatives and definitions", `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x"}]}},"required":["a"],"$defs":{"x":{"type":"object","properties":{},"required":[]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x"}]}},"required":["a"],"$defs":{"x":{"type":"object","properties":{},"required":[],"additionalProperties":false}},"additionalProperties":false}`, nil},
		{"optional", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}},"required":[]}},"required":["a"]}`, "", []string{"not strict: a.b: it is optional"}},
		{"free form", `{"type":"object","properties":{"a":{"type":"object"}},"required":["a"]}`, "", []string{"not strict: a: an object without properties"}},
		{"further properties", `{"type":"object","properties":{},"required":[],"additionalProperties":{"type":"string"}}`, "", []string{"not strict: additionalProperties is not false"}},
		{"conditions", `{"type":"object","properties":{"a":{"allOf":[]}},"required":["a"]}`, "", []string{"not strict: a: allOf does not exist there"}},
		{"a schema that is true", `{"type":"object","properties":{"a":true},"required":["a"]}`, "", []string{"not strict: a: true and false are no schemas there"}},
		{"no object", `{"type":"string"}`, "", []string{"not strict: its root is no plain object"}},
		{"no JSON", `{"type":`, "", []string{"not strict: it is no object"}},
	} {
		out, notes, ok := Strict([]byte(c.in))
		if string(out) != c.want || ok != (c.want != "") || !cmp.Equal(notes, c.notes) {
			t.Errorf("%s: %v\n%s\n%s", c.name, ok, out, cmp.Diff(c.notes, notes))
		}
	}
	deep := strings.Repeat(`{"type":"array","items":`, 50) + "{}" + strings.Repeat("}", 50)
	if _, _, ok := Strict([]byte(`{"type":"object","properties":{"a":` + deep + `},"required":["a"]}`)); ok {
		t.Error("fifty levels are strict")
	}
}

func TestParameters(t *testing.T) {
	for _, c := range []struct {
		in, want string
		notes    []string
	}{
		{`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`, `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`, nil},
		{`{"type":"object"}`, `{"type":"object","properties":{}}`, nil},
		{`{}`, `{"type":"object","properties":{}}`, nil},
		{`{"type":"object","properties":{"a":{"type":"array"},"enum":{"type":"array","items":{}}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}},"enum":{"type":"array","items":{}}}}`, nil},
		{`{"type":"object","properties":{},"oneOf":[{"required":["a"]}]}`, `{"type":"object","properties":{}}`, []string{"oneOf at the root of the schema is left out"}},
		{`true`, `{"type":"object","properties":{}}`, []string{"its schema is no object: any arguments are taken"}},
	} {
		out, notes := Parameters([]byte(c.in))
		if string(out) != c.want || !cmp.Equal(notes, c.notes) {
			t.Errorf("%s: %s %q", c.in, out, notes)
		}
	}
}

// Whatever the schema, what is declared is JSON, and lowering twice is lowering once.
func FuzzLower(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"type":"null"}]}}},"required":["a"]}`)
	f.Add(`{"type":"object","enum":[1],"properties":[1,{}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			t.Skip()
		}
		out, _ := Parameters([]byte(s))
		again, _ := Parameters(out)
		if !json.Valid(out) || string(again) != string(out) {
			t.Fatalf("%s\n%s", out, again)
		}
		if lowered, _, ok := Strict(out); ok && !json.Valid(lowered) {
			t.Fatalf("strict: %s", lowered)
		}
	})
}
