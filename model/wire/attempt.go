package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// Names of the clocks of one attempt, as Error.Clock carries them.
const (
	ClockConnect   = "connect"
	ClockFirstByte = "first_byte"
	ClockBetween   = "between_deltas"
	ClockCall      = "model_call"
)

// Attempt is one request on its way: its context, its clocks, and how far it came. The clocks follow each other: connect until
// there is a connection, first byte until the response begins, between deltas while the body is being read (the time that the
// reader spends elsewhere does not count); the call's clock covers all. A clock that fires cancels the context.
type Attempt struct {
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
	t           model.Timeouts
	left        atomic.Bool
	ended       bool // the body was read to its end

	mu       sync.Mutex
	phase    string
	timer    *time.Timer
	call     *time.Timer
	deadline atomic.Int64 // of the phase, in nanoseconds since start; far away while nobody waits
	start    time.Time
}

const far = int64(1) << 62

type clockError string

func (c clockError) Error() string { return "the clock " + string(c) + " fired" }

// Begin starts the clocks. The caller must call End.
func Begin(parent context.Context, t model.Timeouts) *Attempt {
	a := &Attempt{parent: parent, t: t, start: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(parent)
	if t.Call > 0 {
		a.call = time.AfterFunc(t.Call, func() { a.cancel(clockError(ClockCall)) })
	}
	a.enter(ClockConnect, t.Connect)
	a.ctx = httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { a.enter(ClockFirstByte, t.FirstByte) },
		WroteHeaders:         func() { a.left.Store(true) },
		GotFirstResponseByte: a.Answered,
	})
	return a
}

// Context is the context to send the request with.
func (a *Attempt) Context() context.Context { return a.ctx }

// Answered says that the response has begun. Transports that report to httptrace need no call.
func (a *Attempt) Answered() {
	a.left.Store(true)
	a.enter(ClockBetween, 0)
}

// End stops the clocks and releases the request. It may be called more than once.
func (a *Attempt) End() {
	a.enter("", 0)
	if a.call != nil {
		a.call.Stop()
	}
	a.cancel(nil)
}

// Finish reads what is left of a body whose end was seen, so that the connection can be used again, and closes it. A server that
// does not end the body after its end marker is not waited for.
func (a *Attempt) Finish(body io.ReadCloser) {
	a.enter("", 0)
	if a.ended {
		_ = body.Close()
		return
	}
	patience := time.AfterFunc(100*time.Millisecond, func() { a.cancel(nil) })
	defer patience.Stop()
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}

// Body gives r back with the clock between deltas around each Read.
func (a *Attempt) Body(r io.Reader) io.Reader {
	a.enter(ClockBetween, a.t.BetweenDeltas)
	return &clockedReader{a, r}
}

type clockedReader struct {
	a *Attempt
	r io.Reader
}

func (c *clockedReader) Read(p []byte) (int, error) {
	if d := c.a.t.BetweenDeltas; d > 0 {
		c.a.deadline.Store(int64(time.Since(c.a.start) + d))
		defer c.a.deadline.Store(far)
	}
	n, err := c.r.Read(p)
	if err == io.EOF {
		c.a.ended = true
	}
	return n, err
}

// enter begins a phase with a limit (0: none).
func (a *Attempt) enter(phase string, limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phase = phase
	if limit <= 0 {
		a.deadline.Store(far)
		if a.timer != nil {
			a.timer.Stop()
		}
		return
	}
	a.deadline.Store(int64(time.Since(a.start) + limit))
	if a.timer == nil {
		a.timer = time.AfterFunc(limit, a.fire)
	} else {
		a.timer.Reset(limit)
	}
}

// fire looks whether the phase is over its time; a deadline that moved on meanwhile gets a new timer.
func (a *Attempt) fire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase == "" {
		return
	}
	deadline := a.deadline.Load()
	if deadline == far {
		if a.phase == ClockBetween {
			a.timer.Reset(a.t.BetweenDeltas)
		}
		return
	}
	if left := time.Duration(deadline) - time.Since(a.start); left > 0 {
		a.timer.Reset(left)
		return
	}
	a.cancel(clockError(a.phase))
}

// Failed makes the error of an attempt that ended in transport: a clock, the caller's context, a connection that could not be
// made or broke. Lost is set where the request had left. An *model.Error in err is returned as it is.
func (a *Attempt) Failed(doing string, err error) *model.Error {
	var done *model.Error
	if errors.As(err, &done) {
		return done
	}
	e := &model.Error{Class: loop.ClassTransient, Lost: a.left.Load(), Err: err}
	var clock clockError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(context.Cause(a.ctx), &clock) && a.parent.Err() == nil:
		e.Clock, e.Err = string(clock), clock
		e.Message = doing + ": " + clock.Error()
		return e
	case a.parent.Err() != nil:
		e.Err = context.Cause(a.parent)
		e.Message = doing + ": cancelled: " + e.Err.Error()
		return e
	case errors.As(err, &cert):
		e.Class = loop.ClassFatal
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		e.Message = doing + ": the connection ended too early"
		return e
	}
	e.Message = doing + ": " + err.Error()
	return e
}

// Ended is the error of a stream that ended with neither an end marker nor a finish reason.
func Ended(doing string) *model.Error {
	return &model.Error{
		Class: loop.ClassTransient, Lost: true, Code: "incomplete_stream",
		Message: doing + ": the stream ended with neither an end marker nor a finish reason", Err: io.ErrUnexpectedEOF,
	}
}
