package anthropic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

const doing = "asking Anthropic"

// Generate implements model.Model.
func (a *adapter) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	client, fault := a.connect()
	if fault != nil {
		return nil, fault
	}
	b, err := a.encode(req)
	if err != nil {
		return nil, refused(err)
	}
	att := wire.Begin(ctx, req.Timeouts)
	defer att.End()
	res, err := a.send(client, att, b)
	if err != nil {
		return nil, failed(att, err)
	}
	defer res.Body.Close()
	d := newDecoder(sink)
	if err := d.read(res, req.Stream); err != nil {
		f := failed(att, err)
		f.Usage = d.usage()
		return nil, f
	}
	out, err := d.response()
	if err != nil {
		f := failed(att, err)
		f.Usage = d.usage()
		return nil, f
	}
	out.Notes = b.notes
	return out, nil
}

// parcel travels in the context to deliver, the outermost middleware of the SDK.
type parcel struct {
	a   *adapter
	b   *body
	att *wire.Attempt
}

type parcelKey struct{}

// send posts a request. The first one goes through the SDK, which resolves address, credentials and headers; where these are the
// same for every call (a key, none of the caller's own options), later ones go the direct way with what it resolved: putting
// the same request together again costs the SDK some 40 allocations a call and a tenth of a round's CPU time.
func (a *adapter) send(client *sdk.Client, att *wire.Attempt, b *body) (*http.Response, error) {
	if l := a.line.Load(); l != nil {
		return l.send(att, b)
	}
	var res *http.Response
	ctx := context.WithValue(att.Context(), parcelKey{}, &parcel{a, b, att})
	var opts []option.RequestOption
	if len(b.betas) > 0 {
		opts = append(opts, option.WithHeader(betaHeader, strings.Join(b.betas, ",")))
	}
	err := client.Post(ctx, "v1/messages", b.reader(), &res, opts...)
	return res, err
}

const betaHeader = "Anthropic-Beta"

// maxError bounds the body of an error that is read.
const maxError = 1 << 20

// deliver sees to what the SDK does not: the length of a body that is no buffer, and bounds and clocks on the body of an error.
func deliver(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	p, ok := r.Context().Value(parcelKey{}).(*parcel)
	if !ok {
		return next(r)
	}
	p.b.fill(r)
	if p.a.static {
		l := &line{client: p.a.http, url: r.URL, header: r.Header.Clone()}
		l.header.Del(betaHeader)
		p.a.line.Store(l)
	}
	res, err := next(r)
	if err == nil && res.Body != nil {
		in := p.att.Body(res.Body)
		if res.StatusCode >= 400 {
			in = io.LimitReader(in, maxError)
		}
		res.Body = &reading{in, res.Body}
	}
	return res, err
}

// fill puts the body into a request, with its length and the way to send it again on a connection that was closed meanwhile.
func (b *body) fill(r *http.Request) {
	body := b.reader()
	r.Body, r.ContentLength = body, body.Len()
	r.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil }
}

// line is what the SDK resolved: where to post, with which headers, through which client.
type line struct {
	client *http.Client
	url    *url.URL
	header http.Header
}

func (l *line) send(att *wire.Attempt, b *body) (*http.Response, error) {
	r := (&http.Request{Method: http.MethodPost, URL: l.url, Header: l.header.Clone(), Host: l.url.Host}).WithContext(att.Context())
	b.fill(r)
	if len(b.betas) > 0 {
		r.Header.Set(betaHeader, strings.Join(b.betas, ","))
	}
	res, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 400 {
		defer res.Body.Close()
		raw, err := io.ReadAll(io.LimitReader(att.Body(res.Body), maxError))
		if err != nil && len(raw) == 0 {
			return nil, err
		}
		return nil, refusal(res.StatusCode, res.Header, raw)
	}
	res.Body = &reading{att.Body(res.Body), res.Body}
	return res, nil
}

// reading is a body that is read through something and closed directly.
type reading struct {
	io.Reader
	io.Closer
}

// failed makes the error of an attempt from the SDK's, the transport's, or the decoder's.
func failed(att *wire.Attempt, err error) *model.Error {
	var api *sdk.Error
	if errors.As(err, &api) {
		e := refusal(api.StatusCode, api.Response.Header, []byte(api.RawJSON()))
		e.Err = err
		return e
	}
	return att.Failed(doing, err)
}

// refusal is the class of an error that the API reported (https://platform.claude.com/docs/en/api/errors), by its status and
// what it says of itself. x-should-retry is how the API overrides what the status says.
func refusal(status int, h http.Header, raw []byte) *model.Error {
	e := &model.Error{Status: status, Class: wire.ClassOf(status)}
	j := gjson.ParseBytes(raw)
	e.Code, e.Message = j.Get("error.type").Str, j.Get("error.message").Str
	if e.Message == "" {
		e.Message = strings.TrimSpace(string(raw[:min(len(raw), 500)]))
	}
	switch h.Get("X-Should-Retry") {
	case "true":
		e.Class = loop.ClassTransient
	case "false":
		e.Class = loop.ClassFatal
	}
	if tooLong(status, e) {
		e.Class, e.Window = loop.ClassInvalid, true
	}
	if e.Class == loop.ClassTransient {
		e.RetryAfter = wire.RetryAfter(h, e.Message, time.Now())
	}
	return e
}

// tooLong reports whether the request does not fit the model's window or the API's size of a request.
func tooLong(status int, e *model.Error) bool {
	return status == http.StatusRequestEntityTooLarge || e.Code == "request_too_large" || status == http.StatusBadRequest &&
		(strings.Contains(e.Message, "prompt is too long") || strings.Contains(e.Message, "exceed context limit"))
}

// inStream is the error event of a stream. It carries no status: the type says what it would have been. The request was under
// way, so it may be billed.
func inStream(data []byte) *model.Error {
	status := http.StatusBadRequest
	switch gjson.GetBytes(data, "error.type").Str {
	case "overloaded_error":
		status = 529
	case "rate_limit_error":
		status = http.StatusTooManyRequests
	case "timeout_error":
		status = http.StatusGatewayTimeout
	case "authentication_error":
		status = http.StatusUnauthorized
	case "permission_error", "billing_error":
		status = http.StatusForbidden
	case "not_found_error":
		status = http.StatusNotFound
	case "request_too_large":
		status = http.StatusRequestEntityTooLarge
	case "invalid_request_error":
	default: // api_error, and what nobody knows yet
		status = http.StatusInternalServerError
	}
	e := refusal(status, http.Header{}, data)
	e.Lost = true
	return e
}

// read reads the body, whatever was asked for: a gateway may answer a stream with JSON and the other way round.
func (d *decoder) read(res *http.Response, stream bool) error {
	if stream {
		first, in, err := wire.Sniff(res.Body)
		if err != nil {
			return err
		}
		if first != '{' {
			return d.stream(in)
		}
		b, err := wire.ReadAll(in, -1)
		if err != nil {
			return err
		}
		return d.whole(b)
	}
	b, err := wire.ReadAll(res.Body, res.ContentLength)
	if err != nil {
		return err
	}
	if t := bytes.TrimLeft(b, "\ufeff \t\r\n"); len(t) > 0 && t[0] != '{' && strings.Contains(res.Header.Get("Content-Type"), "event-stream") {
		return d.stream(bytes.NewReader(b))
	}
	return d.whole(b)
}
