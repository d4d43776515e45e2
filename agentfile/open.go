package agentfile

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/mcp"
)

// Servers opens the MCP servers that agent files name and closes them all: give its method MCP to Options. Files that name the
// same server in the same way share it. The zero value is ready; it is safe for concurrent use.
type Servers struct {
	// Context bounds the connecting; nil: nothing does but the server's own time.
	Context context.Context
	// Note is told what of a server's definitions could not be used as it is, and when it changes what it offers. nil: nobody is.
	Note func(string)

	mu     sync.Mutex
	open   map[string]*opened
	closed bool
}

type opened struct {
	connecting sync.Mutex
	server     *mcp.Server // nil: not connected
}

// MCP starts or reaches a server, unless that was done before, and returns the tools that it offers now.
func (s *Servers) MCP(spec ServerSpec) ([]tool.Tool, error) {
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return nil, err
	}
	spec.Dir, spec.Line = dir, 0
	key, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, mcp.ErrClosed
	}
	if s.open == nil {
		s.open = map[string]*opened{}
	}
	o := s.open[string(key)]
	if o == nil {
		o = &opened{}
		s.open[string(key)] = o
	}
	s.mu.Unlock()
	o.connecting.Lock()
	defer o.connecting.Unlock()
	if o.server == nil {
		if o.server, err = s.connect(spec); err != nil {
			return nil, err
		}
	}
	return o.server.Tools(), nil
}

func (s *Servers) connect(spec ServerSpec) (*mcp.Server, error) {
	ctx := s.Context
	if ctx == nil {
		ctx = context.Background()
	}
	where := spec.URL
	if where == "" && len(spec.Command) > 0 {
		where = filepath.Base(spec.Command[len(spec.Command)-1])
	}
	note := func(text string) {
		if s.Note != nil {
			s.Note("MCP server " + where + ": " + text)
		}
	}
	server, err := mcp.Connect(ctx, mcp.Spec{Command: spec.Command, Dir: spec.Dir, Env: spec.Env, URL: spec.URL, Headers: spec.Headers,
		Offer:    tool.Offer{Overrides: spec.Tools, Only: spec.Only, Prefix: spec.Prefix},
		OnChange: func(c mcp.Change) { note("tool " + c.Tool + " " + c.Kind) }})
	if err != nil {
		return nil, err
	}
	for _, n := range server.Notes() {
		note(n)
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(mcp.ErrClosed, server.Close())
	}
	return server, nil
}

// Close closes all servers. Calls under way end; later ones fail.
func (s *Servers) Close() error {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	var errs []error
	for _, o := range open {
		o.connecting.Lock()
		if o.server != nil {
			errs = append(errs, o.server.Close())
		}
		o.connecting.Unlock()
	}
	return errors.Join(errs...)
}
