package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// witness reads along with one journal and keeps accounts of its own. The world's lock guards it.
type witness struct {
	w        *world
	run      string
	agent    *agentDraw
	state    loop.State
	digest   string
	log      strings.Builder
	own      loop.Counts
	cost     loop.Pico
	over     loop.Usage // what providers billed beyond their reserve: Input holds all of it
	overCost loop.Pico

	failures map[string]int64 // by call: attempts that failed on record, crashes apart
	modelBad map[int64]int64  // by model call: the same
	replies  map[int64]reply  // by event
	raw      map[string]string
	verdict  map[string]loop.Verdict
	begun    map[string]bool // attempts whose start is on record
	asks     map[string]int
	decided  map[string]loop.ApprovalDecided
	approved map[string]string // canonical arguments that a person saw and approved
	taken    []int64           // events of messages that no prompt showed yet
	messages int               // taken in all
	told     int               // accepted in all
	started  int64             // event of the model call under way
	prompt   []string          // prints of the last prompt's messages
	held     loop.Reserve      // of the attempt under way
	closing  bool              // a closing call was made
}

type reply struct {
	blocks string
	calls  bool
	finish bool
}

func (w *world) witnessOf(run string) *witness {
	t := w.watch[run]
	if t == nil {
		t = &witness{w: w, run: run, failures: map[string]int64{}, modelBad: map[int64]int64{}, replies: map[int64]reply{}, raw: map[string]string{},
			verdict: map[string]loop.Verdict{}, asks: map[string]int{}, begun: map[string]bool{}, decided: map[string]loop.ApprovalDecided{}, approved: map[string]string{}}
		w.watch[run] = t
	}
	return t
}

// written looks at a batch that has become durable.
func (w *world) written(d *door, b journal.Batch) {
	live := d.liveState(b.Lease.Run)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.witnessOf(b.Lease.Run)
	for _, r := range b.Records {
		t.digest = drive.Chain(t.digest, r.Data)
		ev, err := loop.Decode(r.Data)
		if err != nil {
			t.bad("fold", "a record does not decode: %v", err)
			return
		}
		if again, err := loop.Encode(ev); err != nil || string(again) != string(r.Data) {
			t.bad("fold", "a record is not written back as it was: %s", r.Data)
		}
		if w.plant.event != nil && w.plant.event(t.run, &ev) {
			continue // lost
		}
		fmt.Fprintf(&t.log, "%s\n", r.Data)
		t.fold(ev)
		if w.plant.extra != nil {
			if more := w.plant.extra(w, t.run, t.state); more != nil {
				t.fold(*more)
			}
		}
		if w.plant.ledger != nil {
			w.plant.ledger(t.run, &t.state)
		}
		t.check(ev)
	}
	if now := asJSON(t.state); live != "" && now != live {
		t.bad("fold", "the journal folds to another state than the driver has:\nfold %s\nlive %s", now, live)
	}
	t.checkRow(b)
}

func (t *witness) bad(rule, format string, args ...any) {
	t.w.violateLocked(rule, t.run, t.state.Seq, format, args...)
}

// fold lets the loop fold the event, and looks that it leaves the old state alone.
func (t *witness) fold(ev loop.Event) {
	deep := t.w.seed%8 == 0
	before := ""
	old := t.state
	if deep {
		before = asJSON(old)
	}
	if old.Stop != nil {
		t.bad("one end", "%s after the stop", ev.Kind())
	}
	next, err := loop.Next(old, ev)
	if err != nil {
		t.bad("fold", "the journal does not fold: %v", err)
		return
	}
	if deep && asJSON(old) != before {
		t.bad("fold", "Next changed its argument: %s", ev.Kind())
	}
	t.state = next
}

// check keeps the witness's own accounts and compares.
func (t *witness) check(ev loop.Event) {
	t.w.kinds[ev.Kind()]++
	switch b := ev.Body.(type) {
	case loop.RunStarted:
		t.begin(b)
	case loop.ModelCallStarted:
		t.modelStarted(ev, b)
	case loop.ModelReplied:
		t.modelReplied(ev, b)
	case loop.ModelFailed:
		if b.Cause == "" {
			t.modelBad[b.Call]++
		}
		if b.Usage != nil || b.Lost {
			t.book(b.Usage)
		}
	case loop.CallAuthorized:
		t.verdict[b.Call] = b.Verdict
	case loop.ApprovalAsked:
		t.asks[b.Call]++
		delete(t.decided, b.Call)
	case loop.ApprovalDecided:
		t.decided[b.Call] = b
	case loop.ToolStarted:
		t.begun[fmt.Sprintf("%s %d", b.Call, max(b.Attempt, 1))] = true
		if b.Attempt <= 1 {
			t.own.ToolCalls++
		}
		t.own.ToolAttempts++
	case loop.ToolReturned:
		t.checkResult(b)
	case loop.ToolFailed:
		if b.Cause == "" {
			t.failures[b.Call]++
		}
		if c, _ := t.state.Call(b.Call); b.Cause == loop.CauseCrash && c.Status == loop.CallResolve {
			t.w.loose = "a person is to say whether it happened"
		}
	case loop.ChildStarted:
		t.own.ToolCalls++
		t.own.ToolAttempts++
	case loop.ChildStopped:
		t.childStopped(b)
	case loop.EffectResolved:
		t.w.loose = "a person said whether it happened"
	case loop.MessageTaken:
		t.taken = append(t.taken, ev.Seq)
		t.messages++
	case loop.Compacted:
		if b.Failed == "" {
			t.prompt = nil
		}
	case loop.LimitReached:
		if b.Limit == loop.LimitActiveTime || b.Limit == loop.LimitDeadline {
			t.w.loose = "the time was up"
		}
	case loop.RunStopped:
		t.stopped(b)
	}
	t.checkAccount()
	t.checkCaps()
}

