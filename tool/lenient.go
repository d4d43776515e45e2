package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ronda-go/ronda/loop"
)

// LenientInput makes a schema of arguments that somebody else wrote one that Compile takes. What Compile refuses in it is left
// out, so that more is allowed than the author meant and the other side has the last word; each note says what. A missing type
// becomes object. What cannot be mended becomes an object with anything in it.
func LenientInput(raw json.RawMessage) (json.RawMessage, []string) {
	out, notes := lenient(raw, func(m map[string]any) {
		if m["type"] == nil {
			m["type"] = "object"
		}
	})
	s, err := Compile(out)
	switch {
	case err == nil && s.object():
		return out, notes
	case err == nil:
		notes = append(notes, "the schema of the arguments is not of an object; any arguments are allowed")
	default:
		notes = append(notes, "the schema of the arguments cannot be used, any are allowed: "+shorten(err.Error(), maxProblemBytes))
	}
	return json.RawMessage(`{"type":"object"}`), notes
}

// LenientOutput is LenientInput for the schema of a result; what cannot be mended becomes nil.
func LenientOutput(raw json.RawMessage) (json.RawMessage, []string) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	out, notes := lenient(raw, func(map[string]any) {})
	if _, err := Compile(out); err != nil {
		return nil, append(notes, "the schema of the result cannot be used and is left out: "+shorten(err.Error(), maxProblemBytes))
	}
	return out, notes
}

func lenient(raw json.RawMessage, top func(map[string]any)) (json.RawMessage, []string) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		raw = json.RawMessage(`{}`)
	}
	canonical, err := loop.Canonical(raw)
	if err != nil {
		return raw, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(canonical))
	if err != nil {
		return raw, nil
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return raw, nil
	}
	top(m)
	var w softener
	w.schema("", m, 0)
	out, err := encode(m)
	if err != nil {
		return raw, nil
	}
	return out, w.notes
}

// softener walks over a schema and takes out what cannot be compiled.
type softener struct{ notes []string }

// maxSchemaDepth bounds the walk; deeper parts are left as they are.
const maxSchemaDepth = 64

func (w *softener) note(path, what string) {
	if path == "" {
		path = "the schema"
	}
	w.notes = append(w.notes, shorten(strings.TrimPrefix(path, "/")+": "+what, maxProblemBytes))
}

// Keywords that hold schemas.
var (
	schemaWords = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames",
		"then", "unevaluatedItems", "unevaluatedProperties"}
	schemaLists = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	schemaMaps  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

func (w *softener) schema(path string, v any, depth int) {
	m, ok := v.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return
	}
	w.words(path, m)
	for _, k := range schemaWords {
		w.schema(path+"/"+k, m[k], depth+1)
	}
	for _, k := range schemaLists {
		list, _ := m[k].([]any)
		for i, s := range list {
			w.schema(fmt.Sprintf("%s/%s/%d", path, k, i), s, depth+1)
		}
	}
	for _, k := range schemaMaps {
		parts, _ := m[k].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			w.schema(path+"/"+k+"/"+name, parts[name], depth+1)
		}
	}
}

// words takes out words of one schema.
func (w *softener) words(path string, m map[string]any) {
	if p, ok := m["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			delete(m, "pattern")
			w.note(path, "the pattern "+p+" is not checked: "+err.Error())
		}
	}
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			if _, err := regexp.Compile(p); err != nil {
				delete(patterns, p)
				delete(m, "additionalProperties") // it spoke of the members that no pattern fits
				delete(m, "unevaluatedProperties")
				w.note(path, "the pattern "+p+" of members is not checked: "+err.Error())
			}
		}
	}
	if ref, ok := m["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
		delete(m, "$ref")
		w.note(path, "the reference to "+ref+" is not followed")
	}
	if s, ok := m["$schema"].(string); ok && !knownDraft(s) {
		delete(m, "$schema")
		w.note(path, "the dialect "+s+" is not known and is read as draft 2020-12")
	}
}

func knownDraft(s string) bool {
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://"), "#")
	return slices.Contains([]string{"json-schema.org/draft-04/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema",
		"json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema"}, s)
}
