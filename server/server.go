// Package server is ronda over HTTP: an API described by an OpenAPI 3.1 document, event streams that resume without loss or repeat, and who
// may do what. It drives runs on a drive.Host and wakes those whose time has come.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// Options configure a Server. Host is required.
type Options struct {
	Host *drive.Host
	// Agents lists what can be started, by name.
	Agents []Agent
	// Started is told of each run that a client started, before it is driven: the place to keep how its agent was made.
	Started func(ctx context.Context, run, agent, input string) error
	// Addr is where the server will listen. On a loopback address without tokens everybody on the machine is an admin; any other address
	// needs tokens.
	Addr    string
	Version string
	Log     *slog.Logger
	// Console serves everything outside of the API; nil: a page that names the API.
	Console http.Handler
	// MaxBody bounds requests in bytes; 0: 1 MiB. MaxStreams bounds open event streams; 0: 10,000.
	MaxBody    int64
	MaxStreams int
	// Hosts are further names under which browsers reach the server (Host and Origin are checked).
	Hosts []string
}

// Agent is an agent that clients can start.
type Agent struct {
	Name     string
	About    string
	Model    string
	Scripted bool
	Make     func(ctx context.Context, input string) (*drive.Agent, error)
}

// Server serves one store.
type Server struct {
	o       Options
	h       *drive.Host
	store   journal.Store
	log     *slog.Logger
	agents  map[string]Agent
	mux     *http.ServeMux
	auth    *auth
	streams chan struct{}
	metrics metrics
	ready   readiness
	stop    context.CancelFunc
	done    chan struct{}
	closing context.Context
}

// New makes a server. ErrNeedsTokens where the address is not loopback and nobody has a token.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Host == nil {
		return nil, errors.New("server: Host is missing")
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 10_000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, h: o.Host, store: o.Host.Store(), log: o.Log, agents: map[string]Agent{}, mux: http.NewServeMux(), streams: make(chan struct{}, o.MaxStreams), done: make(chan struct{})}
	for _, a := range o.Agents {
		s.agents[a.Name] = a
	}
	var err error
	if s.auth, err = newAuth(ctx, s.store, o); err != nil {
		return nil, err
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	s.routes()
	go s.wakeRuns(s.closing)
	return s, nil
}

// Handler is the whole server with all its checks.
func (s *Server) Handler() http.Handler {
	return s.measured(s.guarded(http.MaxBytesHandler(s.mux, s.o.MaxBody)))
}

// Serve listens until ctx ends, then lets streams end and hands runs over: whatever was under way can be resumed by any process.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	errs := make(chan error, 1)
	go func() { errs <- srv.Serve(ln) }()
	s.ready.set(true)
	select {
	case err := <-errs:
		return err
	case <-ctx.Done():
	}
	s.ready.set(false)
	s.Close()
	end, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(end), s.h.Shutdown(end))
}

// Close ends streams and the waking of runs. It does not touch the host.
func (s *Server) Close() {
	s.stop()
	<-s.done
}

// routes declares the API. The OpenAPI document is made from the Go types of the operations.
func (s *Server) routes() {
	s.describe(s.mux)
	if s.o.Console != nil {
		s.mux.Handle("/", s.o.Console)
	} else {
		s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintln(w, "ronda: the API is under /v1, its description at /openapi.json")
		})
	}
}

// describe declares the operations.
func (s *Server) describe(mux *http.ServeMux) huma.API {
	cfg := huma.DefaultConfig("ronda", s.o.Version)
	cfg.Info.Description = "Runs of agents: start, watch, approve, extend, cancel, replay. Errors are problems as RFC 9457 has them."
	cfg.DocsPath, cfg.SchemasPath, cfg.CreateHooks = "", "", nil
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "ronda token create"}}
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	api := humago.New(mux, cfg)
	s.runRoutes(api)
	s.approvalRoutes(api)
	s.plainRoutes(api)
	s.recordingRoutes(api)
	return api
}

// schemaName names the schema of a type. Other packages have types of the same names as this one's: theirs begin with the package's.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch pkg := path.Base(t.PkgPath()); pkg {
	case "loop", "recording":
		return strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	return name
}

// OpenAPI is the document that describes the API, as JSON.
func OpenAPI(version string) ([]byte, error) {
	s := &Server{o: Options{Version: version}, mux: http.NewServeMux()}
	api := s.describe(s.mux)
	return json.MarshalIndent(api.OpenAPI(), "", "  ")
}

// problem turns an error of the host into one of RFC 9457.
func problem(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, drive.ErrNotFound), errors.Is(err, journal.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, drive.ErrConflict), errors.Is(err, drive.ErrBusy), errors.Is(err, journal.ErrExists), errors.Is(err, journal.ErrStopped), errors.Is(err, drive.ErrChanged):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, drive.ErrInvalid):
		return huma.Error422UnprocessableEntity(err.Error())
	case errors.Is(err, journal.ErrHeld):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, journal.ErrDiskFull), errors.Is(err, journal.ErrReadOnly):
		return huma.Error503ServiceUnavailable(err.Error())
	}
	return huma.Error500InternalServerError("the server failed; its log says how", err)
}

// wakeRuns resumes what nobody drives: runs that were left running, runs with inputs, runs whose time has come.
func (s *Server) wakeRuns(ctx context.Context) {
	defer close(s.done)
	signal, stop := s.store.Notify("")
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	s.wake(ctx, journal.Query{Status: loop.StatusRunning})
	for {
		select {
		case <-ctx.Done():
			return
		case <-signal:
			s.wake(ctx, journal.Query{Inputs: true})
			continue
		case <-tick.C:
		}
		s.wake(ctx, journal.Query{Inputs: true})
		s.wake(ctx, journal.Query{WakeBy: loop.Micros(s.h.Clock().Now().UnixMicro())})
	}
}

// wake begins to drive the root of each run that a query finds, if no process does.
func (s *Server) wake(ctx context.Context, q journal.Query) {
	q.Limit = 100
	page, err := s.store.List(ctx, q)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("looking for runs to wake failed", "error", err)
		}
		return
	}
	seen := map[string]bool{}
	for _, r := range page.Runs {
		root := r.Root
		if root == "" {
			root = r.ID
		}
		if r.Status == loop.StatusStopped || seen[root] || s.h.Driving(root) {
			continue
		}
		seen[root] = true
		s.h.ResumeInBackground(root)
	}
}