func (t *witness) begin(b loop.RunStarted) {
	t.agent = t.w.draw.root.find(b.Config.Agent)
	if p := b.Config.Parent; p != nil {
		t.w.paths[t.run] = p.Root + " " + strings.Join(p.Path, " ")
	}
	if s := b.Config.Session; s != nil && s.Prev != nil {
		if prev := t.w.watch[s.Prev.Run]; prev != nil {
			t.prompt = prev.prompt
			if s.Prev.Seq != prev.state.Seq || s.Prev.Digest != prev.digest {
				t.bad("fold", "the run names its predecessor as %+v, which is at %d %s", *s.Prev, prev.state.Seq, prev.digest)
			}
		}
	}
}

func (a *agentDraw) find(name string) *agentDraw {
	if a.name == name {
		return a
	}
	for _, c := range a.children {
		if f := c.find(name); f != nil {
			return f
		}
	}
	return nil
}

func (t *witness) modelStarted(ev loop.Event, b loop.ModelCallStarted) {
	if b.Attempt <= 1 {
		t.own.ModelCalls++
		t.started = ev.Seq
	}
	t.own.ModelAttempts++
	t.begun[fmt.Sprintf("model %d %d", b.Call, max(b.Attempt, 1))] = true
	t.closing = t.closing || b.Closing
}

func (t *witness) modelReplied(ev loop.Event, b loop.ModelReplied) {
	t.book(b.Usage)
	r := reply{blocks: asJSON(b.Blocks)}
	i := 0
	for _, bl := range b.Blocks {
		if bl.Kind == loop.BlockCall {
			r.calls = true
			r.finish = r.finish || bl.Name == loop.FinishTool
			t.raw[loop.CallID(b.Call, i)] = bl.Args
			i++
		}
	}
	t.replies[ev.Seq] = r
	if served := fmt.Sprintf("%s %d %s", t.run, b.Call, r.blocks); !t.w.served[served] {
		t.bad("opaque is opaque", "the journal holds another response than the model gave: %s", r.blocks)
	}
}

// book accounts for an attempt: what was reported, else its reserve.
func (t *witness) book(u *loop.Usage) {
	held := t.heldBefore()
	price := t.state.Config.Price
	if u == nil {
		u = &loop.Usage{Input: held.Input, Output: held.Output}
		t.own.Estimated += u.Total()
		t.cost += held.Cost
	} else {
		t.cost += price.Of(*u)
		if more := u.Total() - held.Input - held.Output; more > 0 {
			t.over.Input += more
			if !t.agent.greedy && !t.agent.exact {
				t.bad("hard caps", "the reserve of %+v does not cover what an honest provider billed: %+v", held, *u)
			}
		}
		t.overCost += max(price.Of(*u)-held.Cost, 0)
	}
	t.own.Usage = t.own.Usage.Add(*u)
}

// heldBefore is the reserve of the attempt that has just ended.
func (t *witness) heldBefore() loop.Reserve { return t.held }

func (t *witness) childStopped(b loop.ChildStopped) {
	child := t.w.watch[b.Run]
	if child == nil || child.state.Stop == nil {
		if b.Stop != loop.StopFailed {
			t.bad("one end", "child %s is said to have stopped, and its journal does not say so", b.Run)
		}
		return
	}
	want := child.state.Ledger.Total()
	want.Rounds = 0
	if want != b.Counts || child.state.Ledger.TotalCost() != b.Cost {
		t.bad("exact account", "child %s used %+v, its parent was told %+v", b.Run, want, b.Counts)
	}
	t.over.Input += child.over.Input
	t.overCost += child.overCost
}

func (t *witness) stopped(b loop.RunStopped) {
	if !slices.Contains(loop.Reasons(), b.Stop) {
		t.bad("one end", "%q is no stop", b.Stop)
	}
	if r, ok := t.replies[b.Answer]; b.Answer != 0 && ok && r.calls && !r.finish && b.Stop == loop.StopCompleted {
		t.bad("one end", "text beside calls is passed off as the answer")
	}
	switch b.Stop {
	case loop.StopCompleted, loop.StopNoAction, loop.StopBlocked, loop.StopStalled:
		if len(t.taken) > 0 && t.state.Limit == nil && t.state.Cancel == nil {
			t.bad("one end", "the run ends by itself and no prompt held the messages of events %v", t.taken)
		}
	case loop.StopLimit:
		if b.Limit == "" {
			t.bad("one end", "the stop names no limit")
		}
	}
	if n := t.state.Turn; b.Stop != loop.StopLimit {
		for _, c := range n.Calls {
			if c.Status != loop.CallSettled {
				t.bad("well-formed prompts", "call %s has no result at the end", c.ID)
			}
		}
	}
}
