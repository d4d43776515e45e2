package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/tool"
)

// Server is an MCP server that tools were made of. It is safe for concurrent use.
//
// When the connection is lost, the next call makes a new one, with growing pauses between a few attempts; a program is started
// again for it. A call that was under way is never sent again by itself.
type Server struct {
	spec Spec
	ctx  context.Context // ends at Close
	end  context.CancelCauseFunc

	connecting sync.Mutex // held while a connection is made
	reading    sync.Mutex // held while the list of tools is read and changes are told

	mu      sync.Mutex
	session *session // nil: none, or lost
	closed  bool
	catalog catalog
	notes   []string
}

// ErrClosed is wrapped by errors of calls after Close.
var ErrClosed = errors.New("the MCP server was closed")

// Connect starts or reaches a server and reads what it offers. The error names the field that is wrong, or says what the server
// did. ctx bounds the connecting only; the caller closes the server.
func Connect(ctx context.Context, spec Spec) (*Server, error) {
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	spec.withDefaults()
	s := &Server{spec: spec}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	ss, err := s.connect(ctx)
	if err != nil {
		s.end(ErrClosed)
		return nil, fmt.Errorf("mcp: %s: %w", spec.address(), err)
	}
	have := make([]string, 0, len(ss.listed))
	for _, t := range ss.listed {
		have = append(have, t.Name)
	}
	if err := spec.Check(have); err != nil {
		return nil, errors.Join(fmt.Errorf("mcp: %s: %w", spec.address(), err), s.shut(ss))
	}
	s.catalog, s.notes = s.define(ss)
	s.session = ss
	s.watch(ss)
	return s, nil
}

// Tools are the tools that the server offers now, in the order of their names. Tools of an earlier answer go on working as
// Change says.
func (s *Server) Tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]tool.Tool, 0, len(s.catalog.order))
	for _, name := range s.catalog.order {
		list = append(list, s.catalog.tools[name])
	}
	return list
}

// Notes say what of the server's definitions could not be used as it is.
func (s *Server) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.notes...)
}

// Instructions are what the server says about its use; often "".
func (s *Server) Instructions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.catalog.instructions
}

// Close ends the calls under way (their outcome is unknown) and the connection, and the server's process group where it was
// started. The second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	ss, closed := s.session, s.closed
	s.session, s.closed = nil, true
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.end(ErrClosed)
	s.connecting.Lock() // a connection in the making sees the end and goes
	defer s.connecting.Unlock()
	return s.shut(ss)
}

// shut ends a connection; nil is none.
func (s *Server) shut(ss *session) error {
	if ss == nil {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- ss.client.Close() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(3 * s.spec.Grace): // whoever does not answer is ended all the same
	}
	if ss.program != nil {
		return ss.program.end()
	}
	if ss.lost() {
		return nil // it was gone before
	}
	return err
}

// Bounds of making a connection again within one call.
const (
	maxConnects  = 4
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// live returns the connection, and makes one where it was lost.
func (s *Server) live(ctx context.Context) (*session, error) {
	if ss, err := s.current(); ss != nil || err != nil {
		return ss, err
	}
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if ss, err := s.current(); ss != nil || err != nil { // somebody else made it meanwhile
		return ss, err
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstPause, longestPause
	ss, err := backoff.Retry(ctx, func() (*session, error) {
		ss, err := s.connect(ctx)
		var final *permanentError
		if errors.As(err, &final) || s.ctx.Err() != nil {
			return nil, backoff.Permanent(err)
		}
		return ss, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(maxConnects))
	if err != nil {
		return nil, err
	}
	s.adopt(ss)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		go s.shut(ss)
		return nil, ErrClosed
	}
	s.session = ss
	s.watch(ss)
	return ss, nil
}

func (s *Server) current() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.session != nil && s.session.lost() {
		s.drop(s.session)
	}
	return s.session, nil
}

// drop forgets a lost connection. s.mu is held.
func (s *Server) drop(ss *session) {
	if s.session == ss {
		s.session = nil
	}
	go s.shut(ss)
}

// forget is drop for a caller who found out that a connection is of no use any more.
func (s *Server) forget(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == ss {
		s.drop(ss)
	}
}

// watch reads the list again when the server says that it changed.
func (s *Server) watch(ss *session) {
	go func() {
		for {
			select {
			case <-ss.changed:
				s.reread(ss)
			case <-ss.gone:
				return
			case <-s.ctx.Done():
				return
			}
		}
	}()
}

func (s *Server) reread(ss *session) {
	ctx, cancel := context.WithTimeout(s.ctx, s.spec.ConnectTime)
	defer cancel()
	listed, err := ss.list(ctx)
	if err != nil {
		return // it says so again, or the connection is lost and the next one reads it
	}
	next := *ss
	next.listed = listed
	s.adopt(&next)
}

// adopt takes what a connection listed for what the server offers, and tells the differences.
func (s *Server) adopt(ss *session) {
	s.reading.Lock()
	defer s.reading.Unlock()
	now, notes := s.define(ss)
	s.mu.Lock()
	was := s.catalog
	changes := was.compare(&now)
	s.catalog, s.notes = now, notes
	s.mu.Unlock()
	if s.spec.OnChange == nil {
		return
	}
	for _, c := range changes {
		s.spec.OnChange(c)
	}
}

// implementation is how the client names itself.
var implementation = &sdk.Implementation{Name: "ronda", Version: "1"}
