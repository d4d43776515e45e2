package gemini

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/model/wire"
)

// args builds arguments that come as values at JSON paths, in the order in which they come.
type args struct {
	root  node
	nodes int
}

// maxNodes bounds what paths may make, so that an index of a billion makes nothing.
const maxNodes = 100_000

// node is a value under way: an object, an array, a text that grows, or JSON that was whole.
type node struct {
	names []string // object
	kids  []*node  // of the object or the array
	kind  byte     // 0 nothing yet, '{', '[', '"', 'r' for raw
	text  []byte
}

// begin takes arguments that were there before the pieces.
func (a *args) begin(v gjson.Result) { a.fill(&a.root, v) }

func (a *args) fill(n *node, v gjson.Result) {
	a.nodes++
	switch {
	case v.IsObject():
		n.kind = '{'
		v.ForEach(func(k, x gjson.Result) bool {
			kid := &node{}
			n.names, n.kids = append(n.names, k.Str), append(n.kids, kid)
			a.fill(kid, x)
			return true
		})
	case v.IsArray():
		n.kind = '['
		v.ForEach(func(_, x gjson.Result) bool {
			kid := &node{}
			n.kids = append(n.kids, kid)
			a.fill(kid, x)
			return true
		})
	case v.Type == gjson.String:
		n.kind, n.text = '"', []byte(v.Str)
	case v.Raw != "":
		n.kind, n.text = 'r', []byte(v.Raw)
	}
}

// set applies one partialArg: {"jsonPath": "$.a[0].b", "stringValue" | "numberValue" | "boolValue" | "nullValue": …}. Texts at
// the same path are joined.
func (a *args) set(v gjson.Result) {
	n := a.at(v.Get("jsonPath").Str)
	if n == nil {
		return
	}
	v.ForEach(func(k, x gjson.Result) bool {
		switch k.Str {
		case "stringValue":
			if n.kind != '"' {
				*n = node{kind: '"'}
			}
			n.text = append(n.text, x.Str...)
		case "numberValue", "boolValue":
			*n = node{kind: 'r', text: []byte(x.Raw)}
		case "nullValue":
			*n = node{kind: 'r', text: []byte("null")}
		}
		return true
	})
}

// at walks a path of .name, ['name'] and [index], and makes what is missing. It is nil for a path that it cannot read or that
// leads nowhere near.
func (a *args) at(path string) *node {
	n := &a.root
	path = strings.TrimPrefix(path, "$")
	for path != "" && n != nil {
		switch {
		case path[0] == '.':
			path = path[1:]
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			n, path = a.member(n, path[:end]), path[end:]
		case len(path) > 3 && path[0] == '[' && (path[1] == '\'' || path[1] == '"'):
			name, rest, ok := strings.Cut(path[2:], string(path[1])+"]")
			if !ok {
				return nil
			}
			n, path = a.member(n, name), rest
		case path[0] == '[':
			digits, rest, ok := strings.Cut(path[1:], "]")
			i, err := strconv.Atoi(digits)
			if !ok || err != nil {
				return nil
			}
			n, path = a.element(n, i), rest
		default:
			return nil
		}
	}
	return n
}

func (a *args) member(n *node, name string) *node {
	if n.kind != '{' {
		*n = node{kind: '{'}
	}
	for i, have := range n.names {
		if have == name {
			return n.kids[i]
		}
	}
	if a.nodes++; a.nodes > maxNodes {
		return nil
	}
	kid := &node{}
	n.names, n.kids = append(n.names, name), append(n.kids, kid)
	return kid
}

func (a *args) element(n *node, i int) *node {
	if n.kind != '[' {
		*n = node{kind: '['}
	}
	if i < 0 || i >= len(n.kids) && a.nodes+i-len(n.kids) >= maxNodes {
		return nil
	}
	for len(n.kids) <= i {
		a.nodes++
		n.kids = append(n.kids, &node{})
	}
	return n.kids[i]
}

func (a *args) json() []byte {
	if a.root.kind != '{' {
		return []byte("{}")
	}
	return a.root.append(nil)
}

func (n *node) append(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, kid := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = kid.append(append(wire.AppendString(dst, n.names[i]), ':'))
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, kid := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = kid.append(dst)
		}
		return append(dst, ']')
	case '"':
		return wire.AppendString(dst, string(n.text))
	case 'r':
		return append(dst, n.text...)
	}
	return append(dst, "null"...)
}
