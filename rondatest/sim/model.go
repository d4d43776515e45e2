package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// simModel answers by lot. What it says in a call depends on the run's place in the tree and the number of the call alone.
type simModel struct {
	w *world
	a *agentDraw

	door *door
}

func (m *simModel) Info() model.Info {
	return model.Info{Wire: "sim", Name: m.a.name, Scripted: true}
}

// tokens is what the model counts: a third of the bytes, which a bound by bytes must cover.
func tokens(req *model.Request) int64 {
	n := len(req.System) + len(req.Extra)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, msg := range req.Messages {
		n += blockBytes(msg.Blocks)
	}
	return int64(n / 3)
}

func blockBytes(blocks []loop.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Text) + len(b.Args) + len(b.Name) + len(b.Raw) + 12 + blockBytes(b.More)
	}
	return n
}

func (m *simModel) Estimate(req *model.Request) (int64, bool) {
	return tokens(req), m.a.exact
}

func (m *simModel) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	w := m.w
	path := w.path(req.Run)
	failed, dead := w.checkRequest(m.door, m.a, req)
	if dead {
		return nil, &model.Error{Class: loop.ClassTransient, Lost: true, Message: "dead"}
	}
	r := dice(w.seed, "model", path, req.Call, req.Choice)
	takes := 100*time.Millisecond + time.Duration(r.IntN(3_000_000))*time.Microsecond
	m.interrupt(ctx, req, path)
	if err := sleep(ctx, m.door, takes); err != nil {
		return nil, &model.Error{Class: loop.ClassTransient, Lost: true, Message: "interrupted", Err: err}
	}
	if err := m.fails(path, req, failed); err != nil {
		return nil, err
	}
	res := m.answer(r, req)
	res.Usage = m.usage(r, req, res)
	w.served1(req, res)
	if sink != nil {
		for i, b := range res.Blocks {
			if b.Kind == loop.BlockText {
				half := len(b.Text) / 2
				sink(model.Delta{Channel: model.Text, Block: i, Text: b.Text[:half]})
				sink(model.Delta{Channel: model.Text, Block: i, Text: b.Text[half:]})
			}
		}
	}
	return res, nil
}

// fails says whether this attempt fails, given how many of the call failed on record before.
func (m *simModel) fails(path string, req *model.Request, failed int64) error {
	r := dice(m.w.seed, "fails", path, req.Call, failed)
	switch n := r.IntN(100); {
	case req.Call > 40:
		return &model.Error{Class: loop.ClassFatal, Status: 400, Message: "this goes on for too long"}
	case n < 7:
		return &model.Error{Class: loop.ClassTransient, Status: 529, Message: "busy", RetryAfter: pick(r, 0, 0, 90*time.Second)}
	case n < 9:
		return &model.Error{Class: loop.ClassTransient, Lost: true, Clock: "between_deltas", Message: "silence"}
	case n < 10:
		return &model.Error{Class: loop.ClassFatal, Status: 401, Message: "no key"}
	case n < 11:
		return &model.Error{Class: loop.ClassTransient, Message: "billed", Usage: &loop.Usage{Input: tokens(req)}}
	}
	return nil
}

func (m *simModel) usage(r *rand.Rand, req *model.Request, res *model.Response) *loop.Usage {
	if in(r, 4) {
		return nil
	}
	in1 := tokens(req)
	u := &loop.Usage{Input: in1, Output: min(int64(blockBytes(res.Blocks)/3), req.MaxOutput)}
	u.CacheRead = int64(r.IntN(int(in1)/2 + 1))
	u.CacheWrite = int64(r.IntN(int(in1)/4 + 1))
	u.Input -= u.CacheRead + u.CacheWrite
	u.Reasoning = u.Output / 3
	if m.a.greedy && in(r, 20) {
		u.Output += 500
	}
	return u
}

