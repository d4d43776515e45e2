// Package yamldoc reads the YAML documents that people write for ronda: scripts, agent files, scenarios. It keeps what a
// plain decoder loses: the order of keys, the spelling of numbers, and the place of each value, so that an error can name the
// line and the field. The parser is github.com/goccy/go-yaml.
package yamldoc

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Kind of a node.
type Kind int

// Kinds, as in JSON.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "text", "a list", "a map"}[k]
}

// Node is a value with its place. Aliases and merge keys are already resolved; nobody changes a node after it was made.
type Node struct {
	Kind         Kind
	Text         string // scalars: Bool "true" or "false", Number a JSON number as spelled in the file, String its value
	Line, Column int    // both count from 1
	Path         string // from the root of the document: tools[0].effect
	Items        []*Node
	Fields       []Field // in the order of the file; no name twice
}

// Field is one entry of a map.
type Field struct {
	Name  string
	Key   *Node // its place
	Value *Node
}

// Get finds the value of a key; nil where there is none. It may be called on nil.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// maxNodes bounds a document after its aliases were resolved, maxDepth its nesting: a page of aliases can stand for more
// values than any memory holds.
const (
	maxNodes = 200_000
	maxDepth = 200
)

// Parse reads all documents of a file. Empty documents are left out. The error is an Errors.
func Parse(file string, data []byte) (docs []*Node, err error) {
	defer recoverParse(file, &err)
	if e := tooDeep(file, data); e != nil {
		return nil, Errors{e}
	}
	f, perr := parser.ParseBytes(data, 0)
	if perr != nil {
		return nil, Errors{syntaxError(file, perr)}
	}
	for _, d := range f.Docs {
		if d.Body == nil {
			continue
		}
		n, err := fromNode(file, "", d.Body)
		if err != nil {
			return nil, err
		}
		docs = append(docs, n)
	}
	return docs, nil
}

// maxOpen bounds what a file may open without closing it, before anything is parsed: the parser's time grows with the square
// of the nesting.
const maxOpen = 2000

// tooDeep counts brackets and list dashes roughly, those in texts too: no file that people write comes near the bound.
func tooDeep(file string, data []byte) *Error {
	open, dashes, line := 0, 0, 1
	for i, c := range data {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		case '\n':
			line++
			dashes = 0
		case '-', '?':
			if i+1 < len(data) && data[i+1] == ' ' {
				dashes++
			}
		}
		if open > maxOpen || dashes > maxOpen {
			return &Error{File: file, Line: line, Column: 1, Reason: fmt.Sprintf("more than %d lists and maps are open here", maxOpen)}
		}
	}
	return nil
}

// ParseOne reads a file that must hold exactly one document.
func ParseOne(file string, data []byte) (*Node, error) {
	docs, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	switch len(docs) {
	case 0:
		return nil, Errors{{File: file, Line: 1, Column: 1, Reason: "the file is empty"}}
	case 1:
		return docs[0], nil
	}
	return nil, Errors{{
		File: file, Line: docs[1].Line, Column: docs[1].Column,
		Reason: "a second document begins here", Hint: "keep one document, without ---",
	}}
}

// From makes a node of a part of a document that somebody else parsed; use it in UnmarshalYAML. Places are those of the whole
// document. An alias whose anchor stands outside of the part cannot be resolved and is an error.
func From(part ast.Node) (n *Node, err error) {
	defer recoverParse("", &err)
	return fromNode("", "", part)
}

// recoverParse turns a panic of the parser on odd input into an error: bad input never panics.
func recoverParse(file string, err *error) {
	if r := recover(); r != nil {
		*err = Errors{{File: file, Line: 1, Column: 1, Reason: fmt.Sprintf("the YAML parser gave up: %v", r)}}
	}
}

func syntaxError(file string, err error) *Error {
	e := &Error{File: file, Line: 1, Column: 1, Reason: err.Error()}
	var ye yaml.Error
	if errors.As(err, &ye) {
		e.Reason = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}

func fromNode(file, path string, root ast.Node) (*Node, error) {
	c := &converter{file: file, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	n := c.node(root, path, 0)
	if err := c.problems().Err(); err != nil {
		return nil, err
	}
	return n, nil
}

type converter struct {
	file    string
	anchors map[string]ast.Node
	open    map[string]bool // anchors whose value is being read: an alias to one is a loop
	count   int
	errs    Errors
}

func (c *converter) problems() *Problems { return &Problems{File: c.file, errs: c.errs} }

func (c *converter) fail(n *Node, reason, hint string) *Node {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, &Error{
			File: c.file, Line: n.Line, Column: n.Column, Field: n.Path, Reason: reason, Hint: hint,
		})
	}
	return n
}

