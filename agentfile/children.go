package agentfile

import (
	"slices"
	"strconv"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

type childNode struct {
	n     *node
	child drive.Child
}

// child reads an agent as a tool; the agent itself is read when this one is complete.
func (r *reader) child(n *node) {
	c := drive.Child{}
	keys := yamldoc.Keys{
		"agent":    func(*node) {},
		"approval": func(n *node) { c.Approval = r.verdict(n) },
		"handoff":  func(n *node) { c.Handoff = r.p.Bool(n) },
		"limits":   func(n *node) { c.Limits = r.limits(n, runLimits) },
	}
	r.named(keys, &c.Name, &c.Description, &c.Input)
	r.p.Object(n, keys)
	r.childNodes = append(r.childNodes, childNode{n, c})
}

// maxAbove bounds how deep agents call agents.
const maxAbove = 8

func (r *reader) children() {
	for _, c := range r.childNodes {
		n := c.n.Get("agent")
		if len(r.above) >= maxAbove {
			r.p.Add(n, "agents call agents deeper than "+strconv.Itoa(maxAbove), "")
			return
		}
		o := r.o
		o.NoModel, o.File, o.Name = true, r.p.File, c.child.Name
		above := r.above
		if n.Kind != yamldoc.String {
			above = append(slices.Clone(above), "") // inside this file
		}
		before := r.p.Len()
		agent, file := readOrLoad(r.p, n, r.f.Dir, o, above)
		if r.p.Len() > before {
			continue
		}
		r.inherit(n, agent, file)
		if c.child.Name == "" {
			r.childName(n, &c.child, agent.Name)
		}
		c.child.Agent = agent
		r.a.Children = append(r.a.Children, c.child)
		r.f.Children = append(r.f.Children, file)
	}
}

// childName gives a child without a name of its own the agent's.
func (r *reader) childName(n *node, c *drive.Child, name string) {
	c.Name = name
	switch first, twice := r.names[name]; {
	case !toolName.MatchString(name):
		r.p.Add(n, strconv.Quote(name)+" is no name of a tool", "write name: beside agent:")
	case twice:
		r.p.Add(n, strconv.Quote(name)+" is there twice", "the first is on line "+strconv.Itoa(first.Line)+"; write name: beside agent:")
	default:
		r.names[name] = n
	}
}

// inherit gives a child without a model and a script its parent's model.
func (r *reader) inherit(n *node, child *drive.Agent, file *File) {
	switch {
	case child.Model != nil:
		return
	case r.o.Scripted, file.Model == "" && r.f.Script != nil && r.f.Model == "":
		r.p.Add(n, "has no script, and its parent's answers are scripted", "write a script: for this agent too")
		return
	case file.Model != "":
		return
	}
	child.Model, file.Model, file.BaseURL = r.a.Model, r.f.Model, r.f.BaseURL
	if child.Options == nil {
		child.Options = r.a.Options
	}
}
