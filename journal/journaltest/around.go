package journaltest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ronda-go/ronda/journal"
)

func testArtifacts(t *testing.T, h *harness) {
	a, empty := artifact("hello"), artifact("")
	_, err := h.Artifact(t.Context(), a.Ref)
	fails(t, "missing artifact", err, journal.ErrNotFound)
	_, err = h.Artifact(t.Context(), "nonsense")
	fails(t, "no name of an artifact", err, journal.ErrNotFound)
	if err := h.PutArtifacts(t.Context(), []journal.Artifact{a, empty, a}); err != nil {
		t.Fatalf("put: %v", err)
	}
	again := a
	again.MIME = "text/html" // the same bytes: the first copy stays
	if err := h.PutArtifacts(t.Context(), []journal.Artifact{again}); err != nil {
		t.Fatalf("put again: %v", err)
	}
	l := h.create(t, "run_1", "ana")
	b := next(l, 2, 1)
	big := artifact(string(make([]byte, 200_000)))
	b.Artifacts = []journal.Artifact{again, big, big}
	h.append(t, b)
	for _, want := range []journal.Artifact{a, empty, big} {
		got, err := h.Artifact(t.Context(), want.Ref)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		same(t, "artifact", got, want)
	}
	got, _ := h.Artifact(t.Context(), a.Ref)
	got.Data[0] = 'X' // the caller's copy
	got, _ = h.Artifact(t.Context(), a.Ref)
	same(t, "artifact", got, a)
	if err := h.PutArtifacts(t.Context(), []journal.Artifact{artifact("good"), {Ref: "sha256:short"}}); err == nil {
		t.Error("a name that is no digest was accepted")
	}
	_, err = h.Artifact(t.Context(), artifact("good").Ref)
	fails(t, "beside a bad one", err, journal.ErrNotFound)
	if err := h.PutArtifacts(t.Context(), nil); err != nil {
		t.Errorf("put of none: %v", err)
	}
}

func testTapes(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	h.create(t, "run_2", "ana")
	got, err := h.Tapes(t.Context(), "run_1")
	if err != nil || len(got) != 0 {
		t.Fatalf("tapes of a new run: %v, %v", got, err)
	}
	b := next(l, 2, 1)
	b.Tapes = []journal.Tape{{Run: "run_1", ID: "z", Data: []byte("0123456789")}, {ID: "b", Data: nil}}
	h.append(t, b)
	b = next(l, 3, 1)
	b.Tapes = []journal.Tape{{Run: "run_1", ID: "a", Data: make([]byte, 5000)}}
	h.append(t, b)
	want := []journal.Tape{{Run: "run_1", ID: "z", Data: []byte("0123456789")}, {Run: "run_1", ID: "b"}, {Run: "run_1", ID: "a", Data: make([]byte, 5000)}}
	if got, err = h.Tapes(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	same(t, "tapes", got, want)
	if got, err = h.Tapes(t.Context(), "run_2"); err != nil || len(got) != 0 {
		t.Errorf("tapes of the other run: %v, %v", got, err)
	}
}

// heard waits for a value; the wait is for a store that hangs, not a measure.
func heard(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case _, ok := <-ch:
		if !ok {
			t.Errorf("%s: the channel is closed", what)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: nobody was told", what)
	}
}

func silent(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
		t.Errorf("%s: told of nothing", what)
	default:
	}
}

func testNotify(t *testing.T, h *harness) {
	any1, stopAny := h.Notify("")
	defer stopAny()
	one, stopOne := h.Notify("run_1")
	defer stopOne()
	two, stopTwo := h.Notify("run_2")
	defer stopTwo()
	l := h.create(t, "run_1", "ana")
	heard(t, "create, any run", any1)
	heard(t, "create, the run", one)
	h.append(t, next(l, 2, 1))
	heard(t, "append, any run", any1)
	heard(t, "append, the run", one)
	h.put(t, input("run_1", "in_1", "k"))
	heard(t, "put, any run", any1)
	heard(t, "put, the run", one)
	silent(t, "the other run", two)
	for i := range 10 { // nobody reads: the sender goes on, and one value stands for all
		h.append(t, next(l, int64(3+i), 1))
	}
	heard(t, "ten appends", one)
	// What is told is there already.
	ch, stop := h.Notify("run_1")
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		heard(t, "append", ch)
		same(t, "sequence when told", h.get(t, "run_1").Seq, int64(14))
	})
	h.append(t, next(l, 13, 1))
	wg.Wait()
}

