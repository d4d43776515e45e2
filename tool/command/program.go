package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// program is a resolved command. It is not changed after New.
type program struct {
	path      string
	args      []string // args[0] as written
	dir       string
	env       map[string]string
	inherit   bool
	timeout   time.Duration
	maxOutput int
	grace     time.Duration
}

// ending is how an execution ended.
type ending struct {
	stdout  head
	stderr  tail
	code    int    // the exit code; -1: none
	signal  string // what killed it
	stopped error  // the context's error where its end ended the program
}

func (p *program) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	var secrets tool.Secrets
	e, err := p.execute(ctx, call, &secrets)
	if err != nil {
		return tool.Result{}, err
	}
	res := secrets.HideResult(e.result())
	if e.stopped == nil && e.code == 0 {
		return res, nil
	}
	out := &tool.Error{Class: loop.ClassError, Facts: res.Facts}
	said := strings.TrimSpace(secrets.Hide(e.stderr.text()))
	if said == "" {
		said = shorten(strings.TrimSpace(res.Text), maxStderr)
	}
	how := ""
	switch {
	case e.stopped != nil:
		out.Class, out.Err = loop.ClassUnknown, e.stopped
		how = "the command was cancelled and ended"
		if errors.Is(e.stopped, context.DeadlineExceeded) {
			out.Clock, how = "tool", "the command took too long and was ended"
		}
	case e.signal != "":
		out.Class = loop.ClassUnknown
		how = "the command died by a signal: " + e.signal
	case e.code == ExitInvalid:
		out.Class = loop.ClassInvalid
	case e.code == ExitFatal:
		out.Class = loop.ClassFatal
	case e.code == ExitTransient:
		out.Class, out.NotRun = loop.ClassTransient, true
	case e.code == ExitDenied:
		out.Class = loop.ClassDenied
	}
	switch {
	case how == "" && said == "":
		out.Message = fmt.Sprintf("the command ended with exit code %d and said nothing", e.code)
	case how == "":
		out.Message = said
	case said == "":
		out.Message = how
	default:
		out.Message = how + "; it said: " + said
	}
	return tool.Result{}, out
}

func (p *program) check(ctx context.Context, call tool.Call) (string, tool.Result, error) {
	var secrets tool.Secrets
	e, err := p.execute(ctx, call, &secrets)
	if err != nil {
		return loop.HappenedUnknown, tool.Result{}, err
	}
	switch {
	case e.stopped != nil:
		return loop.HappenedUnknown, tool.Result{}, fmt.Errorf("the check was ended: %w", e.stopped)
	case e.code == 0:
		return loop.HappenedYes, secrets.HideResult(e.result()), nil
	case e.code == 1:
		return loop.HappenedNo, tool.Result{}, nil
	case e.signal != "":
		return loop.HappenedUnknown, tool.Result{}, fmt.Errorf("the check died by a signal: %s", e.signal)
	}
	return loop.HappenedUnknown, tool.Result{}, fmt.Errorf("the check ended with exit code %d: %s", e.code, strings.TrimSpace(secrets.Hide(e.stderr.text())))
}

// execute runs the program to its end. An error means that it was not started.
func (p *program) execute(ctx context.Context, call tool.Call, secrets *tool.Secrets) (*ending, error) {
	if err := ctx.Err(); err != nil {
		return nil, &tool.Error{Class: loop.ClassUnknown, NotRun: true, Err: fmt.Errorf("the command was not started: %w", err)}
	}
	env, err := p.environment(call, secrets)
	if err != nil {
		return nil, err
	}
	if p.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.timeout)
		defer cancel()
	}
	args := call.Args
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	e := &ending{stdout: head{max: p.maxOutput}}
	var ended atomic.Bool // by the context
	cmd := exec.CommandContext(ctx, p.path, p.args[1:]...)
	cmd.Args[0], cmd.Dir, cmd.Env = p.args[0], p.dir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(args), &e.stdout, &e.stderr
	// Wait goes on for WaitDelay after the context's or the program's end; then it kills the program and closes its pipes,
	// so that nobody who inherited them can hold the call up.
	cmd.WaitDelay = p.grace
	cmd.Cancel = func() error {
		ended.Store(true)
		return terminate(cmd.Process)
	}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, notStarted(err)
	}
	err = cmd.Wait()
	killGroup(cmd.Process)
	if ended.Load() {
		e.stopped = ctx.Err()
	}
	e.code = cmd.ProcessState.ExitCode()
	if e.code < 0 {
		e.signal = diedBy(cmd.ProcessState)
	}
	var exit *exec.ExitError
	if err != nil && e.stopped == nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		// The program's end is known, but not all of what it said: the pipes failed.
		e.stderr.Write([]byte("\n(reading from the command failed: " + err.Error() + ")"))
	}
	return e, nil
}

// notStarted classes the failure of a start: for want of resources it is worth another attempt.
func notStarted(err error) error {
	class := loop.ClassError
	if scarce(err) {
		class = loop.ClassTransient
	}
	return &tool.Error{Class: class, NotRun: true, Err: fmt.Errorf("the command could not be started: %w", err)}
}

func (e *ending) result() tool.Result {
	if e.stdout.lost == 0 {
		return tool.ParseOutput(e.stdout.buf.Bytes())
	}
	text := strings.ToValidUTF8(e.stdout.buf.String(), "\ufffd")
	return tool.Result{Text: text + fmt.Sprintf("\n[The output was cut: %d of %d bytes are shown.]", e.stdout.buf.Len(), int64(e.stdout.buf.Len())+e.stdout.lost)}
}

// head keeps the first max bytes of what is written and counts the rest, so that the writer is never held up.
type head struct {
	max  int
	buf  bytes.Buffer
	lost int64
}

func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.max-h.buf.Len())
	h.buf.Write(b[:n])
	h.lost += int64(len(b) - n)
	return len(b), nil
}

// maxStderr bounds the message of an error.
const maxStderr = 4 << 10

// tail keeps the last bytes of what is written: programs say last what went wrong.
type tail struct {
	buf []byte
	cut bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxStderr; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return len(b), nil
}

func (t *tail) text() string {
	s := strings.ToValidUTF8(string(t.buf), "\ufffd")
	if t.cut {
		s = "… " + s
	}
	return s
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}
