package loop

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// tree is a parent with children that run at the same time, moved one event at a time in an order that chance picks.
type tree struct {
	t     *testing.T
	dice  *rand.Rand
	now   Micros
	runs  []*State // the parent first
	calls []string // of the child in the parent
	hold  bool     // a barrier: no child begins before each one that can has started
}

func (w *tree) apply(i int, b Body) {
	next, err := Next(*w.runs[i], Event{Seq: w.runs[i].Seq + 1, Time: w.now, Body: b})
	if err != nil {
		w.t.Fatalf("run %d: %v", i, err)
	}
	*w.runs[i] = next
	w.check(b)
}

// check adds up what the whole tree has used and holds.
func (w *tree) check(b Body) {
	root := w.runs[0]
	sum, cost := root.Ledger.Total(), root.Ledger.TotalCost()
	held, heldCost := root.Ledger.Held.Input+root.Ledger.Held.Output, root.Ledger.Held.Cost
	for i, s := range w.runs[1:] {
		c, ok := root.Call(w.calls[i+1])
		if !ok || c.Status != CallChild { // it is in the parent's account
			continue
		}
		t := s.Ledger.Total()
		sum.ModelCalls, sum.ToolCalls, sum.Usage = sum.ModelCalls+t.ModelCalls, sum.ToolCalls+t.ToolCalls, sum.Usage.Add(t.Usage)
		cost += s.Ledger.TotalCost()
		held += s.Ledger.Held.Input + s.Ledger.Held.Output
		heldCost += s.Ledger.Held.Cost
	}
	over := func(what string, got int64, limit *int64) {
		if limit != nil && got > *limit {
			w.t.Fatalf("after %s the tree has %d %s, the limit is %d", b.Kind(), got, what, *limit)
		}
	}
	l := root.Config.Limits
	over("model calls", sum.ModelCalls, l.ModelCalls)
	over("tool calls", sum.ToolCalls, l.ToolCalls)
	over("tokens with what is held", sum.Usage.Total()+held, l.Tokens)
	over("picodollars with what is held", int64(cost+heldCost), (*int64)(l.Cost))
}

// move does one of the things that run i owes; false if there is none now.
func (w *tree) move(i int) bool {
	s := w.runs[i]
	var todo []Command
	for _, c := range Ready(*s, w.now) {
		switch {
		case c.Kind == Wake || c.Kind == Abort || c.Kind == RunChild && c.Started:
		case c.After > w.now:
			w.now = c.After
			todo = append(todo, c)
		default:
			todo = append(todo, c)
		}
	}
	if len(todo) == 0 {
		return false
	}
	c := todo[0]
	if c.Kind != Record {
		c = todo[w.dice.IntN(len(todo))]
	}
	switch c.Kind {
	case Record:
		w.apply(i, c.Body)
	case Authorize:
		w.apply(i, CallAuthorized{Call: c.Call, Verdict: Allow, Args: c.Call})
	case CallModel:
		if !c.Started {
			w.apply(i, s.Admit(w.now, -1))
			break
		}
		u := &Usage{Input: s.Ledger.Held.Input, Output: s.Ledger.Held.Output} // all that it may use
		switch w.dice.IntN(6) {
		case 0:
			w.apply(i, ModelFailed{Call: c.N, Attempt: c.Attempt, Class: ClassTransient, Lost: true})
		case 1:
			w.apply(i, ModelReplied{Call: c.N, Finish: FinishStop, Usage: u, Blocks: []Block{{Kind: BlockText, Text: "Done."}}})
		default:
			w.apply(i, ModelReplied{Call: c.N, Finish: FinishCalls, Usage: u, Blocks: w.asks(i)})
		}
	case RunTool:
		if !c.Started {
			w.apply(i, ToolStarted{Call: c.Call, Attempt: c.Attempt})
			break
		}
		w.apply(i, ToolReturned{Call: c.Call, Attempt: c.Attempt, Text: "found"})
	case RunChild:
		grant := s.GrantFor(c.Index, w.now)
		run := fmt.Sprint("child", len(w.runs))
		w.apply(i, ChildStarted{Call: c.Call, Run: run, Grant: grant})
		cfg := *s.Config
		cfg.Limits, cfg.Tools = Limits{Rounds: p(int64(4))}, cfg.Tools[1:]
		cfg.Parent = &ParentStart{Run: "root", Root: "root", Call: c.Call, Grant: grant}
		w.runs, w.calls = append(w.runs, &State{}), append(w.calls, c.Call)
		w.apply(len(w.runs)-1, RunStarted{Run: run, Config: &cfg, Input: []Block{{Kind: BlockText, Text: "Look."}}})
	default:
		w.t.Fatalf("run %d owes %s", i, c.Kind)
	}
	return true
}

