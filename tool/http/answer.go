package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	nethttp "net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// maxErrorBody bounds what an error repeats of an answer.
const maxErrorBody = 4 << 10

func (r *request) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := r.build(ctx, call)
	if err != nil {
		return tool.Result{}, &tool.Error{Class: loop.ClassInvalid, NotRun: true, Err: err}
	}
	var secrets tool.Secrets
	if err := r.setHeaders(req, call, &secrets); err != nil {
		return tool.Result{}, &tool.Error{Class: loop.ClassFatal, NotRun: true, Err: err}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		e := failed(ctx, err, connected.Load())
		e.Message = secrets.Hide(e.Message)
		return tool.Result{}, e
	}
	defer resp.Body.Close()
	body, more, err := readHead(resp.Body, r.maxBody)
	if err != nil {
		e := failed(ctx, err, true)
		if resp.StatusCode >= 300 { // what was refused is refused, however much of the reason arrived
			e = statusError(resp, body)
		}
		e.Message = secrets.Hide(e.Message)
		return tool.Result{}, e
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := statusError(resp, body)
		e.Message = secrets.Hide(e.Message)
		for name, v := range e.Facts {
			e.Facts[name] = json.RawMessage(secrets.Hide(string(v)))
		}
		return tool.Result{}, e
	}
	if more {
		text := strings.ToValidUTF8(string(body), "\ufffd") + fmt.Sprintf("\n[The answer was cut: its first %d bytes are shown.]", len(body))
		return secrets.HideResult(tool.Result{Text: text}), nil
	}
	return secrets.HideResult(tool.ParseOutput(body)), nil
}

func (r *request) setHeaders(req *nethttp.Request, call tool.Call, secrets *tool.Secrets) error {
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	req.Header.Set("User-Agent", "ronda")
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		v, err := secrets.Expand(r.headers[name], lookup)
		if err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
		if v = strings.TrimSpace(v); !httpguts.ValidHeaderFieldValue(v) {
			return fmt.Errorf("header %s: the value of a variable holds characters that a header cannot", name)
		}
		if nethttp.CanonicalHeaderKey(name) == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(name, v)
	}
	if call.Key != "" {
		req.Header.Set("Idempotency-Key", call.Key)
	}
	return nil
}

// failed classes an error without an answer.
func failed(ctx context.Context, err error, connected bool) *tool.Error {
	var ue *url.Error // its text repeats the URL, which the model and the reader know
	if errors.As(err, &ue) {
		err = ue.Err
	}
	e := &tool.Error{Class: loop.ClassUnknown, NotRun: !connected, Err: err}
	var ne net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Clock, e.Message = "tool", "no answer within the time of the tool"
	case ctx.Err() != nil:
		e.Message = "the request was cancelled"
	case errors.As(err, &cert):
		e.Class, e.Message = loop.ClassError, "the server's certificate was not accepted: "+err.Error()
	case !connected:
		e.Message = "the server was not reached: " + err.Error()
	case errors.As(err, &ne) && ne.Timeout():
		e.Message = "no answer in time: " + err.Error()
	default:
		e.Message = "the connection was cut before the whole answer was there: " + err.Error()
	}
	if !connected && e.Class == loop.ClassUnknown {
		e.Class = loop.ClassTransient
	}
	return e
}

// statusError classes an answer that is no result. See New for the rule.
func statusError(resp *nethttp.Response, body []byte) *tool.Error {
	e := &tool.Error{Class: loop.ClassError}
	switch resp.StatusCode {
	case nethttp.StatusBadRequest, nethttp.StatusUnprocessableEntity:
		e.Class = loop.ClassInvalid
	case nethttp.StatusUnauthorized, nethttp.StatusForbidden:
		e.Class = loop.ClassDenied
	case nethttp.StatusTooEarly, nethttp.StatusTooManyRequests, nethttp.StatusServiceUnavailable:
		e.Class, e.NotRun = loop.ClassTransient, true
		e.RetryAfter = retryAfter(resp.Header, time.Now())
	case nethttp.StatusRequestTimeout, nethttp.StatusBadGateway, nethttp.StatusGatewayTimeout:
		e.Class = loop.ClassUnknown
	}
	res := tool.ParseOutput(body)
	e.Facts = res.Facts
	e.Message = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, nethttp.StatusText(resp.StatusCode)))
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		e.Message += "; the redirect to " + shorten(strings.ToValidUTF8(to, "\ufffd"), 200) + " was not followed: it leads to another host, changes the method or cannot be repeated"
		return e
	}
	if said := strings.TrimSpace(res.Text); said != "" {
		e.Message += ": " + shorten(said, maxErrorBody)
	}
	return e
}

// retryAfter reads Retry-After, seconds or a date (RFC 9110, section 10.2.3); 0 is none.
func retryAfter(h nethttp.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		const long = 1 << 31 // whole lifetimes of runs; more would overflow a Duration
		return time.Duration(min(max(n, 0), long)) * time.Second
	}
	if at, err := nethttp.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// readHead reads at most n bytes and reports whether there are more.
func readHead(from io.Reader, n int) (b []byte, more bool, err error) {
	b, err = io.ReadAll(io.LimitReader(from, int64(n)+1))
	if len(b) > n {
		return b[:n], true, nil
	}
	return b, false, err
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}

// marshal encodes without the escaping of <, > and &.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}
