package openaiwire

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/model/wire"
)

// Strict turns a JSON Schema into the subset that OpenAI's strict mode takes
// (https://platform.openai.com/docs/guides/structured-outputs): objects are closed, each property is required, and some keywords
// do not exist. Keywords that only narrow values are left out, with a note: the loop checks the answer against the whole schema
// anyway. ok is false, with the reason as the last note, where the subset cannot say the same: the schema is then to be declared
// without strict. Members keep their order, which is the order in which the model writes them.
func Strict(schema []byte) (lowered []byte, notes []string, ok bool) {
	l := &lowering{}
	root := gjson.ParseBytes(schema)
	switch {
	case !wire.Valid(schema) || !root.IsObject():
		l.failed("", "it is no object")
	case root.Get("anyOf").Exists() || root.Get("type").Str != "object":
		l.failed("", "its root is no plain object")
	default:
		l.schema(root, "")
	}
	if l.fail != "" {
		l.out, l.notes = nil, append(l.notes, l.fail)
	}
	return l.out, l.notes, l.fail == ""
}

type lowering struct {
	out   []byte
	notes []string
	fail  string
	depth int
}

func (l *lowering) failed(path, why string) {
	if l.fail == "" {
		l.fail = "not strict: " + where(path) + why
	}
}

func where(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// narrowing keywords only take values away.
var narrowing = map[string]bool{
	"$schema": true, "$id": true, "$comment": true, "default": true, "examples": true, "deprecated": true, "readOnly": true,
	"writeOnly": true, "minLength": true, "maxLength": true, "uniqueItems": true, "minProperties": true, "maxProperties": true,
	"contains": true, "minContains": true, "maxContains": true, "propertyNames": true, "contentEncoding": true, "contentMediaType": true,
}

// plainWords take no schema below them and stay as they are.
var plainWords = map[string]bool{
	"type": true, "description": true, "title": true, "enum": true, "const": true, "pattern": true, "format": true, "minimum": true,
	"maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true, "minItems": true, "maxItems": true,
	"$ref": true, "required": true,
}

func (l *lowering) schema(s gjson.Result, path string) {
	if l.depth++; l.depth > 10 {
		l.failed(path, "it is nested more than ten deep")
	}
	defer func() { l.depth-- }()
	if !s.IsObject() {
		l.failed(path, "true and false are no schemas there")
	}
	if l.fail != "" {
		return
	}
	if s.Get("type").Str == "object" && !l.closed(s, path) {
		return
	}
	l.out = append(l.out, '{')
	first := true
	s.ForEach(func(k, v gjson.Result) bool {
		switch word := k.Str; {
		case narrowing[word]:
			l.notes = append(l.notes, "strict: "+where(path)+word+" is left out")
			return true
		case word == "additionalProperties":
			return true
		case plainWords[word], word == "properties", word == "items", word == "anyOf", word == "$defs", word == "definitions":
			if !first {
				l.out = append(l.out, ',')
			}
			first = false
			l.out = append(append(l.out, k.Raw...), ':')
			l.word(word, v, path)
		default:
			l.failed(path, word+" does not exist there")
		}
		return l.fail == ""
	})
	if s.Get("type").Str == "object" {
		l.out = append(l.out, `,"additionalProperties":false`...)
	}
	l.out = append(l.out, '}')
}

func (l *lowering) word(word string, v gjson.Result, path string) {
	switch word {
	case "properties", "$defs", "definitions":
		l.members(v, path)
	case "items":
		l.schema(v, path+"[]")
	case "anyOf":
		l.list(v, path)
	default:
		l.out = append(l.out, v.Raw...)
	}
}

// closed checks that every property of an object is required and that it has no others.
func (l *lowering) closed(s gjson.Result, path string) bool {
	if a := s.Get("additionalProperties"); a.Exists() && a.Type != gjson.False {
		l.failed(path, "additionalProperties is not false")
		return false
	}
	required := map[string]bool{}
	s.Get("required").ForEach(func(_, v gjson.Result) bool {
		required[v.Str] = true
		return true
	})
	properties := s.Get("properties")
	if !properties.Exists() {
		l.failed(path, "an object without properties")
		return false
	}
	properties.ForEach(func(k, _ gjson.Result) bool {
		if !required[k.Str] {
			l.failed(strings.TrimPrefix(path+"."+k.Str, "."), "it is optional")
		}
		return l.fail == ""
	})
	if l.fail == "" && !s.Get("required").Exists() {
		l.failed(path, "an object without properties")
	}
	return l.fail == ""
}

func (l *lowering) members(v gjson.Result, path string) {
	l.out = append(l.out, '{')
	first := true
	v.ForEach(func(k, v gjson.Result) bool {
		if !first {
			l.out = append(l.out, ',')
		}
		first = false
		l.out = append(append(l.out, k.Raw...), ':')
		l.schema(v, strings.TrimPrefix(path+"."+k.Str, "."))
		return l.fail == ""
	})
	l.out = append(l.out, '}')
}

func (l *lowering) list(v gjson.Result, path string) {
	l.out = append(l.out, '[')
	first := true
	v.ForEach(func(_, v gjson.Result) bool {
		if !first {
			l.out = append(l.out, ',')
		}
		first = false
		l.schema(v, path)
		return l.fail == ""
	})
	l.out = append(l.out, ']')
}
