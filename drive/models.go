package drive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// previous remembers the provider's id of the last response, for providers that keep conversations.
type previous struct {
	id    string
	model string
	asked string // model of the call under way
	gone  bool   // the provider does not know ids of this run any more
	seq   int64  // of that response
}

func (p *previous) apply(ev loop.Event) {
	switch b := ev.Body.(type) {
	case loop.ModelCallStarted:
		if b.Purpose == "" {
			p.asked = b.Model
		}
	case loop.ModelReplied:
		if b.Purpose == "" {
			p.id, p.model, p.seq = b.ID, p.asked, ev.Seq
		}
	case loop.ModelFailed:
		p.gone = p.gone || b.Gone
	case loop.Compacted:
		p.id = ""
	}
}

// after is how many messages the provider knows already: those up to the response.
func (p *previous) after(msgs []*loop.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == loop.Assistant {
			if msgs[i].Seq == p.seq {
				return i + 1
			}
			return 0
		}
	}
	return 0
}

// port finds the model that a call goes to.
func (d *driver) port(ref string) (model.Model, error) {
	if ref == "" || ref == d.c.info.Ref() {
		return d.c.agent.Model, nil
	}
	if m := d.c.models[ref]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("drive: run %s: model %s is on record and the agent does not offer it. Add it to the agent's fallbacks", d.lease.Run, ref)
}

// request builds the prompt of the model call that is owed.
func (d *driver) request(c loop.Command, ref string, plan *loop.Plan) *model.Request {
	a := d.c.agent
	msgs := d.talk.Messages()
	req := &model.Request{Run: d.lease.Run, Call: c.N, Attempt: c.Attempt, System: a.Instructions, Tools: d.declared(plan), Messages: msgs,
		MaxOutput: d.state.Config.OutputCap, Stream: d.h.opts.Stream, Cache: d.cacheFor(ref), Timeouts: d.timeouts(c.Closing), Options: a.Options}
	if d.state.Config.Output {
		req.Output = a.Output
	}
	if plan != nil {
		req.Choice, req.Extra = model.ToolChoice(plan.ToolChoice), plan.Context
	}
	if c.Closing {
		req.Choice = model.ChoiceNone
		req.Extra = loop.ClosingText(d.state.Limit.Limit)
		req.Output = nil
	}
	if d.previous.id != "" && d.previous.model == ref && !d.previous.gone {
		if n := d.previous.after(msgs); n > 0 {
			req.Previous, req.PreviousLen = d.previous.id, n
		}
	}
	return req
}

func (d *driver) cacheFor(ref string) *model.Cache {
	c := d.caches[ref]
	if c == nil {
		c = &model.Cache{}
		d.caches[ref] = c
	}
	return c
}

// timeouts are the clocks of an attempt. The closing call has no more time than the run has left.
func (d *driver) timeouts(closing bool) model.Timeouts {
	t := d.c.agent.Timeouts
	def := func(v *time.Duration, d time.Duration) {
		switch {
		case *v == 0:
			*v = d
		case *v < 0:
			*v = 0
		}
	}
	def(&t.Connect, 10*time.Second)
	def(&t.FirstByte, 2*time.Minute)
	def(&t.BetweenDeltas, time.Minute)
	def(&t.Call, 10*time.Minute)
	if left, _, limited := d.state.TimeLeft(d.now()); closing && limited && (t.Call == 0 || toDuration(left) < t.Call) {
		t.Call = max(toDuration(left), time.Millisecond)
	}
	return t
}

// beginModel admits the call, puts its start on record and sends it after the commit.
func (d *driver) beginModel(ctx context.Context, c loop.Command) (again bool, err error) {
	plan, err := d.plan(ctx, c)
	if err != nil {
		return true, d.step(loop.ModelFailed{Call: c.N, Class: loop.ClassFatal, Cause: loop.CausePlan, Message: "the hook before the model call failed: " + cut(err.Error(), 2000)})
	}
	ref := d.state.Model.Model
	if plan != nil && plan.Model != "" {
		ref = plan.Model
	}
	m, err := d.port(ref)
	if err != nil {
		return false, err
	}
	input := int64(-1)
	if est, ok := m.(model.Estimator); ok {
		if n, ok := est.Estimate(d.request(c, ref, plan)); ok {
			input = n
		}
	}
	body := d.state.AdmitPlan(d.now(), input, plan)
	started, ok := body.(loop.ModelCallStarted)
	if !ok {
		return true, d.step(body)
	}
	if err := d.step(started); err != nil {
		return false, err
	}
	req := d.request(c, ref, plan)
	d.under(ctx, c, func(ctx context.Context, w *work) { d.post(d.generate(ctx, w, m, req)) })
	return true, nil
}

