package wire

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Schema lowers JSON Schemas for a provider that knows only some keywords. What it drops is checked by the driver all the
// same, so the model loses a hint and no rule is lost.
type Schema struct {
	Known   string // keywords that stay, each between spaces
	Formats string // values of "format" that stay, each between spaces; "": all
	Closed  bool   // objects with properties get "additionalProperties": false
	Enum    bool   // "const" becomes an "enum" of one
	AnyOf   bool   // "oneOf" becomes "anyOf"
}

// annotations say nothing about what is valid: nobody needs to hear that they were dropped.
const annotations = " $schema $id $anchor $comment title default examples example deprecated readOnly writeOnly discriminator xml externalDocs "

func listed(list, word string) bool { return strings.Contains(list, " "+word+" ") }

// Lower rewrites a schema, member by member in its own order, and says which keywords it dropped (sorted). The schema must be
// valid JSON (Valid).
func (s *Schema) Lower(schema []byte) (out []byte, dropped []string) {
	out = s.lower(nil, gjson.ParseBytes(schema), &dropped)
	slices.Sort(dropped)
	return out, slices.Compact(dropped)
}

func (s *Schema) lower(dst []byte, v gjson.Result, dropped *[]string) []byte {
	if !v.IsObject() {
		return append(dst, v.Raw...)
	}
	isRef := v.Get("$ref").Exists()
	open := true // no additionalProperties was written
	dst = append(dst, '{')
	v.ForEach(func(key, value gjson.Result) bool {
		name := key.Str
		switch {
		case name == "const" && s.Enum && !isRef:
			dst = member(dst, "enum")
			dst = append(append(append(dst, '['), value.Raw...), ']')
			return true
		case name == "oneOf" && s.AnyOf && !isRef && !v.Get("anyOf").Exists():
			name = "anyOf"
		case !listed(s.Known, name), isRef && !strings.HasPrefix(name, "$"),
			name == "format" && s.Formats != "" && !listed(s.Formats, value.Str):
			if !listed(annotations, name) {
				*dropped = append(*dropped, name)
			}
			return true
		case name == "additionalProperties":
			if s.Closed && v.Get("properties").IsObject() && value.Raw != "false" {
				return true // closed below
			}
			open = false
		}
		dst = s.keyword(member(dst, name), name, value, dropped)
		return true
	})
	if s.Closed && open && (v.Get("type").Str == "object" || v.Get("properties").IsObject()) {
		dst = append(member(dst, "additionalProperties"), "false"...)
	}
	return append(dst, '}')
}

func member(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(AppendString(dst, name), ':')
}

// keyword writes the value of a keyword, and lowers the schemas in it.
func (s *Schema) keyword(dst []byte, name string, v gjson.Result, dropped *[]string) []byte {
	switch name {
	case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
		if !v.IsObject() {
			break
		}
		dst = append(dst, '{')
		v.ForEach(func(key, value gjson.Result) bool {
			dst = s.lower(member(dst, key.Str), value, dropped)
			return true
		})
		return append(dst, '}')
	case "anyOf", "oneOf", "allOf", "prefixItems":
		if !v.IsArray() {
			break
		}
		dst = append(dst, '[')
		for i, value := range v.Array() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s.lower(dst, value, dropped)
		}
		return append(dst, ']')
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties":
		return s.lower(dst, v, dropped)
	}
	return append(dst, v.Raw...)
}
