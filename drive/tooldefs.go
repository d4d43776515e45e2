package drive

import (
	"encoding/json"
	"fmt"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// boundTool is a tool with its definition digest and compiled schema.
type boundTool struct {
	tool   tool.Tool
	def    tool.Def
	digest string
	schema *tool.Schema
	child  *Child

	builtin bool // the driver does its work
}

// ToolDefinition is the recorded definition of one tool.
type ToolDefinition struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Input       json.RawMessage    `json:"input,omitempty"`
	Effect      loop.Effect        `json:"effect"`
	Label       string             `json:"label,omitempty"`
	Approval    loop.Verdict       `json:"approval,omitempty"`
	Destination string             `json:"destination,omitempty"`
	Requires    []tool.Requirement `json:"requires,omitempty"`
	Grounded    []string           `json:"grounded,omitempty"`
	Digest      string             `json:"digest"`
}

func (c *compiled) bindTools(p *problems) (specs []loop.ToolSpec) {
	a := c.agent
	bind := func(t tool.Tool, def tool.Def, child *Child) {
		field := fmt.Sprintf("Tools[%s]", def.Name)
		switch {
		case !toolName.MatchString(def.Name):
			p.add(field, "is no name that every provider takes. Use letters, digits, _ and -, at most 64")
		case c.tools[def.Name] != nil || a.Finish && def.Name == loop.FinishTool:
			p.add(field, "the name is taken. Names of tools are unique; finish is the built-in one")
			return
		}
		schema, err := verify(t, def, child)
		if err != nil {
			p.add(field, "%v", err)
		}
		if len(def.Input) == 0 {
			def.Input = anyObject
		}
		switch def.Effect {
		case "", loop.Read, loop.Idempotent, loop.Once:
		default:
			p.add(field+".Effect", "%q is no effect. Use read, idempotent or once", def.Effect)
		}
		switch def.Approval {
		case "", loop.Allow, loop.Ask, loop.Deny:
		default:
			p.add(field+".Approval", "%q is no verdict. Use allow, ask or deny", def.Approval)
		}
		switch def.OnReject {
		case "", "tell", "stop":
		default:
			p.add(field+".OnReject", "%q is unknown. Use tell or stop", def.OnReject)
		}
		b := &boundTool{tool: t, def: def, schema: schema, child: child, digest: toolDigest(def)}
		c.tools[def.Name] = b
		c.declare = append(c.declare, model.Tool{Name: def.Name, Description: def.Description, Schema: def.Input})
		specs = append(specs, b.spec())
	}
	for _, t := range a.Tools {
		if child, ok := t.(interface{ Child() Child }); ok {
			ch := child.Child()
			bind(t, childDef(ch), &ch)
			continue
		}
		bind(t, t.Def(), nil)
	}
	for i := range a.Children {
		bind(childTool{a.Children[i]}, childDef(a.Children[i]), &a.Children[i])
	}
	if a.readsArtifacts() && c.tools[ReadArtifact] == nil {
		bind(artifactReader{}, artifactReader{}.Def(), nil)
		c.tools[ReadArtifact].builtin = true
	}
	for _, b := range c.tools {
		c.requires = c.requires || len(b.def.Requires) > 0
		for _, r := range b.def.Requires {
			if c.tools[r.Tool] == nil {
				p.add("Tools["+b.def.Name+"].Requires", "there is no tool %q", r.Tool)
			}
		}
	}
	return specs
}

// verify finds what is wrong with a tool before it is ever called, and compiles its schema.
func verify(t tool.Tool, def tool.Def, child *Child) (*tool.Schema, error) {
	if child == nil {
		return tool.Verify(t)
	}
	return tool.Compile(def.Input)
}

// toolDigest is the fingerprint of what a tool does: schema, effect, label, destination. Its description is left out: a better wording
// does not make it another tool, and the change is on record all the same, with the digest of the agent's whole definition.
func toolDigest(d tool.Def) string {
	raw, err := json.Marshal(struct {
		Name, Label, Destination string
		Input                    json.RawMessage
		Effect                   loop.Effect
	}{d.Name, d.Label, d.Destination, d.Input, d.Effect})
	if err != nil {
		raw = []byte(d.Name)
	}
	return loop.Fingerprint(raw)[:16]
}

func (b *boundTool) spec() loop.ToolSpec {
	s := loop.ToolSpec{Name: b.def.Name, Digest: b.digest, Effect: b.def.Effect, Label: b.def.Label, OnReject: b.def.OnReject,
		Timeout: toMicros(b.def.Timeout), Retries: int64(b.def.Retries), CallsMax: int64p(b.def.CallsMax), Check: b.def.Check}
	if b.def.Poll != nil {
		s.Poll = &loop.Poll{CallsMax: int64p(b.def.Poll.CallsMax), Interval: toMicros(b.def.Poll.Interval)}
	}
	if b.child != nil {
		s.Child, s.Handoff = true, b.child.Handoff
		var p problems
		l := b.child.Limits.build(&p, "", false)
		if l != (loop.Limits{}) {
			s.Limits = &l
		}
	}
	return s
}
