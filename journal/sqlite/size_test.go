package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/sqlite"
	"github.com/ronda-go/ronda/loop"
)

// stored is the size of a file that holds n runs, for each run, less an empty file.
func stored(t *testing.T, n int, make1 func(s *sqlite.Store, r *rand.Rand, id string)) float64 {
	t.Helper()
	size := func(n int) int64 {
		s := open(t, filepath.Join(t.TempDir(), "ronda.db"), sqlite.Options{Durability: "normal"})
		r := rand.New(rand.NewPCG(7, 8))
		for i := range n {
			make1(s, r, fmt.Sprintf("run_01k%019d%d", i, i%10))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		bytes, err := s.Size()
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	return float64(size(n)-size(0)) / float64(n)
}

// TestBytes bounds what is stored: rows and indexes, results of 1 KiB.
func TestBytes(t *testing.T) {
	run := func(rounds int, noise bool) float64 {
		l := load{rounds: rounds, payload: 1024, noise: noise}
		return stored(t, 40, func(s *sqlite.Store, r *rand.Rand, id string) { drive(t, s, id, l.batches(r, id)) })
	}
	for _, noise := range []bool{false, true} {
		ten, twenty := run(10, noise), run(20, noise)
		t.Logf("noise %v: %.0f bytes for a run of 10 rounds, %.0f for 20, %.0f for a round", noise, ten, twenty, (twenty-ten)/10)
		// Random bytes take an eighth more: they cannot be packed at all, and fill pages less well.
		if round := (twenty - ten) / 10; round > 1536 && !noise || round > 1728 {
			t.Errorf("noise %v: %.0f bytes for a round, want 1.5 KiB at most", noise, round)
		}
		if ten > 28<<10 {
			t.Errorf("noise %v: %.0f bytes for a run of 10 rounds, want 28 KiB at most", noise, ten)
		}
		if twenty > 2.1*ten {
			t.Errorf("noise %v: growth is not linear: %.0f bytes for 10 rounds, %.0f for 20", noise, ten, twenty)
		}
	}
	paused := stored(t, 300, func(s *sqlite.Store, r *rand.Rand, id string) { pause(t, s, r, id) })
	t.Logf("%.0f bytes for a paused run", paused)
	if paused > 2048 {
		t.Errorf("%.0f bytes for a paused run, want 2048 at most", paused)
	}
}

// pause makes a run that waits for an approval in its first round, with nobody driving it.
func pause(t *testing.T, s *sqlite.Store, r *rand.Rand, id string) {
	bs := load{rounds: 1, payload: 64}.batches(r, id)
	row := journal.Run{
		ID: id, Session: "ses" + id[3:], Agent: "support", Model: "anthropic/claude-sonnet-4-5", Status: journal.Running, Created: t0, Title: "Answer case 4812",
		Digest: digest(r), Summary: []byte(`{"rounds":0,"model_calls":1,"tool_calls":0,"tokens":1120,"cost":12300000000}`),
	}
	l, err := s.Create(t.Context(), journal.Batch{Lease: journal.Lease{Run: id, Owner: s.Owner()}, Records: bs[0], Run: row})
	if err != nil {
		t.Fatal(err)
	}
	asked := bs[1][:2]
	data, err := loop.Encode(loop.Event{Seq: asked[1].Seq + 1, Time: t0, Body: loop.ApprovalAsked{Call: "3.0", Digest: digest(r), Reason: "the tool asks"}})
	if err != nil {
		t.Fatal(err)
	}
	row.Status, row.Waiting, row.Digest = journal.Waiting, []string{"approval"}, digest(r)
	b := journal.Batch{Lease: l, After: int64(len(bs[0])), Run: row, Records: append(asked[:2:2], journal.Record{Seq: asked[1].Seq + 1, Data: data})}
	if _, err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}
