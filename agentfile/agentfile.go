// Package agentfile reads agents that people write in YAML. Schema is the published JSON Schema of the format; the errors name
// file, line, column and field, say what is wrong and the way out, and come all at once.
package agentfile

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/tool"
)

//go:embed agent.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of an agent file. The bytes are the caller's.
func Schema() []byte { return append([]byte(nil), schema...) }

// Options say who makes what an agent file names. The zero value reads a file whose model is a script.
type Options struct {
	File string // name of the file in errors; Load fills it in
	Name string // the agent's name where the file has none

	// Model makes the model of a reference such as anthropic/claude-sonnet-4-5; baseURL and options may be empty. nil: the
	// agent's Model stays nil and File.Model says which one is meant.
	Model func(ref, baseURL string, options map[string]any) (model.Model, error)
	// NoModel accepts a root agent without a model and without a script: the caller puts one in.
	NoModel bool
	// Scripted makes each agent's model from its script; the models that the file names are not made.
	Scripted bool
	// Script is used for the root agent in place of the script in the file.
	Script *scripted.Script
	// ScriptModel makes the model of a script; agent is the name of its agent. nil: scripted.New.
	ScriptModel func(s *scripted.Script, agent string) (model.Model, error)

	// Tool makes tools that say no way to run (scenarios have such). nil: they are an error.
	Tool func(ToolSpec) (tool.Tool, error)
	// Command, HTTP, MCP and OpenAPI make the tools of their kind. nil: packages tool/command, tool/http and tool/openapi; nil for
	// MCP: such tools are an error, since somebody has to close their servers. See Servers.
	Command func(ToolSpec) (tool.Tool, error)
	HTTP    func(ToolSpec) (tool.Tool, error)
	MCP     func(ServerSpec) ([]tool.Tool, error)
	OpenAPI func(ServerSpec) ([]tool.Tool, error)

	// Note is told what of a server's or a document's definitions could not be used as it is. nil: nobody is.
	Note func(string)

	// Check makes the check of a contract from a command. nil: RunCheck.
	Check func(CheckSpec) (func(context.Context, drive.Evidence) (missing []string, undecided bool, err error), error)
}

// File is what a file says beside the agent.
type File struct {
	Path     string // as given to Load; "" where it was read from memory or stands inside another file
	Dir      string // relative paths in the file begin here
	Raw      []byte // the file as it is; nil for an agent inside another document
	Digest   string // "sha256:…" of the agent's text and of the files that it names (not of its script)
	Model    string // reference as written; "" none
	BaseURL  string
	Script   *scripted.Script // nil: none
	Tools    []ToolSpec       // tools with a definition of their own, in order
	Servers  []ServerSpec     // MCP servers and OpenAPI documents
	Children []*File          // of the agents that are tools, as Agent.Children
	Line     int              // where the agent begins

	sources []source
}

type source struct {
	name string
	data []byte
}

// Load reads an agent file, or agent.yaml in a folder. The error is a yamldoc.Errors, or says why the file cannot be read. At
// most one Options is used: the first.
func Load(path string, opts ...Options) (*drive.Agent, *File, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	return load(path, o, nil)
}

func load(path string, o Options, above []string) (*drive.Agent, *File, error) {
	path, data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	o.File = path
	if o.Name == "" {
		o.Name = nameOf(path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("agent file %s: %w", path, err)
	}
	for _, a := range above {
		if a == abs {
			return nil, nil, fmt.Errorf("the agent calls itself: %s", strings.Join(append(above, abs), " → "))
		}
	}
	agent, file, err := parse(data, filepath.Dir(path), o, append(above, abs))
	if file != nil {
		file.Path = path
	}
	return agent, file, err
}

// nameOf is the name of an agent whose file does not say it: the file's, or the folder's of an agent.yaml.
func nameOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if name == "agent" {
		if abs, err := filepath.Abs(path); err == nil {
			name = filepath.Base(filepath.Dir(abs))
		}
	}
	if !agentName.MatchString(name) {
		return "agent"
	}
	return name
}

// maxFile bounds a file that an agent is read from.
const maxFile = 4 << 20

func readFile(path string) (string, []byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return path, nil, fmt.Errorf("agent file %s: %s. Name a YAML file or a folder with agent.yaml", path, why(err))
	}
	if info.IsDir() {
		return readFile(filepath.Join(path, "agent.yaml"))
	}
	data, err := readBounded(path)
	if err != nil {
		return path, nil, fmt.Errorf("agent file %s: %s", path, why(err))
	}
	return path, data, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("is not a file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("is larger than %d MiB", maxFile>>20)
	}
	return os.ReadFile(path)
}

// why is an error without the path, which the reader is told once.
func why(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// Parse reads an agent from the text of a file; relative paths begin at dir. The error is a yamldoc.Errors.
func Parse(data []byte, dir string, opts Options) (*drive.Agent, *File, error) {
	return parse(data, dir, opts, nil)
}

func parse(data []byte, dir string, o Options, above []string) (*drive.Agent, *File, error) {
	n, err := yamldoc.ParseOne(o.File, data)
	if err != nil {
		return nil, nil, err
	}
	p := &yamldoc.Problems{File: o.File}
	agent, file := read(p, n, dir, o, above)
	if err := p.Err(); err != nil {
		return nil, nil, err
	}
	file.Raw = data
	return agent, file, nil
}

// Read reads the agent in a node of a larger document (a scenario): a map, or the path of an agent file. What is wrong is noted
// in p; then the results are not to be used.
func Read(p *yamldoc.Problems, n *yamldoc.Node, dir string, opts Options) (*drive.Agent, *File) {
	return readOrLoad(p, n, dir, opts, nil)
}

func readOrLoad(p *yamldoc.Problems, n *yamldoc.Node, dir string, o Options, above []string) (*drive.Agent, *File) {
	if n.Kind != yamldoc.String {
		return read(p, n, dir, o, above)
	}
	path := n.Text
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	agent, file, err := load(path, o, above)
	if err != nil {
		p.Join(n, err)
		return &drive.Agent{}, &File{}
	}
	return agent, file
}

// digest is of what makes the agent: its text as JSON without its script, and the files that it names.
func (f *File) digest(n *yamldoc.Node) string {
	h := sha256.New()
	part := func(name string, data []byte) { fmt.Fprintf(h, "%d %s %d ", len(name), name, len(data)); h.Write(data) }
	m := *n
	m.Fields = nil
	for _, fd := range n.Fields {
		if fd.Name != "script" {
			m.Fields = append(m.Fields, fd)
		}
	}
	part("agent", m.JSON())
	for _, s := range f.sources {
		part(s.name, s.data)
	}
	for _, c := range f.Children {
		part("child", []byte(c.Digest))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// file reads a file that the agent names and notes why it cannot.
func (r *reader) file(n *yamldoc.Node, path string) []byte {
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(r.f.Dir, path)
	}
	data, err := readBounded(full)
	if err != nil {
		r.p.Add(n, fmt.Sprintf("cannot read %s: %s", full, why(err)), "relative paths begin at the folder of the agent file")
	}
	return data
}

// isPath tells a path from a text in one line: it begins with ./ or ../ or /.
func isPath(s string) bool {
	return !strings.ContainsAny(s, "\n\r") &&
		(strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "/"))
}
