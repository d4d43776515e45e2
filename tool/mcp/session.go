package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one connection to a server.
type session struct {
	client  *sdk.ClientSession
	program *program // nil: none was started
	init    *sdk.InitializeResult
	listed  []*sdk.Tool
	hide    *secrets
	gone    chan struct{} // closed when the connection is lost
	changed chan struct{} // the server says that its list changed; holds one
	calls   *calls
}

func (ss *session) lost() bool {
	select {
	case <-ss.gone:
		return true
	default:
		return false
	}
}

// permanentError is of a kind that another attempt does not mend.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// legacy is the version of the protocol that is asked for when a server did not live through the first question of later ones.
const legacy = "2025-11-25"

// connect makes one connection and reads the list of tools.
func (s *Server) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.spec.ConnectTime, fmt.Errorf("there was no answer within %v", s.spec.ConnectTime))
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	ss, err := s.open(ctx, "")
	var final *permanentError
	if err != nil && len(s.spec.Command) > 0 && ctx.Err() == nil && !errors.As(err, &final) {
		ss, err = s.open(ctx, legacy)
	}
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	return ss, err
}

func (s *Server) open(ctx context.Context, version string) (*session, error) {
	ss := &session{gone: make(chan struct{}), changed: make(chan struct{}, 1), calls: &calls{}, hide: &secrets{}}
	transport, err := s.transport(ctx, ss)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(implementation, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, no sampling, no questions to the user
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case ss.changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if token, ok := r.Params.ProgressToken.(string); ok {
				ss.calls.progress(token)
			}
		},
	})
	fail := func(err error) (*session, error) {
		if ss.program != nil {
			_ = ss.program.end() // then what it said is complete
			if said := ss.program.said(); said != "" {
				err = fmt.Errorf("%w; the program said: %s", err, said)
			}
		}
		return nil, errors.New(ss.hide.text(err.Error()))
	}
	// The SDK's own waits do not all end with ctx.
	unhang := context.AfterFunc(ctx, func() {
		if ss.program != nil {
			ss.program.kill()
		}
	})
	defer unhang()
	if ss.client, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		return fail(err)
	}
	ss.init = ss.client.InitializeResult()
	if ss.listed, err = ss.list(ctx); err != nil {
		go ss.client.Close()
		return fail(err)
	}
	go func() {
		_ = ss.client.Wait()
		close(ss.gone)
	}()
	return ss, nil
}

// transport makes the way to the server.
func (s *Server) transport(ctx context.Context, ss *session) (sdk.Transport, error) {
	switch {
	case s.spec.Transport != nil:
		t, err := s.spec.Transport(ctx)
		if err != nil {
			return nil, err
		}
		return noting{t, nil}, nil
	case s.spec.URL != "":
		return s.overHTTP(ss)
	}
	p, err := s.start(ss.hide)
	if err != nil {
		return nil, err
	}
	ss.program = p
	return noting{p.transport(s.maxFrame()), p}, nil
}

// maxFrame bounds one message of the server: media are in base64 there, and structured results are there twice.
func (s *Server) maxFrame() int { return 3*s.spec.MaxResult + 1<<20 }

// maxTools bounds the list of one server.
const maxTools = 1000

func (ss *session) list(ctx context.Context) ([]*sdk.Tool, error) {
	if c := ss.client.InitializeResult().Capabilities; c != nil && c.Tools == nil {
		return nil, nil
	}
	var list []*sdk.Tool
	for t, err := range ss.client.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("read its tools: %w", err)
		}
		if list = append(list, t); len(list) > maxTools {
			return nil, &permanentError{fmt.Errorf("it offers more than %d tools", maxTools)}
		}
	}
	return list, nil
}

// calls are the calls under way, by the token that notifications of progress name.
type calls struct {
	next atomic.Int64
	mu   sync.Mutex
	by   map[string]func()
}

// begin registers a call; alive is called at each notification of its progress until end is.
func (c *calls) begin(alive func()) (token string, end func()) {
	token = fmt.Sprintf("ronda-%d", c.next.Add(1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]func(){}
	}
	c.by[token] = alive
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.by, token)
	}
}

func (c *calls) progress(token string) {
	c.mu.Lock()
	alive := c.by[token]
	c.mu.Unlock()
	if alive != nil {
		alive()
	}
}
