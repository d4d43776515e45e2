// Package openapi makes tools of the operations of an OpenAPI 3 document. They run as HTTP tools do.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	nethttp "net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ronda-go/ronda/tool"
)

// Spec says which document to read and how to call what it describes. Document is required; the other zero values are useful.
type Spec struct {
	// Document is the path of an OpenAPI document, 3.0 or 3.1, in YAML or JSON. References may lead to other files in and below
	// its folder; nothing is fetched from elsewhere.
	Document string
	Dir      string // where a relative Document begins; "": here
	// BaseURL takes the place of the document's servers, of which else the first counts, with the defaults of its variables.
	BaseURL string
	// Headers are sent with each request. Values may refer to environment variables as ${NAME}.
	Headers map[string]string
	// Security gives the values of the document's security schemes by their names, as ${NAME}: the key of an apiKey (in a header
	// or a cookie), the token of http bearer, oauth2 and openIdConnect.
	Security map[string]string

	tool.Offer // own names: the operationId, or else the method in lower case and the path, as in get /pets/{id}

	Transport nethttp.RoundTripper // replaces the package http's own; for tests
}

// Document is a document that was read. It is not changed afterwards.
type Document struct {
	tools []tool.Tool
	notes []string
}

// Tools are the tools of the operations, in the order of path and method. The list is the caller's.
func (d *Document) Tools() []tool.Tool { return slices.Clone(d.tools) }

// Notes say which operations are left out and what could not be used as it is.
func (d *Document) Notes() []string { return slices.Clone(d.notes) }

// maxDocument bounds each file that is read.
const maxDocument = 16 << 20

// Load reads a document and makes its tools; the error names the field that is wrong.
//
// The arguments are one object: parameters by their names and the members of the JSON body beside them. Where names collide,
// parameters in the path keep theirs, then those in the query, in headers, and members of the body; the others get the place
// before the name, as in query_id and body_id. A body that is no plain object (a list, alternatives, members of any name) is
// one argument, body. Characters that providers refuse in names become _. Members that are readOnly are not asked for.
//
// GET and HEAD only read. PUT and DELETE are idempotent, POST and PATCH have the effect once; all four ask, unless an override
// says otherwise. Operations that need another body than JSON, parameters in cookies, or a server on another host than the rest
// of the document are left out, with a note.
func Load(ctx context.Context, s Spec) (*Document, error) {
	d, err := load(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("openapi: %s: %w", s.Document, err)
	}
	return d, nil
}

func load(ctx context.Context, s Spec) (*Document, error) {
	doc, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("the document cannot be used: %w", err)
	}
	b := &builder{spec: s, doc: doc, headers: maps.Clone(s.Headers)}
	if b.tree, err = decode(raw); err != nil {
		return nil, fmt.Errorf("the document cannot be used: %w", err)
	}
	if err := b.base(); err != nil {
		return nil, err
	}
	if err := b.security(); err != nil {
		return nil, err
	}
	return b.build()
}

// read loads the document and what it refers to.
func (s *Spec) read(ctx context.Context) (*openapi3.T, error) {
	if s.Document == "" {
		return nil, errors.New("document: name the file")
	}
	if strings.Contains(s.Document, "://") {
		return nil, errors.New("document: nothing is fetched. Save the document beside the agent and name the file")
	}
	path := s.Document
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	defer root.Close()
	loader := openapi3.NewLoader()
	loader.Context = ctx
	loader.IsExternalRefsAllowed = true
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, u *url.URL) ([]byte, error) {
		if u.Scheme != "" && u.Scheme != "file" || u.Host != "" {
			return nil, fmt.Errorf("the reference to %s leads elsewhere; nothing is fetched. Save it beside the document", u)
		}
		return readBelow(root, filepath.Dir(path), filepath.FromSlash(u.Path))
	}
	doc, err := loader.LoadFromURI(&url.URL{Path: filepath.ToSlash(path)})
	if err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	switch {
	case doc.OpenAPI == "":
		return nil, errors.New(`document: it does not say "openapi: 3…". Convert a Swagger 2 document first`)
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		return nil, fmt.Errorf("document: OpenAPI %s is not known; use 3.0 or 3.1", doc.OpenAPI)
	}
	doc.InternalizeRefs(ctx, nil)
	return doc, nil
}

// readBelow reads a file in or below a folder, wherever links lead.
func readBelow(root *os.Root, dir, path string) ([]byte, error) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s is outside of the document's folder", path)
	}
	f, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(b) > maxDocument {
		err = fmt.Errorf("%s is larger than %d MiB", rel, maxDocument>>20)
	}
	return b, err
}

func decode(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
