package rondatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
)

type node = yamldoc.Node

// ReadFile reads the scenarios of a file. The error is a yamldoc.Errors, or says why the file cannot be read.
func ReadFile(path string) ([]*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenarios: %w. Name a YAML file", err)
	}
	return Parse(path, data)
}

// Parse reads the scenarios in the text of a file: one YAML document each. It is strict; its error, a yamldoc.Errors, names keys and
// lines, all of them at once. Relative paths begin at the folder of file.
func Parse(file string, data []byte) ([]*Scenario, error) {
	docs, err := yamldoc.Parse(file, data)
	if err != nil {
		return nil, err
	}
	p := &yamldoc.Problems{File: file}
	var list []*Scenario
	first := map[string]int{}
	for _, n := range docs {
		s := readScenario(p, n, file)
		if line, twice := first[s.Name]; twice && s.Name != "" {
			p.Add(n, fmt.Sprintf("the scenario %q is there twice: the first begins on line %d", s.Name, line), "names are unique")
		}
		first[s.Name] = s.Line
		list = append(list, s)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, yamldoc.Errors{{File: file, Line: 1, Column: 1, Reason: "there is no scenario in the file"}}
	}
	return list, nil
}

func readScenario(p *yamldoc.Problems, n *node, file string) *Scenario {
	s := &Scenario{File: file, Line: n.Line, dir: filepath.Dir(file), tools: map[string][]toolItem{}, always: map[string]bool{}}
	toolLines := map[string]*node{}
	p.Object(n, yamldoc.Keys{
		"scenario": func(n *node) { s.Name = p.Name(n) },
		"about":    func(n *node) { s.About = p.Scalar(n) },
		"only":     func(n *node) { s.only = readOnly(p, n) },
		"agent":    func(n *node) { s.agent = n },
		"script":   func(n *node) { s.script = scripted.Read(p, n) },
		"tools": func(n *node) {
			for _, f := range fields(p, n) {
				toolLines[f.Name] = f.Key
				p.List(f.Value, func(n *node) { s.tools[f.Name] = append(s.tools[f.Name], readToolItem(p, n)) })
				if f.Value.Kind == yamldoc.List && len(f.Value.Items) == 0 {
					p.Add(f.Value, "says nothing of what the tool does", "write [{return: ok}]")
				}
			}
		},
		"acts":   func(n *node) { p.List(n, func(n *node) { s.acts = append(s.acts, readAct(p, n, nil)) }) },
		"expect": func(n *node) { s.expect = readExpect(p, n) },
		"always": func(n *node) {
			keys := yamldoc.Keys{}
			for _, name := range invariants {
				keys[name] = func(n *node) { s.always[name] = p.Bool(n) }
			}
			p.Object(n, keys)
		},
	})
	if n.Kind != yamldoc.Map {
		return s
	}
	for _, key := range []string{"scenario", "agent", "acts"} {
		if n.Get(key) == nil {
			p.Add(n, key+" is missing", "")
		}
	}
	if s.agent != nil {
		s.checkAgent(p, toolLines)
	}
	s.checkActs(p, n)
	return s
}

// checkActs finds what cannot happen whatever the run does.
func (s *Scenario) checkActs(p *yamldoc.Problems, n *node) {
	for i, a := range s.acts {
		for a.inner != nil {
			if a.kind == "at" && i == 0 {
				break
			}
			a = *a.inner
		}
		if a.agent != nil {
			agentfile.Read(p, a.agent, s.dir, agentOptions(s, func(spec agentfile.ToolSpec) tool.Tool { return &simTool{def: spec.Def} },
				func(sc *scripted.Script, agent string) model.Model { return scripted.New(sc) }))
		}
		if i == 0 && a.kind != "say" && a.kind != "" {
			p.Add(n.Get("acts").Items[0], a.kind+" comes before the first say: there is no run yet", "begin with say")
		}
	}
}

// checkAgent reads the agent once, for its errors and for the names of its tools.
func (s *Scenario) checkAgent(p *yamldoc.Problems, tools map[string]*node) {
	before := p.Len()
	var names []string
	agent, _ := agentfile.Read(p, s.agent, s.dir, agentOptions(s, func(spec agentfile.ToolSpec) tool.Tool {
		names = append(names, spec.Def.Name)
		return &simTool{def: spec.Def}
	}, func(sc *scripted.Script, agent string) model.Model {
		for _, it := range sc.Items {
			for _, c := range it.Calls {
				s.raw = s.raw || c.Raw && !json.Valid([]byte(c.Args))
			}
		}
		return scripted.New(sc)
	}))
	if p.Len() > before {
		return
	}
	for name, n := range tools {
		if !slices.Contains(names, name) {
			p.Add(n, fmt.Sprintf("the agent has no tool %q that could do this", name), "its tools are "+strings.Join(names, ", "))
		}
	}
	if agent.Model == nil {
		p.Add(s.agent, "the agent has no model: script is missing", "write script: beside agent:")
	}
}