// generate sends one attempt and turns what comes back into an event.
func (d *driver) generate(ctx context.Context, w *work, m model.Model, req *model.Request) (a answer) {
	a.id = w.cmd.ID
	defer func() {
		if r := recover(); r != nil {
			a.body = loop.ModelFailed{Call: w.cmd.N, Attempt: w.cmd.Attempt, Class: loop.ClassFatal, Lost: true, Message: fmt.Sprintf("the model's adapter panicked: %v", r)}
		}
	}()
	if err := d.h.hook(Point{Name: "effect", Run: d.lease.Run, Call: w.cmd.ID}); err != nil {
		return answer{id: w.cmd.ID, err: err}
	}
	var sink func(model.Delta)
	var tape *taper
	if req.Stream {
		tape = newTaper(d, w)
		sink = tape.delta
	}
	defer d.deadline(w, req.Timeouts.Call, errModelClock)()
	res, err := m.Generate(ctx, req, sink)
	if kill := d.h.hook(Point{Name: "effected", Run: d.lease.Run, Call: w.cmd.ID}); kill != nil {
		return answer{id: w.cmd.ID, err: kill}
	}
	if err != nil {
		a.body = d.modelFailure(ctx, w, err)
		return a
	}
	reply := loop.ModelReplied{Call: w.cmd.N, Blocks: res.Blocks, Finish: res.Finish, Usage: res.Usage, ID: res.ID, Detail: res.Detail}
	if res.Model != "" && !strings.HasSuffix(m.Info().Ref(), "/"+res.Model) {
		reply.Model = res.Model
	}
	if tape != nil {
		reply.Tape, a.tape = tape.finish()
	}
	a.body = reply
	return a
}

var errModelClock = errors.New("model_call")

// modelFailure classes the end of an attempt.
func (d *driver) modelFailure(ctx context.Context, w *work, err error) loop.Body {
	f := loop.ModelFailed{Call: w.cmd.N, Attempt: w.cmd.Attempt, Class: loop.ClassTransient, Lost: true, Message: err.Error()}
	var e *model.Error
	if errors.As(err, &e) {
		f = loop.ModelFailed{Call: w.cmd.N, Attempt: w.cmd.Attempt, Class: e.Class, Lost: e.Lost, Clock: e.Clock, Status: e.Status,
			RetryAfter: toMicros(e.RetryAfter), Message: e.Message, Usage: e.Usage}
		if e.Code != "" {
			f.Message = e.Code + ": " + f.Message
		}
		if f.Message == "" && e.Err != nil {
			f.Message = e.Err.Error()
		}
		f.Gone, f.Window = e.Gone, e.Window
	}
	cause := context.Cause(ctx)
	var ab abortError
	switch {
	case errors.As(cause, &ab):
		f.Cause, f.Lost, f.Clock = ab.cause, true, ab.clock
	case errors.Is(cause, errModelClock):
		f.Clock, f.Class, f.Lost = "model_call", loop.ClassTransient, true
	}
	f.Message = cut(f.Message, 4000)
	return f
}

// cut shortens a text at the border of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// taper keeps the times of the deltas of one attempt and passes them on to whoever listens.
type taper struct {
	d      *driver
	seq    int64 // of the event that began the attempt
	id     string
	start  loop.Micros
	n      int64
	pieces []TapePiece
}

// TapePiece is the time of one delta: its offset in microseconds from the start of the attempt, its channel, its block, and how many
// bytes of that block's channel it added. The text itself is in the message.
type TapePiece struct {
	At      loop.Micros
	Channel model.Channel
	Block   int
	Bytes   int
}

func newTaper(d *driver, w *work) *taper {
	return &taper{d: d, seq: w.seq, id: w.cmd.ID, start: d.h.now()}
}

func (t *taper) delta(x model.Delta) {
	t.n++
	t.d.h.publishDelta(t.d.lease.Run, t.seq, t.n, x)
	if t.d.h.opts.Tapes {
		t.pieces = append(t.pieces, TapePiece{t.d.h.now() - t.start, x.Channel, x.Block, len(x.Text)})
	}
}

func (t *taper) finish() (string, *journal.Tape) {
	if len(t.pieces) == 0 {
		return "", nil
	}
	return t.id, &journal.Tape{Run: t.d.lease.Run, ID: t.id, Data: EncodeTape(t.pieces)}
}
