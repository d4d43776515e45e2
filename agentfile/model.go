package agentfile

import (
	"fmt"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/command"
	"github.com/ronda-go/ronda/tool/http"
)

// modelRef reads provider/model. In an agent file scripted needs no name.
func (r *reader) modelRef(n *node) string {
	s := r.p.String(n)
	if s == "scripted" {
		return s
	}
	if _, _, err := model.SplitRef(s); err != nil && n.Kind == yamldoc.String {
		r.p.Add(n, fmt.Sprintf("%q is no model", s), "write provider/model, such as anthropic/claude-sonnet-4-5")
	}
	return s
}

func (r *reader) baseURL(n *node) string { return r.url(n) }

// model finds the agent's model: of its script, or of its reference. Nothing is made where something is wrong already.
func (r *reader) model(optional bool) {
	hasScript := r.f.Script != nil || r.root.Get("script") != nil
	isScript := r.f.Model == "" || r.f.Model == "scripted"
	switch {
	case hasScript && (r.o.Scripted || isScript):
		if r.p.Len() > 0 {
			return
		}
		m, err := r.o.scriptModel(r.f.Script, r.a.Name)
		if err != nil {
			r.p.Add(r.root, err.Error(), "")
		}
		r.a.Model = m
	case r.f.Model == "scripted", r.o.Scripted && !optional:
		r.p.Add(r.root, "script is missing, and the answers are to be scripted", "write script: ./script.yaml or name one on the command line")
	case r.o.Scripted: // a child: it inherits, or is told that it cannot
	case r.f.Model != "":
		r.a.Model = r.make(r.root.Get("model"), r.f.Model, r.f.BaseURL)
	case !optional && r.root.Get("model") == nil:
		r.p.Add(r.root, "model is missing", "write model: anthropic/claude-sonnet-4-5, or a script:")
	}
}

// make asks the hook for a model; without one it is nil.
func (r *reader) make(n *node, ref, baseURL string) model.Model {
	if r.o.Model == nil || r.o.Scripted || ref == "" || r.p.Len() > 0 {
		return nil
	}
	m, err := r.o.Model(ref, baseURL, r.a.Options)
	if err != nil {
		r.p.Add(n, err.Error(), "")
		return nil
	}
	return m
}

func (r *reader) fallback(n *node) {
	f := drive.Fallback{}
	ref, base := "", ""
	at := n
	if n.Kind == yamldoc.Map {
		r.p.Object(n, yamldoc.Keys{
			"model":    func(n *node) { ref, at = r.modelRef(n), n },
			"base_url": func(n *node) { base = r.baseURL(n) },
			"classes": func(n *node) {
				r.p.List(n, func(n *node) {
					f.Classes = append(f.Classes, loop.Class(r.p.OneOf(n, "a class of model errors", "transient", "fatal", "invalid")))
				})
			},
		})
		r.needs(n, "model")
	} else {
		ref = r.modelRef(n)
	}
	if f.Model = r.make(at, ref, base); f.Model != nil {
		r.a.Fallbacks = append(r.a.Fallbacks, f)
	}
}

func (o *Options) scriptModel(s *scripted.Script, agent string) (model.Model, error) {
	if o.ScriptModel != nil {
		return o.ScriptModel(s, agent)
	}
	return scripted.New(s, scripted.Options{Name: agent}), nil
}

// makeTool makes a tool in its own way, by the hook where there is one.
func (o *Options) makeTool(s ToolSpec) (tool.Tool, error) {
	switch {
	case s.Command != nil && o.Command != nil:
		return o.Command(s)
	case s.Command != nil:
		return command.New(command.Spec{
			Def: s.Def, Command: s.Command.Args, Dir: s.Dir, Env: s.Command.Env, InheritEnv: s.Command.InheritEnv,
			Check: s.Command.Check,
		})
	case s.HTTP != nil && o.HTTP != nil:
		return o.HTTP(s)
	case s.HTTP != nil:
		return http.New(http.Spec{Def: s.Def, Method: s.HTTP.Method, URL: s.HTTP.URL, Headers: s.HTTP.Headers})
	case o.Tool != nil:
		return o.Tool(s)
	}
	return nil, fmt.Errorf("%s is a tool without a way to run; write command: [\"./%[1]s\"], http: {post: …} or agent: {…}",
		s.Def.Name)
}
