package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

func testAppend(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	b := next(l, 2, 3)
	b.Run.Status, b.Run.Waiting, b.Run.Wake = journal.Waiting, []string{"approval", "timer"}, t0+99
	b.Run.Summary = []byte(`{"rounds":1}`)
	b.Artifacts = []journal.Artifact{artifact("one"), artifact("two")}
	b.Tapes = []journal.Tape{{Run: "run_1", ID: "t1", Data: []byte("tape")}}
	if n := h.append(t, b); n != 0 {
		t.Errorf("%d inputs wait, want none", n)
	}
	want := b.Run
	want.Seq = 5
	same(t, "run", h.snapshot(t, "run_1", artifact("one").Ref, artifact("two").Ref), snapshot{
		Row: want, Records: records("run_1", 0, 5), Tapes: b.Tapes, Artifact: []string{artifact("one").Ref, artifact("two").Ref},
	})
	// What was set before and is no more goes.
	plain := next(l, 5, 1)
	plain.Run.Summary = nil
	h.append(t, plain)
	want = plain.Run
	want.Seq = 6
	same(t, "row", h.get(t, "run_1"), want)
	// A batch without events changes the row alone.
	none := next(l, 6, 0)
	none.Run.Wake = t0 + 5
	h.append(t, none)
	want = none.Run
	want.Seq = 6
	same(t, "row", h.get(t, "run_1"), want)
	h.append(t, next(l, 6, 1))
	same(t, "records", h.read(t, "run_1", 0), records("run_1", 0, 7))
}

func testAppendKeepsIdentity(t *testing.T, h *harness) {
	r := row("run_1")
	r.Session = "ses_1"
	l := h.mustCreate(t, created(r, "ana", 1))
	h.put(t, input("run_1", "in_1", ""))
	b := next(l, 1, 1)
	b.Run.ID, b.Run.Session, b.Run.Parent, b.Run.Root, b.Run.Created, b.Run.Inputs = "run_9", "ses_9", "run_8", "run_7", 1, 5
	b.Run.Agent, b.Run.Model, b.Run.Title = "coach", "m2", "Other"
	if n := h.append(t, b); n != 1 {
		t.Errorf("%d inputs wait, want 1", n)
	}
	want := b.Run
	want.ID, want.Session, want.Parent, want.Root, want.Created, want.Inputs, want.Seq = "run_1", "ses_1", "", "run_1", t0, 1, 2
	same(t, "row", h.get(t, "run_1"), want)
}

