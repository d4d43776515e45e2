package drill

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/ronda-go/ronda/tool"
)

// Example makes arguments that fit a JSON Schema, as one line of JSON; n makes two examples differ where the schema lets them. It tries
// what the schema itself offers first (const, enum, examples, default), then the smallest value of the type. The error says that the
// result does not fit, so that nobody mistakes a guess for an example.
func Example(schema json.RawMessage, n int) (string, error) {
	if len(schema) == 0 {
		return fmt.Sprintf(`{"drill": %d}`, n), nil
	}
	var doc any
	if err := json.Unmarshal(schema, &doc); err != nil {
		return "", err
	}
	g := generator{root: doc, n: n}
	v := g.value(doc, "", 0)
	out, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	s, err := tool.Compile(schema)
	if err != nil {
		return "", err
	}
	if err := s.Validate(out); err != nil {
		return "", fmt.Errorf("no example could be made from the schema (add \"examples\" to it): %w", err)
	}
	return string(out), nil
}

type generator struct {
	root any
	n    int
}

const maxDepth = 12

func (g generator) value(schema any, name string, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > maxDepth {
		return map[string]any{}
	}
	if ref, ok := s["$ref"].(string); ok {
		return g.value(g.resolve(ref), name, depth+1)
	}
	for _, k := range []string{"const", "default"} {
		if v, ok := s[k]; ok {
			return v
		}
	}
	for _, k := range []string{"examples", "enum"} {
		if list, ok := s[k].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list, ok := s[k].([]any); ok && len(list) > 0 {
			return g.value(g.notNull(list), name, depth+1)
		}
	}
	if list, ok := s["allOf"].([]any); ok {
		s = merged(s, list)
	}
	switch typeOf(s) {
	case "string":
		return g.text(s, name)
	case "integer", "number":
		return g.number(s)
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		list := []any{}
		for len(list) < int(numberOr(s["minItems"], 0)) {
			list = append(list, g.value(s["items"], name, depth+1))
		}
		return list
	}
	out := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		if k, ok := r.(string); ok {
			out[k] = g.value(props[k], k, depth+1)
		}
	}
	if len(out) == 0 {
		for k, p := range props { // something that makes two calls differ
			if t := typeOf2(p); t == "string" || t == "integer" || t == "number" {
				out[k] = g.value(p, k, depth+1)
				break
			}
		}
	}
	return out
}

func (g generator) notNull(list []any) any {
	for _, v := range list {
		if typeOf2(v) != "null" {
			return v
		}
	}
	return list[0]
}

func merged(s map[string]any, list []any) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		out[k] = v
	}
	props := map[string]any{}
	var required []any
	for _, part := range append([]any{s}, list...) {
		m, _ := part.(map[string]any)
		for k, v := range m {
			switch k {
			case "properties":
				for name, p := range v.(map[string]any) {
					props[name] = p
				}
			case "required":
				required = append(required, v.([]any)...)
			case "allOf":
			default:
				out[k] = v
			}
		}
	}
	delete(out, "allOf")
	out["properties"], out["required"] = props, required
	return out
}

func typeOf2(v any) string {
	m, _ := v.(map[string]any)
	return typeOf(m)
}

func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, v := range t {
			if name, ok := v.(string); ok && name != "null" {
				return name
			}
		}
	}
	return "object"
}

func (g generator) text(s map[string]any, name string) string {
	formats := map[string]string{"date": "2026-11-30", "date-time": "2026-11-30T12:00:00Z", "email": "drill@example.com", "uri": "https://example.com/drill",
		"uuid": "00000000-0000-4000-8000-000000000001", "time": "12:00:00Z", "ipv4": "192.0.2.1", "hostname": "example.com"}
	if f, ok := s["format"].(string); ok && formats[f] != "" {
		return formats[f]
	}
	if p, ok := s["pattern"].(string); ok {
		for _, guess := range []string{"2026-11-30", "DRILL-1", "drill", "1", "A1", "drill@example.com", "en", "es"} {
			if match(p, guess) {
				return guess
			}
		}
	}
	v := fmt.Sprintf("drill %d", g.n)
	if least := int(numberOr(s["minLength"], 0)); len(v) < least {
		v += strings.Repeat("x", least-len(v))
	}
	if most := int(numberOr(s["maxLength"], math.MaxInt32)); len(v) > most {
		v = v[:most]
	}
	return v
}

func (g generator) number(s map[string]any) any {
	v := float64(g.n + 1)
	least, most := numberOr(s["minimum"], math.Inf(-1)), numberOr(s["maximum"], math.Inf(1))
	if e := numberOr(s["exclusiveMinimum"], math.Inf(-1)); e >= least {
		least = e + 1
	}
	if e := numberOr(s["exclusiveMaximum"], math.Inf(1)); e <= most {
		most = e - 1
	}
	v = math.Min(math.Max(v, least), most)
	if m := numberOr(s["multipleOf"], 0); m > 0 {
		v = math.Ceil(v/m) * m
	}
	if typeOf(s) == "integer" {
		return int64(v)
	}
	return v
}

func numberOr(v any, def float64) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	return def
}

func (g generator) resolve(ref string) any {
	cur := g.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, ok := cur.(map[string]any)
		if !ok {
			return nil
		}
		cur = m[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]
	}
	return cur
}

func match(pattern, s string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(s)
}
