package journaltest

import (
	"strings"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

func testCreate(t *testing.T, h *harness) {
	r := journal.Run{
		ID: "run_1", Session: "ses_1", Root: "run_1", Agent: "support", Model: "m", Status: journal.Waiting,
		Waiting: []string{"approval", "timer"}, Limit: "rounds", Created: t0, Updated: t0 + 1, Wake: t0 + 2,
		Digest: "abc", Title: "Título", Summary: []byte(`{"rounds":1}`),
	}
	b := created(r, "ana", 3)
	b.Run.Seq, b.Run.Inputs = 77, 9 // what the store knows better
	b.Artifacts = []journal.Artifact{artifact("a")}
	b.Tapes = []journal.Tape{{Run: "run_1", ID: "t1", Data: []byte{1, 2}}}
	l := h.mustCreate(t, b)
	same(t, "lease", l, journal.Lease{Run: "run_1", Owner: "ana", Epoch: 1})
	r.Seq = 3
	same(t, "run", h.snapshot(t, "run_1", artifact("a").Ref), snapshot{
		Row: r, Records: records("run_1", 0, 3), Tapes: b.Tapes, Artifact: []string{artifact("a").Ref},
	})
	// A child names its root; a root that names none is its own.
	child := row("run_2")
	child.Parent, child.Root, child.Session = "run_1", "run_1", "ses_1"
	h.mustCreate(t, created(child, "ana", 1))
	child.Seq = 1
	same(t, "child", h.get(t, "run_2"), child)
	lone := row("run_3")
	lone.Root = ""
	h.mustCreate(t, created(lone, "ana", 1))
	lone.Root, lone.Seq = "run_3", 1
	same(t, "root", h.get(t, "run_3"), lone)
}

func testCreateRefuses(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	_, err := h.Create(t.Context(), created(row("run_1"), "ana", 1))
	fails(t, "an id that is taken", err, journal.ErrExists)
	h.append(t, stop(next(l, 2, 1)))
	_, err = h.Create(t.Context(), created(row("run_1"), "ana", 1))
	fails(t, "an id that a stopped run has", err, journal.ErrExists)

	for name, change := range map[string]func(b *journal.Batch){
		"no run":         func(b *journal.Batch) { b.Lease.Run = "" },
		"no owner":       func(b *journal.Batch) { b.Lease.Owner = "" },
		"two ids":        func(b *journal.Batch) { b.Run.ID = "run_3" },
		"not from 0":     func(b *journal.Batch) { b.After = 1 },
		"gap":            func(b *journal.Batch) { b.Records[1].Seq = 3 },
		"status":         func(b *journal.Batch) { b.Run.Status = "done" },
		"artifact name":  func(b *journal.Batch) { b.Artifacts = []journal.Artifact{{Ref: "md5:1"}} },
		"another's tape": func(b *journal.Batch) { b.Tapes = []journal.Tape{{Run: "run_9", ID: "t"}} },
		"same tape":      func(b *journal.Batch) { b.Tapes = []journal.Tape{{ID: "t"}, {ID: "t"}} },
	} {
		b := created(row("run_2"), "ana", 2)
		change(&b)
		if _, err := h.Create(t.Context(), b); err == nil {
			t.Errorf("%s: accepted", name)
		}
		_, err := h.Get(t.Context(), "run_2")
		fails(t, name, err, journal.ErrNotFound)
	}
}

func testCreateIsAtomic(t *testing.T, h *harness) {
	h.create(t, "run_1", "ana")
	before := h.snapshot(t, "run_1")
	b := created(row("run_1"), "ben", 4)
	b.Artifacts = []journal.Artifact{artifact("lost")}
	b.Tapes = []journal.Tape{{Run: "run_1", ID: "t1", Data: []byte("x")}}
	_, err := h.Create(t.Context(), b)
	fails(t, "create", err, journal.ErrExists)
	same(t, "the run that was there", h.snapshot(t, "run_1", artifact("lost").Ref), before)
}

func testSession(t *testing.T, h *harness) {
	inSession := func(id, session, parent string) journal.Batch {
		r := row(id)
		r.Session, r.Parent = session, parent
		if parent != "" {
			r.Root = parent
		}
		return created(r, "ana", 1)
	}
	l := h.mustCreate(t, inSession("run_1", "ses_1", ""))
	b := inSession("run_2", "ses_1", "")
	b.Artifacts = []journal.Artifact{artifact("second")}
	_, err := h.Create(t.Context(), b)
	fails(t, "a second live root", err, journal.ErrExists)
	if err != nil && !strings.Contains(err.Error(), "run_1") {
		t.Errorf("the error does not name the live run: %v", err)
	}
	_, err = h.Artifact(t.Context(), artifact("second").Ref)
	fails(t, "artifact of the refused run", err, journal.ErrNotFound)

	h.mustCreate(t, inSession("run_3", "ses_1", "run_1")) // a child
	h.mustCreate(t, inSession("run_4", "ses_2", ""))      // another session
	h.mustCreate(t, inSession("run_5", "", ""))           // no session: any number
	h.mustCreate(t, inSession("run_6", "", ""))

	waits := next(l, 1, 1)
	waits.Run.Status = journal.Waiting
	h.append(t, waits)
	_, err = h.Create(t.Context(), b)
	fails(t, "a second root while the first waits", err, journal.ErrExists)
	h.append(t, stop(next(l, 2, 1)))
	l2 := h.mustCreate(t, b) // its child still lives, which does not count
	_, err = h.Create(t.Context(), inSession("run_7", "ses_1", ""))
	fails(t, "a third live root", err, journal.ErrExists)
	h.append(t, stop(next(l2, 1, 1)))

	// A run that begins stopped (an imported one) never holds its session.
	h.mustCreate(t, stop(inSession("run_8", "ses_1", "")))
	l3 := h.mustCreate(t, inSession("run_9", "ses_1", ""))
	h.mustCreate(t, stop(inSession("run_10", "ses_1", "")))
	_, err = h.Create(t.Context(), inSession("run_11", "ses_1", ""))
	fails(t, "a live root beside one", err, journal.ErrExists)
	h.append(t, stop(next(l3, 1, 1)))
	h.mustCreate(t, inSession("run_12", "ses_1", ""))
}

func testAcquire(t *testing.T, h *harness) {
	h.create(t, "run_1", "ana")
	_, err := h.Acquire(t.Context(), "run_1", "ben")
	fails(t, "a lease that another holds", err, journal.ErrHeld)
	if err != nil && !strings.Contains(err.Error(), "ana") {
		t.Errorf("the error does not name the holder: %v", err)
	}
	l, err := h.Acquire(t.Context(), "run_1", "ana")
	if err != nil {
		t.Fatalf("the holder itself: %v", err)
	}
	same(t, "lease", l, journal.Lease{Run: "run_1", Owner: "ana", Epoch: 2})
	_, err = h.Acquire(t.Context(), "run_9", "ana")
	fails(t, "unknown run", err, journal.ErrNotFound)
	if _, err := h.Acquire(t.Context(), "run_1", ""); err == nil {
		t.Error("an empty owner was accepted")
	}
}

func testFencing(t *testing.T, h *harness) {
	old := h.create(t, "run_1", "ana")
	l, err := h.Acquire(t.Context(), "run_1", "ana")
	if err != nil {
		t.Fatal(err)
	}
	before := h.snapshot(t, "run_1")
	for name, lease := range map[string]journal.Lease{
		"old epoch":     old,
		"later epoch":   {Run: "run_1", Owner: "ana", Epoch: 3},
		"other owner":   {Run: "run_1", Owner: "ben", Epoch: 2},
		"without epoch": {Run: "run_1", Owner: "ana"},
	} {
		_, err := h.Append(t.Context(), next(lease, 2, 1))
		fails(t, name, err, journal.ErrLease)
	}
	same(t, "run", h.snapshot(t, "run_1"), before)
	h.append(t, next(l, 2, 1))
}

func testRelease(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	if err := h.Release(t.Context(), l); err != nil {
		t.Fatalf("release: %v", err)
	}
	_, err := h.Append(t.Context(), next(l, 2, 1))
	fails(t, "append after release", err, journal.ErrLease)
	l2, err := h.Acquire(t.Context(), "run_1", "ben")
	if err != nil {
		t.Fatalf("acquire after release: %v", err)
	}
	same(t, "lease", l2, journal.Lease{Run: "run_1", Owner: "ben", Epoch: 2})
	if err := h.Release(t.Context(), l); err != nil {
		t.Errorf("release of a lost lease: %v", err)
	}
	if err := h.Release(t.Context(), journal.Lease{Run: "run_1", Owner: "ben", Epoch: 1}); err != nil {
		t.Errorf("release of an older lease of the holder: %v", err)
	}
	h.append(t, next(l2, 2, 1)) // neither took it away
	if err := h.Release(t.Context(), l2); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := h.Release(t.Context(), l2); err != nil {
		t.Errorf("release again: %v", err)
	}
	l3, err := h.Acquire(t.Context(), "run_1", "ben")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "epoch", l3.Epoch, int64(3))
}

