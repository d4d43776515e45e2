package openapi

import (
	"errors"
	"fmt"
	"maps"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/http"
)

// builder makes the tools of one document.
type builder struct {
	spec    Spec
	doc     *openapi3.T
	tree    any    // the document as JSON, for references
	url     string // of the server, without a slash at its end
	host    string
	headers map[string]string
	given   map[string]bool // security schemes that have a value
	needs   map[string]bool // those that operations need and that have none
	notes   []string
}

func (b *builder) note(format string, a ...any) { b.notes = append(b.notes, fmt.Sprintf(format, a...)) }

// base finds the address of the server.
func (b *builder) base() error {
	field, raw := "base_url", b.spec.BaseURL
	if raw == "" {
		field = "servers"
		if len(b.doc.Servers) == 0 {
			return errors.New("the document names no server; set base_url")
		}
		raw = expand(b.doc.Servers[0])
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %q cannot be read; set base_url", field, raw)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s: %q is not absolute; set base_url to an address that begins with http:// or https://", field, raw)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s: %q holds more than scheme, host and path", field, raw)
	}
	b.url, b.host = strings.TrimRight(raw, "/"), u.Scheme+"://"+u.Host
	return nil
}

// expand puts the defaults of a server's variables into its address.
func expand(s *openapi3.Server) string {
	out := s.URL
	for name, v := range s.Variables {
		out = strings.ReplaceAll(out, "{"+name+"}", v.Default)
	}
	return out
}

// security makes headers of the values of security schemes.
func (b *builder) security() error {
	b.given, b.needs = map[string]bool{}, map[string]bool{}
	var schemes openapi3.SecuritySchemes
	if b.doc.Components != nil {
		schemes = b.doc.Components.SecuritySchemes
	}
	for _, name := range slices.Sorted(maps.Keys(b.spec.Security)) {
		ref := schemes[name]
		if ref == nil || ref.Value == nil {
			return fmt.Errorf("security: the document has no scheme %q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
		}
		header, value, err := securityHeader(ref.Value, b.spec.Security[name])
		if err != nil {
			return fmt.Errorf("security: %s: %w", name, err)
		}
		if b.headers == nil {
			b.headers = map[string]string{}
		}
		if header == "Cookie" && b.headers[header] != "" {
			value = b.headers[header] + "; " + value
		}
		b.headers[header], b.given[name] = value, true
	}
	return nil
}

func securityHeader(s *openapi3.SecurityScheme, value string) (header, out string, err error) {
	switch {
	case s.Type == "apiKey" && s.In == "header":
		return nethttp.CanonicalHeaderKey(s.Name), value, nil
	case s.Type == "apiKey" && s.In == "cookie":
		return "Cookie", s.Name + "=" + value, nil
	case s.Type == "apiKey":
		return "", "", errors.New("keys in the query end up in logs and are not sent; ask for one in a header")
	case s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"), s.Type == "oauth2", s.Type == "openIdConnect":
		return "Authorization", "Bearer " + value, nil
	}
	return "", "", fmt.Errorf("a scheme of type %s %s has no such value; write the header under headers, as in Authorization: \"Basic ${CREDENTIALS}\"", s.Type, s.Scheme)
}

// methods in the order in which tools of one path are listed.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

func (b *builder) build() (*Document, error) {
	var have []string
	var ops []operation
	if b.doc.Paths != nil {
		paths := b.doc.Paths.Map()
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			for _, method := range methods {
				if op := paths[path].GetOperation(method); op != nil {
					o := operation{own: op.OperationID, method: method, path: path, item: paths[path], op: op}
					if o.own == "" {
						o.own = strings.ToLower(method) + " " + path
					}
					have, ops = append(have, o.own), append(ops, o)
				}
			}
		}
	}
	if err := b.spec.Check(have); err != nil {
		return nil, err
	}
	d := &Document{}
	namer := tool.Namer{Prefix: b.spec.Prefix}
	for _, o := range ops {
		name := namer.Name(strings.Trim(spaces.Replace(o.own), "_")) // also of tools that are left out, so that the others keep theirs
		if !b.spec.Offers(o.own) {
			continue
		}
		t, err := b.tool(o, name)
		if err != nil {
			b.note("operation %s is left out: %v", o.own, err)
			continue
		}
		d.tools = append(d.tools, t)
	}
	if len(b.needs) > 0 {
		b.note("operations need the security %s, for which no value and no header is set", strings.Join(slices.Sorted(maps.Keys(b.needs)), ", "))
	}
	d.notes = b.notes
	return d, nil
}

