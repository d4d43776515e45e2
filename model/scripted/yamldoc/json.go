package yamldoc

import (
	"bytes"
	"encoding/json"
)

// JSON writes a node as compact JSON: keys in the order of the file, numbers as spelled there, nothing escaped for HTML.
func (n *Node) JSON() json.RawMessage { return n.appendJSON(nil) }

func (n *Node) appendJSON(b []byte) []byte {
	switch n.Kind {
	case Bool, Number:
		return append(b, n.Text...)
	case String:
		return appendString(b, n.Text)
	case List:
		b = append(b, '[')
		for i, v := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.appendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, f := range n.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, f.Name), ':')
			b = f.Value.appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// Any is the node as Go values: nil, bool, json.Number, string, []any, map[string]any.
func (n *Node) Any() any {
	switch n.Kind {
	case Bool:
		return n.Text == "true"
	case Number:
		return json.Number(n.Text)
	case String:
		return n.Text
	case List:
		out := make([]any, len(n.Items))
		for i, v := range n.Items {
			out[i] = v.Any()
		}
		return out
	case Map:
		out := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			out[f.Name] = f.Value.Any()
		}
		return out
	}
	return nil
}

func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
