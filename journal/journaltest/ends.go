package journaltest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ronda-go/ronda/journal"
)

// methods calls every method that can fail, with what would succeed on a store that holds run_1 (lease l, two events) and the
// input in_0 under the key k0.
func methods(ctx context.Context, s journal.Store, l journal.Lease) map[string]func() error {
	take := next(l, 2, 1)
	take.Take = []string{"in_0"}
	take.Artifacts = []journal.Artifact{artifact("never")}
	return map[string]func() error{
		"Create":       func() error { _, err := s.Create(ctx, created(row("run_new"), "ana", 1)); return err },
		"Acquire":      func() error { _, err := s.Acquire(ctx, "run_1", "ana"); return err },
		"Release":      func() error { return s.Release(ctx, l) },
		"Append":       func() error { _, err := s.Append(ctx, take); return err },
		"Put":          func() error { _, _, err := s.Put(ctx, input("run_1", "in_1", "k")); return err },
		"Inputs":       func() error { _, err := s.Inputs(ctx, "run_1"); return err },
		"Accepted":     func() error { _, err := s.Accepted(ctx, "run_1", "k0"); return err },
		"Read":         func() error { return s.Read(ctx, "run_1", 0, func(journal.Record) error { return nil }) },
		"Get":          func() error { _, err := s.Get(ctx, "run_1"); return err },
		"List":         func() error { _, err := s.List(ctx, journal.Query{}); return err },
		"Artifact":     func() error { _, err := s.Artifact(ctx, artifact("kept").Ref); return err },
		"PutArtifacts": func() error { return s.PutArtifacts(ctx, []journal.Artifact{artifact("never")}) },
		"Tapes":        func() error { _, err := s.Tapes(ctx, "run_1"); return err },
		"Idempotent":   func() error { _, err := s.Idempotent(ctx, "key", "never"); return err },
		"PutDoc":       func() error { return s.PutDoc(ctx, "space", "name", []byte("never")) },
		"Doc":          func() error { _, err := s.Doc(ctx, "space", "kept"); return err },
		"Docs":         func() error { _, err := s.Docs(ctx, "space"); return err },
		"DeleteDoc":    func() error { return s.DeleteDoc(ctx, "space", "kept") },
	}
}

// fill makes what methods needs.
func (h *harness) fill(t *testing.T) journal.Lease {
	t.Helper()
	l := h.create(t, "run_1", "ana")
	h.put(t, input("run_1", "in_0", "k0"))
	if err := h.PutArtifacts(t.Context(), []journal.Artifact{artifact("kept")}); err != nil {
		t.Fatal(err)
	}
	if err := h.PutDoc(t.Context(), "space", "kept", []byte("doc")); err != nil {
		t.Fatal(err)
	}
	return l
}

// untouched checks that nothing of methods is there.
func (h *harness) untouched(t *testing.T, l journal.Lease) {
	t.Helper()
	want := row("run_1")
	want.Seq, want.Inputs = 2, 1
	same(t, "run", h.snapshot(t, "run_1", artifact("never").Ref, artifact("kept").Ref), snapshot{
		Row: want, Records: records("run_1", 0, 2), Inputs: []journal.Input{input("run_1", "in_0", "k0")}, Artifact: []string{artifact("kept").Ref},
	})
	same(t, "runs", h.list(t, journal.Query{}), []string{"run_1"})
	docs, err := h.Docs(t.Context(), "space")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "documents", docs, map[string][]byte{"kept": []byte("doc")})
	if stored, err := h.Idempotent(t.Context(), "key", "now"); err != nil || stored != "now" {
		t.Errorf("idempotent: %q, %v", stored, err)
	}
	h.append(t, next(l, 2, 1)) // the lease is what it was
}

func testCancelled(t *testing.T, h *harness) {
	l := h.fill(t)
	for name, call := range methods(cancelled(), h.Store, l) {
		fails(t, name, call(), context.Canceled)
	}
	h.untouched(t, l)
}

func testClosed(t *testing.T, h *harness) {
	l := h.fill(t)
	_, stopNotify := h.Notify("run_1")
	if err := h.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	for name, call := range methods(t.Context(), h.Store, l) {
		fails(t, name, call(), journal.ErrClosed)
	}
	stopNotify()
	if h.reopenFn != nil {
		// The lease of the closed store is free, and its old epoch fenced only when somebody takes it.
		h.again(t).untouched(t, l)
	}
}

func testUnknownRun(t *testing.T, h *harness) {
	h.fill(t)
	l := journal.Lease{Run: "run_9", Owner: "ana", Epoch: 1}
	ctx := t.Context()
	_, err := h.Append(ctx, next(l, 0, 1))
	fails(t, "append", err, journal.ErrNotFound)
	fails(t, "release", h.Release(ctx, l), journal.ErrNotFound)
	fails(t, "read", h.Read(ctx, "run_9", 0, nil), journal.ErrNotFound)
	_, err = h.Get(ctx, "run_9")
	fails(t, "get", err, journal.ErrNotFound)
	_, err = h.Inputs(ctx, "run_9")
	fails(t, "inputs", err, journal.ErrNotFound)
	_, err = h.Accepted(ctx, "run_9", "k0")
	fails(t, "accepted", err, journal.ErrNotFound)
	_, err = h.Tapes(ctx, "run_9")
	fails(t, "tapes", err, journal.ErrNotFound)
}

