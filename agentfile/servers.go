package agentfile

import (
	"context"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/openapi"
)

// ServerSpec is an MCP server (Command or URL) or an OpenAPI document, which bring tools of their own.
type ServerSpec struct {
	Command  []string // MCP over stdio
	Env      map[string]string
	URL      string // MCP over HTTP
	Headers  map[string]string
	Document string            // path or URL of an OpenAPI document
	BaseURL  string            // overrides the servers of the document
	Security map[string]string // values of the document's security schemes
	// Tools are settings by the tool's own name. Of the definition what the file does not set is zero. Set names the keys that
	// the file sets.
	Tools  []Override
	Only   []string // offer only these; nil: all
	Prefix string   // put before the names that a model sees
	Dir    string
	Line   int
}

// Override changes what a server says of one of its tools.
type Override = tool.Override

// server reads a source of several tools.
func (r *reader) server(n *node, kind string) {
	before := r.p.Len()
	r.open = true
	s := ServerSpec{Dir: r.f.Dir, Line: n.Line}
	keys := yamldoc.Keys{
		"tools":  func(n *node) { s.Tools = r.overrides(n) },
		"only":   func(n *node) { s.Only = r.nameList(n) },
		"prefix": func(n *node) { s.Prefix = r.prefix(n) },
	}
	makes := r.o.MCP
	if kind == "mcp" {
		keys["mcp"] = func(n *node) { r.mcp(n, &s) }
	} else {
		if makes = r.o.OpenAPI; makes == nil {
			makes = r.document
		}
		keys["openapi"] = func(n *node) { r.openapi(n, &s) }
	}
	r.p.Object(n, keys)
	r.f.Servers = append(r.f.Servers, s)
	if r.p.Len() > before {
		return
	}
	if makes == nil {
		r.p.Add(n.Get(kind), "this program starts no MCP servers", "set Options.MCP to the method MCP of an agentfile.Servers, which closes them")
		return
	}
	tools, err := makes(s)
	if err != nil {
		r.p.Add(n.Get(kind), strings.TrimPrefix(err.Error(), kind+": "), "")
		return
	}
	for _, t := range tools {
		r.serverName(n.Get(kind), t.Def().Name)
	}
	r.a.Tools = append(r.a.Tools, tools...)
}

// serverName notes the name of a tool that a server brings.
func (r *reader) serverName(n *node, name string) {
	if first, twice := r.names[name]; twice {
		r.p.Add(n, "brings a tool "+strconv.Quote(name)+", and there is one", "the first is on line "+strconv.Itoa(first.Line)+"; write prefix: or only: beside it")
		return
	}
	r.names[name] = n
}

func (r *reader) prefix(n *node) string {
	s := r.p.String(n)
	if n.Kind == yamldoc.String && !toolName.MatchString(s) {
		r.p.Add(n, strconv.Quote(s)+" cannot begin the name of a tool", "begin with a letter or _, then letters, digits, _ and -")
	}
	return s
}

// document makes the tools of an OpenAPI document.
func (r *reader) document(s ServerSpec) ([]tool.Tool, error) {
	d, err := openapi.Load(context.Background(), openapi.Spec{Document: s.Document, Dir: s.Dir, BaseURL: s.BaseURL, Headers: s.Headers, Security: s.Security,
		Offer: tool.Offer{Overrides: s.Tools, Only: s.Only, Prefix: s.Prefix}})
	if err != nil {
		return nil, err
	}
	if r.o.Note != nil {
		for _, n := range d.Notes() {
			r.o.Note(s.Document + ": " + n)
		}
	}
	return d.Tools(), nil
}

func (r *reader) mcp(n *node, s *ServerSpec) {
	r.p.Object(n, yamldoc.Keys{
		"command": func(n *node) { s.Command = r.program(n) },
		"env":     func(n *node) { s.Env = r.texts(n) },
		"url":     func(n *node) { s.URL = r.url(n) },
		"headers": func(n *node) { s.Headers = r.texts(n) },
	})
	if n.Kind != yamldoc.Map {
		return
	}
	if (n.Get("command") == nil) == (n.Get("url") == nil) {
		r.p.Add(n, "want exactly one of command and url", "")
	}
	if h := n.Get("headers"); h != nil && n.Get("url") == nil {
		r.p.Add(h, "goes with url only", "")
	}
	if e := n.Get("env"); e != nil && n.Get("command") == nil {
		r.p.Add(e, "goes with command only", "")
	}
}

func (r *reader) openapi(n *node, s *ServerSpec) {
	if n.Kind == yamldoc.String {
		s.Document = r.p.Name(n)
		return
	}
	r.p.Object(n, yamldoc.Keys{
		"document": func(n *node) { s.Document = r.p.Name(n) },
		"base_url": func(n *node) { s.BaseURL = r.url(n) },
		"headers":  func(n *node) { s.Headers = r.texts(n) },
		"security": func(n *node) { s.Security = r.texts(n) },
	})
	r.needs(n, "document")
}

func (r *reader) overrides(n *node) (out []Override) {
	if n.Kind != yamldoc.Map {
		r.p.Add(n, "want a map from a tool's name to its settings, not "+n.Kind.String(), "write tools: {write_file: {approval: ask}}")
		return nil
	}
	for _, f := range n.Fields {
		o := Override{Name: f.Name, Def: tool.Def{Name: f.Name}}
		r.p.Object(f.Value, r.settings(&o.Def))
		for _, k := range f.Value.Fields {
			o.Set = append(o.Set, k.Name)
		}
		out = append(out, o)
	}
	return out
}