// agentOptions read an agent whose answers and tools are simulated.
func agentOptions(s *Scenario, makes func(agentfile.ToolSpec) tool.Tool, answers func(*scripted.Script, string) model.Model) agentfile.Options {
	simulated := func(spec agentfile.ToolSpec) (tool.Tool, error) { return makes(spec), nil }
	server := func(spec agentfile.ServerSpec) ([]tool.Tool, error) {
		var list []tool.Tool
		for _, o := range spec.Tools {
			list = append(list, makes(agentfile.ToolSpec{Def: o.Def, Dir: spec.Dir, Line: spec.Line}))
		}
		return list, nil
	}
	return agentfile.Options{File: s.File, Name: "agent", Scripted: true, Script: s.script, Tool: simulated, Command: simulated, HTTP: simulated,
		MCP: server, OpenAPI: server,
		ScriptModel: func(sc *scripted.Script, agent string) (model.Model, error) { return answers(sc, agent), nil }}
}

func fields(p *yamldoc.Problems, n *node) []yamldoc.Field {
	if n.Kind != yamldoc.Map {
		p.Add(n, "want a map, not "+n.Kind.String(), "")
		return nil
	}
	return n.Fields
}

// matrix holds the dimensions of the matrix and their values.
var matrix = map[string][]string{
	"wire":   {"direct", "anthropic", "openai", "openaichat", "gemini"},
	"stream": {"on", "off"},
	"crash":  {"none", "everywhere"},
	"store":  {"memory", "sqlite", "postgres"},
	"engine": nil, // any name
}

func readOnly(p *yamldoc.Problems, n *node) map[string][]string {
	only := map[string][]string{}
	keys := yamldoc.Keys{}
	for dim, words := range matrix {
		keys[dim] = func(n *node) {
			p.List(n, func(n *node) {
				if words == nil {
					only[dim] = append(only[dim], p.Name(n))
					return
				}
				only[dim] = append(only[dim], p.OneOf(n, "a value of "+dim, words...))
			})
		}
	}
	p.Object(n, keys)
	return only
}

func readToolItem(p *yamldoc.Problems, n *node) toolItem {
	it := toolItem{line: n.Line, text: "ok"}
	ways := 0
	way := func(read func(*node)) func(*node) { return func(n *node) { ways++; read(n) } }
	p.Object(n, yamldoc.Keys{
		"return": func(n *node) { it.text = returned(n) },
		"fact": func(n *node) {
			it.facts = map[string]json.RawMessage{}
			for _, f := range fields(p, n) {
				it.facts[f.Name] = f.Value.JSON()
			}
		},
		"error": way(func(n *node) {
			it.class = loop.Class(p.OneOf(n, "a class of errors", "error", "invalid", "denied", "transient", "fatal", "unknown"))
			it.message = "the tool failed"
		}),
		"message":        func(n *node) {},
		"retry_after":    func(n *node) { it.retryAfter = p.Duration(n) },
		"timeout":        way(func(n *node) { it.timeout = p.OneOf(n, "a moment of a time-out", "before_effect", "after_effect") }),
		"panic":          way(func(n *node) { it.panics = p.Scalar(n) }),
		"takes":          func(n *node) { it.takes = p.Duration(n) },
		"echo":           way(func(n *node) { it.echo = p.Bool(n) }),
		"bytes":          way(func(n *node) { it.text = filler(p.Int(n)) }),
		"ignores_cancel": func(n *node) { it.deaf = p.Bool(n) },
	})
	if m := n.Get("message"); m != nil {
		it.message = p.Scalar(m)
	}
	switch {
	case ways > 1:
		p.Add(n, "error, timeout, panic, echo and bytes exclude each other", "use one item for each execution")
	case n.Get("return") != nil && ways == 1 && it.timeout == "":
		p.Add(n.Get("return"), "cannot stand beside the other way in which the execution ends", "keep one of them")
	case it.message != "" && it.class == "":
		p.Add(n.Get("message"), "belongs to an error", "write {error: transient, message: busy}")
	case it.retryAfter > 0 && it.class != loop.ClassTransient:
		p.Add(n.Get("retry_after"), "belongs to error: transient", "")
	}
	return it
}

// returned is the text that a tool returns for a value: a text as it is, anything else as JSON.
func returned(n *node) string {
	if n.Kind == yamldoc.String {
		return n.Text
	}
	return string(n.JSON())
}

// filler is a text of n bytes.
func filler(n int64) string {
	const line = "0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ\n"
	if n > 64<<20 {
		n = 64 << 20
	}
	return strings.Repeat(line, int(n)/len(line)+1)[:n]
}

// actKinds are the words of acts.
var actKinds = []string{"say", "approve", "reject", "edit", "always", "resolve", "extend", "restart", "wait", "cancel", "revoke", "at", "fails"}

