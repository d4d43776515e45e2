package agentfile

import (
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
)

// schemaKind says what a schema is of.
type schemaKind int

const (
	anySchema schemaKind = iota
	objectSchema
)

// schema reads a JSON Schema and compiles it, so that a bad one is found here and not in the middle of a run.
func (r *reader) schema(n *node, kind schemaKind) []byte {
	if n.Kind != yamldoc.Map {
		r.p.Add(n, "want a JSON Schema (a map), not "+n.Kind.String(), "write {type: object, properties: {…}}")
		return nil
	}
	raw := n.JSON()
	if _, err := tool.Compile(raw); err != nil {
		r.p.Add(n, "is no JSON Schema: "+err.Error(), "")
		return nil
	}
	if t := n.Get("type"); kind == objectSchema && t != nil && t.Text != "object" {
		r.p.Add(t, "arguments are an object", "write type: object")
	}
	return raw
}
