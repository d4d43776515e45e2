package mcp

import (
	"fmt"
	"io"
	"maps"
	"net"
	nethttp "net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"

	"github.com/ronda-go/ronda/tool"
)

// overHTTP makes the transport of streamable HTTP. Headers are resolved now, for the life of the connection.
func (s *Server) overHTTP(ss *session) (sdk.Transport, error) {
	headers := nethttp.Header{}
	for _, name := range slices.Sorted(maps.Keys(s.spec.Headers)) {
		v, err := ss.hide.expand(s.spec.Headers[name])
		if err != nil {
			return nil, &permanentError{fmt.Errorf("headers: %s: %w", name, err)}
		}
		if v = strings.TrimSpace(v); !httpguts.ValidHeaderFieldValue(v) {
			return nil, &permanentError{fmt.Errorf("headers: %s: the value of a variable holds characters that a header cannot", name)}
		}
		headers.Set(name, v)
	}
	return &sdk.StreamableClientTransport{
		Endpoint:     s.spec.URL,
		MaxEventSize: s.maxFrame(),
		HTTPClient: &nethttp.Client{
			Transport:     &roundTripper{headers: headers, maxBody: int64(s.maxFrame()), next: transport()},
			CheckRedirect: sameHost,
		},
	}, nil
}

func transport() *nethttp.Transport {
	return &nethttp.Transport{
		Proxy:               nethttp.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
	}
}

// sameHost stops at a redirect that leads elsewhere or would change the method, and of a request that cannot be repeated.
func sameHost(next *nethttp.Request, via []*nethttp.Request) error {
	first := via[0]
	if len(via) > 5 || next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		return nethttp.ErrUseLastResponse
	}
	return nil
}

// roundTripper adds the headers, bounds answers, and notes in an attempt how its request went.
type roundTripper struct {
	headers nethttp.Header
	maxBody int64
	next    nethttp.RoundTripper
}

func (rt *roundTripper) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	at := attemptOf(r.Context())
	ctx := r.Context()
	if r.Method != nethttp.MethodPost || at != nil && !at.posted.CompareAndSwap(false, true) {
		at = nil // a stream that is taken up again, or the word that a call was cancelled
	}
	if at != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { at.sent.Store(true) }})
	}
	r = r.Clone(ctx)
	for name, v := range rt.headers {
		if name == "Host" {
			r.Host = v[0]
			continue
		}
		r.Header[name] = v
	}
	if r.Method == nethttp.MethodPost {
		r.GetBody = nil // so that nobody below sends it a second time
	}
	resp, err := rt.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if at != nil {
		at.answered(resp)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &bounded{ReadCloser: resp.Body, left: rt.maxBody}
	}
	return resp, nil
}

func (rt *roundTripper) CloseIdleConnections() {
	if c, ok := rt.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bounded fails a body that is longer than it may be.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is too long")
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// retryAfter reads Retry-After, seconds or a date (RFC 9110, section 10.2.3); 0 is none.
func retryAfter(h nethttp.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), 1<<31)) * time.Second
	}
	if at, err := nethttp.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// secrets are the values of references; safe for concurrent use.
type secrets struct {
	mu sync.Mutex
	s  tool.Secrets
}

func (s *secrets) expand(text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s.Expand(text, lookup)
}

func (s *secrets) text(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s.Hide(text)
}
