package agentfile

import (
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/policy"
)

// policy reads rules: a list of them, or a map that has a default too.
func (r *reader) policy(n *node) {
	before := r.p.Len()
	rules := policy.Rules{}
	list := func(n *node) { r.p.List(n, func(n *node) { rules.Rules = append(rules.Rules, r.rule(n)) }) }
	if n.Kind == yamldoc.List {
		list(n)
	} else {
		r.p.Object(n, yamldoc.Keys{
			"rules":   list,
			"default": func(n *node) { rules.Default = r.verdict(n) },
		})
	}
	if r.p.Len() > before {
		return
	}
	if err := rules.Validate(); err != nil {
		r.p.Add(n, err.Error(), "")
		return
	}
	r.a.Policy = rules
}

func (r *reader) rule(n *node) policy.Rule {
	u := policy.Rule{}
	r.p.Object(n, yamldoc.Keys{
		"name":         func(n *node) { u.Name = r.p.Name(n) },
		"tools":        func(n *node) { u.Tools = r.oneOrMore(n) },
		"labels":       func(n *node) { u.Labels = r.oneOrMore(n) },
		"destinations": func(n *node) { u.Destinations = r.oneOrMore(n) },
		"agents":       func(n *node) { u.Agents = r.oneOrMore(n) },
		"effects": func(n *node) {
			r.each(n, func(n *node) { u.Effects = append(u.Effects, r.effect(n)) })
		},
		"args":     func(n *node) { u.Args = r.patterns(n) },
		"verdict":  func(n *node) { u.Verdict = r.verdict(n) },
		"reason":   func(n *node) { u.Reason = r.p.String(n) },
		"override": func(n *node) { u.Override = r.p.Bool(n) },
	})
	r.needs(n, "verdict")
	return u
}

func (r *reader) effect(n *node) loop.Effect {
	return loop.Effect(r.p.OneOf(n, "an effect", "read", "idempotent", "once"))
}

// each reads a list, or the one thing that stands for a list of one.
func (r *reader) each(n *node, read func(*node)) {
	if n.Kind == yamldoc.List {
		r.p.List(n, read)
		return
	}
	read(n)
}

func (r *reader) oneOrMore(n *node) (out []string) {
	r.each(n, func(n *node) { out = append(out, r.p.Name(n)) })
	return out
}

func (r *reader) patterns(n *node) map[string]string {
	if n.Kind != yamldoc.Map {
		r.p.Add(n, "want a map from an argument to a pattern, not "+n.Kind.String(), `write {path: "/tmp/*"}`)
		return nil
	}
	out := map[string]string{}
	for _, f := range n.Fields {
		if f.Name == "" {
			r.p.Add(f.Key, "an argument has no name", "")
		}
		out[f.Name] = r.p.Scalar(f.Value)
	}
	return out
}
