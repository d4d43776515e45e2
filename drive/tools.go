package drive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

var errToolClock = errors.New("tool")

// withTimeout ends a context after d on the host's clock; 0 is for ever.
func (d *driver) withTimeout(ctx context.Context, after time.Duration, cause error) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if after <= 0 {
		return ctx, cancel
	}
	stop := d.h.clock.AfterFunc(after, func() { cancel(cause) })
	return ctx, func(err error) { stop(); cancel(err) }
}

// beginTool puts the start of an attempt on record and runs it after the commit.
func (d *driver) beginTool(ctx context.Context, c loop.Command) (again bool, err error) {
	call, _ := d.state.Call(c.Call)
	args, err := d.args(c.Call)
	if err != nil {
		return false, fmt.Errorf("drive: run %s: call %s: %w", d.lease.Run, c.Call, err)
	}
	if body := d.recheck(ctx, call, args); body != nil {
		return true, d.step(body)
	}
	b := d.c.tools[call.Tool]
	if b == nil {
		return true, d.step(loop.CallRefused{Call: c.Call, Why: loop.WhyChanged, Message: "Error: the tool " + call.Tool + " is not available any more."})
	}
	start := loop.ToolStarted{Call: c.Call}
	if c.Attempt > 1 {
		start.Attempt = c.Attempt
	}
	if err := d.step(start); err != nil {
		return false, err
	}
	tc := tool.Call{Run: d.lease.Run, ID: c.Call, Name: call.Tool, Key: d.state.IdempotencyKey(c.Index), Attempt: int(c.Attempt), Args: args}
	var refs map[string]bool
	if b.builtin {
		refs = maps.Clone(d.refs)
	}
	d.under(ctx, c, func(ctx context.Context, w *work) { d.runTool(ctx, w, b, tc, refs) })
	return true, nil
}

// runTool executes one attempt. When the tool's time is up, or the attempt is aborted, it is told so and gets the grace time; what it
// says after that is not used.
func (d *driver) runTool(ctx context.Context, w *work, b *boundTool, tc tool.Call, refs map[string]bool) {
	if err := d.h.hook(Point{Name: "effect", Run: d.lease.Run, Call: w.cmd.ID}); err != nil {
		d.post(answer{id: w.cmd.ID, err: err})
		return
	}
	defer d.deadline(w, b.def.Timeout, errToolClock)()
	if b.def.Timeout > 0 {
		stop := d.h.clock.AfterFunc(b.def.Timeout+grace(&d.c.config), func() {
			d.post(answer{id: w.cmd.ID, body: loop.ToolFailed{Call: tc.ID, Attempt: attempt(tc.Attempt), Class: loop.ClassUnknown, Clock: "tool",
				Message: fmt.Sprintf("%s did not end within its time of %v, nor within the grace time", tc.Name, b.def.Timeout)}})
		})
		defer stop()
	}
	res, err := safely(func() (tool.Result, error) {
		if b.builtin {
			return d.readArtifact(ctx, b.cap(d), refs, tc.Args)
		}
		return b.tool.Run(ctx, tc)
	})
	if kill := d.h.hook(Point{Name: "effected", Run: d.lease.Run, Call: w.cmd.ID}); kill != nil {
		d.post(answer{id: w.cmd.ID, err: kill})
		return
	}
	if err != nil {
		d.post(answer{id: w.cmd.ID, body: d.toolFailure(ctx, b, tc, err)})
		return
	}
	body, artifacts := d.result(b, res)
	body.Call, body.Attempt = tc.ID, attempt(tc.Attempt)
	d.post(answer{id: w.cmd.ID, body: body, artifacts: artifacts})
}

// attempt leaves the usual 1 out of the journal.
func attempt(n int) int64 {
	if n == 1 {
		return 0
	}
	return int64(n)
}

// errPanic marks a panic of a tool.
type errPanic struct{ value any }

func (e errPanic) Error() string { return fmt.Sprintf("the tool panicked: %v", e.value) }

func safely(run func() (tool.Result, error)) (res tool.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic{r}
		}
	}()
	return run()
}

// toolFailure classes the end of an attempt.
func (d *driver) toolFailure(ctx context.Context, b *boundTool, tc tool.Call, err error) loop.ToolFailed {
	e := tool.AsError(err)
	f := loop.ToolFailed{Call: tc.ID, Attempt: attempt(tc.Attempt), Class: e.Class, Message: e.Error(), RetryAfter: toMicros(e.RetryAfter),
		Clock: e.Clock, NotRun: e.NotRun, Facts: e.Facts}
	var panicked errPanic
	switch {
	case errors.As(err, &panicked):
		f.Class = loop.ClassUnknown
	case f.Class == "":
		f.Class = loop.ClassError
	}
	cause := context.Cause(ctx)
	var ab abortError
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || f.Class == loop.ClassUnknown
	switch {
	case errors.As(cause, &ab):
		f.Cause = ab.cause
		if ended {
			f.Class, f.Clock = loop.ClassUnknown, ab.clock
		}
	case errors.Is(cause, errToolClock) && ended:
		f.Class, f.Clock = loop.ClassUnknown, "tool"
		f.Message = fmt.Sprintf("%s did not end within its time of %v", tc.Name, b.def.Timeout)
	case errors.Is(cause, errLetGo) && ended:
		f.Class, f.Cause = loop.ClassUnknown, loop.CauseCrash
	}
	if f.Class == loop.ClassUnknown && f.Cause == "" && b.def.Effect == loop.Read {
		f.Class = loop.ClassTransient // a read changes nothing: there is no outcome that could be unknown
	}
	f.Message = cut(valid(f.Message), b.cap(d))
	return f
}

