package agentfile

import (
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

// sideNode is a model that writes summaries or judges answers.
type sideNode struct {
	n       *node
	purpose string
	ref     string
	script  *scripted.Script
	set     func(model.Model)
}

func (r *reader) judge(n *node) *drive.Judge {
	j := &drive.Judge{}
	s := sideNode{n: n, purpose: loop.PurposeJudge, set: func(m model.Model) { j.Model = m }}
	r.p.Object(n, yamldoc.Keys{
		"model":        func(n *node) { s.ref = r.modelRef(n) },
		"script":       func(n *node) { s.script = r.readScript(n) },
		"instructions": func(n *node) { j.Instructions = r.text(n) },
		"calls":        func(n *node) { j.Calls = int(r.positive(n)) },
		"price":        func(n *node) { j.Price = r.price(n) },
	})
	if n.Kind == yamldoc.Map && n.Get("model") == nil && n.Get("script") == nil {
		r.p.Add(n, "model is missing", "write model: anthropic/claude-sonnet-4-5, or a script:")
	}
	r.sides = append(r.sides, s)
	return j
}

// makeSides makes the models that work beside the agent's own. Where answers are scripted, a summary without a script is left to the rule
// that needs no model.
func (r *reader) makeSides() {
	for _, s := range r.sides {
		switch {
		case r.p.Len() > 0:
			return
		case s.script != nil && (r.o.Scripted || s.ref == "" || s.ref == "scripted"):
			m, err := r.o.scriptModel(s.script, r.a.Name+"/"+s.purpose)
			if err != nil {
				r.p.Add(s.n, err.Error(), "")
				continue
			}
			s.set(m)
		case s.ref == "scripted", r.o.Scripted && s.purpose == loop.PurposeJudge:
			r.p.Add(s.n, "script is missing, and the answers are to be scripted", "write script: beside the model")
		case s.ref != "":
			if m := r.make(s.n, s.ref, ""); m != nil {
				s.set(m)
			}
		}
	}
}