func (w *tree) asks(i int) []Block {
	name, n := "look", 1+w.dice.IntN(3)
	if i == 0 {
		name, n = "kid", 2+w.dice.IntN(4)
	}
	var blocks []Block
	for range n {
		blocks = append(blocks, Block{Kind: BlockCall, Name: name, Args: "{}"})
	}
	return blocks
}

// ends tells the parent of children that have stopped.
func (w *tree) ends() bool {
	for i, s := range w.runs[1:] {
		c, ok := w.runs[0].Call(w.calls[i+1])
		if s.Phase == PhaseStopped && ok && c.Status == CallChild && c.Child == s.Run && w.dice.IntN(2) == 0 {
			w.apply(0, ChildStopped{Call: c.ID, Run: s.Run, Stop: s.Stop.Stop, Counts: s.Ledger.Total(), Cost: s.Ledger.TotalCost(), Error: s.Stop.Stop != StopCompleted, Text: s.Run})
			return true
		}
	}
	return false
}

// starting says whether the parent can still start a child.
func (w *tree) starting() bool {
	for _, c := range Ready(*w.runs[0], w.now) {
		if c.Kind == RunChild && !c.Started || c.Kind == Authorize || c.Kind == Record {
			return true
		}
	}
	return false
}

func p[T any](v T) *T { return &v }

// TestParallelChildrenNeverOvershoot plays 1,000 orders in which parallel children can reserve, spend and end. Every call uses all that it
// may. At no moment does the tree use and hold more than a limit of its root.
func TestParallelChildrenNeverOvershoot(t *testing.T) {
	limited, started := map[string]int{}, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		w := &tree{t: t, dice: r, hold: seed%2 == 0, calls: []string{""}, runs: []*State{{}}}
		cfg := &Config{Agent: "root", Limits: Limits{Rounds: p(int64(6))}, Parallel: "read", OutputCap: 20, ModelRetries: 2, Nudges: 1, Repairs: 1,
			Price: &Price{Input: 3, Output: 15},
			Tools: []ToolSpec{{Name: "kid", Effect: Idempotent, Child: true}, {Name: "look", Effect: Read}}}
		switch seed % 4 {
		case 0:
			cfg.Limits.ModelCalls = p(2 + r.Int64N(25))
		case 1:
			cfg.Limits.Tokens = p(200 + r.Int64N(20_000))
		case 2:
			cfg.Limits.ToolCalls = p(1 + r.Int64N(20))
		case 3:
			cfg.Limits.Cost = p(Pico(1000 + r.Int64N(100_000)))
		}
		w.apply(0, RunStarted{Run: "root", Config: cfg, Input: []Block{{Kind: BlockText, Text: "Go."}}})
		for n := 0; w.runs[0].Phase != PhaseStopped; n++ {
			if n > 5000 {
				t.Fatalf("seed %d: it does not end: %s", seed, w.runs[0])
			}
			if w.hold && w.starting() {
				w.move(0)
				continue
			}
			i := r.IntN(len(w.runs))
			if w.runs[i].Phase != PhaseStopped {
				w.move(i)
			}
			w.ends()
		}
		started += len(w.runs) - 1
		limited[w.runs[0].Stop.Limit]++
	}
	t.Logf("%d children; ends by limit: %v", started, limited)
	for _, l := range []string{LimitModelCalls, LimitTokens, LimitToolCalls, LimitCost} {
		if limited[l] == 0 {
			t.Errorf("no order reached the limit of %s", l)
		}
	}
	if started < 2000 {
		t.Errorf("only %d children were started", started)
	}
}
