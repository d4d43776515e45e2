package agentfile

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
)

// ToolSpec is one tool of a file: its definition and at most one way to run it.
type ToolSpec struct {
	Def     tool.Def
	Command *CommandSpec
	HTTP    *HTTPSpec
	Dir     string // the folder of the agent file
	Line    int
}

// CommandSpec is a program: arguments as JSON on its standard input, the result on its standard output.
type CommandSpec struct {
	Args       []string          // program and arguments; a program with a slash begins at the agent file's folder
	Env        map[string]string // added to the environment; ${NAME} stands for a variable of this process
	InheritEnv bool              // the whole environment of this process, its secrets included
	Check      []string          // a program that tells whether the effect with a key happened; nil: none
}

// HTTPSpec is a request: arguments as its JSON body.
type HTTPSpec struct {
	Method  string // GET, POST, PUT, PATCH, DELETE
	URL     string
	Headers map[string]string // ${NAME} stands for a variable of the environment
}

// settings read the keys that each kind of tool has into def.
func (r *reader) settings(def *tool.Def) yamldoc.Keys {
	return yamldoc.Keys{
		"effect":     func(n *node) { def.Effect = r.effect(n) },
		"label":      func(n *node) { def.Label = r.p.String(n) },
		"approval":   func(n *node) { def.Approval = r.verdict(n) },
		"on_reject":  func(n *node) { def.OnReject = r.p.OneOf(n, "what a refusal can do", "tell", "stop") },
		"timeout":    func(n *node) { def.Timeout = r.length(n) },
		"retries":    func(n *node) { def.Retries = r.count(n) },
		"calls_max":  func(n *node) { c := r.count(n); def.CallsMax = &c },
		"poll":       func(n *node) { def.Poll = r.poll(n) },
		"result_cap": func(n *node) { def.ResultCap = int(r.positive(n)) },
		"requires":   func(n *node) { def.Requires = r.requires(n) },
		"grounded":   func(n *node) { def.Grounded = r.nameList(n) },
	}
}

func (r *reader) verdict(n *node) loop.Verdict {
	return loop.Verdict(r.p.OneOf(n, "a verdict", "allow", "ask", "deny"))
}

func (r *reader) poll(n *node) *tool.Poll {
	poll := &tool.Poll{}
	r.p.Object(n, yamldoc.Keys{
		"calls_max": func(n *node) { c := r.count(n); poll.CallsMax = &c },
		"interval":  func(n *node) { poll.Interval = r.length(n) },
	})
	return poll
}

func (r *reader) requires(n *node) (out []tool.Requirement) {
	r.p.List(n, func(n *node) {
		q := tool.Requirement{}
		name := func(n *node) { q.Tool = r.p.Name(n); r.refs = append(r.refs, n) }
		if n.Kind == yamldoc.Map {
			r.p.Object(n, yamldoc.Keys{"tool": name, "same": func(n *node) { q.Same = r.nameList(n) }})
			r.needs(n, "tool")
		} else {
			name(n)
		}
		out = append(out, q)
	})
	return out
}

// kinds of tools and the keys that go with each, beside the settings.
var kinds = []string{"command", "http", "agent", "mcp", "openapi"}

// tool reads one entry of tools.
func (r *reader) tool(n *node) {
	if n.Kind != yamldoc.Map {
		r.p.Add(n, "want a map, not "+n.Kind.String(), "write {name: look, command: [\"./look\"], effect: read}")
		return
	}
	kind := ""
	for _, k := range kinds {
		switch {
		case n.Get(k) == nil:
		case kind != "":
			r.p.Add(n.Get(k), "a tool cannot be both "+kind+" and "+k, "use two tools")
			return
		default:
			kind = k
		}
	}
	switch kind {
	case "agent":
		r.child(n)
	case "mcp", "openapi":
		r.server(n, kind)
	default:
		r.plain(n, kind)
	}
}

