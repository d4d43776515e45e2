package rondatest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/rondatest/fake"
)

// invariants checks what holds in every cell, for every run of the tree.
func (c *checker) invariants() {
	on := func(name string) bool {
		v, said := c.w.s.always[name]
		return v || !said
	}
	broken := func(name, got string) { c.fail(c.w.s.Line, "invariant "+name, "it holds", got) }
	if on(wellFormed) {
		c.prompts(broken)
	}
	for _, p := range c.w.providers {
		for _, e := range p.server.Errors() {
			c.fail(c.w.s.Line, "the provider on the wire "+c.w.cell.Wire, "it accepts every request", e)
		}
	}
	if on(prefixStable) {
		for key, d := range c.w.decks {
			if !strings.Contains(key, "/") { // what writes summaries or judges has no conversation
				c.prefix(d, broken)
			}
		}
	}
	for _, run := range c.w.runs {
		t, err := c.w.tally(run)
		if err != nil {
			broken(folds, err.Error())
			return
		}
		c.tree(t, on, broken)
	}
}

func (c *checker) prompts(broken func(name, got string)) {
	for _, d := range c.w.decks {
		for i, p := range c.w.prompts(d, true) {
			if bad := illFormed(p.messages); bad != "" {
				broken(wellFormed, fmt.Sprintf("request %d (%s, model call %d): %s", i+1, p.run, p.call, bad))
			}
		}
	}
}

// prefix compares each request of a session or run with the one before it.
func (c *checker) prefix(d *deck, broken func(name, got string)) {
	chain := func(run string) string {
		if slices.Contains(c.w.runs, run) {
			return "session"
		}
		return run
	}
	last := map[string]prompt{}
	for i, p := range c.w.prompts(d, true) {
		key := chain(p.run)
		before, ok := last[key]
		last[key] = p
		if !ok || c.w.compacted(before.run, before.call) {
			continue
		}
		bad := ""
		if p.onWire != nil {
			if err := fake.PrefixStable(*before.onWire, *p.onWire); err != nil {
				bad = err.Error()
			}
		} else {
			bad = parts(before.messages, p.messages)
		}
		if bad != "" {
			broken(prefixStable, fmt.Sprintf("request %d (%s, model call %d): %s", i+1, p.run, p.call, bad))
		}
	}
}

// compacted says whether a run's transcript was shortened after a model call and before the next.
func (w *world) compacted(run string, call int64) bool {
	found, at := false, int64(0)
	_ = w.events(run, func(ev loop.Event) error {
		switch b := ev.Body.(type) {
		case loop.ModelCallStarted:
			if b.Purpose == "" {
				at = b.Call
			}
		case loop.Compacted:
			found = found || at == call && b.Failed == ""
		}
		return nil
	})
	return found
}

func (c *checker) tree(t *tally, on func(string) bool, broken func(name, got string)) {
	if on(oneEnd) {
		if bad := t.ends(); bad != "" {
			broken(oneEnd, t.run+": "+bad)
		}
	}
	if on(folds) && t.unfold != "" {
		broken(folds, t.run+": "+t.unfold)
	}
	if on(exactAccount) {
		if bad := t.account(); bad != "" {
			broken(exactAccount, t.run+": "+bad)
		}
	}
	for _, child := range t.children {
		c.tree(child, on, broken)
	}
}

// tally is what the events of a run say by themselves, counted without the loop's ledger.
type tally struct {
	run      string
	row      string // status of the row
	state    loop.State
	stops    int
	last     string // kind of the last event
	unfold   string // what is wrong with the fold
	counts   loop.Counts
	cost     loop.Pico
	children []*tally
	live     bool // a child is under way: its part is not in the parent's account yet
}

func (w *world) tally(run string) (*tally, error) {
	row, err := w.store().Get(w.quiet(), run)
	if err != nil {
		return nil, err
	}
	t := &tally{run: run, row: row.Status}
	var again loop.State
	var reserve loop.Reserve
	var price *loop.Price
	digest := ""
	open := map[string]bool{}
	err = w.events(run, func(ev loop.Event) error {
		next, err := loop.Next(t.state, ev)
		if err != nil {
			return fmt.Errorf("%s does not fold: %w", run, err)
		}
		t.state = next
		t.refold(&again, &digest, ev)
		t.last = ev.Kind()
		return t.count(w, ev, &reserve, &price, open)
	})
	if err != nil {
		return nil, err
	}
	if row.Digest != digest {
		t.unfold = or(t.unfold, fmt.Sprintf("the chain over its records is %s, the row says %s", digest, row.Digest))
	}
	if status, _ := t.state.Status(); status != row.Status {
		t.unfold = or(t.unfold, fmt.Sprintf("its journal says %s, the row %s", status, row.Status))
	}
	if a, b := stateJSON(t.state), stateJSON(again); a != b {
		t.unfold = or(t.unfold, fmt.Sprintf("encoded again it folds to another state: %s became %s", a, b))
	}
	return t, nil
}

