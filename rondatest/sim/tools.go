package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// behaviour is what one attempt of a call does. It depends on the call and on how many of its attempts failed on record, so that an
// attempt that a crash took away is served again.
type behaviour struct {
	kind    string // ok, error, invalid, denied, transient, fatal, unknown, panic, hang
	happens bool   // the effect takes place
	late    bool   // at the end of the time it takes, not at its beginning
	takes   time.Duration
}

func (t *simTool) behaviour(path, call string, failed int64) (behaviour, *rand.Rand) {
	r := dice(t.w.seed, "tool", path, call, failed)
	b := behaviour{kind: "ok", happens: true, late: in(r, 50), takes: t.t.takes + time.Duration(r.IntN(900_000))*time.Microsecond}
	switch n := r.IntN(100); {
	case n < 66:
	case n < 72:
		b.kind, b.happens = "error", false
	case n < 74:
		b.kind, b.happens = "invalid", false
	case n < 76:
		b.kind, b.happens = "denied", false
	case n < 86:
		b.kind, b.happens = "transient", false
	case n < 87:
		b.kind, b.happens = "fatal", in(r, 50)
	case n < 93:
		b.kind, b.happens = "unknown", in(r, 50)
	case n < 96:
		b.kind, b.happens = "panic", in(r, 50)
	default:
		if t.t.def.Timeout > 0 {
			b.kind, b.happens, b.takes = "hang", in(r, 50), time.Hour
		}
	}
	return b, r
}

// Run executes one attempt.
func (t *simTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	w := t.w
	e := &execution{tool: c, def: t.t.def, path: w.path(c.Run)}
	if w.plant.before != nil {
		w.plant.before(e)
	}
	res, err := t.execute(ctx, e)
	if w.plant.call != nil && w.plant.call(w, e) {
		return t.execute(ctx, e)
	}
	return res, err
}

func (t *simTool) execute(ctx context.Context, e *execution) (tool.Result, error) {
	w, c := t.w, e.tool
	failed, dead := w.checkExecution(t.door, e)
	if dead {
		return tool.Result{}, &tool.Error{Class: loop.ClassUnknown, Message: "dead"}
	}
	b, r := t.behaviour(e.path, c.ID, failed)
	if b.happens && !b.late {
		w.happens(t.door, e)
	}
	if err := sleep(ctx, t.door, b.takes); err != nil {
		if t.obeys(r) { // says so; else it is cut off
			return tool.Result{}, err
		}
		return tool.Result{}, &tool.Error{Class: loop.ClassUnknown, Message: "interrupted", Err: err}
	}
	if b.happens && b.late {
		w.happens(t.door, e)
	}
	facts := t.facts(e.path, c, r)
	switch b.kind {
	case "ok":
		return t.result(e.path, c, facts, r), nil
	case "panic":
		panic("by lot")
	case "transient":
		return tool.Result{}, &tool.Error{Class: loop.ClassTransient, Message: "busy", RetryAfter: pick(r, 0, 0, 7*time.Second)}
	}
	return tool.Result{}, &tool.Error{Class: loop.Class(b.kind), Message: "by lot: " + b.kind}
}

func (t *simTool) obeys(r *rand.Rand) bool { return in(r, 50) }

// facts are a function of the call: the same in each world.
func (t *simTool) facts(path string, c tool.Call, _ *rand.Rand) map[string]json.RawMessage {
	r := dice(t.w.seed, "facts", path, c.ID)
	if !in(r, 30) {
		return nil
	}
	return map[string]json.RawMessage{pick(r, "f0", "f1", "f2"): json.RawMessage(fmt.Sprintf(`"%s %s"`, path, c.ID))}
}

func (t *simTool) result(path string, c tool.Call, facts map[string]json.RawMessage, _ *rand.Rand) tool.Result {
	r := dice(t.w.seed, "result", t.t.def.Name, string(c.Args))
	if t.w.draw.stuck {
		facts = nil
	}
	res := tool.Result{Text: fmt.Sprintf("%s of %s: id v%d", t.t.def.Name, c.Args, r.IntN(4)), Facts: facts}
	if in(r, 20) {
		res.Text += strings.Repeat(" and more of it", r.IntN(60))
	}
	if in(r, 5) {
		res.Text = ""
	}
	if in(r, 5) {
		res.More = []loop.Block{{Kind: loop.BlockMedia, Media: &loop.Media{MIME: "image/png", Data: []byte("picture " + c.ID)}}}
	}
	return res
}

// Check tells the truth about what happened, or does not know.
func (t *simTool) Check(ctx context.Context, c tool.Call) (string, tool.Result, error) {
	path := t.w.path(c.Run)
	r := dice(t.w.seed, "check", path, c.ID)
	if in(r, 20) {
		return loop.HappenedUnknown, tool.Result{}, nil
	}
	if err := sleep(ctx, t.door, 300*time.Millisecond); err != nil {
		return "", tool.Result{}, err
	}
	if t.w.happened(c.Key) {
		return loop.HappenedYes, t.result(path, c, t.facts(path, c, r), r), nil
	}
	return loop.HappenedNo, tool.Result{}, nil
}

// sleep passes virtual time, unless the work is told to end or its process dies.
func sleep(ctx context.Context, d *door, takes time.Duration) error {
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.end:
		return context.Canceled
	}
}

// happens counts an effect in the world.
func (w *world) happens(d *door, e *execution) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.dead() {
		return
	}
	w.effects[e.tool.Key]++
	if once(e.def) {
		w.onceBy[fmt.Sprintf("%s %s %s %s", e.path, e.tool.ID, e.def.Name, e.tool.Args)]++
	}
	if once(e.def) && w.effects[e.tool.Key] > 1 {
		w.violateLocked("at most once", e.tool.Run, w.seqLocked(e.tool.Run), "the effect happened %d times: %s", w.effects[e.tool.Key], e)
	}
}

func (w *world) happened(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[key] > 0
}

func once(d tool.Def) bool { return d.Effect == loop.Once || d.Effect == "" }

func (w *world) seqLocked(run string) int64 {
	if t := w.watch[run]; t != nil {
		return t.state.Seq
	}
	return 0
}

// checkExecution asserts what must hold when an attempt of a call starts, and says how many attempts failed before it.
func (w *world) checkExecution(d *door, e *execution) (failed int64, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.dead() {
		return 0, true
	}
	c := e.tool
	bad := func(rule, format string, args ...any) {
		w.violateLocked(rule, c.Run, w.seqLocked(c.Run), "%s: %s", e, fmt.Sprintf(format, args...))
	}
	t := w.watch[c.Run]
	if t == nil {
		bad("written before done", "the run is not in the store")
		return 0, false
	}
	if !t.begun[fmt.Sprintf("%s %d", c.ID, c.Attempt)] {
		bad("written before done", "the journal does not say that it started: %s", t.state)
	}
	attempt := fmt.Sprintf("%s %s %d", c.Run, c.ID, c.Attempt)
	w.executed[attempt]++
	if n := w.executed[attempt]; n > 1 {
		bad("at most once", "the attempt ran %d times", n)
	}
	if was, ok := w.keys[c.Run+" "+c.ID]; ok && was != c.Key {
		bad("at most once", "its key changed from %s to %s", was, c.Key)
	}
	w.keys[c.Run+" "+c.ID] = c.Key
	if owner, ok := w.keys[c.Key]; ok && owner != c.Run+" "+c.ID {
		bad("at most once", "its key is that of %s", owner)
	}
	w.keys[c.Key] = c.Run + " " + c.ID
	t.checkApproved(c, bad)
	return t.failures[c.ID], false
}