func testOwner(t *testing.T, h *harness) {
	first := h.Owner()
	if again := h.Owner(); first == "" || again != first {
		t.Errorf("owner is %q, then %q", first, again)
	}
	h.create(t, "run_1", h.Owner())
	_, err := h.Acquire(t.Context(), "run_1", "ben")
	fails(t, "acquire", err, journal.ErrHeld)
	if l, err := h.Acquire(t.Context(), "run_1", h.Owner()); err != nil || l.Epoch != 2 {
		t.Errorf("acquire by the owner: %+v, %v", l, err)
	}
}

func testStopped(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	b := stop(next(l, 2, 1))
	b.Run.Stop, b.Run.Limit = loop.StopLimit, "rounds"
	h.append(t, b)
	want := b.Run
	want.Seq = 3
	same(t, "row", h.get(t, "run_1"), want)
	_, err := h.Append(t.Context(), next(l, 3, 1))
	fails(t, "append", err, journal.ErrStopped)
	_, _, err = h.Put(t.Context(), input("run_1", "in_1", "k"))
	fails(t, "put", err, journal.ErrStopped)
	same(t, "row", h.get(t, "run_1"), want)
	if err := h.Release(t.Context(), l); err != nil {
		t.Errorf("release: %v", err)
	}
	same(t, "records", h.read(t, "run_1", 0), records("run_1", 0, 3))
}