func testNotifyStop(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	ch, stop := h.Notify("run_1")
	other, stopOther := h.Notify("run_1")
	defer stopOther()
	stop()
	stop()
	if _, ok := <-ch; ok {
		t.Error("a value after stop")
	}
	h.append(t, next(l, 2, 1))
	heard(t, "who is still subscribed", other)
	var wg sync.WaitGroup
	for range 20 { // subscribing, stopping and telling at once
		wg.Go(func() {
			_, stop := h.Notify("")
			stop()
		})
	}
	for i := range 20 {
		h.append(t, next(l, int64(3+i), 1))
	}
	wg.Wait()
}

func testNotifyAcross(t *testing.T, h *harness) {
	other := h.again(t)
	l := h.create(t, "run_1", "ana")
	ch, stop := other.Notify("run_1")
	defer stop()
	all, stopAll := other.Notify("")
	defer stopAll()
	for i := range 3 {
		h.append(t, next(l, int64(2+i), 1))
		heard(t, "append elsewhere", ch)
		heard(t, "append elsewhere, any run", all)
	}
	h.put(t, input("run_1", "in_1", "k"))
	heard(t, "put elsewhere", ch)
	same(t, "inputs", other.waiting(t, "run_1"), []string{"in_1"})
}

func testIdempotent(t *testing.T, h *harness) {
	const n = 50
	got := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if got[i], err = h.Idempotent(t.Context(), "client key", fmt.Sprintf("run_%d", i)); err != nil {
				t.Errorf("idempotent: %v", err)
			}
		})
	}
	wg.Wait()
	for i := range got {
		same(t, "stored", got[i], got[0])
	}
	again, err := h.Idempotent(t.Context(), "client key", "run_x")
	if err != nil || again != got[0] {
		t.Errorf("again: %q, %v; want %q", again, err, got[0])
	}
	other, err := h.Idempotent(t.Context(), "other key", "run_y")
	if err != nil || other != "run_y" {
		t.Errorf("other key: %q, %v", other, err)
	}
}

func testDocs(t *testing.T, h *harness) {
	ctx := t.Context()
	_, err := h.Doc(ctx, "tokens", "a")
	fails(t, "missing document", err, journal.ErrNotFound)
	docs, err := h.Docs(ctx, "tokens")
	if err != nil || len(docs) != 0 {
		t.Errorf("documents of an empty space: %v, %v", docs, err)
	}
	for _, d := range []struct{ space, name, doc string }{{"tokens", "a", "1"}, {"tokens", "b", ""}, {"other", "a", "3"}, {"tokens", "a", "4"}} {
		if err := h.PutDoc(ctx, d.space, d.name, []byte(d.doc)); err != nil {
			t.Fatalf("put: %v", err)
		}
	}
	doc, err := h.Doc(ctx, "tokens", "a")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "document", string(doc), "4")
	docs, err = h.Docs(ctx, "tokens")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "documents", docs, map[string][]byte{"a": []byte("4"), "b": {}})
	for range 2 { // one that is gone is no error
		if err := h.DeleteDoc(ctx, "tokens", "a"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	_, err = h.Doc(ctx, "tokens", "a")
	fails(t, "deleted document", err, journal.ErrNotFound)
	if doc, err = h.Doc(ctx, "other", "a"); err != nil || string(doc) != "3" {
		t.Errorf("the other space: %q, %v", doc, err)
	}
}
