package fake

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// walk visits a schema and its subschemas, each with its path as the providers of strict schemas write it. It stops at the
// first refusal.
func walk(s gjson.Result, path []string, f func(s gjson.Result, path []string) *Refusal) *Refusal {
	if !s.IsObject() {
		return nil
	}
	if ref := f(s, path); ref != nil {
		return ref
	}
	var ref *Refusal
	sub := func(v gjson.Result, at ...string) bool {
		ref = walk(v, append(path[:len(path):len(path)], at...), f)
		return ref == nil
	}
	for _, k := range []string{"properties", "$defs", "definitions", "patternProperties"} {
		if v := s.Get(escapeKey(k)); v.IsObject() && ref == nil {
			v.ForEach(func(name, p gjson.Result) bool { return sub(p, k, name.Str) })
		}
	}
	for _, k := range []string{"items", "additionalProperties", "not", "if", "then", "else"} {
		if v := s.Get(k); v.IsObject() && ref == nil {
			sub(v, k)
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		if v := s.Get(k); v.IsArray() && ref == nil {
			for i, p := range v.Array() {
				if !sub(p, k, strconv.Itoa(i)) {
					break
				}
			}
		}
	}
	return ref
}

func escapeKey(k string) string { return strings.ReplaceAll(k, "$", `\$`) }

// hasType reports whether a schema's type is or includes t.
func hasType(s gjson.Result, t string) bool {
	v := s.Get("type")
	if v.IsArray() {
		for _, e := range v.Array() {
			if e.Str == t {
				return true
			}
		}
		return false
	}
	return v.Str == t
}

// anthropicSchema checks input_schema. Sources: rig__anthropic_strict_schema_matrix_* (type is required and must be "object",
// additionalProperties of strict tools, circular references), "Tool use: implement tool use" (JSON Schema).
func anthropicSchema(s gjson.Result, path string, strict bool) *Refusal {
	at := path + ".input_schema"
	switch t := s.Get("type"); {
	case !s.Exists():
		return invalid("schema", at, "Field required")
	case !s.IsObject():
		return invalid("schema", at, "Input does not match the expected shape.")
	case !t.Exists():
		return invalid("schema", at+".type", "Field required")
	case t.Str != "object":
		return invalid("schema", at+".type", "Input should be 'object'")
	}
	for _, k := range []string{"oneOf", "allOf", "anyOf"} {
		if s.Get(k).Exists() {
			return invalid("schema", at, "input_schema does not support oneOf, allOf, or anyOf at the top level")
		}
	}
	if ref := walk(s, nil, func(s gjson.Result, _ []string) *Refusal { return keywords(s, at) }); ref != nil || !strict {
		return ref
	}
	return walk(s, nil, func(s gjson.Result, _ []string) *Refusal {
		if hasType(s, "object") && s.Get("additionalProperties").Raw != "false" {
			return invalid("schema", path, "For 'object' type, 'additionalProperties' must be explicitly set to false")
		}
		return nil
	})
}

// keywords checks that the words of JSON Schema draft 2020-12 have values of the right kind ("Tool use", Anthropic: the schema
// must be valid under that draft).
func keywords(s gjson.Result, at string) *Refusal {
	bad := func(k string) *Refusal {
		return invalid("schema", at, "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). %q", k)
	}
	for _, w := range []struct {
		words string
		ok    func(gjson.Result) bool
	}{
		{"properties", gjson.Result.IsObject},
		{"required enum anyOf oneOf allOf", gjson.Result.IsArray},
		{"description title pattern", isString},
	} {
		for _, k := range strings.Fields(w.words) {
			if v := s.Get(k); v.Exists() && !w.ok(v) {
				return bad(k)
			}
		}
	}
	if t := s.Get("type"); t.Exists() && !typeOK(t) {
		return bad("type")
	}
	return nil
}

var schemaTypes = names("object array string number integer boolean null")

func typeOK(t gjson.Result) bool {
	if t.IsArray() {
		for _, e := range t.Array() {
			if !schemaTypes[e.Str] {
				return false
			}
		}
		return len(t.Array()) > 0
	}
	return schemaTypes[t.Str]
}

// schemaPath writes a path as OpenAI does: ('properties', 'x').
func schemaPath(path []string) string {
	if len(path) == 0 {
		return "()"
	}
	return "('" + strings.Join(path, "', '") + "')"
}

// openAISchema checks the parameters of a function or the schema of an output. Sources: "Function calling" and "Structured
// outputs" (OpenAI: supported schemas), dd-trace-js__dd-trace_openai_openai_responses_post_c4a90328 (the error body).
func openAISchema(s gjson.Result, what, param, code string, strict bool) *Refusal {
	bad := func(format string, args ...any) *Refusal {
		return openAI("schema", param, code, "Invalid schema for %s: %s", what, fmt.Sprintf(format, args...))
	}
	if !s.IsObject() {
		return bad("schema must be an object")
	}
	if t := s.Get("type"); t.Str != "object" {
		got := t.Str
		if !t.Exists() {
			got = "None"
		}
		return bad(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, got)
	}
	if !s.Get("properties").Exists() && (strict || len(s.Map()) == 1) {
		return bad("In context=(), object schema missing properties.")
	}
	return walk(s, nil, func(s gjson.Result, path []string) *Refusal {
		if t := s.Get("type"); t.Exists() && !typeOK(t) {
			return bad("In context=%s, %s is not valid under any of the given schemas.", schemaPath(path), t.Raw)
		}
		if hasType(s, "array") && !s.Get("items").Exists() {
			return bad("In context=%s, array schema missing items.", schemaPath(path))
		}
		if !strict {
			return nil
		}
		return strictSchema(s, path, bad)
	})
}

func strictSchema(s gjson.Result, path []string, bad func(string, ...any) *Refusal) *Refusal {
	for _, k := range []string{"oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties"} {
		if s.Get(k).Exists() {
			return bad("In context=%s, '%s' is not permitted.", schemaPath(path), k)
		}
	}
	if !hasType(s, "object") {
		return nil
	}
	if s.Get("additionalProperties").Raw != "false" {
		return bad("In context=%s, 'additionalProperties' is required to be supplied and to be false.", schemaPath(path))
	}
	required := map[string]bool{}
	for _, r := range s.Get("required").Array() {
		required[r.Str] = true
	}
	var ref *Refusal
	s.Get("properties").ForEach(func(name, _ gjson.Result) bool {
		if !required[name.Str] {
			ref = bad("In context=%s, 'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.",
				schemaPath(path), name.Str)
		}
		return ref == nil
	})
	return ref
}

// geminiWords are the fields of Schema ("Generate content: Schema", Gemini API). JSON is parsed as protobuf: an unknown name is
// an error, and both spellings of a name are known.
var geminiWords = names(`type format title description nullable enum maxItems max_items minItems min_items properties required
	minProperties min_properties maxProperties max_properties minLength min_length maxLength max_length pattern example anyOf any_of
	propertyOrdering property_ordering default items minimum maximum`)

var geminiTypes = names("TYPE_UNSPECIFIED STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL")

// geminiSchema checks a schema that is sent in `parameters` or `responseSchema`.
func geminiSchema(s gjson.Result, at string) *Refusal {
	if !s.IsObject() {
		return google("schema", at, "Invalid value at '%s' (type.googleapis.com/google.ai.generativelanguage.v1beta.Schema), %s", at, s.Raw)
	}
	if k := geminiWords.unknown(s); k != "" {
		return unknownName(k, at)
	}
	t := s.Get("type")
	number := t.Type == gjson.Number && t.Num >= 0 && t.Num <= 7 // protobuf's JSON takes an enum by its number
	switch {
	case t.IsArray():
		return google("schema", at, `Invalid JSON payload received. Unknown name "type" at '%s': Proto field is not repeating, cannot start list.`, at)
	case t.Exists() && !number && !geminiTypes[strings.ToUpper(t.Str)]:
		return google("schema", at, "Invalid value at '%s.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), %s", at, t.Raw)
	}
	typ := strings.ToUpper(t.Str)
	if typ == "ARRAY" && !s.Get("items").Exists() {
		return google("schema", at, "* GenerateContentRequest.%s.items: missing field.", at)
	}
	if s.Get("enum").Exists() && typ != "STRING" && typ != "" {
		return google("schema", at, "* GenerateContentRequest.%s.enum: only allowed for STRING type", at)
	}
	return geminiSubschemas(s, at)
}

func geminiSubschemas(s gjson.Result, at string) *Refusal {
	props := s.Get("properties")
	if props.Exists() && !props.IsObject() {
		return google("schema", at, "Invalid value at '%s.properties'", at)
	}
	defined := props.Map()
	for i, r := range s.Get("required").Array() {
		if _, ok := defined[r.Str]; !ok {
			return google("schema", at, "* GenerateContentRequest.%s.required[%d]: property is not defined", at, i)
		}
	}
	var ref *Refusal
	props.ForEach(func(name, p gjson.Result) bool {
		ref = geminiSchema(p, fmt.Sprintf("%s.properties[%s]", at, name.Str))
		return ref == nil
	})
	if ref == nil && s.Get("items").Exists() {
		ref = geminiSchema(s.Get("items"), at+".items")
	}
	for _, k := range []string{"anyOf", "any_of"} {
		for i, p := range s.Get(k).Array() {
			if ref == nil {
				ref = geminiSchema(p, fmt.Sprintf("%s.any_of[%d]", at, i))
			}
		}
	}
	return ref
}

func unknownName(name, at string) *Refusal {
	where := ""
	if at != "" {
		where = " at '" + at + "'"
	}
	return google("unknown_field", at, `Invalid JSON payload received. Unknown name "%s"%s: Cannot find field.`, name, where)
}