// refold encodes an event from its body alone and folds what that decodes to.
func (t *tally) refold(again *loop.State, digest *string, ev loop.Event) {
	read, _ := loop.Encode(ev)
	*digest = drive.Chain(*digest, read)
	made, err := loop.Encode(loop.Event{Seq: ev.Seq, Time: ev.Time, Body: ev.Body})
	if err == nil && string(made) != string(read) {
		t.unfold = or(t.unfold, fmt.Sprintf("event %d is not written as it was read: %s became %s", ev.Seq, read, made))
	}
	back, err := loop.Decode(made)
	if err == nil {
		*again, err = loop.Next(*again, back)
	}
	if err != nil {
		t.unfold = or(t.unfold, err.Error())
	}
}

func stateJSON(s loop.State) string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (t *tally) count(w *world, ev loop.Event, reserve *loop.Reserve, price **loop.Price, open map[string]bool) error {
	book := func(u *loop.Usage) {
		if u != nil {
			t.counts.Usage = t.counts.Usage.Add(*u)
			t.cost += (*price).Of(*u)
			return
		}
		lost := loop.Usage{Input: reserve.Input, Output: reserve.Output}
		t.counts.Usage = t.counts.Usage.Add(lost)
		t.counts.Estimated += lost.Total()
		t.cost += reserve.Cost
	}
	switch b := ev.Body.(type) {
	case loop.RunStarted:
		*price = b.Config.Price
	case loop.ModelCallStarted:
		*reserve = b.Reserve
		t.counts.ModelAttempts++
		if b.Attempt <= 1 {
			t.counts.ModelCalls++
		}
	case loop.ModelReplied:
		book(b.Usage)
	case loop.ModelFailed:
		if b.Usage != nil || b.Lost {
			book(b.Usage)
		}
	case loop.ToolStarted:
		t.counts.ToolAttempts++
		if b.Attempt <= 1 {
			t.counts.ToolCalls++
		}
	case loop.ChildStarted:
		t.counts.ToolAttempts++
		t.counts.ToolCalls++
		open[b.Run] = true
		if _, err := w.store().Get(w.quiet(), b.Run); err != nil {
			return nil // it died before its child began
		}
		child, err := w.tally(b.Run)
		if err != nil {
			return err
		}
		t.children = append(t.children, child)
	case loop.ChildStopped:
		delete(open, b.Run)
	case loop.RunStopped:
		t.stops++
	}
	t.live = len(open) > 0
	return nil
}

// ends says what is wrong with the end of the run.
func (t *tally) ends() string {
	switch stopped := t.row == loop.StatusStopped; {
	case stopped && t.stops != 1:
		return fmt.Sprintf("it has stopped with %d stops", t.stops)
	case stopped && t.last != "RunStopped":
		return "after its stop there is " + t.last
	case !stopped && t.stops != 0:
		return "it has a stop, but is " + t.row
	case stopped && !slices.Contains(loop.Reasons(), t.state.Stop.Stop):
		return "its stop is none of the list: " + string(t.state.Stop.Stop)
	}
	return ""
}

// sum adds up the tree.
func (t *tally) sum() (loop.Counts, loop.Pico) {
	counts, cost := t.counts, t.cost
	for _, c := range t.children {
		n, pico := c.sum()
		counts = loop.Ledger{Own: counts, Below: n}.Total()
		cost += pico
	}
	return counts, cost
}

func (t *tally) account() string {
	if t.live {
		return "" // what a living child used is booked when it stops
	}
	counts, cost := t.sum()
	has := t.state.Ledger.Total()
	counts.Rounds = has.Rounds // a round is no event of its own
	if counts != has || cost != t.state.Ledger.TotalCost() {
		return fmt.Sprintf("the events add up to %s, the account says %s", account(counts, cost), account(has, t.state.Ledger.TotalCost()))
	}
	return ""
}

func account(c loop.Counts, cost loop.Pico) string {
	b, _ := json.Marshal(c)
	return fmt.Sprintf("%s and %s USD", b, dollars(cost))
}
