// Package journaltest is the contract of journal.Store as a suite of tests. A store joins it in one line and is one when it
// passes.
package journaltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// Open makes an empty store for one test. The suite closes the store. reopen opens the same data once more, while the first
// store is open as well as after it was closed; it is nil for stores that forget everything when they are closed.
type Open func(t *testing.T) (store journal.Store, reopen func(t *testing.T) journal.Store)

// Run runs the suite. Each test has a store of its own, and tests run side by side.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		fn   func(t *testing.T, h *harness)
	}{
		{"Create", testCreate},
		{"CreateRefuses", testCreateRefuses},
		{"CreateIsAtomic", testCreateIsAtomic},
		{"SessionHasOneLiveRoot", testSession},
		{"Acquire", testAcquire},
		{"Fencing", testFencing},
		{"Release", testRelease},
		{"Owner", testOwner},
		{"Append", testAppend},
		{"AppendKeepsIdentity", testAppendKeepsIdentity},
		{"AppendRefuses", testAppendRefuses},
		{"AppendIsAtomic", testAppendIsAtomic},
		{"AppendRace", testAppendRace},
		{"Stopped", testStopped},
		{"Read", testRead},
		{"ReadStops", testReadStops},
		{"BigRecords", testBigRecords},
		{"Inbox", testInbox},
		{"InboxOneWinner", testInboxOneWinner},
		{"InboxSameAgain", testInboxSameAgain},
		{"InboxRefuses", testInboxRefuses},
		{"Take", testTake},
		{"NoInputs", testNoInputs},
		{"PutRacesStop", testPutRacesStop},
		{"ListOrderAndPages", testListPages},
		{"ListFilters", testListFilters},
		{"ListFollowsAppend", testListFollowsAppend},
		{"ListInputs", testListInputs},
		{"Artifacts", testArtifacts},
		{"Tapes", testTapes},
		{"Notify", testNotify},
		{"NotifyStop", testNotifyStop},
		{"NotifyAcross", testNotifyAcross},
		{"Idempotent", testIdempotent},
		{"Docs", testDocs},
		{"UnknownRun", testUnknownRun},
		{"CancelledContext", testCancelled},
		{"Closed", testClosed},
		{"Reopen", testReopen},
		{"DeadOwner", testDeadOwner},
		{"TwoOpeners", testTwoOpeners},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, reopen := open(t)
			t.Cleanup(func() { _ = s.Close() })
			tt.fn(t, &harness{s, reopen})
		})
	}
}

type harness struct {
	journal.Store
	reopenFn func(t *testing.T) journal.Store
}

// again opens the same data once more, or skips the test where the store cannot.
func (h *harness) again(t *testing.T) *harness {
	t.Helper()
	if h.reopenFn == nil {
		t.Skip("this store forgets everything when it is closed")
	}
	s := h.reopenFn(t)
	t.Cleanup(func() { _ = s.Close() })
	return &harness{s, h.reopenFn}
}

const t0 loop.Micros = 1_764_547_200_000_000

// data is a record's content as the loop would write it, as far as a store can tell.
func data(run string, seq int64) []byte {
	return fmt.Appendf(nil, `{"s":%d,"t":%d,"k":"Noted","b":{"run":%q,"text":"café ✓ <&> %d"}}`, seq, int64(t0)+seq, run, seq*seq)
}

func records(run string, after int64, n int) []journal.Record {
	var out []journal.Record
	for i := range int64(n) {
		out = append(out, journal.Record{Seq: after + i + 1, Data: data(run, after+i+1)})
	}
	return out
}

func row(id string) journal.Run {
	return journal.Run{
		ID: id, Root: id, Agent: "support", Model: "scripted/one", Status: journal.Running, Created: t0, Updated: t0,
		Digest: "d0", Title: "Answer case 4812", Summary: []byte(`{"rounds":0}`),
	}
}

// created is a batch that makes a run with n events.
func created(r journal.Run, owner string, n int) journal.Batch {
	return journal.Batch{Lease: journal.Lease{Run: r.ID, Owner: owner}, Records: records(r.ID, 0, n), Run: r}
}