// spaces makes a short name of a method and a path.
var spaces = strings.NewReplacer(" /", "_", "/", "_", "{", "", "}", "")

type operation struct {
	own, method, path string
	item              *openapi3.PathItem
	op                *openapi3.Operation
}

// maxWords bounds a description, which costs tokens in every request.
const maxWords = 4 << 10

func (b *builder) tool(o operation, name string) (tool.Tool, error) {
	if err := b.sameServer(o); err != nil {
		return nil, err
	}
	in, err := b.inputs(o)
	if err != nil {
		return nil, err
	}
	def := tool.Def{Name: name, Description: describe(o.op), Effect: loop.Once, Approval: loop.Ask}
	switch o.method {
	case "GET", "HEAD":
		def.Effect, def.Approval = loop.Read, loop.Allow
	case "PUT", "DELETE":
		def.Effect = loop.Idempotent
	}
	var notes []string
	def.Input, notes = tool.LenientInput(in.schema())
	for _, n := range notes {
		b.note("operation %s: %s", o.own, n)
	}
	def.Output, notes = tool.LenientOutput(b.output(o.op))
	for _, n := range notes {
		b.note("operation %s: %s", o.own, n)
	}
	b.spec.Apply(o.own, &def)
	t, err := http.New(http.Spec{Def: def, Method: o.method, URL: b.url + in.path, Headers: b.headers, Arrange: in.arrange, Transport: b.spec.Transport})
	if err == nil {
		b.needed(o.op)
	}
	return t, err
}

// sameServer keeps the headers, which may hold keys, from hosts that the document smuggles in for single operations.
func (b *builder) sameServer(o operation) error {
	if b.spec.BaseURL != "" {
		return nil
	}
	servers := o.item.Servers
	if o.op.Servers != nil {
		servers = *o.op.Servers
	}
	if len(servers) == 0 {
		return nil
	}
	if own := strings.TrimRight(expand(servers[0]), "/"); own != b.url {
		return fmt.Errorf("it has a server of its own, %s; set base_url to call it at another one", own)
	}
	return nil
}

// needed notes the security schemes of an operation where none of its alternatives is given.
func (b *builder) needed(op *openapi3.Operation) {
	alternatives := b.doc.Security
	if op.Security != nil {
		alternatives = *op.Security
	}
	missing := map[string]bool{}
	for _, alternative := range alternatives {
		all := true
		for name := range alternative {
			if !b.given[name] && !b.headerFor(name) {
				all, missing[name] = false, true
			}
		}
		if all {
			return
		}
	}
	maps.Copy(b.needs, missing)
}

// headerFor reports whether a header that was given by hand serves a scheme.
func (b *builder) headerFor(name string) bool {
	if b.doc.Components == nil || b.doc.Components.SecuritySchemes[name] == nil {
		return false
	}
	want := "Authorization"
	if s := b.doc.Components.SecuritySchemes[name].Value; s != nil && s.Type == "apiKey" && s.In == "header" {
		want = s.Name
	}
	return hasHeader(b.headers, want)
}

func hasHeader(headers map[string]string, name string) bool {
	for h := range headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

func describe(op *openapi3.Operation) string {
	var parts []string
	for _, s := range []string{op.Summary, op.Description} {
		if s = strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd")); s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if op.Deprecated {
		parts = append(parts, "Deprecated.")
	}
	s := strings.Join(parts, "\n")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "") + " …"
	}
	return s
}

// output is the schema of the answer of success; nil where it is not JSON.
func (b *builder) output(op *openapi3.Operation) []byte {
	if op.Responses == nil {
		return nil
	}
	all := op.Responses.Map()
	for _, code := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(code, "2") || all[code] == nil || all[code].Value == nil {
			continue
		}
		if media := jsonMedia(all[code].Value.Content); media != nil && media.Schema != nil {
			c := converter{tree: b.tree, drop: "writeOnly"}
			return c.whole(c.convert(media.Schema))
		}
	}
	return nil
}

// jsonMedia is the JSON among the media types of a body; nil where there is none.
func jsonMedia(content openapi3.Content) *openapi3.MediaType {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if isJSON(name) {
			return content[name]
		}
	}
	return nil
}

func isJSON(mediaType string) bool {
	t, _, _ := strings.Cut(mediaType, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "application/json" || strings.HasSuffix(t, "+json") || t == "*/*"
}
