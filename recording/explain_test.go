package recording_test

import (
	"strings"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

func claims(x recording.Explanation, topic string) string {
	var out []string
	for _, c := range x.Claims {
		if c.Topic == topic {
			out = append(out, c.Text)
		}
	}
	return strings.Join(out, "\n")
}

// TestExplainNamesTheCause explains runs whose cause is known.
func TestExplainNamesTheCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		run   func(w *world) *recording.Recording
		cause string
		says  map[string]string // topic: part of a claim
	}{
		{"a loop that no rule stops", func(w *world) *recording.Recording { return w.repeats(0) }, recording.CauseLoop, map[string]string{
			"stop": "The limit rounds (20) stopped the run.", "repeated": `search {"q":"bench"} was called 20 times; 19 results said nothing`,
			"nothing_new": "Rounds 2 to 20 brought no new fact", "saved": "stall at 2 would have ended it at round 3: 17 rounds, 19 model calls, 17 tool calls"}},
		{"a loop that stalls", func(w *world) *recording.Recording { return w.repeats(3) }, recording.CauseLoop, map[string]string{
			"stop": "The stall rule stopped the run", "repeated": "was called 4 times", "saved": "stall at 2 would have ended it at round 3: 1 round"}},
		{"retries", (*world).retries, recording.CauseRetries, map[string]string{
			"retries": "Model call 1 took 3 attempts in 22s: transient 529", "stop": "ended with an answer"}},
		{"growing context", (*world).grows, recording.CauseGrowth, map[string]string{
			"growth": "The prompt grew from 200 to 15200 tokens over 6 model calls.\nResults of fetch are"}},
		{"real work", (*world).works, recording.CauseWork, map[string]string{"rounds": "3 rounds: 3 for results of tools."}},
		{"a person", func(w *world) *recording.Recording { return w.asks(true) }, recording.CausePeople, map[string]string{"time": "1h0m0s for a person"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := made(t, c.run)
			x := recording.Explain(rec.Root().Events)
			if x.Cause != c.cause {
				t.Errorf("want the cause %s, got %s\n%s", c.cause, x.Cause, x.Text())
			}
			if x.Cause != recording.CauseWork && len(x.Advice) == 0 {
				t.Error("it says nothing of what to do")
			}
			for topic, part := range c.says {
				if !strings.Contains(claims(x, topic), part) {
					t.Errorf("%s: want %q in\n%s", topic, part, x.Text())
				}
			}
			last := int64(len(rec.Root().Events))
			for _, cl := range x.Claims {
				for _, seq := range cl.Events {
					if seq < 1 || seq > last {
						t.Errorf("%q points to event %d, of %d", cl.Text, seq, last)
					}
				}
			}
			var cost loop.Pico
			for _, r := range x.Rounds {
				cost += r.Cost
			}
			if cost != x.Cost {
				t.Errorf("the rounds cost %d, the run %d", cost, x.Cost)
			}
		})
	}
}

func TestWhatIf(t *testing.T) {
	two, three, five, big := int64(2), int64(3), int64(5), int64(40)
	rec := made(t, func(w *world) *recording.Recording { return w.repeats(0) })
	for _, c := range []struct {
		name string
		ch   recording.Change
		want string
	}{
		{"nothing", recording.Change{}, "nothing would have been different"},
		{"fewer rounds", recording.Change{Limits: loop.Limits{Rounds: &five}}, "it would have stopped: limit (rounds) at round 5, after one more call for a closing answer: 15 rounds"},
		{"fewer rounds, stop", recording.Change{Limits: loop.Limits{Rounds: &five}, OnLimit: "stop"}, "it would have stopped: limit (rounds) at round 5: 15 rounds"},
		{"fewer tool calls", recording.Change{Limits: loop.Limits{ToolCalls: &three}}, "it would have stopped: limit (tool_calls)"},
		{"fewer model calls", recording.Change{Limits: loop.Limits{ModelCalls: &three}}, "it would have stopped: limit (model_calls) at round 2"},
		{"stall 2", recording.Change{Stall: &two}, "it would have stopped: stalled at round 3: 17 rounds"},
		{"more rounds", recording.Change{Limits: loop.Limits{Rounds: &big}}, "the same until round 20"},
		{"denied", recording.Change{Deny: []string{"search"}}, "denied: c1.1"},
		{"asked", recording.Change{Ask: []string{"search"}}, "20 calls would have waited for a person"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := recording.WhatIf(rec.Root().Events, c.ch)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Text(); !strings.Contains(got, c.want) {
				t.Errorf("want %q, got %q (%+v)", c.want, got, out)
			}
		})
	}
}

// TestWhatIfAgreesWithTheRun runs the same agent under the other rule and compares.
func TestWhatIfAgreesWithTheRun(t *testing.T) {
	two := int64(2)
	out, err := recording.WhatIf(made(t, func(w *world) *recording.Recording { return w.repeats(0) }).Root().Events, recording.Change{Stall: &two})
	if err != nil {
		t.Fatal(err)
	}
	st, err := made(t, func(w *world) *recording.Recording { return w.repeats(2) }).Root().Fold()
	if err != nil {
		t.Fatal(err)
	}
	if st.Stop.Stop != out.Stop || st.Ledger.Own.Rounds != out.Round {
		t.Errorf("the run stopped %s at round %d, the what-if says %s at %d", st.Stop.Stop, st.Ledger.Own.Rounds, out.Stop, out.Round)
	}
}