func (c *converter) node(a ast.Node, path string, depth int) *Node {
	n := &Node{Path: path, Line: 1, Column: 1}
	if a == nil {
		return n
	}
	place(n, a)
	if c.count++; c.count > maxNodes {
		if c.count == maxNodes+1 {
			c.fail(n, fmt.Sprintf("more than %d values", maxNodes), "aliases multiply what they name; write less")
		}
		return n
	}
	if depth > maxDepth {
		return c.fail(n, fmt.Sprintf("nested deeper than %d", maxDepth), "")
	}
	switch a := a.(type) {
	case *ast.MappingNode:
		return c.mapping(n, a.Values, depth)
	case *ast.MappingValueNode:
		return c.mapping(n, []*ast.MappingValueNode{a}, depth)
	case *ast.SequenceNode:
		n.Kind = List
		for i, v := range a.Values {
			n.Items = append(n.Items, c.node(v, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return n
	case *ast.AnchorNode:
		name := nodeText(a.Name)
		c.anchors[name] = a.Value
		c.open[name] = true
		defer delete(c.open, name)
		return c.node(a.Value, path, depth+1)
	case *ast.AliasNode:
		return c.alias(n, a, depth)
	case *ast.TagNode:
		return c.tagged(n, a, depth)
	}
	return c.scalar(n, a)
}

func (c *converter) alias(n *Node, a *ast.AliasNode, depth int) *Node {
	name := nodeText(a.Value)
	target, ok := c.anchors[name]
	switch {
	case !ok:
		return c.fail(n, fmt.Sprintf("the alias *%s has no anchor before it", name), "")
	case c.open[name]:
		return c.fail(n, fmt.Sprintf("the alias *%s stands inside its own anchor", name), "")
	}
	return c.node(target, n.Path, depth+1)
}

func (c *converter) tagged(n *Node, a *ast.TagNode, depth int) *Node {
	tag := a.Start.Value
	v := c.node(a.Value, n.Path, depth+1)
	switch tag {
	case "!!str":
		if v.Kind == List || v.Kind == Map {
			return c.fail(n, "!!str before "+v.Kind.String(), "")
		}
		if s, ok := a.Value.(ast.ScalarNode); ok && v.Kind != String && s.GetToken() != nil {
			v.Text = s.GetToken().Value
		}
		v.Kind = String
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
	default:
		return c.fail(n, "the tag "+tag+" means nothing here", "leave it out")
	}
	return v
}

func (c *converter) mapping(n *Node, values []*ast.MappingValueNode, depth int) *Node {
	n.Kind = Map
	var merged []Field
	seen := map[string]bool{}
	for _, mv := range values {
		key := &Node{Kind: String}
		place(key, mv.Key)
		if _, ok := mv.Key.(*ast.MergeKeyNode); ok {
			key.Path = n.Path
			merged = append(merged, c.merge(key, mv.Value, depth)...)
			continue
		}
		k := c.node(mv.Key, "", depth+1)
		if k.Kind == List || k.Kind == Map {
			c.fail(key, "a key must be text", "")
			continue
		}
		name := k.Text
		if k.Kind == Null {
			name = "null"
		}
		key.Text, key.Path = name, join(n.Path, name)
		if seen[name] {
			c.fail(key, "the key is there twice", "keep one of them")
			continue
		}
		seen[name] = true
		n.Fields = append(n.Fields, Field{name, key, c.node(mv.Value, key.Path, depth+1)})
	}
	for _, f := range merged { // what the map says itself wins over what it merges
		if !seen[f.Name] {
			seen[f.Name] = true
			n.Fields = append(n.Fields, f)
		}
	}
	return n
}

func (c *converter) merge(key *Node, v ast.Node, depth int) []Field {
	m := c.node(v, key.Path, depth+1)
	maps := []*Node{m}
	if m.Kind == List {
		maps = m.Items
	}
	var fields []Field
	for _, m := range maps {
		if m.Kind != Map {
			c.fail(key, "<< merges maps, not "+m.Kind.String(), "")
			continue
		}
		fields = append(fields, m.Fields...)
	}
	return fields
}

func (c *converter) scalar(n *Node, a ast.Node) *Node {
	switch a := a.(type) {
	case *ast.NullNode:
		return n
	case *ast.BoolNode:
		n.Kind, n.Text = Bool, strconv.FormatBool(a.Value)
	case *ast.IntegerNode:
		n.Kind, n.Text = Number, a.Token.Value
		if !jsonNumber.MatchString(n.Text) { // 0x1F, 1_000, +5
			n.Text = fmt.Sprint(a.Value)
		}
	case *ast.FloatNode:
		n.Kind, n.Text = Number, a.Token.Value
		if !jsonNumber.MatchString(n.Text) {
			n.Text = strconv.FormatFloat(a.Value, 'g', -1, 64)
		}
	case *ast.InfinityNode, *ast.NanNode:
		return c.fail(n, "JSON has no such number", "quote it to make it text")
	case *ast.LiteralNode:
		n.Kind, n.Text = String, a.Value.Value
	case *ast.StringNode:
		n.Kind, n.Text = String, a.Value
		// What the parser does not take for a number though it is one in YAML 1.2 and JSON: 1e5, integers beyond 64 bits.
		if a.Token != nil && a.Token.Type == token.StringType && jsonNumber.MatchString(a.Value) {
			n.Kind = Number
		}
	case *ast.MergeKeyNode:
		n.Kind, n.Text = String, "<<"
	default:
		return c.fail(n, fmt.Sprintf("YAML of the form %s has no meaning here", a.Type()), "")
	}
	n.Text = strings.ToValidUTF8(n.Text, "�")
	return n
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func nodeText(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// place finds where a node begins: for a block map that is its first key, where the parser's own token is the colon.
func place(n *Node, a ast.Node) {
	if a == nil {
		return
	}
	switch m := a.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			place(n, m.Values[0])
			return
		}
	case *ast.MappingValueNode:
		if m.Key != nil {
			place(n, m.Key)
			return
		}
	}
	if t := a.GetToken(); t != nil && t.Position != nil {
		n.Line, n.Column = t.Position.Line, t.Position.Column
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