// next is a batch of n more events after seq.
func next(l journal.Lease, after int64, n int) journal.Batch {
	r := row(l.Run)
	r.Updated = t0 + loop.Micros(after) + loop.Micros(n)
	r.Digest = fmt.Sprintf("d%d", after+int64(n))
	return journal.Batch{Lease: l, After: after, Records: records(l.Run, after, n), Run: r}
}

func stop(b journal.Batch) journal.Batch {
	b.Run.Status, b.Run.Stop = journal.Stopped, loop.StopCompleted
	return b
}

func input(run, id, key string) journal.Input {
	return journal.Input{ID: id, Run: run, Key: key, Kind: "decide", By: "ana", At: t0, Body: []byte(`{"decision":"approve","for":"` + id + `"}`)}
}

func artifact(s string) journal.Artifact {
	sum := sha256.Sum256([]byte(s))
	return journal.Artifact{Ref: "sha256:" + hex.EncodeToString(sum[:]), MIME: "text/plain", Data: []byte(s)}
}

// create makes a run of two events.
func (h *harness) create(t *testing.T, id, owner string) journal.Lease {
	t.Helper()
	return h.mustCreate(t, created(row(id), owner, 2))
}

func (h *harness) mustCreate(t *testing.T, b journal.Batch) journal.Lease {
	t.Helper()
	l, err := h.Create(t.Context(), b)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return l
}

func (h *harness) append(t *testing.T, b journal.Batch) int {
	t.Helper()
	n, err := h.Append(t.Context(), b)
	if err != nil {
		t.Fatalf("append after %d: %v", b.After, err)
	}
	return n
}

func (h *harness) put(t *testing.T, in journal.Input) {
	t.Helper()
	if _, won, err := h.Put(t.Context(), in); err != nil || !won {
		t.Fatalf("put %s: won %v, error %v", in.ID, won, err)
	}
}

func (h *harness) get(t *testing.T, id string) journal.Run {
	t.Helper()
	r, err := h.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return r
}

func (h *harness) read(t *testing.T, id string, after int64) []journal.Record {
	t.Helper()
	var out []journal.Record
	err := h.Read(t.Context(), id, after, func(r journal.Record) error { out = append(out, r); return nil })
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return out
}

func (h *harness) waiting(t *testing.T, id string) []string {
	t.Helper()
	ins, err := h.Inputs(t.Context(), id)
	if err != nil {
		t.Fatalf("inputs: %v", err)
	}
	ids := []string{}
	for _, in := range ins {
		ids = append(ids, in.ID)
	}
	return ids
}

// list returns the ids of a query's first page.
func (h *harness) list(t *testing.T, q journal.Query) []string {
	t.Helper()
	p, err := h.List(t.Context(), q)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	ids := []string{}
	for _, r := range p.Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

// wholeBytes keeps cmp from looking at each byte of a large record.
var wholeBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))

// same compares whole values; nil and empty differ only where the contract says so.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeBytes); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, d)
	}
}

// fails checks the class of an error and that it says what was being done.
func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want one that wraps %q", what, err, want)
		return
	}
	var je *journal.Error
	if !errors.As(err, &je) || je.Op == "" {
		t.Errorf("%s: error %v is no *journal.Error that says what was being done", what, err)
	}
}

// snapshot is all that a store shows of a run, to compare before and after what must not change anything.
type snapshot struct {
	Row      journal.Run
	Records  []journal.Record
	Inputs   []journal.Input
	Tapes    []journal.Tape
	Artifact []string // of the refs asked for, those that are there
}

func (h *harness) snapshot(t *testing.T, id string, refs ...string) snapshot {
	t.Helper()
	s := snapshot{Row: h.get(t, id), Records: h.read(t, id, 0)}
	var err error
	if s.Inputs, err = h.Inputs(t.Context(), id); err != nil {
		t.Fatalf("inputs: %v", err)
	}
	if s.Tapes, err = h.Tapes(t.Context(), id); err != nil {
		t.Fatalf("tapes: %v", err)
	}
	for _, ref := range slices.Compact(refs) {
		if _, err := h.Artifact(t.Context(), ref); err == nil {
			s.Artifact = append(s.Artifact, ref)
		}
	}
	return s
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