// answer draws a response.
func (m *simModel) answer(r *rand.Rand, req *model.Request) *model.Response {
	res := &model.Response{Finish: loop.FinishStop, ID: fmt.Sprintf("resp_%d", req.Call)}
	say := func(format string, args ...any) {
		res.Blocks = append(res.Blocks, loop.Block{Kind: loop.BlockText, Text: fmt.Sprintf(format, args...)})
	}
	if in(r, 20) {
		res.Blocks = append(res.Blocks, loop.Block{Kind: loop.BlockThought, Text: "hm", Wire: "sim", Raw: json.RawMessage(fmt.Sprintf(`{"signature":"s%d"}`, req.Call))})
	}
	if in(r, 10) {
		res.Blocks = append(res.Blocks, loop.Block{Kind: loop.BlockOpaque, Wire: "sim", Raw: json.RawMessage(fmt.Sprintf(`{"type":"sealed","n":%d}`, r.IntN(1000)))})
	}
	end := req.Call > 14
	n := r.IntN(100)
	if m.w.draw.stuck && n < 90 && !end {
		n, r = 50, dice(m.w.seed, "stuck", m.a.name)
		r.IntN(2)
	}
	switch {
	case end || n < 22:
		m.conclude(r, res, req, say)
	case n < 25:
		res.Blocks = nil // empty
	case n < 28:
		say("The beginning of")
		res.Finish = pick(r, loop.FinishLength, loop.FinishFilter)
	case n < 31:
		m.calls(r, res, 1)
		res.Finish = loop.FinishLength
	case n < 33:
		res.Finish, res.Detail = loop.FinishMalformed, "print(default_"
	case n < 36:
		say("Action: %s\nAction Input: {\"x\": 1}\nObservation: fine", m.a.tools[0].def.Name)
	case n < 37:
		say("One moment")
		res.Finish = loop.FinishPause
	default:
		if in(r, 30) {
			say("Looking (%d).", req.Call)
		}
		m.calls(r, res, 1+r.IntN(3))
	}
	return res
}

// conclude ends the task: in text, or through finish.
func (m *simModel) conclude(r *rand.Rand, res *model.Response, req *model.Request, say func(string, ...any)) {
	switch {
	case m.a.cfg.Finish && in(r, 85):
		if in(r, 30) {
			m.calls(r, res, 1)
		}
		status := pick(r, "", `,"status":"done"`, `,"status":"declined"`, `,"status":"blocked"`)
		args := fmt.Sprintf(`{"response":"The end, %d."%s}`, req.Call, status)
		if in(r, 10) {
			args = `{"response":5}`
		}
		res.Blocks = append(res.Blocks, loop.Block{Kind: loop.BlockCall, ID: "fin", Name: loop.FinishTool, Args: args})
		if in(r, 10) {
			m.calls(r, res, 1)
		}
		res.Finish = loop.FinishCalls
	case len(m.a.cfg.Output) > 0 && in(r, 70):
		say(`{"n": %d}`, req.Call)
	default:
		say("The answer is %d.", req.Call)
	}
}

// calls adds calls with arguments from a small range, so that some repeat, and some that make no sense.
func (m *simModel) calls(r *rand.Rand, res *model.Response, n int) {
	res.Finish = loop.FinishCalls
	for i := range n {
		c := loop.Block{Kind: loop.BlockCall, ID: fmt.Sprintf("w%d", i), Wire: "sim"}
		if in(r, 10) {
			c.ID = pick(r, "", "same")
		}
		k := r.IntN(len(m.a.tools) + len(m.a.children))
		if k < len(m.a.tools) {
			c.Name = m.a.tools[k].def.Name
			c.Args = fmt.Sprintf(`{"x": %d}`, r.IntN(3))
			if in(r, 30) {
				c.Args = fmt.Sprintf(`{"x":%d,"id":"v%d"}`, r.IntN(2), r.IntN(5))
			}
			if in(r, 5) {
				c.Args = pick(r, `{"x":`, `{"x":"one"}`, `{}`, ``, `[1]`, `{"x":1,"x":2}`, `{"x":1,"y":2}`)
			}
		} else {
			c.Name = m.a.children[k-len(m.a.tools)].name
			c.Args = fmt.Sprintf(`{"task":"Part %d."}`, r.IntN(3))
		}
		if in(r, 3) {
			c.Name = "nothing_of_the_kind"
		}
		res.Blocks = append(res.Blocks, c)
	}
}

// interrupt lets people act while the model is thinking.
func (m *simModel) interrupt(ctx context.Context, req *model.Request, path string) {
	w := m.w
	r := dice(w.seed, "interrupt", path, req.Call)
	if !in(r, 8) || !w.once(fmt.Sprintf("interrupt %s %d", path, req.Call)) {
		return
	}
	host := w.theHost()
	ctx = context.WithoutCancel(ctx)
	switch n := r.IntN(100); {
	case n < 70:
		text := strings.Repeat("And this too. ", 1+r.IntN(3))
		if err := host.Message(ctx, req.Run, drive.Text(text), "ana", in(r, 30)); err == nil {
			w.told(req.Run, text)
		}
	case n < 85:
		w.loosen("somebody cancels while it runs")
		_ = host.Cancel(ctx, req.Run, "ben", "enough")
	default:
		w.loosen("somebody extends while it runs")
		_ = host.Extend(ctx, req.Run, drive.Limits{Rounds: 1}, "ben")
	}
}

func (w *world) theHost() *drive.Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.host
}

func (w *world) task(id string) string {
	return "Do " + id + ", and mind v1 and v2."
}