// cap is how many bytes of a result enter the transcript.
func (b *boundTool) cap(d *driver) int {
	switch {
	case b.def.ResultCap > 0:
		return b.def.ResultCap
	case d.c.agent.ResultCap > 0:
		return d.c.agent.ResultCap
	}
	return DefaultResultCap
}

func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxFacts bounds what one call may establish: a fact is a piece of state, not a store.
const (
	maxFactBytes = 4 << 10
	maxFacts     = 64
)

// result turns what a tool returned into the event: what is over the cap becomes an artifact with a preview.
func (d *driver) result(b *boundTool, res tool.Result) (loop.ToolReturned, []journal.Artifact) {
	var artifacts []journal.Artifact
	r := loop.ToolReturned{Text: valid(res.Text)}
	follow := d.state.Config.ToolSpec(ReadArtifact) != nil
	limit := b.cap(d)
	if text := r.Text; len(text) > limit {
		r.Text, r.Ref, artifacts = cutText(text, limit, follow)
		r.Bytes, r.Sum = int64(len(text)), loop.Fingerprint([]byte(text))
	}
	for _, m := range res.More {
		if m.Media != nil && len(m.Media.Data) > 0 {
			art := Artifact(m.Media.MIME, m.Media.Data)
			artifacts = append(artifacts, art)
			media := *m.Media
			media.Ref, media.Data = art.Ref, nil
			m.Media = &media
		}
		text, ref, arts := cutText(valid(m.Text), limit, follow)
		if m.Text = text; ref != "" {
			r.Refs, artifacts = append(r.Refs, ref), append(artifacts, arts...)
		}
		r.More = append(r.More, m)
	}
	for name, v := range res.Facts {
		if len(v) > maxFactBytes || len(r.Facts) >= maxFacts || !json.Valid(v) {
			d.h.log.Warn("a fact was left out: it is too large, too many or no JSON", "run", d.lease.Run, "tool", b.def.Name, "fact", name, "bytes", len(v))
			continue
		}
		if r.Facts == nil {
			r.Facts = map[string]loop.Value{}
		}
		r.Facts[name] = v
	}
	return r, artifacts
}

// Artifact addresses bytes by their content.
func Artifact(mime string, data []byte) journal.Artifact {
	sum := sha256.Sum256(data)
	return journal.Artifact{Ref: "sha256:" + hex.EncodeToString(sum[:]), MIME: mime, Data: data}
}

// preview is the head and tail of a long result with the reference to all of it; it stays within the cap.
func preview(text string, limit int, ref string, follow bool) string {
	how := ""
	if follow {
		how = "; " + ReadArtifact + " shows parts of it"
	}
	note := "\n… [" + strconv.Itoa(len(text)) + " bytes in all; this is a preview. The whole result is " + ref + how + "] …\n"
	room := limit - len(note)
	if room <= 0 {
		note = " … [" + strconv.Itoa(len(text)) + " bytes: " + ref + "]"
		if room = limit - len(note); room <= 0 {
			return cut(text, max(limit-3, 0))
		}
		return strings.TrimSuffix(cut(text, room), "…") + note
	}
	head := cut(text, room*3/4)
	head = strings.TrimSuffix(head, "…")
	from := len(text) - (room - len(head))
	for from < len(text) && text[from]&0xC0 == 0x80 {
		from++
	}
	return head + note + text[from:]
}

// beginCheckEffect asks a tool whether the effect of a lost attempt happened.
func (d *driver) beginCheckEffect(ctx context.Context, c loop.Command) {
	call, _ := d.state.Call(c.Call)
	args, _ := d.args(c.Call)
	b := d.c.tools[call.Tool]
	key := d.state.IdempotencyKey(c.Index)
	d.under(ctx, c, func(ctx context.Context, w *work) {
		body := loop.EffectChecked{Call: c.Call, Happened: loop.HappenedUnknown}
		var checker tool.Checker
		if b != nil {
			checker, _ = b.tool.(tool.Checker)
		}
		if checker != nil {
			timeout := b.def.Timeout
			if timeout == 0 {
				timeout = time.Minute
			}
			ctx, cancel := d.withTimeout(ctx, timeout, errToolClock)
			defer cancel(nil)
			var happened string
			res, err := safely(func() (res tool.Result, err error) {
				happened, res, err = checker.Check(ctx, tool.Call{Run: d.lease.Run, ID: c.Call, Name: call.Tool, Key: key, Attempt: int(c.Attempt), Args: args})
				return res, err
			})
			switch {
			case err != nil:
				body.Message = cut(err.Error(), 1000)
			case happened == loop.HappenedYes || happened == loop.HappenedNo:
				r, artifacts := d.result(b, res)
				body.Happened, body.Text, body.Facts, body.Ref = happened, r.Text, r.Facts, r.Ref
				d.post(answer{id: w.cmd.ID, body: body, artifacts: artifacts})
				return
			}
		}
		d.post(answer{id: w.cmd.ID, body: body})
	})
}
