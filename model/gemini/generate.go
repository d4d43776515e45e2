package gemini

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

const doing = "asking Gemini"

// Generate implements model.Model.
func (a *adapter) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	l, fault := a.connect(ctx)
	if fault != nil {
		return nil, fault
	}
	b, err := a.encode(req)
	if err != nil {
		return nil, refused(err)
	}
	att := wire.Begin(ctx, req.Timeouts)
	defer att.End()
	res, err := l.send(att, b, req.Stream)
	if err != nil {
		return nil, att.Failed(doing, err)
	}
	defer res.Body.Close()
	in := att.Body(res.Body)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		raw, err := io.ReadAll(io.LimitReader(in, maxError))
		if err != nil && len(raw) == 0 {
			return nil, att.Failed(doing, err)
		}
		return nil, refusal(res.StatusCode, res.Header, raw)
	}
	d := &decoder{sink: sink}
	if err := d.read(in, res.ContentLength); err != nil {
		f := att.Failed(doing, err)
		f.Usage = d.usage()
		return nil, f
	}
	out, err := d.response()
	if err != nil {
		f := att.Failed(doing, err)
		f.Usage = d.usage()
		return nil, f
	}
	out.Notes = b.notes
	return out, nil
}

func (l *line) send(att *wire.Attempt, b *body, stream bool) (*http.Response, error) {
	url := l.whole
	if stream {
		url = l.stream
	}
	r, err := http.NewRequestWithContext(att.Context(), http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	body := b.reader()
	r.Body, r.ContentLength = body, body.Len()
	r.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil }
	r.Header = l.header.Clone()
	return l.client.Do(r)
}

// maxError bounds the body of an error that is read.
const maxError = 1 << 20

// refusal is the class of an error that the API reported (https://ai.google.dev/gemini-api/docs/troubleshooting), by its HTTP
// status. A stream wraps the error in an array.
func refusal(status int, h http.Header, raw []byte) *model.Error {
	e := &model.Error{Status: status, Class: wire.ClassOf(status)}
	j := gjson.GetBytes(raw, "error")
	if !j.Exists() {
		j = gjson.GetBytes(raw, "0.error")
	}
	e.Code, e.Message = j.Get("status").Str, j.Get("message").Str
	if e.Message == "" {
		e.Message = strings.TrimSpace(string(raw[:min(len(raw), 500)]))
	}
	if tooLong(status, e.Message) {
		e.Class, e.Window = loop.ClassInvalid, true
	}
	if e.Class == loop.ClassTransient {
		e.RetryAfter = retryInfo(j.Get("details"))
		if e.RetryAfter == 0 {
			e.RetryAfter = wire.RetryAfter(h, e.Message, time.Now())
		}
	}
	return e
}

// tooLong knows the words for a prompt above the model's window ("The input token count (1200000) exceeds the maximum number
// of tokens allowed (1048576).") and for a body above the API's size.
func tooLong(status int, message string) bool {
	return status == http.StatusRequestEntityTooLarge || status == http.StatusBadRequest &&
		strings.Contains(message, "token count") && strings.Contains(message, "exceeds the maximum number of tokens")
}

// retryInfo is the wait in google.rpc.RetryInfo.
func retryInfo(details gjson.Result) (wait time.Duration) {
	details.ForEach(func(_, d gjson.Result) bool {
		if strings.HasSuffix(d.Get("@type").Str, "google.rpc.RetryInfo") {
			if w, err := time.ParseDuration(d.Get("retryDelay").Str); err == nil && w > 0 {
				wait = w
			}
		}
		return true
	})
	return wait
}

// inStream is an error that comes in a response that has begun: it may be billed.
func inStream(raw []byte) *model.Error {
	j := gjson.GetBytes(raw, "error")
	status := int(j.Get("code").Int())
	if status < 400 || status > 599 {
		status = map[string]int{
			"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404,
			"RESOURCE_EXHAUSTED": 429, "CANCELLED": 499, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
		}[j.Get("status").Str]
		if status == 0 {
			status = http.StatusInternalServerError
		}
	}
	e := refusal(status, http.Header{}, raw)
	e.Lost = true
	return e
}

// read reads a body in the form that it has: one JSON object, an array of them (streamGenerateContent without alt=sse, which
// some gateways answer with), or server-sent events.
func (d *decoder) read(r io.Reader, size int64) error {
	first, in, err := wire.Sniff(r)
	if err != nil {
		return err
	}
	switch first {
	case '[':
		err := array(in, d.frame)
		if err != nil && d.reason != "" {
			return overlook(err)
		}
		return err
	case '{':
		b, err := wire.ReadAll(in, size)
		if err != nil {
			return err
		}
		d.whole = true
		return d.frame(b)
	}
	err = wire.Events(in, func(_, data []byte) error { return d.frame(data) })
	if err != nil && d.reason != "" {
		return overlook(err)
	}
	return err
}

// overlook forgives a transport that breaks after the finish reason, not what the provider said.
func overlook(err error) error {
	if e, ok := err.(*model.Error); ok {
		return e
	}
	return nil
}
