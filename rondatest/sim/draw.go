package sim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// dice gives randomness that depends on the seed and on what it is for, not on the order of asking: what a model says in its third call
// must be the same in a world that crashed before.
func dice(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// in reports whether something of the given chance, in percent, happens.
func in(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// draw is the configuration of a world.
type draw struct {
	root   *agentDraw
	runs   int // of the session
	stream bool
	stuck  bool // models repeat themselves
	liar   bool // people resolve effects without knowing
}

// agentDraw is the configuration of one agent.
type agentDraw struct {
	name     string
	cfg      drive.Agent
	tools    []*toolDraw
	children []*agentDraw
	exact    bool // the model knows the size of its requests
	greedy   bool // the provider bills beyond the cap now and then
	policy   string
	cap      int // of results
	askOften int // percent
}

// toolDraw is one tool.
type toolDraw struct {
	def   tool.Def
	takes time.Duration
}

func drawWorld(seed uint64) *draw {
	r := dice(seed, "world")
	d := &draw{runs: pick(r, 1, 1, 2, 3), stream: in(r, 30), stuck: in(r, 12), liar: in(r, 10)}
	d.root = drawAgent(r, "root", 0)
	return d
}

func drawAgent(r *rand.Rand, name string, depth int) *agentDraw {
	a := &agentDraw{name: name, exact: in(r, 40), greedy: in(r, 8), askOften: pick(r, 0, 10, 30), cap: pick(r, 0, 0, 120, 400)}
	a.cfg = drive.Agent{
		Name: name, Instructions: "Do what " + name + " does.", OnLimit: pick(r, "", "", "close", "stop", "pause"), HintRounds: pick(r, 0, 0, 1, 2),
		Parallel: pick(r, "", "read"), Nudges: some(r, 0, 1, 2), Repairs: some(r, 0, 1, 2, 3), Stall: some(r, 0, 2, 3), ModelRetries: some(r, 0, 1, 3),
		OutputCap: pick[int64](r, 40, 64, 200), ResultCap: a.cap, Finish: in(r, 30), AllowUnpriced: true,
	}
	drawLimits(r, a)
	for i := range 1 + r.IntN(5) {
		a.tools = append(a.tools, drawTool(r, i, a))
	}
	if in(r, 15) {
		i, j := r.IntN(len(a.tools)), r.IntN(len(a.tools))
		if i != j {
			a.tools[i].def.Requires = []tool.Requirement{{Tool: a.tools[j].def.Name, Same: pick(r, nil, []string{"x"})}}
		}
	}
	if in(r, 25) {
		a.policy = pick(r, "hash", "panics", "fails", "tightens")
	}
	switch {
	case in(r, 20):
		ct := &drive.Contract{}
		if in(r, 60) {
			ct.Facts = []string{pick(r, "f0", "f1")}
		}
		if in(r, 40) {
			ct.Called = []string{a.tools[r.IntN(len(a.tools))].def.Name}
		}
		a.cfg.Contract = ct
	case !a.cfg.Finish && in(r, 10):
		a.cfg.Output = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	}
	if in(r, 12) {
		a.cfg.ContextWindow = 1200
		a.cfg.Compact = &drive.Compact{At: 0.5, Keep: 1 + r.IntN(3)}
	}
	if in(r, 20) {
		a.cfg.ApprovalTTL = time.Minute
	}
	if depth < 2 && in(r, 25) {
		for i := range 1 + r.IntN(2) {
			a.children = append(a.children, drawAgent(r, fmt.Sprintf("%s_%d", name, i+1), depth+1))
		}
	}
	return a
}

func some(r *rand.Rand, of ...int) *int {
	v := pick(r, of...)
	return &v
}

func drawLimits(r *rand.Rand, a *agentDraw) {
	l := &a.cfg.Limits
	l.Rounds = pick(r, drive.Zero, 1, 2, 3, 4, 6, 0, 0, drive.Unlimited)
	if in(r, 20) {
		l.ModelCalls = pick(r, drive.Zero, 1, 2, 3, 5, 8)
	}
	if in(r, 20) {
		l.ToolCalls = pick(r, drive.Zero, 1, 2, 3, 5)
	}
	if in(r, 15) {
		l.Tokens = int64(pick(r, 300, 900, 1500, 3000, 6000, drive.Zero))
	}
	if in(r, 25) {
		a.cfg.Price = &drive.Price{Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15}
		if in(r, 60) {
			l.CostUSD = pick(r, 0.001, 0.004, 0.01, 0.05, drive.ZeroUSD)
		}
	}
	if in(r, 8) {
		l.ActiveTime = pick(r, 5*time.Second, 30*time.Second, 5*time.Minute)
	}
	if in(r, 6) {
		l.Deadline = pick(r, 10*time.Second, 2*time.Minute)
	}
	if in(r, 12) {
		a.cfg.Session = drive.Limits{ModelCalls: pick(r, 0, 3, 7), ToolCalls: pick(r, 0, 2, 4), Tokens: int64(pick(r, 0, 2000, 8000))}
	}
	if l.Deadline != 0 || l.ActiveTime != 0 {
		a.cfg.ClosingTime = pick(r, 0, time.Second)
	}
}

func drawTool(r *rand.Rand, i int, a *agentDraw) *toolDraw {
	d := tool.Def{
		Name: fmt.Sprintf("t%d", i), Description: "A tool.", Effect: pick(r, loop.Read, loop.Read, loop.Idempotent, loop.Once, ""),
		Input:    json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"},"id":{"type":"string"}},"required":["x"],"additionalProperties":false}`),
		OnReject: pick(r, "", "", "tell", "stop"), Retries: pick(r, 0, 0, 1, 2), Check: in(r, 30),
	}
	if in(r, a.askOften) {
		d.Approval = loop.Ask
	} else if in(r, 4) {
		d.Approval = loop.Deny
	}
	if in(r, 15) {
		d.Label = "shared"
	}
	if in(r, 20) {
		d.Timeout = 3 * time.Second
	}
	if in(r, 8) {
		d.CallsMax = some(r, 0, 1, 3)
	}
	if in(r, 6) {
		d.Poll = &tool.Poll{CallsMax: some(r, 2, 4), Interval: pick(r, 0, 20*time.Second)}
	}
	if in(r, 6) {
		d.Grounded = []string{"id"}
	}
	if in(r, 10) {
		d.Destination = "https://example.org/" + d.Name
	}
	return &toolDraw{def: d, takes: time.Duration(r.IntN(1500)) * time.Millisecond}
}

// timed says whether the clock may end runs of the agent: then a crash, which costs time, may change how they end. Tokens and
// money are used up by lost attempts in the same way.
func (a *agentDraw) timed() bool {
	l, s := a.cfg.Limits, a.cfg.Session
	if l.ActiveTime != 0 || l.Deadline != 0 || l.Tokens != 0 || l.CostUSD != 0 || s.Tokens != 0 || s.CostUSD != 0 {
		return true
	}
	for _, c := range a.children {
		if c.timed() {
			return true
		}
	}
	return false
}
