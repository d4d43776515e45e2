package scripted

import (
	"net/http"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

// Parse reads a script: a list of items, or a map whose only key "script" holds one. It is strict: what it does not know is
// an error that names key and line; the error is a yamldoc.Errors.
func Parse(yaml []byte) (*Script, error) { return ParseFile("", yaml) }

// ParseFile is Parse with a file name for the errors.
func ParseFile(file string, yaml []byte) (*Script, error) {
	n, err := yamldoc.ParseOne(file, yaml)
	if err != nil {
		return nil, err
	}
	p := &yamldoc.Problems{File: file}
	if n.Kind == yamldoc.Map && n.Get("script") != nil {
		var s *Script
		p.Object(n, yamldoc.Keys{"script": func(v *yamldoc.Node) { s = Read(p, v) }})
		return s, p.Err()
	}
	s := Read(p, n)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// UnmarshalYAML reads a script that is a part of a larger document; lines are those of the document.
func (s *Script) UnmarshalYAML(part ast.Node) error {
	return unmarshal(part, func(p *yamldoc.Problems, n *yamldoc.Node) { *s = *Read(p, n) })
}

// UnmarshalYAML reads one item that is a part of a larger document.
func (i *Item) UnmarshalYAML(part ast.Node) error {
	return unmarshal(part, func(p *yamldoc.Problems, n *yamldoc.Node) { *i = readItem(p, n) })
}

func unmarshal(part ast.Node, read func(*yamldoc.Problems, *yamldoc.Node)) error {
	n, err := yamldoc.From(part)
	if err != nil {
		return err
	}
	p := &yamldoc.Problems{}
	read(p, n)
	return p.Err()
}

// Read reads the script in a node of a document and notes what is wrong with it. It never returns nil.
func Read(p *yamldoc.Problems, n *yamldoc.Node) *Script {
	s := &Script{Line: n.Line}
	p.List(n, func(v *yamldoc.Node) {
		s.Items = append(s.Items, readItem(p, v))
		s.Line = v.Line
	})
	if n.Kind == yamldoc.List && len(n.Items) == 0 {
		p.Add(n, "the script is empty", "write at least one response: - text: Hello.")
	}
	for i := range s.Items {
		if it := &s.Items[i]; it.Repeat && i+1 < len(s.Items) && s.Items[i+1].When == nil {
			p.Add(n.Items[i+1], "is never reached: the item before it repeats for ever",
				"after repeat only items with when can be taken")
		}
	}
	return s
}

func readItem(p *yamldoc.Problems, n *yamldoc.Node) Item {
	it := Item{}
	content := it.content(p)
	keys := yamldoc.Keys{
		"when": func(v *yamldoc.Node) { it.When = readWhen(p, v) },
		"repeat": func(v *yamldoc.Node) {
			it.Repeat = true
			if len(v.Fields) == 0 && v.Kind == yamldoc.Map {
				p.Add(v, "has no content", "write what is repeated: repeat: {text: Hello.}")
			}
			p.Object(v, content)
		},
	}
	for k, read := range content {
		keys[k] = read
	}
	d := DefaultUsage
	it.Usage = &d
	if !p.Object(n, keys) {
		return it
	}
	it.Line = n.Line
	it.check(p, n)
	return it
}

func (i *Item) content(p *yamldoc.Problems) yamldoc.Keys {
	return yamldoc.Keys{
		"thinking": func(v *yamldoc.Node) { i.Thinking = p.Scalar(v) },
		"text":     func(v *yamldoc.Node) { i.Text = p.Scalar(v) },
		"calls": func(v *yamldoc.Node) {
			p.List(v, func(c *yamldoc.Node) { i.Calls = append(i.Calls, readCall(p, c)) })
		},
		"raw_arguments": func(v *yamldoc.Node) { i.Calls = append(i.Calls, readRaw(p, v)...) },
		"usage":         func(v *yamldoc.Node) { i.Usage = readUsage(p, v) },
		"finish": func(v *yamldoc.Node) {
			i.Finish = loop.Finish(p.OneOf(v, "a finish reason of a script", "stop", "length", "filter"))
		},
		"fail":      func(v *yamldoc.Node) { i.Fail = readFail(p, v) },
		"malformed": func(v *yamldoc.Node) { i.Malformed = p.OneOf(v, "what can be malformed", "call") != "" },
	}
}

// check looks at keys that do not go together.
func (i *Item) check(p *yamldoc.Problems, n *yamldoc.Node) {
	has := func(key string) bool { return n.Get(key) != nil || n.Get("repeat").Get(key) != nil }
	any := false
	for _, k := range []string{"thinking", "text", "calls", "raw_arguments", "fail", "malformed"} {
		any = any || has(k)
	}
	if r := n.Get("repeat"); r != nil {
		for _, f := range n.Fields {
			if f.Name != "repeat" && f.Name != "when" {
				p.Add(f.Key, "stands beside repeat", "move it into repeat: {…}")
			}
		}
	}
	switch {
	case !any:
		p.Add(n, "says nothing", "write text, thinking, calls, raw_arguments, malformed, fail or repeat; text: \"\" is an empty answer")
	case i.Malformed && (len(i.Calls) > 0 || i.Finish != ""):
		p.Add(n, "malformed cannot stand beside calls or finish", "a malformed call has no readable content")
	case i.Malformed && i.Fail != nil:
		p.Add(n, "malformed and fail exclude each other", "use two items")
	case i.Fail != nil && i.Finish != "":
		p.Add(n, "fail and finish exclude each other", "a failed attempt has no finish reason")
	case i.Fail != nil && i.Fail.Status != 0 && (has("text") || has("calls") || has("thinking") || has("raw_arguments")):
		p.Add(n, "content cannot stand beside fail: {status}", "content is what a cut stream carries; use two items")
	}
}

func readCall(p *yamldoc.Problems, n *yamldoc.Node) Call {
	c := Call{Args: "{}"}
	if n.Kind == yamldoc.Map && n.Get("call") == nil && len(n.Fields) == 1 {
		c.Name = n.Fields[0].Name
		c.Args = readArgs(p, n.Fields[0].Value)
		checkName(p, n.Fields[0].Key, c.Name)
		return c
	}
	if n.Kind == yamldoc.Map && n.Get("call") == nil {
		p.Add(n, "is not one call", "write {tool: {arguments}} or {call: tool, args: {arguments}, id: x}")
		return c
	}
	p.Object(n, yamldoc.Keys{
		"call": func(v *yamldoc.Node) { c.Name = p.String(v); checkName(p, v, c.Name) },
		"args": func(v *yamldoc.Node) { c.Args = readArgs(p, v) },
		"id":   func(v *yamldoc.Node) { c.ID = p.Name(v) },
	})
	return c
}

func checkName(p *yamldoc.Problems, n *yamldoc.Node, name string) {
	if name == "" {
		p.Add(n, "a call without the name of a tool", "")
	}
}

func readArgs(p *yamldoc.Problems, n *yamldoc.Node) string {
	if n.Kind == yamldoc.Null { // {look: } and {look: null}
		return "{}"
	}
	if n.Kind != yamldoc.Map {
		p.Add(n, "arguments are a map, not "+n.Kind.String(), "for arguments that are not JSON use raw_arguments: {tool: \"…\"}")
		return "{}"
	}
	return string(n.JSON())
}

func readRaw(p *yamldoc.Problems, n *yamldoc.Node) []Call {
	var calls []Call
	if n.Kind != yamldoc.Map || len(n.Fields) == 0 {
		p.Add(n, "want a map from tool to text", `write raw_arguments: {pay: "{\"amount\": 5"}`)
		return nil
	}
	for _, f := range n.Fields {
		checkName(p, f.Key, f.Name)
		calls = append(calls, Call{Name: f.Name, Args: p.Scalar(f.Value), Raw: true})
	}
	return calls
}

func readUsage(p *yamldoc.Problems, n *yamldoc.Node) *loop.Usage {
	if n.Kind == yamldoc.String && n.Text == "none" {
		return nil
	}
	u := DefaultUsage
	if n.Kind != yamldoc.Map {
		p.Add(n, "want a map or none", "write usage: {input: 100, output: 10} or usage: none")
		return &u
	}
	p.Object(n, yamldoc.Keys{
		"input":       func(v *yamldoc.Node) { u.Input = p.Int(v) },
		"cache_read":  func(v *yamldoc.Node) { u.CacheRead = p.Int(v) },
		"cache_write": func(v *yamldoc.Node) { u.CacheWrite = p.Int(v) },
		"output":      func(v *yamldoc.Node) { u.Output = p.Int(v) },
		"reasoning":   func(v *yamldoc.Node) { u.Reasoning = p.Int(v) },
	})
	if u.Reasoning > u.Output {
		p.Add(n, "reasoning is a part of output, and "+strconv.FormatInt(u.Reasoning, 10)+" is more than it", "")
	}
	return &u
}

func readFail(p *yamldoc.Problems, n *yamldoc.Node) *Fail {
	f := &Fail{}
	kinds := 0
	kind := func(read func(*yamldoc.Node)) func(*yamldoc.Node) {
		return func(v *yamldoc.Node) { kinds++; read(v) }
	}
	before := p.Len()
	p.Object(n, yamldoc.Keys{
		"status":      kind(func(v *yamldoc.Node) { f.Status = readStatus(p, v) }),
		"retry_after": func(v *yamldoc.Node) { f.RetryAfter = p.Duration(v) },
		"message":     func(v *yamldoc.Node) { f.Message = p.Scalar(v) },
		"timeout":     kind(func(v *yamldoc.Node) { f.Timeout = readTrue(p, v) }),
		"cut_after":   kind(func(v *yamldoc.Node) { c := int(p.Int(v)); f.CutAfter = &c }),
		"error_event": kind(func(v *yamldoc.Node) { f.ErrorEvent = p.Name(v) }),
		"no_end":      kind(func(v *yamldoc.Node) { f.NoEnd = readTrue(p, v) }),
	})
	switch {
	case p.Len() > before:
	case kinds != 1:
		p.Add(n, "want exactly one way to fail", "use status, timeout, cut_after, error_event or no_end")
	case f.RetryAfter != 0 && f.Status == 0:
		p.Add(n, "retry_after belongs to a status", "write fail: {status: 429, retry_after: 2s}")
	}
	return f
}

func readTrue(p *yamldoc.Problems, n *yamldoc.Node) bool {
	if !p.Bool(n) {
		p.Add(n, "only true has a meaning", "leave the key out")
		return false
	}
	return true
}

func readStatus(p *yamldoc.Problems, n *yamldoc.Node) int {
	s := int(p.Int(n))
	if s < 400 || s > 599 {
		p.Add(n, strconv.Itoa(s)+" is not a status that fails a request", "use 400 to 599, such as 429 or 529")
		return http.StatusInternalServerError
	}
	return s
}

func readWhen(p *yamldoc.Problems, n *yamldoc.Node) *When {
	w := &When{}
	if n.Kind == yamldoc.Map && len(n.Fields) == 0 {
		p.Add(n, "matches everything", "leave it out, or write when: {tools: none}")
	}
	p.Object(n, yamldoc.Keys{
		"tools":           func(v *yamldoc.Node) { w.Tools = p.OneOf(v, "a state of the tools", "none", "allowed") },
		"contains":        func(v *yamldoc.Node) { w.Contains = readTexts(p, v) },
		"system_contains": func(v *yamldoc.Node) { w.SystemContains = readTexts(p, v) },
	})
	return w
}

// readTexts reads one text or a list of them.
func readTexts(p *yamldoc.Problems, n *yamldoc.Node) []string {
	if n.Kind == yamldoc.List {
		return p.Strings(n)
	}
	s := p.Scalar(n)
	if s == "" && n.Kind == yamldoc.String {
		p.Add(n, "must not be empty", "every request contains it")
	}
	return []string{s}
}
