package journaltest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

func testListPages(t *testing.T, h *harness) {
	same(t, "empty store", h.list(t, journal.Query{}), []string{})
	var want []string
	for i := range 25 {
		r := row(fmt.Sprintf("run_%02d", i))
		r.Created = t0 + loop.Micros(i/3) // three of each moment: the later one first
		h.mustCreate(t, created(r, "ana", 1))
		want = append(want, r.ID)
	}
	late := row("run_old") // came last and is the oldest: an imported run
	late.Created = t0 - 5
	h.mustCreate(t, created(late, "ana", 1))
	slices.Reverse(want)
	want = append(want, "run_old")
	same(t, "all", h.list(t, journal.Query{}), want)
	for _, limit := range []int{1, 7, 13, 26, 30} {
		var got []string
		q := journal.Query{Limit: limit}
		for pages := 0; ; pages++ {
			p, err := h.List(t.Context(), q)
			if err != nil {
				t.Fatalf("list: %v", err)
			}
			if len(p.Runs) > limit || pages > 30 {
				t.Fatalf("page %d has %d runs, limit %d", pages, len(p.Runs), limit)
			}
			for _, r := range p.Runs {
				got = append(got, r.ID)
			}
			if q.Cursor = p.Next; p.Next == "" {
				break
			}
			if pages == 0 { // what comes meanwhile does not move the pages
				r := row(fmt.Sprintf("run_new_%d", limit))
				r.Created = t0 + 1000
				h.mustCreate(t, created(r, "ana", 1))
			}
		}
		got = slices.DeleteFunc(got, func(id string) bool { return len(id) > 7 })
		same(t, fmt.Sprintf("pages of %d", limit), got, want)
	}
	for _, bad := range []string{"x", "1", "1.2.3", "1.2 ", "99999999999999999999.1"} {
		if _, err := h.List(t.Context(), journal.Query{Cursor: bad}); err == nil {
			t.Errorf("the cursor %q was accepted", bad)
		}
	}
	for i := range 80 {
		h.mustCreate(t, created(row(fmt.Sprintf("run_more_%d", i)), "ana", 1))
	}
	same(t, "default limit", len(h.list(t, journal.Query{})), 100)
}

func testListFilters(t *testing.T, h *harness) {
	mk := func(id string, change func(r *journal.Run)) {
		r := row(id)
		change(&r)
		h.mustCreate(t, created(r, "ana", 1))
	}
	mk("run_a1", func(r *journal.Run) { r.Session = "s1" })
	mk("run_b2", func(r *journal.Run) {
		r.Status, r.Waiting, r.Agent = journal.Waiting, []string{"approval", "child"}, "coach"
		r.Parent, r.Root, r.Session = "run_a1", "run_a1", "s1"
	})
	mk("run_c1", func(r *journal.Run) { r.Status, r.Stop, r.Limit = journal.Stopped, loop.StopLimit, "rounds" })
	mk("run_d2", func(r *journal.Run) { r.Status, r.Waiting, r.Wake = journal.Waiting, []string{"timer"}, t0+10 })
	mk("run_e3", func(r *journal.Run) { r.Status, r.Waiting, r.Wake = journal.Waiting, []string{"approval"}, t0+20 })
	mk("run_f4", func(r *journal.Run) { r.Parent, r.Root = "run_b2", "run_a1" })
	h.put(t, input("run_d2", "in_1", ""))
	for _, tt := range []struct {
		q    journal.Query
		want []string
	}{
		{journal.Query{}, []string{"run_f4", "run_e3", "run_d2", "run_c1", "run_b2", "run_a1"}},
		{journal.Query{Status: "waiting"}, []string{"run_e3", "run_d2", "run_b2"}},
		{journal.Query{Status: "running"}, []string{"run_f4", "run_a1"}},
		{journal.Query{Status: "stopped"}, []string{"run_c1"}},
		{journal.Query{Status: "none"}, []string{}},
		{journal.Query{Agent: "coach"}, []string{"run_b2"}},
		{journal.Query{Session: "s1"}, []string{"run_b2", "run_a1"}},
		{journal.Query{Root: "run_a1"}, []string{"run_f4", "run_b2", "run_a1"}},
		{journal.Query{Root: "run_c1"}, []string{"run_c1"}},
		{journal.Query{Parent: "run_a1"}, []string{"run_b2"}},
		{journal.Query{Roots: true}, []string{"run_e3", "run_d2", "run_c1", "run_a1"}},
		{journal.Query{Stop: loop.StopLimit}, []string{"run_c1"}},
		{journal.Query{Stop: loop.StopFailed}, []string{}},
		{journal.Query{Waiting: "approval"}, []string{"run_e3", "run_b2"}},
		{journal.Query{Waiting: "child"}, []string{"run_b2"}},
		{journal.Query{Waiting: "app"}, []string{}},
		{journal.Query{WakeBy: t0 + 9}, []string{}},
		{journal.Query{WakeBy: t0 + 10}, []string{"run_d2"}},
		{journal.Query{WakeBy: t0 + 99}, []string{"run_e3", "run_d2"}},
		{journal.Query{Inputs: true}, []string{"run_d2"}},
		{journal.Query{IDs: "run_b"}, []string{"run_b2"}},
		{journal.Query{IDs: "2"}, []string{"run_d2", "run_b2"}},
		{journal.Query{IDs: "run_a1"}, []string{"run_a1"}},
		{journal.Query{IDs: "n_d"}, []string{}},
		{journal.Query{IDs: "_"}, []string{}},
		{journal.Query{IDs: "%"}, []string{}},
		{journal.Query{Status: "waiting", Waiting: "approval", Roots: true}, []string{"run_e3"}},
		{journal.Query{Root: "run_a1", Status: "running", Limit: 1}, []string{"run_f4"}},
	} {
		if d := cmp.Diff(tt.want, h.list(t, tt.q)); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.q, d)
		}
	}
}

func testListFollowsAppend(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	b := next(l, 2, 1)
	b.Run.Status, b.Run.Waiting, b.Run.Wake = journal.Waiting, []string{"timer"}, t0+10
	h.append(t, b)
	same(t, "waiting", h.list(t, journal.Query{Status: "waiting", Waiting: "timer", WakeBy: t0 + 10}), []string{"run_1"})
	same(t, "running", h.list(t, journal.Query{Status: "running"}), []string{})
	p, err := h.List(t.Context(), journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	want := b.Run
	want.Seq = 3
	same(t, "page", p, journal.Page{Runs: []journal.Run{want}})
	h.append(t, next(l, 3, 1))
	same(t, "timers", h.list(t, journal.Query{WakeBy: t0 + 10}), []string{})
	h.append(t, stop(next(l, 4, 1)))
	same(t, "stopped", h.list(t, journal.Query{Stop: loop.StopCompleted}), []string{"run_1"})
	same(t, "running", h.list(t, journal.Query{Status: "running"}), []string{})
}

func testListInputs(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	h.create(t, "run_2", "ana")
	same(t, "before", h.list(t, journal.Query{Inputs: true}), []string{})
	h.put(t, input("run_1", "a", ""))
	h.put(t, input("run_1", "b", ""))
	same(t, "two wait", h.list(t, journal.Query{Inputs: true}), []string{"run_1"})
	for i, id := range []string{"a", "b"} {
		same(t, "still", h.list(t, journal.Query{Inputs: true}), []string{"run_1"})
		b := next(l, int64(2+i), 1)
		b.Take = []string{id}
		h.append(t, b)
	}
	same(t, "after", h.list(t, journal.Query{Inputs: true}), []string{})
}