func testAppendRefuses(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	before := h.snapshot(t, "run_1")
	for _, after := range []int64{0, 1, 3, 1 << 40} {
		_, err := h.Append(t.Context(), next(l, after, 1))
		fails(t, fmt.Sprintf("after %d", after), err, journal.ErrConflict)
	}
	for name, change := range map[string]func(b *journal.Batch){
		"gap":    func(b *journal.Batch) { b.Records[1].Seq = 9 },
		"twice":  func(b *journal.Batch) { b.Records[1].Seq = b.Records[0].Seq },
		"behind": func(b *journal.Batch) { b.Records[0].Seq = 2 },
		"status": func(b *journal.Batch) { b.Run.Status = "" },
	} {
		b := next(l, 2, 2)
		change(&b)
		if _, err := h.Append(t.Context(), b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	same(t, "run", h.snapshot(t, "run_1"), before)
	h.append(t, next(l, 2, 1))
}

// testAppendIsAtomic has batches that fail on their last condition, with everything else in them.
func testAppendIsAtomic(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	first := next(l, 2, 1)
	first.Tapes = []journal.Tape{{Run: "run_1", ID: "t0", Data: []byte("x")}}
	h.append(t, first)
	h.put(t, input("run_1", "in_1", "k1"))
	h.put(t, input("run_1", "in_2", "k2"))
	ref := artifact("lost").Ref
	before := h.snapshot(t, "run_1", ref)
	full := func() journal.Batch {
		b := next(l, 3, 2)
		b.Take = []string{"in_1"}
		b.Artifacts = []journal.Artifact{artifact("lost")}
		b.Tapes = []journal.Tape{{Run: "run_1", ID: "t1", Data: []byte("x")}}
		return b
	}
	for name, tt := range map[string]struct {
		change func(b *journal.Batch)
		want   error
	}{
		"unknown input":    {func(b *journal.Batch) { b.Take = []string{"in_1", "in_9"} }, journal.ErrConflict},
		"input twice":      {func(b *journal.Batch) { b.Take = []string{"in_1", "in_1"} }, journal.ErrConflict},
		"inputs remain":    {func(b *journal.Batch) { b.NoInputs = true }, journal.ErrInbox},
		"tape twice":       {func(b *journal.Batch) { b.Tapes = append(b.Tapes, b.Tapes[0]) }, journal.ErrExists},
		"tape of before":   {func(b *journal.Batch) { b.Tapes[0].ID = "t0" }, journal.ErrExists},
		"sequence":         {func(b *journal.Batch) { b.After = 2; b.Records = records("run_1", 2, 2) }, journal.ErrConflict},
		"lease":            {func(b *journal.Batch) { b.Lease.Epoch = 0 }, journal.ErrLease},
		"unknown run":      {func(b *journal.Batch) { b.Lease.Run = "run_9"; b.Tapes = nil }, journal.ErrNotFound},
		"unknown, at stop": {func(b *journal.Batch) { *b = stop(*b); b.Take = []string{"in_9"} }, journal.ErrConflict},
	} {
		b := full()
		tt.change(&b)
		_, err := h.Append(t.Context(), b)
		fails(t, name, err, tt.want)
		same(t, "run after "+name, h.snapshot(t, "run_1", ref), before)
	}
	if n := h.append(t, full()); n != 1 {
		t.Errorf("%d inputs wait, want 1", n)
	}
	same(t, "artifact", h.snapshot(t, "run_1", ref).Artifact, []string{ref})
}

// testAppendRace has many appends of one lease at one place, and many runs at once.
func testAppendRace(t *testing.T, h *harness) {
	const racers, runs = 20, 8
	var wg sync.WaitGroup
	for i := range runs {
		id := fmt.Sprintf("run_%d", i)
		l := h.create(t, id, "ana")
		var mu sync.Mutex
		won := 0
		wg.Go(func() {
			var inner sync.WaitGroup
			for range racers {
				inner.Go(func() {
					_, err := h.Append(t.Context(), next(l, 2, 2))
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won++
					} else {
						fails(t, "append", err, journal.ErrConflict)
					}
				})
			}
			inner.Wait()
			if won != 1 {
				t.Errorf("%s: %d appends won, want 1", id, won)
			}
		})
	}
	wg.Wait()
	for i := range runs {
		id := fmt.Sprintf("run_%d", i)
		same(t, id, h.read(t, id, 0), records(id, 0, 4))
	}
}

func testRead(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana") // events 1 and 2
	h.create(t, "run_2", "ana")
	h.append(t, next(l, 2, 3)) // 3 to 5
	h.append(t, next(l, 5, 1)) // 6
	h.append(t, next(l, 6, 4)) // 7 to 10
	for after := int64(-1); after <= 11; after++ {
		n := int(min(10, 10-after))
		same(t, fmt.Sprintf("after %d", after), h.read(t, "run_1", after), records("run_1", max(after, 0), n))
	}
	// Each record may be kept; the next read shows the same.
	kept := h.read(t, "run_1", 0)
	for i := range kept {
		kept[i].Data = append(kept[i].Data, "more"...)
	}
	same(t, "another read", h.read(t, "run_1", 0), records("run_1", 0, 10))
	for i := range kept {
		same(t, "kept record", kept[i].Data, append(data("run_1", int64(i+1)), "more"...))
	}
}

func testReadStops(t *testing.T, h *harness) {
	h.mustCreate(t, created(row("run_1"), "ana", 5))
	enough := errors.New("enough")
	n := 0
	err := h.Read(t.Context(), "run_1", 1, func(r journal.Record) error {
		if n++; r.Seq == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 2 {
		t.Errorf("error %v after %d records, want %q after 2", err, n, enough)
	}
	// The store may be used inside fn.
	err = h.Read(t.Context(), "run_1", 0, func(r journal.Record) error {
		_, err := h.Append(t.Context(), next(journal.Lease{Run: "run_1", Owner: "ana", Epoch: 1}, 4+r.Seq, 1))
		return err
	})
	if err != nil {
		t.Errorf("append inside of read: %v", err)
	}
	if got := len(h.read(t, "run_1", 0)); got < 10 {
		t.Errorf("%d records, want 10 at least", got)
	}
}

func testBigRecords(t *testing.T, h *harness) {
	l := h.create(t, "run_1", "ana")
	b := next(l, 2, 4)
	b.Records[0].Data = bytes.Repeat([]byte("x"), 3<<20)
	b.Records[1].Data = []byte{}
	b.Records[2].Data = []byte{0, 0xff, 0xfe, '\n', 0}
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(i * i * 31 >> 3)
	}
	b.Records[3].Data = noise
	b.Run.Summary, b.Run.Title = []byte(`"`+string(bytes.Repeat([]byte("s"), 50_000))+`"`), "日本語 \x00 '\""
	b.Run.Waiting = []string{"a,b", `c"d`}
	h.append(t, b)
	same(t, "records", h.read(t, "run_1", 2), b.Records)
	want := b.Run
	want.Seq = 6
	same(t, "row", h.get(t, "run_1"), want)
	same(t, "micros", h.get(t, "run_1").Created, loop.Micros(t0))
}
