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

// checker compares what happened with what a scenario expects.
type checker struct {
	w     *world
	run   *drive.Run
	fails []Failure
}

func (c *checker) fail(line int, what, want, got string) {
	c.fails = append(c.fails, Failure{File: c.w.s.File, Line: line, What: what, Want: want, Got: got})
}

// expectations checks the end of a performance. What a killed process may do more often is compared as a minimum, and events are not
// compared where an outcome had to be resolved.
func (c *checker) expectations() {
	e := &c.w.s.expect
	if c.run == nil {
		c.run = &drive.Run{}
	}
	c.ends(e)
	if e.answer != nil {
		c.text(e.answer, "answer", c.run.Answer)
	}
	c.executions(e)
	c.counts(e)
	c.facts(e)
	c.pending(e)
	c.requests(e)
	if !c.w.resolved {
		c.events(e)
	}
	if e.messages != nil {
		n, err := c.w.messages()
		if err != nil {
			c.fail(e.line, "sessions.messages", fmt.Sprint(*e.messages), err.Error())
		} else if n != *e.messages {
			c.fail(e.line, "sessions.messages", fmt.Sprint(*e.messages), fmt.Sprint(n))
		}
	}
}

func (c *checker) ends(e *expect) {
	same := func(what, want, got string) {
		if want != "" && want != got {
			c.fail(e.line, what, want, or(got, "none"))
		}
	}
	got := c.run.Status
	if c.run.Stop != "" {
		got += " (" + string(c.run.Stop) + ")"
	}
	if e.status != "" && e.status != c.run.Status {
		c.fail(e.line, "status", e.status, or(got, "no run"))
	}
	why := string(c.run.Stop)
	if c.run.Stopped != nil && c.run.Stopped.Message != "" && e.stop != why {
		why += ": " + c.run.Stopped.Message
	}
	same("stop", e.stop, why)
	if e.limit != nil {
		same("limit", *e.limit, c.run.Limit)
	}
	if e.hasWaiting {
		want, have := slices.Sorted(slices.Values(e.waiting)), slices.Sorted(slices.Values(c.run.Waiting))
		if !slices.Equal(want, have) {
			c.fail(e.line, "waiting", fmt.Sprint(want), fmt.Sprint(have))
		}
	}
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (c *checker) text(t *textExpect, what, got string) {
	if t.equals != nil && *t.equals != got {
		c.fail(t.line, what+".equals", quoted(*t.equals), quoted(got))
	}
	for _, s := range t.contains {
		if !strings.Contains(got, s) {
			c.fail(t.line, what+".contains", quoted(s), quoted(got))
		}
	}
	for _, s := range t.excludes {
		if strings.Contains(got, s) {
			c.fail(t.line, what+".excludes", "no "+quoted(s), quoted(got))
		}
	}
}

// quoted shows a text, cut where it is long.
func quoted(s string) string {
	if len(s) > 400 {
		s = strings.ToValidUTF8(s[:400], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

func (c *checker) executions(e *expect) {
	got := c.w.sim.executions()
	for _, x := range e.executions {
		c.atLeast(x, "executions."+x.name, got[x.name], c.w.killed && !c.w.once[x.name], int64(c.w.untold[x.name]))
	}
}

// atLeast compares a count; minimum allows more, less allows so many fewer.
func (c *checker) atLeast(x countExpect, what string, got int64, minimum bool, less int64) {
	if got == x.n || minimum && got > x.n || got < x.n && got >= x.n-less {
		return
	}
	want := fmt.Sprint(x.n)
	if minimum {
		want = "at least " + want
	}
	c.fail(x.line, what, want, fmt.Sprint(got))
}

func (c *checker) counts(e *expect) {
	t := c.run.Total
	values := map[string]int64{"rounds": t.Rounds, "model_calls": t.ModelCalls, "model_attempts": t.ModelAttempts, "tool_calls": t.ToolCalls,
		"tool_attempts": t.ToolAttempts}
	for _, x := range e.counts {
		c.atLeast(x, "counts."+x.name, values[x.name], c.w.killed && strings.HasSuffix(x.name, "attempts"), 0)
	}
	u := t.Usage
	values = map[string]int64{"input": u.Input, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "output": u.Output, "reasoning": u.Reasoning}
	for _, x := range e.usage {
		c.atLeast(x, "usage."+x.name, values[x.name], c.w.killed, 0)
	}
	if e.cost != nil && c.run.Cost != *e.cost && !(c.w.killed && c.run.Cost > *e.cost) {
		c.fail(e.line, "usage.cost_usd", dollars(*e.cost), dollars(c.run.Cost))
	}
}

func dollars(p loop.Pico) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%012d", p/loop.USD, p%loop.USD), "0"), ".")
}

// facts compares the facts that are named; null means that there must be none of the name.
func (c *checker) facts(e *expect) {
	for _, f := range e.facts {
		want := f.Value.JSON()
		have, ok := c.run.Facts[f.Name]
		switch {
		case string(want) == "null" && !ok:
		case !ok:
			c.fail(f.Key.Line, "facts."+f.Name, string(want), "no such fact")
		case !sameJSON(want, have.Value):
			c.fail(f.Key.Line, "facts."+f.Name, string(want), string(have.Value))
		}
	}
}

// pending compares what waits for a person with the list: as many, in any order.
func (c *checker) pending(e *expect) {
	if !e.hasPending {
		return
	}
	var have []drive.Pending
	shown := []string{}
	for _, p := range c.run.Pending {
		if p.Tool != "" {
			have = append(have, p)
			shown = append(shown, p.Tool+" "+string(p.Args)+" ("+p.Kind+")")
		}
	}
	got := strings.Join(shown, ", ")
	for _, want := range e.pending {
		i := slices.IndexFunc(have, func(p drive.Pending) bool {
			return (want.call == "" || want.call == p.Tool) && (want.id == "" || want.id == p.Call || want.id == p.Wire) &&
				(want.kind == "" || want.kind == p.Kind) && (want.args == nil || containsArgs(p.Args, want.args))
		})
		if i < 0 {
			c.fail(want.line, "pending", want.String(), or(got, "nothing"))
			continue
		}
		have = slices.Delete(have, i, i+1)
	}
	if len(e.pending) < len(shown) {
		c.fail(e.line, "pending", fmt.Sprintf("%d", len(e.pending)), fmt.Sprintf("%d: %s", len(shown), got))
	}
}

func (p pendingExpect) String() string {
	s := p.call
	if p.id != "" {
		s += " " + p.id
	}
	if p.args != nil {
		s += " " + string(p.args.JSON())
	}
	return strings.TrimSpace(s)
}

func (c *checker) requests(e *expect) {
	if len(e.requests) == 0 {
		return
	}
	reqs := c.w.requests()
	for _, want := range e.requests {
		n := want.n
		if n == 0 {
			n = len(reqs)
		}
		if n < 1 || n > len(reqs) {
			c.fail(want.line, "requests", fmt.Sprintf("request %d", max(n, 1)), fmt.Sprintf("%d requests in all", len(reqs)))
			continue
		}
		c.request(want, fmt.Sprintf("request %d", n), reqs[n-1])
	}
}

func (c *checker) request(want requestExpect, what string, got prompt) {
	if want.choice != nil && *want.choice != or(got.choice, "auto") {
		c.fail(want.line, what+": tool_choice", *want.choice, or(got.choice, "auto"))
	}
	if want.declared != nil && *want.declared != got.declared {
		c.fail(want.line, what+": tools_declared", fmt.Sprint(*want.declared), fmt.Sprint(got.declared))
	}
	c.text(&textExpect{line: want.line, contains: want.system, excludes: want.systemNot}, what+": system", got.system)
	if want.user != nil {
		c.text(want.user, what+": user_last", got.userLast())
	}
	if want.hasResults {
		c.results(want.results, what, got.results())
	}
}

// results looks for the expected results among all of the request, in this order; others may lie between.
func (c *checker) results(want []resultExpect, what string, have []loop.Block) {
	at := 0
	for _, r := range want {
		if c.w.cell.Wire == fake.OpenAI || c.w.cell.Wire == fake.OpenAIChat {
			r.isError = nil // these wires have no place for it
		}
		i := slices.IndexFunc(have[at:], r.matches)
		if i < 0 {
			c.fail(r.line, what+": results", r.String(), showResults(have[at:], at))
			return
		}
		at += i + 1
	}
}

func (r resultExpect) matches(b loop.Block) bool {
	ok := (r.call == "" || r.call == b.Name) && (r.id == "" || r.id == b.ID || r.id == b.Call) && (r.isError == nil || *r.isError == b.Error)
	for _, s := range r.contains {
		ok = ok && strings.Contains(b.Text, s)
	}
	for _, s := range r.excludes {
		ok = ok && !strings.Contains(b.Text, s)
	}
	return ok
}

func (r resultExpect) String() string {
	s := "a result of " + or(r.call, "some call")
	if r.id != "" {
		s += " " + r.id
	}
	if len(r.contains) > 0 {
		s += fmt.Sprintf(" that contains %q", r.contains)
	}
	if len(r.excludes) > 0 {
		s += fmt.Sprintf(" without %q", r.excludes)
	}
	return s
}

func showResults(blocks []loop.Block, after int) string {
	var s []string
	for _, b := range blocks {
		s = append(s, fmt.Sprintf("%s %s: %s", b.Name, b.ID, quoted(b.Text)))
	}
	if len(s) == 0 {
		return fmt.Sprintf("no further result after %d", after)
	}
	return strings.Join(s, "; ")
}

// events looks for the kinds in their order; others may lie between. A child's events stand after its start.
func (c *checker) events(e *expect) {
	if len(e.events) == 0 {
		return
	}
	var kinds []string
	for _, run := range c.w.runs {
		if err := c.w.kinds(run, &kinds); err != nil {
			c.fail(e.eventsLine, "events", "a journal that can be read", err.Error())
			return
		}
	}
	at := 0
	for _, want := range e.events {
		i := slices.Index(kinds[at:], want)
		if i < 0 {
			c.fail(e.eventsLine, "events", fmt.Sprintf("%s after %d events", want, at), strings.Join(kinds[at:], " "))
			return
		}
		at += i + 1
	}
}

func (w *world) kinds(run string, kinds *[]string) error {
	return w.events(run, func(ev loop.Event) error {
		*kinds = append(*kinds, ev.Kind())
		if b, ok := ev.Body.(loop.ChildStarted); ok {
			if _, err := w.store().Get(w.quiet(), b.Run); err == nil {
				return w.kinds(b.Run, kinds)
			}
		}
		return nil
	})
}

// outcome is what must not depend on where a process died.
type outcome struct {
	Status, Stop, Limit, Answer string
	Facts                       map[string]json.RawMessage
	Once                        map[string]int64
}

func (w *world) outcome(r *drive.Run) outcome {
	o := outcome{Facts: map[string]json.RawMessage{}, Once: map[string]int64{}}
	if r == nil {
		return o
	}
	o.Status, o.Stop, o.Limit, o.Answer = r.Status, string(r.Stop), r.Limit, r.Answer
	for k, f := range r.Facts {
		o.Facts[k] = f.Value
	}
	for name, n := range w.sim.executions() {
		if w.once[name] {
			o.Once[name] = n
		}
	}
	return o
}

// sameAs compares a killed performance with the uninterrupted one. Where the death kept an effect from happening there may be fewer.
func (c *checker) sameAs(base outcome) {
	got := c.w.outcome(c.run)
	line := c.w.s.Line
	same := func(what, want, have string) {
		if want != have {
			c.fail(line, what+" without a crash", or(want, "none"), or(have, "none"))
		}
	}
	if !c.w.diverged {
		same("status", base.Status, got.Status)
		same("stop", base.Stop, got.Stop)
		same("limit", base.Limit, got.Limit)
		same("answer", base.Answer, got.Answer)
		for name, v := range base.Facts {
			same("fact "+name, string(v), string(got.Facts[name]))
		}
		for name, v := range got.Facts {
			same("fact "+name, string(base.Facts[name]), string(v))
		}
	}
	for name := range c.w.once {
		n, most := got.Once[name], base.Once[name]
		if n > most || !c.w.diverged && n < most-int64(c.w.untold[name]) {
			c.fail(line, "executions."+name+" without a crash", fmt.Sprint(most), fmt.Sprint(n))
		}
	}
}
