package scripted

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// Options of a scripted model. The zero value is useful.
type Options struct {
	Name          string // "" is "script"; shown as scripted/name
	Price         *loop.Price
	ContextWindow int64
	OutputCap     int64
	// Position says which item comes first for a request of a run that this Model has not served yet, as an index into
	// Script.Items. nil: derived from the transcript, see Model.
	Position func(req *model.Request) int
	// Sleep waits on the caller's clock, so that a virtual one works too; nil: nothing takes time. It ends early with ctx's
	// error. Pace is what each delta takes; fail: {timeout: true} takes the request's own time-out.
	Sleep func(ctx context.Context, d time.Duration) error
	Pace  time.Duration
}

// Model serves a script. Script.Select says which item answers a request from a given cursor on; this is how the cursor comes
// about:
//
//   - Asking again for the same run, call and attempt gives the same item again.
//   - The next attempt of a call takes the next item if the one before was a failure. If that was a response, it was never
//     journaled (else nobody would ask again), and it is served again.
//   - The next call of a run goes on after the last item that the run took; the first call of a further run of the session
//     after the last item of the run whose transcript it continues.
//   - A Model that has not seen the run (a new process) derives the cursor from the request alone: the model's turns in the
//     transcript are found in the script, in order, whatever items were passed over between them; the calls of the run before
//     this one (Request.Call) took one item each that is no failure, also those whose turns are not in the transcript because
//     they were empty or cut; and each earlier attempt of this call took one transient failure, as far as there are some.
//
// Request.Run must be unique for each run. Safe for concurrent use.
type Model struct {
	script *Script
	opts   Options
	memory memory
}

var (
	_ model.Model     = (*Model)(nil)
	_ model.Estimator = (*Model)(nil)
)

// New makes a model of a script. At most one Options is used: the first.
func New(script *Script, opts ...Options) *Model {
	m := &Model{script: script}
	if m.script == nil {
		m.script = &Script{}
	}
	if len(opts) > 0 {
		m.opts = opts[0]
	}
	if m.opts.Name == "" {
		m.opts.Name = "script"
	}
	return m
}

// Script is what the model serves.
func (m *Model) Script() *Script { return m.script }

// Info describes the model; Scripted is true.
func (m *Model) Info() model.Info {
	return model.Info{
		Wire: "scripted", Name: m.opts.Name, Scripted: true,
		Price: m.opts.Price, ContextWindow: m.opts.ContextWindow, OutputCap: m.opts.OutputCap,
	}
}

// Pick takes the item that answers a request, as Generate does, and returns it instead of a response: for a fake provider that
// serves the same script over its wire to an adapter whose requests say nothing of runs, calls and attempts. The error is
// that of Script.Select.
func (m *Model) Pick(req *model.Request) (Item, error) {
	i, err := m.take(req)
	if err != nil {
		return Item{}, err
	}
	return m.script.Items[i], nil
}

// Estimate returns the input tokens of the item that would answer the request. Where the request would not match the item at
// the cursor it is that item's, because that one is next for whoever asks in the right way. ok is false when the script has
// run out.
func (m *Model) Estimate(req *model.Request) (tokens int64, ok bool) {
	i, err := m.peek(req)
	if err != nil && i >= len(m.script.Items) {
		return 0, false
	}
	return m.script.Items[i].Prefix(), true
}

// Generate serves the next item of the script.
func (m *Model) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &model.Error{Class: loop.ClassTransient, Message: "cancelled before the request left", Err: err}
	}
	i, err := m.take(req)
	if err != nil {
		return nil, &model.Error{Class: loop.ClassFatal, Code: "script", Message: err.Error()}
	}
	item := &m.script.Items[i]
	id := seed(req)
	if !req.Stream {
		sink = nil
	}
	s := &stream{m: m, ctx: ctx, sink: sink, rnd: id}
	blocks := item.Blocks(func(n int) string { return "call_" + short(id+uint64(n)+1) })
	if item.Fail != nil {
		return nil, s.fail(item, blocks, req.Timeouts.Call)
	}
	if err := s.send(blocks, -1); err != nil {
		return nil, err
	}
	res := &model.Response{
		Blocks: blocks, Finish: item.FinishOf(), Model: m.opts.Name, ID: "resp_" + short(id),
	}
	if item.Usage != nil {
		u := *item.Usage
		res.Usage = &u
	}
	if item.Malformed {
		res.Detail = "the script says that the provider could not parse the call"
	}
	return res, nil
}

// seed is a number that is the same whenever the same attempt is asked for.
func seed(req *model.Request) uint64 {
	h := fnv.New64a()
	h.Write([]byte(req.Run))
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(req.Call))
	binary.LittleEndian.PutUint64(b[8:], uint64(req.Attempt))
	h.Write(b[:])
	return h.Sum64()
}

func short(n uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return hex.EncodeToString(b[:])
}

// cutText is what a cut stream carries when the item says nothing of it.
const cutText = "Let me look at this first and then tell you what I have found out. "

// fail is the end of an attempt as item.Fail says, after the deltas that come before it.
func (s *stream) fail(item *Item, blocks []loop.Block, limit time.Duration) error {
	f := item.Fail
	e := &model.Error{Class: loop.ClassTransient, Status: f.Status, RetryAfter: f.RetryAfter, Message: f.Message}
	switch {
	case f.Status != 0:
		if !f.Transient() {
			e.Class = loop.ClassFatal
		}
		if f.Status == http.StatusRequestEntityTooLarge { // what each wire's adapter makes of it
			e.Class, e.Window = loop.ClassInvalid, true
		}
		say(e, statusText(f.Status))
	case f.Timeout:
		if err := s.send(blocks, -1); err != nil {
			return err
		}
		if err := s.sleep(limit); err != nil {
			return err
		}
		e.Lost, e.Clock = true, "model_call"
		say(e, "no response in time")
	case f.CutAfter != nil:
		if len(blocks) == 0 {
			blocks = []loop.Block{{Kind: loop.BlockText, Text: strings.Repeat(cutText, 1+*f.CutAfter/8)}}
		}
		if err := s.send(blocks, *f.CutAfter); err != nil {
			return err
		}
		e.Lost = true
		say(e, "the connection was cut in mid-stream")
	case f.NoEnd:
		if err := s.send(blocks, -1); err != nil {
			return err
		}
		e.Lost = true
		say(e, "the stream ended with neither an end marker nor a finish reason")
	default:
		if err := s.send(blocks, -1); err != nil {
			return err
		}
		e.Code = f.ErrorEvent
		say(e, "error event in mid-stream")
	}
	return e
}

// statusText has words also for a status of which net/http knows none (529).
func statusText(status int) string {
	if s := http.StatusText(status); s != "" {
		return strings.ToLower(s)
	}
	return "error " + strconv.Itoa(status)
}

// say fills in the words that the script leaves out.
func say(e *model.Error, message string) {
	if e.Message == "" {
		e.Message = message
	}
}

// stopped is the error of an attempt that ctx ended after the request had left.
func stopped(err error) error {
	e := &model.Error{Class: loop.ClassTransient, Lost: true, Message: "cancelled while the response was on its way", Err: err}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Clock = "model_call"
	}
	return e
}
