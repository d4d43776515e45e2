package recording_test

import (
	"bytes"
	"compress/gzip"
	"testing"
	"time"

	"github.com/ronda-go/ronda/recording"
)

func gzipped(t *testing.T, data []byte) int {
	t.Helper()
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Len()
}

// TestSize holds the format to its promises: what is streamed (events and deltas) costs less than ten bytes each, and the times of deltas
// are less than a fifth of the file.
func TestSize(t *testing.T) {
	rec := big(t, 4500)
	full := lines(t, rec)
	rec.Header.Capture = recording.NoDeltas
	none := lines(t, rec)
	back, err := recording.Read(bytes.NewReader(full))
	if err != nil {
		t.Fatal(err)
	}
	items := back.Footer.Events + back.Footer.Deltas
	size := gzipped(t, full)
	t.Logf("%d events, %d deltas: %d bytes, %d gzipped (%.1f each); without deltas %d, %d gzipped", back.Footer.Events, back.Footer.Deltas, len(full), size,
		float64(size)/float64(items), len(none), gzipped(t, none))
	if float64(size)*10_000/float64(items) > 100_000 {
		t.Errorf("10,000 events and deltas take %.0f bytes gzipped, more than 100,000", float64(size)*10_000/float64(items))
	}
	tapes := 0
	for _, tape := range rec.Root().Tapes {
		tapes += len(tape)
	}
	journal := 0
	for _, r := range journals(t, rec)[rec.Root().Run] {
		journal += len(r)
	}
	if tapes*5 > tapes+journal {
		t.Errorf("tapes take %d bytes beside a journal of %d: more than a fifth", tapes, journal)
	}
}

// TestLarge opens, searches and explains 100,000 events. It asserts counts; the times are told.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 events: not with -short")
	}
	rec := big(t, 100_000)
	data, err := rec.Bytes(recording.Zipped, recording.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	a, err := recording.OpenArchive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	index := time.Since(began)
	began = time.Now()
	back, err := recording.ReadAt(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	read := time.Since(began)
	events := back.Root().Events
	if a.Index.Footer.Events != int64(len(events)) || len(events) < 99_000 {
		t.Fatalf("want about 100,000 events, got %d, the index says %d", len(events), a.Index.Footer.Events)
	}
	began = time.Now()
	x := recording.Explain(events)
	explained := time.Since(began)
	if x.Partial || x.Counts.ModelCalls < 10_000 || len(x.Rounds) != int(x.Counts.ModelCalls) {
		t.Errorf("explained: %d model calls, %d rounds, partial %t", x.Counts.ModelCalls, len(x.Rounds), x.Partial)
	}
	p := recording.NewPlayer(recording.Timeline(back), recording.PlayerOptions{Step: true}, 0)
	began = time.Now()
	for _, k := range []string{"/", "o", "v", "e", "d", " ", "t", "o", " ", "z", "enter"} {
		p.Key(0, k)
	}
	searched := time.Since(began)
	if v := p.View(); !v.Missed {
		t.Errorf("found what is not there: %+v", v.Query)
	}
	began = time.Now()
	p.Key(0, "9")
	jumped := time.Since(began)
	if v := p.View(); v.Shown < 400_000 {
		t.Errorf("a jump to nine tenths shows %d of %d items", v.Shown, v.Items)
	}
	t.Logf("%d bytes; the index in %v, all events in %v, explained in %v, all of it searched in %v, a jump in %v", len(data), index, read, explained, searched, jumped)
}
