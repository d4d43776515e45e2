package journaltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

func testInbox(t *testing.T, h *harness) {
	h.create(t, "run_1", "ana")
	h.create(t, "run_2", "ana")
	var want []journal.Input
	for i := range 5 {
		in := input("run_1", fmt.Sprintf("in_%d", 9-i), "")
		in.At -= loop.Micros(i) // the sender's clock does not decide the order
		if i == 3 {
			in.Body, in.By = nil, ""
		}
		got, won, err := h.Put(t.Context(), in)
		if err != nil || !won {
			t.Fatalf("put: won %v, %v", won, err)
		}
		same(t, "accepted", got, in)
		want = append(want, in)
	}
	got, err := h.Inputs(t.Context(), "run_1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "inputs", got, want)
	same(t, "inputs of the other run", h.waiting(t, "run_2"), []string{})
	same(t, "count", h.get(t, "run_1").Inputs, 5)
	same(t, "sequence", h.get(t, "run_1").Seq, int64(2))
}

func testInboxOneWinner(t *testing.T, h *harness) {
	h.create(t, "run_1", "ana")
	h.create(t, "run_2", "ana")
	const n = 50
	type answer struct {
		mine, accepted journal.Input
		won            bool
	}
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			in := input("run_1", fmt.Sprintf("in_%d", i), "decide/c1")
			in.By = fmt.Sprintf("person %d", i)
			accepted, won, err := h.Put(t.Context(), in)
			if err != nil {
				t.Errorf("put: %v", err)
			}
			answers[i] = answer{in, accepted, won}
		})
	}
	wg.Wait()
	held, err := h.Accepted(t.Context(), "run_1", "decide/c1")
	if err != nil {
		t.Fatal(err)
	}
	winners := 0
	for _, a := range answers {
		same(t, "accepted", a.accepted, held)
		if a.won {
			winners++
			same(t, "the winner's own", a.mine, held)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners of %d, want 1", winners, n)
	}
	same(t, "waiting", h.waiting(t, "run_1"), []string{held.ID})
	same(t, "count", h.get(t, "run_1").Inputs, 1)
	h.put(t, input("run_2", "in_0", "decide/c1")) // the key is another run's too
	h.put(t, input("run_1", "in_other", "decide/c2"))
}

func testInboxSameAgain(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	first := input("run_1", "in_1", "k")
	h.put(t, first)
	again := input("run_1", "in_2", "k")
	again.By = "ben"
	check := func(when string) {
		t.Helper()
		got, won, err := h.Put(t.Context(), again)
		if err != nil || won {
			t.Errorf("%s: won %v, %v", when, won, err)
		}
		same(t, when, got, first)
		got, won, err = h.Put(t.Context(), first) // the winner, who did not hear that it won
		if err != nil || !won {
			t.Errorf("%s: the first again: won %v, %v", when, won, err)
		}
		same(t, when, got, first)
	}
	check("while it waits")
	b := next(l, 2, 1)
	b.Take = []string{"in_1"}
	h.append(t, b)
	check("when it was taken")
	same(t, "count", h.get(t, "run_1").Inputs, 0)
	// Without a key the id alone decides.
	m := input("run_1", "in_3", "")
	h.put(t, m)
	h.put(t, m)
	same(t, "waiting", h.waiting(t, "run_1"), []string{"in_3"})
}

func testInboxRefuses(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	_, _, err := h.Put(t.Context(), input("run_9", "in_1", ""))
	fails(t, "unknown run", err, journal.ErrNotFound)
	for name, in := range map[string]journal.Input{
		"no id":   {Run: "run_1", Kind: "message"},
		"no run":  {ID: "in_1", Kind: "message"},
		"no kind": {ID: "in_1", Run: "run_1"},
	} {
		if _, won, err := h.Put(t.Context(), in); err == nil || won {
			t.Errorf("%s: accepted", name)
		}
	}
	_, err = h.Accepted(t.Context(), "run_1", "k")
	fails(t, "a key that nobody holds", err, journal.ErrNotFound)
	_, err = h.Accepted(t.Context(), "run_1", "")
	fails(t, "no key", err, journal.ErrNotFound)
	h.put(t, input("run_1", "in_2", "k"))
	b := stop(next(l, 2, 1))
	b.Take = []string{"in_2"}
	h.append(t, b)
	_, won, err := h.Put(t.Context(), input("run_1", "in_3", "k"))
	fails(t, "stopped run", err, journal.ErrStopped)
	if won {
		t.Error("an input of a stopped run won")
	}
	got, err := h.Accepted(t.Context(), "run_1", "k")
	if err != nil {
		t.Fatalf("accepted after the end: %v", err)
	}
	same(t, "accepted after the end", got, input("run_1", "in_2", "k"))
}

func testTake(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	h.create(t, "run_2", "ana")
	for _, id := range []string{"a", "b", "c", "d"} {
		h.put(t, input("run_1", id, ""))
	}
	h.put(t, input("run_2", "e", ""))
	b := next(l, 2, 1)
	b.Take = []string{"c", "a"}
	if n := h.append(t, b); n != 2 {
		t.Errorf("%d inputs wait, want 2", n)
	}
	same(t, "waiting", h.waiting(t, "run_1"), []string{"b", "d"})
	same(t, "row", h.get(t, "run_1").Inputs, 2)
	for _, id := range []string{"a", "e"} {
		b := next(l, 3, 1)
		b.Take = []string{id}
		_, err := h.Append(t.Context(), b)
		fails(t, "take of "+id, err, journal.ErrConflict)
	}
	if n := h.append(t, next(l, 3, 1)); n != 2 {
		t.Errorf("%d inputs wait, want 2", n)
	}
	b = next(l, 4, 0) // taken without an event
	b.Take = []string{"d", "b"}
	if n := h.append(t, b); n != 0 {
		t.Errorf("%d inputs wait, want none", n)
	}
	same(t, "waiting", h.waiting(t, "run_1"), []string{})
}

func testNoInputs(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	b := stop(next(l, 2, 1))
	b.NoInputs = true
	h.put(t, input("run_1", "a", ""))
	before := h.snapshot(t, "run_1")
	_, err := h.Append(t.Context(), b)
	fails(t, "append", err, journal.ErrInbox)
	same(t, "run", h.snapshot(t, "run_1"), before)
	b.Take = []string{"a"}
	if n := h.append(t, b); n != 0 {
		t.Errorf("%d inputs wait, want none", n)
	}
	l = h.create(t, "run_2", "ana")
	b = next(l, 2, 1)
	b.NoInputs = true
	h.append(t, b)
}

// testPutRacesStop: an input is accepted before the end, and then seen by it, or refused.
func testPutRacesStop(t *testing.T, h *harness) {
	for i := range 20 {
		id := fmt.Sprintf("run_%d", i)
		l := h.create(t, id, "ana")
		var accepted, ended error
		var wg sync.WaitGroup
		wg.Go(func() { _, _, accepted = h.Put(t.Context(), input(id, "in", "k")) })
		wg.Go(func() {
			b := stop(next(l, 2, 1))
			b.NoInputs = true
			_, ended = h.Append(t.Context(), b)
		})
		wg.Wait()
		switch {
		case accepted == nil && errors.Is(ended, journal.ErrInbox):
		case ended == nil && errors.Is(accepted, journal.ErrStopped):
		default:
			t.Errorf("put: %v; end: %v; want one of them to be refused", accepted, ended)
		}
	}
}