func testReopen(t *testing.T, h *harness) {
	l := h.fill(t)
	b := next(l, 2, 3)
	b.Take = []string{"in_0"}
	b.Artifacts = []journal.Artifact{artifact("more")}
	b.Tapes = []journal.Tape{{Run: "run_1", ID: "t", Data: []byte("tape")}}
	h.append(t, b)
	h.put(t, input("run_1", "in_1", "k1"))
	if _, err := h.Idempotent(t.Context(), "key", "first"); err != nil {
		t.Fatal(err)
	}
	refs := []string{artifact("kept").Ref, artifact("more").Ref}
	before := h.snapshot(t, "run_1", refs...)
	if h.reopenFn != nil {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h = h.again(t)
	same(t, "run", h.snapshot(t, "run_1", refs...), before)
	if v, err := h.Idempotent(t.Context(), "key", "second"); err != nil || v != "first" {
		t.Errorf("idempotent: %q, %v", v, err)
	}
	if in, err := h.Accepted(t.Context(), "run_1", "k0"); err != nil || in.ID != "in_0" {
		t.Errorf("accepted: %+v, %v", in, err)
	}
	if doc, err := h.Doc(t.Context(), "space", "kept"); err != nil || string(doc) != "doc" {
		t.Errorf("document: %q, %v", doc, err)
	}
	l2, err := h.Acquire(t.Context(), "run_1", "ben")
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	same(t, "epoch", l2.Epoch, int64(2))
	h.append(t, next(l2, 5, 1))
}

// testDeadOwner: a living owner elsewhere keeps its lease; once its store is closed, another takes over and fences it.
func testDeadOwner(t *testing.T, h *harness) {
	other := h.again(t)
	if h.Owner() == other.Owner() {
		t.Errorf("two opened stores are both %q", h.Owner())
	}
	l := h.create(t, "run_1", h.Owner())
	custom := h.create(t, "run_2", "some name")
	_, err := other.Acquire(t.Context(), "run_1", other.Owner())
	fails(t, "acquire from the living", err, journal.ErrHeld)
	_, err = other.Acquire(t.Context(), "run_2", other.Owner())
	fails(t, "acquire from the living with a name of its own", err, journal.ErrHeld)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, old := range []journal.Lease{l, custom} {
		got, err := other.Acquire(t.Context(), old.Run, other.Owner())
		if err != nil {
			t.Fatalf("acquire from the dead: %v", err)
		}
		same(t, "lease", got, journal.Lease{Run: old.Run, Owner: other.Owner(), Epoch: 2})
		_, err = other.Append(t.Context(), next(old, 2, 1))
		fails(t, "append of the dead", err, journal.ErrLease)
		other.append(t, next(got, 2, 1))
	}
}

// testTwoOpeners has two stores on the same data at once.
func testTwoOpeners(t *testing.T, h *harness) {
	other := h.again(t)
	const n = 25
	l := h.create(t, "run_1", "ana")
	var wg sync.WaitGroup
	var mu sync.Mutex
	winners := 0
	for i := range 2 * n {
		s := []*harness{h, other}[i%2]
		wg.Go(func() {
			_, won, err := s.Put(t.Context(), input("run_1", fmt.Sprintf("in_%d", i), "k"))
			if err != nil {
				t.Errorf("put: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if won {
				winners++
			}
		})
	}
	wg.Wait()
	if winners != 1 {
		t.Errorf("%d winners, want 1", winners)
	}
	for i := range int64(10) { // each sees what the other wrote, at once
		s := []*harness{h, other}[i%2]
		if n := s.append(t, next(l, 2+i, 1)); n != 1 {
			t.Errorf("%d inputs wait, want 1", n)
		}
		_, err := s.Append(t.Context(), next(l, 2+i, 1))
		fails(t, "the same again", err, journal.ErrConflict)
	}
	same(t, "records", other.read(t, "run_1", 0), records("run_1", 0, 12))
	wg = sync.WaitGroup{}
	for i, s := range []*harness{h, other} {
		for j := range n {
			id := fmt.Sprintf("run_%d_%d", i, j)
			wg.Go(func() {
				l, err := s.Create(t.Context(), created(row(id), s.Owner(), 2))
				if err == nil {
					_, err = s.Append(t.Context(), next(l, 2, 1))
				}
				if err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
	}
	wg.Wait()
	same(t, "runs", len(other.list(t, journal.Query{})), 2*n+1)
}