// plain reads a tool with a definition of its own.
func (r *reader) plain(n *node, kind string) {
	before := r.p.Len()
	s := ToolSpec{Dir: r.f.Dir, Line: n.Line}
	keys := r.settings(&s.Def)
	r.named(keys, &s.Def.Name, &s.Def.Description, &s.Def.Input)
	var check *node
	keys["check"] = func(n *node) { check = n }
	switch kind {
	case "command":
		s.Command = &CommandSpec{}
		keys["command"] = func(n *node) { s.Command.Args = r.program(n) }
		keys["env"] = func(n *node) { s.Command.Env = r.texts(n) }
		keys["inherit_env"] = func(n *node) { s.Command.InheritEnv = r.p.Bool(n) }
	case "http":
		s.HTTP = &HTTPSpec{}
		keys["http"] = func(n *node) { r.http(n, s.HTTP) }
	}
	r.p.Object(n, keys)
	r.needs(n, "name")
	r.readCheck(check, &s)
	r.f.Tools = append(r.f.Tools, s)
	if r.p.Len() > before {
		return
	}
	t, err := r.o.makeTool(s)
	if err != nil {
		r.p.Add(n, err.Error(), "")
		return
	}
	r.a.Tools = append(r.a.Tools, t)
}

// named reads what a model is told of a tool.
func (r *reader) named(keys yamldoc.Keys, name, description *string, input *json.RawMessage) {
	keys["name"] = func(n *node) { *name = r.newName(n) }
	keys["description"] = func(n *node) { *description = r.p.String(n) }
	keys["input"] = func(n *node) { *input = r.schema(n, objectSchema) }
}

func (r *reader) newName(n *node) string {
	s := r.p.String(n)
	switch first, twice := r.names[s]; {
	case n.Kind != yamldoc.String:
	case !toolName.MatchString(s):
		r.p.Add(n, strconv.Quote(s)+" is no name of a tool", "begin with a letter or _, then letters, digits, _ and -, at most 64")
	case twice:
		r.p.Add(n, strconv.Quote(s)+" is there twice", "the first is on line "+strconv.Itoa(first.Line))
	default:
		r.names[s] = n
	}
	return s
}

// readCheck reads how a tool tells whether an effect happened: true where the tool's maker knows how, else in its own way.
func (r *reader) readCheck(n *node, s *ToolSpec) {
	switch {
	case n == nil:
	case s.Command != nil:
		s.Command.Check = r.program(n)
		s.Def.Check = true
	case s.HTTP != nil:
		r.p.Add(n, "an HTTP tool cannot tell whether an effect happened", "leave it out; each request carries an Idempotency-Key")
	default:
		s.Def.Check = r.p.Bool(n)
	}
}

// program reads a command: a list, first the program.
func (r *reader) program(n *node) []string {
	if n.Kind != yamldoc.List {
		r.p.Add(n, "want a list: program, arguments", `write ["./look", "--fast"]`)
		return nil
	}
	args := r.p.Strings(n)
	if len(args) == 0 || args[0] == "" {
		r.p.Add(n, "names no program", `write ["./look"]`)
	}
	return args
}

// texts reads a map of texts.
func (r *reader) texts(n *node) map[string]string {
	if n.Kind != yamldoc.Map {
		r.p.Add(n, "want a map, not "+n.Kind.String(), "write {NAME: value}")
		return nil
	}
	out := map[string]string{}
	for _, f := range n.Fields {
		s := r.p.Scalar(f.Value)
		if err := tool.CheckReferences(s); err != nil {
			r.p.Add(f.Value, err.Error(), "")
		}
		out[f.Name] = s
	}
	return out
}

var methods = []string{"get", "post", "put", "patch", "delete"}

func (r *reader) http(n *node, s *HTTPSpec) {
	keys := yamldoc.Keys{"headers": func(n *node) { s.Headers = r.texts(n) }}
	var used []string
	for _, m := range methods {
		keys[m] = func(n *node) {
			used = append(used, m)
			s.Method, s.URL = strings.ToUpper(m), r.url(n)
		}
	}
	if r.p.Object(n, keys) && len(used) != 1 {
		r.p.Add(n, "want exactly one of get, post, put, patch and delete", `write http: {post: "http://localhost:9000/replies"}`)
	}
}

// url reads an address of http or https.
func (r *reader) url(n *node) string {
	s := r.p.String(n)
	u, err := url.Parse(s)
	if n.Kind == yamldoc.String && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		r.p.Add(n, strconv.Quote(s)+" is no address", "write it with its scheme, such as http://localhost:9000/replies")
	}
	return s
}
