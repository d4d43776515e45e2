package wire

import (
	"net/http"
	"sync"
	"time"
)

// Client is the HTTP client of all adapters that are given none. It keeps more idle connections for each host than the
// default's two, since many runs talk to the same few hosts, and has no clock of its own: clocks belong to the attempt.
var Client = sync.OnceValue(func() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // wrapped by the program, for tracing as a rule
		return &http.Client{Transport: http.DefaultTransport}
	}
	t = t.Clone()
	t.MaxIdleConns = 1024
	t.MaxIdleConnsPerHost = 256
	t.IdleConnTimeout = 90 * time.Second
	return &http.Client{Transport: t}
})
