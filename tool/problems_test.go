package tool

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestProblems(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"const":{"a":1}}`, `2`, `the value: must be {"a":1}, is 2`},
		{`{"exclusiveMinimum":1}`, `1`, `the value: must be more than 1, is 1`},
		{`{"exclusiveMaximum":1.25}`, `2`, `the value: must be less than 1.25, is 2`},
		{`{"multipleOf":0.3}`, `1`, `the value: must be a multiple of 0.3, is 1`},
		{`{"minItems":2}`, `[1]`, `the value: must have at least 2 items, has 1`},
		{`{"prefixItems":[{}],"items":false}`, `[1,2]`, `[1]: not allowed`},
		{`{"minProperties":1}`, `{}`, `the value: must have at least 1 members, has 0`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `the value: must have at most 1 members, has 2`},
		{`{"propertyNames":{"pattern":"^a"}}`, `{"b":2}`, `the value: the name "b" is not allowed`},
		{`{"contains":{"const":1}}`, `[2]`, `the value: lacks an item that must be among them`},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, `the value: lacks an item that must be among them`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `the value: must hold at most 1 items of a kind, holds 2`},
		{`{"not":{"required":["a"]}}`, `{"a":1}`, `the value: has a form that is not allowed: an object`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `a: not allowed`},
		{`{"dependentRequired":{"a":["b","c"]}}`, `{"a":1}`, "2 problems:\n- b: missing; it goes with a\n- c: missing; it goes with a"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"a":1}`, `b: missing; it goes with a`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":false}`, `[1,2,3]`, `the value: has 2 items too many`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"email"}`, `"x"`, `the value: must be in the format email, is the text "x"`},
		{`{"oneOf":[{"type":"integer"},{"minimum":0}]}`, `1`, `the value: fits 2 of the allowed forms at once; exactly one must fit`},
		{`{"oneOf":[{"type":"string"},{"type":"string"}]}`, `1`, `the value: none of the allowed forms fits (must be a text (string), is 1)`},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `the value: none of the allowed forms fits (a: missing; or: b: missing)`},
		{`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "2 problems:\n- a: missing\n- b: missing"},
		{`{"required":["a"],"properties":{"a":{"type":["string","null"],"enum":["x",null]}}}`, `{}`, `a: missing (string or null; one of "x", null)`},
		{`{"enum":["` + fmt.Sprintf("%060d", 1) + `","` + fmt.Sprintf("%060d", 2) + `",3]}`, `4`, `the value: must be one of "` + fmt.Sprintf("%056d", 0) + `…, "` + fmt.Sprintf("%056d", 0) + `…, … (1 more), is 4`},
		{`{"type":["integer","boolean","null","array","object"]}`, `"x"`, `the value: must be null or true or false or an integer or a list or an object, is the text "x"`},
		{`{"$defs":{"a/b c%":{"additionalProperties":false,"properties":{"k":{}}}},"$ref":"#/$defs/a~1b%20c%25"}`, `{"x":1}`, `x: not known; known: k`},
		{`{"items":{"properties":{"a":{"items":{"type":"integer"}}}}}`, `[{},{"a":[1,"x"]}]`, `[1].a[1]: must be an integer, is the text "x"`},
		{`{"unevaluatedProperties":false,"properties":{"a":{}}}`, `{"a":1,"b":2}`, `b: not allowed`},
	} {
		s, err := Compile(json.RawMessage(c.schema))
		if err != nil {
			t.Errorf("Compile(%s): %v", c.schema, err)
			continue
		}
		for range 3 { // the library goes through maps in any order
			if got := fmt.Sprint(s.Validate([]byte(c.value))); got != c.want {
				t.Errorf("%s against %s\n got %s\nwant %s", c.value, c.schema, got, c.want)
				break
			}
		}
	}
}
