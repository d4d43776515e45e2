package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// catalog is what a server offers at one time.
type catalog struct {
	order        []string // own names
	tools        map[string]*remote
	instructions string
}

// maxWords bounds descriptions and instructions of a server, which cost tokens in every request.
const maxWords = 8 << 10

// define makes the tools of what a connection listed.
func (s *Server) define(ss *session) (catalog, []string) {
	c := catalog{tools: map[string]*remote{}, instructions: shorten(valid(ss.init.Instructions), maxWords)}
	list := slices.Clone(ss.listed)
	slices.SortStableFunc(list, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	namer := tool.Namer{Prefix: s.spec.Prefix}
	var notes []string
	for _, t := range list {
		note := func(what string) { notes = append(notes, fmt.Sprintf("tool %s: %s", t.Name, what)) }
		name := namer.Name(t.Name) // also of tools that are left out, so that the others keep theirs
		if !s.spec.Offers(t.Name) {
			continue
		}
		if c.tools[t.Name] != nil {
			note("it is there twice; the second one is left out")
			continue
		}
		r := &remote{server: s, own: t.Name, idle: s.spec.Idle}
		r.def = tool.Def{Name: name, Description: describe(t), Destination: s.destination(ss.init.ServerInfo)}
		if name != s.spec.Prefix+t.Name {
			r.def.Destination += " " + t.Name
		}
		var more []string
		r.def.Input, more = tool.LenientInput(encode(t.InputSchema))
		for _, n := range more {
			note(n)
		}
		if t.OutputSchema != nil {
			r.def.Output, more = tool.LenientOutput(encode(t.OutputSchema))
			for _, n := range more {
				note(n)
			}
		}
		r.def.Effect, r.def.Approval = effects(t.Annotations)
		s.spec.Apply(t.Name, &r.def)
		if err := r.prepare(); err != nil {
			note("it is left out: " + err.Error())
			continue
		}
		c.order = append(c.order, t.Name)
		c.tools[t.Name] = r
	}
	return c, notes
}

// effects reads the annotations. They are hints: where none are given a tool is of the worst kind. As the protocol says, a tool
// that writes destroys unless it says that it does not.
func effects(a *sdk.ToolAnnotations) (loop.Effect, loop.Verdict) {
	switch {
	case a == nil:
		return loop.Once, loop.Ask
	case a.ReadOnlyHint:
		return loop.Read, loop.Allow
	}
	effect, approval := loop.Once, loop.Ask
	if a.IdempotentHint {
		effect = loop.Idempotent
	}
	if a.DestructiveHint != nil && !*a.DestructiveHint {
		approval = loop.Allow
	}
	return effect, approval
}

func describe(t *sdk.Tool) string {
	d := strings.TrimSpace(valid(t.Description))
	if d == "" {
		d = valid(t.Title)
	}
	if d == "" && t.Annotations != nil {
		d = valid(t.Annotations.Title)
	}
	return shorten(d, maxWords)
}

// destination is the identity of the server: how it is reached, and what it calls itself. Approvals bind it.
func (s *Server) destination(info *sdk.Implementation) string {
	if info == nil || info.Name == "" {
		return s.spec.address()
	}
	who := strings.TrimSpace(plain(info.Name) + " " + plain(info.Version))
	return strings.TrimSpace(fmt.Sprintf("%s (%s)", s.spec.address(), who))
}

// plain makes a name that a server chose one that cannot deceive the reader of an approval.
func plain(s string) string {
	return shorten(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || strings.ContainsRune("()", r) {
			return '_'
		}
		return r
	}, valid(s)), 100)
}

// prepare verifies the definition and digests it.
func (r *remote) prepare() error {
	if _, err := tool.Verify(r); err != nil {
		return err
	}
	if len(r.def.Output) > 0 {
		out, err := tool.Compile(r.def.Output)
		if err != nil {
			return err
		}
		r.output = out
	}
	if t := r.def.Timeout; t > 0 {
		r.idle = min(r.idle, t)
	}
	r.binding = digest(r.own, r.def.Name, r.def.Destination, string(r.def.Effect), string(r.def.Input))
	r.whole = digest(r.binding, r.def.Description, string(r.def.Output))
	return nil
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// compare tells the differences, in the order of names. What did not change keeps its tool.
func (c *catalog) compare(now *catalog) (changes []Change) {
	for _, name := range c.order {
		if now.tools[name] == nil {
			changes = append(changes, Change{Tool: name, Kind: "removed", Was: c.tools[name].whole})
		}
	}
	for _, name := range now.order {
		was, is := c.tools[name], now.tools[name]
		switch {
		case was == nil:
			changes = append(changes, Change{Tool: name, Kind: "added", Is: is.whole})
		case was.whole == is.whole:
			now.tools[name] = was
		case was.binding == is.binding:
			changes = append(changes, Change{Tool: name, Kind: "reworded", Was: was.whole, Is: is.whole})
		default:
			changes = append(changes, Change{Tool: name, Kind: "changed", Was: was.whole, Is: is.whole})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return changes
}

// encode is JSON of a schema as the SDK decoded it; nil where there is none.
func encode(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}
