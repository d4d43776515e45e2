package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// remote is a tool of a server as it was when the list was read. It is not changed afterwards.
type remote struct {
	server  *Server
	own     string // the server's name for it
	def     tool.Def
	output  *tool.Schema // nil: none
	idle    time.Duration
	binding string // digest of what an approval binds
	whole   string // digest of all
}

func (r *remote) Def() tool.Def { return r.def }

// attempt notes how a call went on the wire.
type attempt struct {
	sent   atomic.Bool // some of it may have reached the server
	posted atomic.Bool
	mu     sync.Mutex
	status int // of the HTTP answer; 0: none
	wait   time.Duration
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	at, _ := ctx.Value(attemptKey{}).(*attempt)
	return at
}

func (at *attempt) answered(resp *nethttp.Response) {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.status, at.wait = resp.StatusCode, retryAfter(resp.Header, time.Now())
}

// Causes of the end of a call's context.
var (
	errIdle = errors.New("no answer and no progress within the time of the tool")
	errLong = errors.New("no answer within the longest time of a call")
)

// Run executes one attempt. Errors have these classes:
//
//   - a result that says that it is an error: error; arguments that the server does not take: invalid; its other refusals: error
//   - a server that is not reached, or that lost the session: transient, did not run
//   - HTTP 401 and 403: denied; 425, 429 and 503: transient, did not run; 408, 502 and 504: unknown
//   - a connection that dies, time that is up or a cancellation while the server has the call: unknown. It is told that the
//     call is cancelled.
func (r *remote) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	for try := 0; ; try++ {
		res, err, again := r.attempt(ctx, call)
		if err == nil || !again || try > 0 {
			return res, err
		}
	}
}

// attempt is one sending of a call at most. again: it was not sent, because the connection turned out to be lost.
func (r *remote) attempt(ctx context.Context, call tool.Call) (res tool.Result, err error, again bool) {
	notRun := func(class loop.Class, format string, a ...any) (tool.Result, error, bool) {
		e := fmt.Errorf(format, a...)
		return tool.Result{}, &tool.Error{Class: class, NotRun: true, Message: e.Error(), Err: e}, false
	}
	if err := ctx.Err(); err != nil {
		return notRun(loop.ClassUnknown, "the call was not sent: %w", err)
	}
	ss, err := r.server.live(ctx)
	switch {
	case errors.Is(err, ErrClosed):
		return notRun(loop.ClassError, "the call was not sent: %w", err)
	case err != nil && ctx.Err() != nil:
		return notRun(loop.ClassUnknown, "the call was not sent: %w", ctx.Err())
	case err != nil:
		return notRun(loop.ClassTransient, "the MCP server is not reached: %w", err)
	}
	if why := r.stale(); why != "" {
		return notRun(loop.ClassError, "%s", why)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(r.server.ctx, func() { end(ErrClosed) })()
	idle := time.AfterFunc(r.idle, func() { end(errIdle) })
	defer idle.Stop()
	long := time.AfterFunc(r.server.spec.MaxTime, func() { end(errLong) })
	defer long.Stop()
	token, over := ss.calls.begin(func() {
		if ctx.Err() == nil {
			idle.Reset(r.idle)
		}
	})
	defer over()
	at := &attempt{}
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params := &sdk.CallToolParams{Name: r.own, Arguments: args, Meta: sdk.Meta{"progressToken": token}}
	if call.Key != "" {
		params.Meta[KeyMeta] = call.Key
	}
	answer, err := ss.client.CallTool(context.WithValue(ctx, attemptKey{}, at), params)
	if err != nil {
		e, lost := r.failure(ctx, ss, at, err)
		if lost {
			r.server.forget(ss)
		}
		e.Message = ss.hide.text(e.Message)
		return tool.Result{}, e, lost && e.NotRun && ctx.Err() == nil
	}
	res, err = r.result(ss, answer)
	return res, err, false
}

// stale says why a tool must not be called any more, or "".
func (r *remote) stale() string {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	now := r.server.catalog.tools[r.own]
	switch {
	case now == nil:
		return "the MCP server does not offer " + r.own + " any more; it was not called"
	case now.binding != r.binding && r.def.Effect != loop.Read:
		return "the MCP server has changed " + r.own + " since this run was given it; it was not called. Resume the run to take the new definition"
	}
	return ""
}

// failure classes an error of a call. lost: the connection is of no use any more.
func (r *remote) failure(ctx context.Context, ss *session, at *attempt, err error) (e *tool.Error, lost bool) {
	at.mu.Lock()
	status, wait := at.status, at.wait
	at.mu.Unlock()
	e = &tool.Error{Class: loop.ClassUnknown, Err: err, NotRun: !at.sent.Load()}
	var rpc *jsonrpc.Error
	isRPC := errors.As(err, &rpc) && rpc.Code < -32005 || rpc != nil && rpc.Code > -32003
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle), errors.Is(cause, errLong):
		e.Clock, e.Message = "tool", cause.Error()
	case errors.Is(cause, ErrClosed):
		e.Message = ErrClosed.Error() + " during the call"
	case ctx.Err() != nil:
		e.Message, e.Err = "the call was cancelled", ctx.Err()
	case isRPC && at.sent.Load():
		e.Class, e.Message = refusal(rpc), "the MCP server refuses the call: "+shorten(valid(rpc.Message), maxMessage)
		return e, false
	case errors.Is(err, sdk.ErrSessionMissing):
		e.Class, e.NotRun, e.Message = loop.ClassTransient, true, "the MCP server does not know the session any more"
		return e, true
	case status != 0 && (status < 200 || status > 299):
		byStatus(e, status, wait)
		return e, ss.lost()
	case !at.sent.Load():
		e.Class, e.Message = loop.ClassTransient, "the MCP server is not reached: "+err.Error()
		return e, true
	default:
		e.Message = "the connection to the MCP server ended before its answer: " + err.Error()
		if ss.program != nil {
			if said := ss.program.said(); said != "" {
				e.Message += "; the program said: " + said
			}
		}
		return e, true
	}
	return e, false
}

// refusal is the class of an error of the protocol (JSON-RPC 2.0, section 5.1).
func refusal(rpc *jsonrpc.Error) loop.Class {
	if rpc.Code == jsonrpc.CodeInvalidParams {
		return loop.ClassInvalid
	}
	return loop.ClassError
}

func byStatus(e *tool.Error, status int, wait time.Duration) {
	e.Message = strings.TrimSpace(fmt.Sprintf("the MCP server answers HTTP %d %s", status, nethttp.StatusText(status)))
	switch status {
	case nethttp.StatusUnauthorized, nethttp.StatusForbidden:
		e.Class = loop.ClassDenied
	case nethttp.StatusTooEarly, nethttp.StatusTooManyRequests, nethttp.StatusServiceUnavailable:
		e.Class, e.NotRun, e.RetryAfter = loop.ClassTransient, true, wait
	case nethttp.StatusRequestTimeout, nethttp.StatusBadGateway, nethttp.StatusGatewayTimeout:
		e.Class = loop.ClassUnknown
	default:
		e.Class = loop.ClassError
	}
}
