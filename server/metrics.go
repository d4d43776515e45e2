package server

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/ronda-go/ronda/journal"
)

// metrics are counters of this process; what the store knows is asked when somebody looks.
type metrics struct {
	requests [6]atomic.Int64 // by the hundred of the status
	streams  atomic.Int64
}

type readiness struct{ v atomic.Bool }

func (r *readiness) set(v bool) { r.v.Store(v) }
func (r *readiness) get() bool  { return r.v.Load() }

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) measured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(sw, r)
		s.metrics.requests[min(max(sw.status, 200)/100, 5)].Add(1)
	})
}

// serveMetrics writes the text format of Prometheus.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !identity(r.Context()).Role.may(Viewer) {
		refuse(w, http.StatusForbidden, "this needs the role viewer")
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintln(w, "# HELP ronda_http_requests_total Answered requests by class of status.\n# TYPE ronda_http_requests_total counter")
	for i := 2; i <= 5; i++ {
		fmt.Fprintf(w, "ronda_http_requests_total{class=\"%dxx\"} %d\n", i, s.metrics.requests[i].Load())
	}
	fmt.Fprintf(w, "# HELP ronda_event_streams Open event streams.\n# TYPE ronda_event_streams gauge\nronda_event_streams %d\n", s.metrics.streams.Load())
	fmt.Fprintln(w, "# HELP ronda_runs Runs by status, at most 1000 of each counted.\n# TYPE ronda_runs gauge")
	for _, status := range []string{"running", "waiting"} {
		page, err := s.store.List(r.Context(), journal.Query{Status: status, Limit: 1000})
		if err == nil {
			fmt.Fprintf(w, "ronda_runs{status=%q} %d\n", status, len(page.Runs))
		}
	}
}
