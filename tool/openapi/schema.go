package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// converter makes JSON Schemas (draft 2020-12) of schemas of a document. What is referred to goes under $defs.
type converter struct {
	tree any            // the document
	drop string         // readOnly: members that are not sent; writeOnly: members that do not come back
	defs map[string]any // by name
	refs map[string]string
}

// maxDefs bounds what one tool's schema refers to.
const maxDefs = 400

func (c *converter) convert(ref *openapi3.SchemaRef) any {
	raw, err := json.Marshal(ref)
	if err != nil {
		return map[string]any{}
	}
	v, err := decode(raw)
	if err != nil {
		return map[string]any{}
	}
	return c.rewrite(v, 0)
}

// whole is a schema with the definitions it refers to.
func (c *converter) whole(v any) []byte {
	used := map[string]any{}
	c.reach(v, used)
	if m, ok := v.(map[string]any); ok && len(used) > 0 {
		m = maps.Clone(m)
		m["$defs"] = used
		v = m
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// reach collects the definitions that a schema refers to, those of an object that was taken apart left out.
func (c *converter) reach(v any, used map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/$defs/")
			if _, seen := used[name]; !seen && c.defs[name] != nil {
				used[name] = c.defs[name]
				c.reach(c.defs[name], used)
			}
		}
		for _, w := range v {
			c.reach(w, used)
		}
	case []any:
		for _, w := range v {
			c.reach(w, used)
		}
	}
}

// Words that hold schemas, and words of OpenAPI that JSON Schema does not have.
var (
	wordsOfOne  = []string{"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	wordsOfList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	wordsOfMap  = []string{"$defs", "dependentSchemas", "patternProperties", "properties"}
	foreign     = []string{"discriminator", "xml", "externalDocs", "example", "nullable", "readOnly", "writeOnly", "allowEmptyValue", "$schema", "$id", "$anchor", "$comment"}
)

const maxDepth = 64

func (c *converter) rewrite(v any, depth int) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v // true and false are schemas too
	}
	if depth > maxDepth {
		return map[string]any{}
	}
	if ref, ok := m["$ref"].(string); ok {
		return c.reference(ref, m)
	}
	c.dropMembers(m)
	for _, k := range wordsOfOne {
		if m[k] != nil {
			m[k] = c.rewrite(m[k], depth+1)
		}
	}
	for _, k := range wordsOfList {
		list, _ := m[k].([]any)
		for i := range list {
			list[i] = c.rewrite(list[i], depth+1)
		}
	}
	for _, k := range wordsOfMap {
		parts, _ := m[k].(map[string]any)
		for name := range parts {
			parts[name] = c.rewrite(parts[name], depth+1)
		}
	}
	older(m)
	for k := range m {
		if strings.HasPrefix(k, "x-") || slices.Contains(foreign, k) {
			delete(m, k)
		}
	}
	return m
}

// older says in today's words what OpenAPI 3.0 says in its own.
func older(m map[string]any) {
	if m["nullable"] == true {
		if t, ok := m["type"].(string); ok {
			m["type"] = []any{t, "null"}
		}
		if values, ok := m["enum"].([]any); ok && !slices.Contains(values, nil) {
			m["enum"] = append(values, nil)
		}
	}
	for _, side := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		if exclusive, ok := m[side[0]].(bool); ok {
			delete(m, side[0])
			if exclusive && m[side[1]] != nil {
				m[side[0]] = m[side[1]]
				delete(m, side[1])
			}
		}
	}
}

// dropMembers leaves out members that do not go this way.
func (c *converter) dropMembers(m map[string]any) {
	members, _ := m["properties"].(map[string]any)
	for name, v := range members {
		if s := c.follow(v); s == nil || s[c.drop] != true {
			continue
		}
		delete(members, name)
		if required, ok := m["required"].([]any); ok {
			m["required"] = slices.DeleteFunc(required, func(v any) bool { return v == name })
		}
	}
}

// follow is a schema of the document behind its references; nil where they lead nowhere.
func (c *converter) follow(v any) map[string]any {
	for range maxDepth {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		v = c.at(ref)
	}
	return nil
}

// reference puts what is referred to under $defs. Words beside a reference count, as since 3.1.
func (c *converter) reference(ref string, m map[string]any) any {
	name, known := c.refs[ref]
	if !known {
		target := c.at(ref)
		if target == nil || len(c.defs) >= maxDefs {
			return map[string]any{}
		}
		if c.refs == nil {
			c.refs, c.defs = map[string]string{}, map[string]any{}
		}
		name = c.name(ref)
		c.refs[ref], c.defs[name] = name, map[string]any{}
		c.defs[name] = c.rewrite(clone(target), 0)
	}
	out := map[string]any{"$ref": "#/$defs/" + name}
	for _, k := range []string{"description", "default"} {
		if m[k] != nil {
			out[k] = m[k]
		}
	}
	return out
}

func (c *converter) name(ref string) string {
	parts := strings.Split(ref, "/")
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, parts[len(parts)-1])
	for base, n := name, 2; c.defs[name] != nil; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// at follows a reference within the document (RFC 6901).
func (c *converter) at(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	v := c.tree
	for _, token := range strings.Split(pointer, "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch at := v.(type) {
		case map[string]any:
			v = at[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// clone copies a JSON value, so that the document stays as it is.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, w := range v {
			out[k] = clone(w)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, w := range v {
			out[i] = clone(w)
		}
		return out
	}
	return v
}

// object is a plain object: named members and nothing that speaks of the whole.
type object struct {
	members  map[string]any
	required []string
}

// plainObject takes an object apart; ok is false where it is more than its members.
func (c *converter) plainObject(v any) (o object, ok bool) {
	o.members = map[string]any{}
	return o, c.merge(&o, v, 0)
}

func (c *converter) merge(o *object, v any, depth int) bool {
	m, ok := v.(map[string]any)
	if !ok || depth > 8 {
		return false
	}
	if ref, ok := m["$ref"].(string); ok {
		return c.merge(o, c.defs[strings.TrimPrefix(ref, "#/$defs/")], depth+1)
	}
	for k := range m {
		switch k {
		case "type", "properties", "required", "allOf", "title", "description", "additionalProperties", "deprecated", "default", "examples":
		default:
			return false
		}
	}
	if t := m["type"]; t != nil && t != "object" || m["additionalProperties"] != nil && m["additionalProperties"] != false {
		return false
	}
	members, _ := m["properties"].(map[string]any)
	parts, _ := m["allOf"].([]any)
	if len(members) == 0 && len(parts) == 0 {
		return false
	}
	for name, s := range members {
		o.members[name] = s
	}
	required, _ := m["required"].([]any)
	for _, r := range required {
		if s, ok := r.(string); ok && !slices.Contains(o.required, s) {
			o.required = append(o.required, s)
		}
	}
	for _, p := range parts {
		if !c.merge(o, p, depth+1) {
			return false
		}
	}
	return true
}
