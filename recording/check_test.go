package recording_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

func TestCheckAgreesWithWhatWasRecorded(t *testing.T) {
	for name, rec := range all(t) {
		for _, run := range rec.Runs {
			if diff := recording.Check(run.Events); diff != nil {
				t.Errorf("%s, run %s: %v", name, run.Run, diff)
			}
		}
	}
}

func TestCheckFindsTheFirstDifference(t *testing.T) {
	events := made(t, func(w *world) *recording.Recording { return w.repeats(3) }).Root().Events
	started := events[0].Body.(loop.RunStarted)
	cfg := *started.Config
	cfg.Stall.Repeats = 2 // as if the rule had been another one
	started.Config = &cfg
	changed := append([]loop.Event{{Seq: 1, Time: events[0].Time, Body: started}}, events[1:]...)
	diff := recording.Check(changed)
	if diff == nil || diff.Event != 12 {
		t.Errorf("want a difference at event 12, where the nudge is owed, got %v", diff)
	}
}

// TestKeptRecordings runs the answers of recordings that were kept through today's loop: a change of behaviour shows here. A recording that
// today's loop may treat differently is recorded again by hand (RONDA_KEEP=1), with the reason in the commit.
func TestKeptRecordings(t *testing.T) {
	dir := filepath.Join("testdata", "v1")
	if os.Getenv("RONDA_KEEP") != "" {
		keep(t, dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"+recording.ZipExt+"*"))
	if err != nil || len(files) < 14 {
		t.Fatalf("want the kept recordings in %s, found %d, %v", dir, len(files), err)
	}
	for _, path := range files {
		rec, err := recording.Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if rep := recording.Verify(rec); !rep.OK() || rep.CutOff {
			t.Errorf("%s: %+v", path, rep)
		}
		for _, run := range rec.Runs {
			if diff := recording.Check(run.Events); diff != nil {
				t.Errorf("%s: %v", path, diff)
			}
		}
	}
}

func keep(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, rec := range all(t) {
		for ext, form := range map[string]recording.Form{recording.LineExt: recording.Lines, recording.ZipExt: recording.Zipped} {
			data, err := rec.Bytes(form, recording.WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+ext), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDiff(t *testing.T) {
	works := func() []loop.Event { return made(t, (*world).works).Root().Events }
	a, b := works(), works()
	if c := recording.Diff(a, b); c.First != -1 || len(c.Rows) != 4 {
		t.Errorf("the same run: %+v", c)
	}
	// The second run asks for june between april and may, and april gave another result.
	other := made(t, func(w *world) *recording.Recording { return w.worksOtherwise() }).Root().Events
	c := recording.Diff(a, other)
	got := ""
	for _, r := range c.Rows {
		switch {
		case r.A == nil:
			got += ">"
		case r.B == nil:
			got += "<"
		case r.Same && r.Result:
			got += "="
		case r.Same:
			got += "~"
		default:
			got += "!"
		}
	}
	if got != "=~>=~" || c.First != 1 || c.Why != "the same calls gave other results" {
		t.Errorf("rows %s, first %d: %s\n%s", got, c.First, c.Why, c.Text())
	}
}