// readAct reads one act. beside are keys that may stand beside the act's own.
func readAct(p *yamldoc.Problems, n *node, beside yamldoc.Keys) act {
	a := act{line: n.Line}
	kinds := 0
	kind := func(name string, read func(*node)) func(*node) {
		return func(n *node) { a.kind = name; kinds++; read(n) }
	}
	person := func(name string, more yamldoc.Keys) func(*node) {
		return kind(name, func(n *node) { a.person(p, n, more) })
	}
	keys := yamldoc.Keys{
		"say":       kind("say", func(n *node) { a.text = p.Scalar(n) }),
		"supersede": func(n *node) { a.supersede = p.Bool(n) },
		"approve":   person("approve", nil),
		"reject":    person("reject", nil),
		"edit":      person("edit", nil),
		"always":    person("always", nil),
		"revoke":    person("revoke", nil),
		"resolve":   person("resolve", yamldoc.Keys{"happened": func(n *node) { a.happened = p.Bool(n) }}),
		"extend":    kind("extend", func(n *node) { a.extend(p, n) }),
		"restart": kind("restart", func(n *node) {
			if n.Kind == yamldoc.Map {
				p.Object(n, yamldoc.Keys{"agent": func(n *node) { a.agent = n }})
				return
			}
			if !p.Bool(n) {
				p.Add(n, "only true has a meaning", "leave the act out")
			}
		}),
		"wait": kind("wait", func(n *node) { a.after = p.Duration(n) }),
		"cancel": kind("cancel", func(n *node) {
			p.Object(n, yamldoc.Keys{"by": func(n *node) { a.by = p.Name(n) }, "message": func(n *node) { a.message = p.Scalar(n) }})
		}),
		"at": kind("at", func(n *node) {
			inner := readAct(p, n, yamldoc.Keys{"time": func(n *node) { a.after = p.Duration(n) }})
			a.inner = &inner
			if n.Kind == yamldoc.Map && n.Get("time") == nil {
				p.Add(n, "time is missing", "write {at: {time: 50ms, cancel: {by: ana}}}")
			}
		}),
		"fails": kind("fails", func(n *node) {
			inner := readAct(p, n, yamldoc.Keys{"with": func(n *node) { a.with = p.OneOf(n, "a way to be refused", "not_found", "conflict", "invalid") }})
			a.inner = &inner
			if n.Kind == yamldoc.Map && n.Get("with") == nil {
				p.Add(n, "with is missing", "use not_found, conflict or invalid")
			}
		}),
	}
	for k, read := range beside {
		keys[k] = read
	}
	if !p.Object(n, keys) {
		return a
	}
	switch {
	case kinds != 1:
		p.Add(n, "want exactly one act", "the acts are "+strings.Join(actKinds, ", "))
	case a.supersede && a.kind != "say":
		p.Add(n.Get("supersede"), "belongs to say", "")
	case (a.kind == "at" || a.kind == "fails") && (a.inner.kind == "at" || a.inner.kind == "wait"):
		p.Add(n, a.inner.kind+" cannot stand in "+a.kind, "")
	}
	if a.by == "" {
		a.by = "somebody"
	}
	return a
}

// person reads what a person says of a call.
func (a *act) person(p *yamldoc.Problems, n *node, more yamldoc.Keys) {
	keys := yamldoc.Keys{
		"call":    func(n *node) { a.call = p.Name(n) },
		"id":      func(n *node) { a.id = p.Scalar(n) },
		"args":    func(n *node) { a.args = n; fields(p, n) },
		"by":      func(n *node) { a.by = p.Name(n) },
		"message": func(n *node) { a.message = p.Scalar(n) },
	}
	for k, read := range more {
		keys[k] = read
	}
	if !p.Object(n, keys) {
		return
	}
	switch {
	case a.call == "" && a.id == "" && a.args == nil:
		p.Add(n, "names no call", "write call: with the tool's name, id: or args:")
	case a.kind == "edit" && a.args == nil:
		p.Add(n, "args is missing: what is to run instead", "")
	case a.kind == "resolve" && n.Get("happened") == nil:
		p.Add(n, "happened is missing", "write happened: true or false")
	}
}

func (a *act) extend(p *yamldoc.Problems, n *node) {
	count := func(v *int) func(*node) { return func(n *node) { *v = int(p.Int(n)) } }
	p.Object(n, yamldoc.Keys{
		"by":          func(n *node) { a.by = p.Name(n) },
		"rounds":      count(&a.limits.Rounds),
		"model_calls": count(&a.limits.ModelCalls),
		"tool_calls":  count(&a.limits.ToolCalls),
		"tokens":      func(n *node) { a.limits.Tokens = p.Int(n) },
		"cost_usd":    func(n *node) { a.limits.CostUSD = p.Float(n) },
		"active_time": func(n *node) { a.limits.ActiveTime = p.Duration(n) },
		"deadline":    func(n *node) { a.limits.Deadline = p.Duration(n) },
	})
	if a.limits == (drive.Limits{}) && n.Kind == yamldoc.Map {
		p.Add(n, "extends nothing", "write extend: {rounds: 2, by: ana}")
	}
}
