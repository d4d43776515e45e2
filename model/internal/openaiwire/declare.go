package openaiwire

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// Declared keeps the encoded declarations of tools and of the output schema from call to call of a run, since they are the same
// as a rule.
type Declared struct {
	// Open and Close stand around a tool's name, description and parameters. Strict says that strict is written also where it
	// is false.
	Open, Close string
	Strict      bool

	tools  []model.Tool
	b      []byte
	schema []byte
	output []byte
	strict bool
}

// Tools is the member of the body that declares tools, as ,"tools":[…], "" without any. Notes say what was lowered, once.
func (d *Declared) Tools(tools []model.Tool) (member []byte, notes []string) {
	if len(tools) == 0 {
		return nil, nil
	}
	if slices.EqualFunc(d.tools, tools, same) {
		return d.b, nil
	}
	b := []byte(`,"tools":[`)
	for i := range tools {
		t := &tools[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, d.Open...), t.Name)
		if t.Description != "" {
			b = wire.AppendString(append(b, `,"description":`...), t.Description)
		}
		schema, why := Parameters(t.Schema)
		strict := false
		if t.Strict {
			lowered, more, ok := Strict(schema)
			if why = append(why, more...); ok {
				schema, strict = lowered, true
			}
		}
		for _, w := range why {
			notes = append(notes, "tool "+t.Name+": "+w)
		}
		b = append(append(b, `,"parameters":`...), schema...)
		if strict || d.Strict {
			b = strconv.AppendBool(append(b, `,"strict":`...), strict)
		}
		b = append(b, d.Close...)
	}
	d.tools, d.b = slices.Clone(tools), append(b, ']')
	return d.b, notes
}

// same reports whether two tools are the same values; schemas never change, so the same bytes need not be compared.
func same(a, b model.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && sameBytes(a.Schema, b.Schema)
}

func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// Output is the schema of the answer, lowered to strict mode where that is possible. Notes say what was lowered, once.
func (d *Declared) Output(schema []byte) (out []byte, strict bool, notes []string) {
	if d.schema != nil && sameBytes(d.schema, schema) {
		return d.output, d.strict, nil
	}
	lowered, notes, ok := Strict(schema)
	for i := range notes {
		notes[i] = "output: " + notes[i]
	}
	if !ok {
		lowered = schema
	}
	d.schema, d.output, d.strict = schema, lowered, ok
	return lowered, ok, notes
}

// Parameters makes a schema that OpenAI takes for a function: an object with properties (else "object schema missing
// properties"), without alternatives at its root, each array with items. Everything else stays as it is.
func Parameters(schema []byte) (out []byte, notes []string) {
	root := gjson.ParseBytes(schema)
	if !root.IsObject() {
		return []byte(`{"type":"object","properties":{}}`), []string{"its schema is no object: any arguments are taken"}
	}
	l := &parameters{}
	l.object(root, true)
	return l.out, l.notes
}

type parameters struct {
	out   []byte
	notes []string
}

func (l *parameters) value(v gjson.Result) {
	switch {
	case v.IsObject():
		l.object(v, false)
	case v.IsArray():
		l.out = append(l.out, '[')
		first := true
		v.ForEach(func(_, v gjson.Result) bool {
			if !first {
				l.out = append(l.out, ',')
			}
			first = false
			l.value(v)
			return true
		})
		l.out = append(l.out, ']')
	default:
		l.out = append(l.out, v.Raw...)
	}
}

func (l *parameters) object(s gjson.Result, root bool) {
	start := len(l.out)
	l.out = append(l.out, '{')
	kind, properties, items := "", false, false
	s.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
			kind = v.Str
		case "properties":
			properties = true
		case "items", "prefixItems":
			items = true
		case "anyOf", "oneOf", "allOf", "enum", "not":
			if root {
				l.notes = append(l.notes, k.Str+" at the root of the schema is left out")
				return true
			}
		}
		l.member(start, k.Raw)
		switch k.Str {
		case "enum", "const", "default", "examples", "example", "required":
			l.out = append(l.out, v.Raw...) // data, no schemas
		default:
			l.value(v)
		}
		return true
	})
	if root && kind == "" {
		l.member(start, `"type"`)
		l.out = append(l.out, `"object"`...)
	}
	if root && !properties {
		l.member(start, `"properties"`)
		l.out = append(l.out, "{}"...)
	}
	if kind == "array" && !items {
		l.member(start, `"items"`)
		l.out = append(l.out, "{}"...)
	}
	l.out = append(l.out, '}')
}

func (l *parameters) member(start int, name string) {
	if len(l.out) > start+1 {
		l.out = append(l.out, ',')
	}
	l.out = append(append(l.out, name...), ':')
}
