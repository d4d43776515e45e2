package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// checkResult asserts that what enters the transcript is bounded and that what was cut is kept.
func (t *witness) checkResult(b loop.ToolReturned) {
	limit := t.agent.cap
	if limit == 0 {
		limit = drive.DefaultResultCap
	}
	if len(b.Text) > limit {
		t.bad("bounded", "a result of %d bytes enters the transcript, the cap is %d", len(b.Text), limit)
	}
	if b.Ref == "" {
		return
	}
	art, err := t.w.store.Artifact(context.Background(), b.Ref)
	if err != nil || int64(len(art.Data)) != b.Bytes || loop.Fingerprint(art.Data) != b.Sum {
		t.bad("bounded", "the whole result is not at %s: %v", b.Ref, err)
	}
}

// checkAccount compares the ledger with the witness's own sums.
func (t *witness) checkAccount() {
	l := t.state.Ledger
	own := l.Own
	own.Rounds = 0
	if own != t.own || l.Cost != t.cost {
		t.bad("exact account", "the ledger says %+v cost %d, the events say %+v cost %d", own, l.Cost, t.own, t.cost)
		t.own, t.cost = own, l.Cost // once is enough
	}
	t.held = l.Held
}

// checkCaps asserts at every level that what is used, held and granted stays within the limits, what providers billed beyond their
// caps apart.
func (t *witness) checkCaps() {
	s := t.state
	total, cost := s.Ledger.Total(), s.Ledger.TotalCost()
	held := s.Ledger.Held.Input + s.Ledger.Held.Output
	heldCost := s.Ledger.Held.Cost
	level := func(whose string, l loop.Limits, before loop.Counts, costBefore loop.Pico, over int64, overCost loop.Pico) {
		over1 := func(name string, limit *int64, used, over int64) {
			if limit != nil && used > *limit+over {
				t.bad("hard caps", "%s of the %s: %d used and held, the limit is %d (%d beyond the provider's own cap)", name, whose, used, *limit, over)
			}
		}
		over1(loop.LimitModelCalls, l.ModelCalls, total.ModelCalls+before.ModelCalls, 0)
		over1(loop.LimitToolCalls, l.ToolCalls, total.ToolCalls+before.ToolCalls, 0)
		over1(loop.LimitTokens, l.Tokens, total.Usage.Total()+before.Usage.Total()+held, over)
		over1(loop.LimitCost, (*int64)(l.Cost), int64(cost+costBefore+heldCost), int64(overCost))
		if l.Rounds != nil && whose == "run" {
			over1(loop.LimitRounds, l.Rounds, total.Rounds, 0)
		}
	}
	level("run", s.Limits(), loop.Counts{}, 0, t.over.Input, t.overCost)
	if p := s.Config.Parent; p != nil {
		level("parent", p.Grant, loop.Counts{}, 0, t.over.Input, t.overCost)
	}
	if ses := s.Config.Session; ses != nil {
		over, overCost := int64(0), loop.Pico(0)
		for run, o := range t.w.watch {
			if strings.HasPrefix(run, "r") {
				over += o.over.Input
				overCost += o.overCost
			}
		}
		level("session", ses.Limits, ses.Counts, ses.Cost, over, overCost)
	}
}

// checkRow compares the row of the run with the journal.
func (t *witness) checkRow(b journal.Batch) {
	status, waiting := t.state.Status()
	r := b.Run
	if r.Status != status || !slices.Equal(r.Waiting, waiting) || r.Seq != t.state.Seq || r.Digest != t.digest || r.Updated != t.state.Time ||
		(r.Stop != "") != (t.state.Stop != nil) {
		t.bad("fold", "the row says %s %v %s at %d %s, the journal %s %v at %d %s", r.Status, r.Waiting, r.Stop, r.Seq, r.Digest, status, waiting, t.state.Seq, t.digest)
	}
}

// checkApproved asserts that what runs is what was decided.
func (t *witness) checkApproved(c tool.Call, bad func(rule, format string, args ...any)) {
	const rule = "approval is exact"
	verdict, ok := t.verdict[c.ID]
	if !ok {
		bad(rule, "nobody decided it")
		return
	}
	want, err := loop.Canonical([]byte(t.raw[c.ID]))
	if err != nil {
		want = []byte("{}")
	}
	if verdict == loop.Ask || t.asks[c.ID] > 0 {
		d, decided := t.decided[c.ID]
		if !decided || d.Decision != loop.Approve && d.Decision != loop.Edit {
			bad(rule, "it was asked for and nobody approved it")
			return
		}
		want = []byte(t.approved[c.ID])
	}
	if string(c.Args) != string(want) {
		bad(rule, "it runs with other arguments than %s", want)
	}
}

// end sums up how the run ended.
func (t *witness) end() End {
	s := t.state
	status, _ := s.Status()
	e := End{Status: status, Rounds: s.Ledger.Own.Rounds, Facts: map[string]string{}}
	if s.Stop != nil {
		e.Stop, e.Limit = s.Stop.Stop, s.Stop.Limit
		e.Answer = t.replies[s.Stop.Answer].blocks
	}
	if t.w.draw.root.parallel() {
		return e // who comes last sets the fact
	}
	for name, f := range s.Facts {
		e.Facts[name] = string(f.Value)
	}
	return e
}

func (a *agentDraw) parallel() bool {
	for _, c := range a.children {
		if c.parallel() {
			return true
		}
	}
	return a.cfg.Parallel == "read"
}
