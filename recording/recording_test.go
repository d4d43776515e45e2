package recording_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// journals are the records of all runs, as the store holds them.
func journals(t *testing.T, rec *recording.Recording) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, r := range rec.Runs {
		for _, ev := range r.Events {
			b, err := loop.Encode(ev)
			if err != nil {
				t.Fatal(err)
			}
			out[r.Run] = append(out[r.Run], string(b))
		}
	}
	return out
}

func tapes(rec *recording.Recording) map[string]map[string][]byte {
	out := map[string]map[string][]byte{}
	for _, r := range rec.Runs {
		out[r.Run] = r.Tapes
	}
	return out
}

// all are runs of every kind that these tests know.
func all(t *testing.T) map[string]*recording.Recording {
	out := map[string]*recording.Recording{}
	for name, f := range map[string]func(w *world) *recording.Recording{
		"repeats": func(w *world) *recording.Recording { return w.repeats(3) },
		"works":   (*world).works, "grows": (*world).grows, "retries": (*world).retries, "delegates": (*world).delegates,
		"asks":  func(w *world) *recording.Recording { return w.asks(true) },
		"waits": func(w *world) *recording.Recording { return w.asks(false) },
	} {
		out[name] = made(t, f)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	for name, rec := range all(t) {
		for _, form := range []recording.Form{recording.Lines, recording.Zipped} {
			t.Run(name+"/"+string(form), func(t *testing.T) {
				data, err := rec.Bytes(form, recording.WriteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				back, err := recording.ReadAt(bytes.NewReader(data), int64(len(data)))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(journals(t, rec), journals(t, back)); diff != "" {
					t.Errorf("journals (-was +is):\n%s", diff)
				}
				if diff := cmp.Diff(tapes(rec), tapes(back)); diff != "" {
					t.Errorf("tapes (-was +is):\n%s", diff)
				}
				if diff := cmp.Diff(rec.Header, back.Header); diff != "" {
					t.Errorf("header (-was +is):\n%s", diff)
				}
				for ref, a := range rec.Artifacts {
					if !bytes.Equal(back.Artifacts[ref].Data, a.Data) || back.Artifacts[ref].MIME != a.MIME {
						t.Errorf("artifact %s is another one", ref)
					}
				}
				if rep := recording.Verify(back); !rep.OK() || rep.CutOff {
					t.Errorf("verify: %+v", rep)
				}
				again, err := back.Bytes(form, recording.WriteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if form == recording.Lines && name != "grows" && !bytes.Equal(again, data) { // where texts became artifacts those come first now
					t.Error("written again it is another file")
				}
			})
		}
	}
}

func lines(t *testing.T, rec *recording.Recording) []byte {
	t.Helper()
	data, err := rec.Bytes(recording.Lines, recording.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCutOff cuts a file everywhere: it is never broken, and what is before the cut is there.
func TestCutOff(t *testing.T) {
	data := lines(t, made(t, (*world).works))
	first := bytes.IndexByte(data, '\n') + 1
	for n := first; n < len(data)-1; n += 7 {
		rec, err := recording.Read(bytes.NewReader(data[:n]))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if !rec.CutOff || rec.Broken != nil {
			t.Fatalf("cut at %d: want cut off and not broken, got cut off %t, broken %v", n, rec.CutOff, rec.Broken)
		}
	}
	rec, err := recording.Read(bytes.NewReader(data))
	if err != nil || rec.CutOff {
		t.Fatalf("the whole file: cut off %t, %v", rec.CutOff, err)
	}
}

// TestChainBreaks changes each line in turn: the chain says which.
func TestChainBreaks(t *testing.T) {
	data := lines(t, made(t, (*world).works))
	all := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, line := range all {
		at := strings.Index(line, `"k":`)
		changed := line[:at] + " " + line[at:]
		rec, err := recording.Read(strings.NewReader(strings.Join(all[:i], "") + changed + strings.Join(all[i+1:], "")))
		if err != nil {
			t.Fatal(err)
		}
		if rec.Broken == nil || rec.Broken.Line != int64(i) {
			t.Errorf("line %d was changed, the chain breaks at %v", i, rec.Broken)
		}
	}
	rec, err := recording.Read(strings.NewReader(strings.Join(all[:4], "") + strings.Join(all[5:], "")))
	if err != nil || rec.Broken == nil || rec.Broken.Line != 4 {
		t.Errorf("line 4 was taken out: %v, %v", rec.Broken, err)
	}
}

func TestUnknownKindsArePassedOn(t *testing.T) {
	data := lines(t, made(t, (*world).works))
	all := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	all[5] += `{"s":6,"t":99999999,"k":"mood","x":{"y":[1,2]},"h":"00000000"}` + "\n"
	rec, err := recording.Read(strings.NewReader(strings.Join(all, "")))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Extras) != 1 || rec.Extras[0].Kind != "mood" {
		t.Fatalf("want the line of kind mood, got %+v", rec.Extras)
	}
	again := lines(t, rec)
	if !bytes.Contains(again, []byte(`"k":"mood","x":{"y":[1,2]}`)) {
		t.Error("the line was not passed on")
	}
	if rec, err = recording.Read(bytes.NewReader(again)); err != nil || rec.Broken != nil {
		t.Errorf("read again: %v, %v", err, rec.Broken)
	}
}

func TestNewerAndForeignFilesAreRefused(t *testing.T) {
	for _, c := range []struct {
		in   string
		want error
	}{
		{``, recording.ErrFormat},
		{`{}`, recording.ErrFormat},
		{"hello\n", recording.ErrFormat},
		{`{"s":0,"t":0,"k":"ronda","v":9,"reader":9,"b":{"run":"x"}}` + "\n", recording.ErrNewer},
		{`{"s":0,"t":0,"k":"ronda","v":1,"reader":1,"b":{"run":"x"}}` + "\nnonsense\n{}\n", recording.ErrFormat},
	} {
		if _, err := recording.Read(strings.NewReader(c.in)); !errors.Is(err, c.want) {
			t.Errorf("%q: want %v, got %v", c.in, c.want, err)
		}
	}
}

func TestCaptureModes(t *testing.T) {
	rec := *made(t, (*world).works)
	rec.Header.Capture = recording.NoDeltas
	none := lines(t, &rec)
	if bytes.Contains(none, []byte(`"k":"delta"`)) {
		t.Error("no_deltas has deltas")
	}
	back, err := recording.Read(bytes.NewReader(none))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(journals(t, &rec), journals(t, back)); diff != "" {
		t.Errorf("no_deltas changed the journal:\n%s", diff)
	}
	rec.Header.Capture = recording.Metadata
	meta, err := rec.Bytes(recording.Lines, recording.WriteOptions{Salt: []byte("s")})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"lift", "80 kg", "march", "history", "Looking"} {
		if !bytes.Contains(none, []byte(word)) {
			t.Errorf("the recording ought to have %q", word)
		}
		if bytes.Contains(meta, []byte(word)) {
			t.Errorf("metadata holds %q", word)
		}
	}
	back, err = recording.Read(bytes.NewReader(meta))
	if err != nil || !recording.Verify(back).OK() {
		t.Errorf("metadata: %v, %+v", err, recording.Verify(back))
	}
}

func TestArchiveSeeks(t *testing.T) {
	rec := big(t, 5000)
	data, err := rec.Bytes(recording.Zipped, recording.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingReader{r: bytes.NewReader(data)}
	a, err := recording.OpenArchive(counted, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	counted.n = 0
	last := a.Index.Segments[len(a.Index.Segments)-2]
	r := a.From(last.S + 500)
	e, err := r.Next()
	if err != nil || e.S != last.S {
		t.Fatalf("want line %d, got %d, %v", last.S, e.S, err)
	}
	if counted.n > int64(len(data))/3 {
		t.Errorf("a jump read %d of %d bytes", counted.n, len(data))
	}
	for err == nil {
		_, err = r.Next()
	}
	if err != io.EOF || r.Broken() != nil || r.Footer() == nil {
		t.Errorf("from the middle to the end: %v, broken %v, footer %v", err, r.Broken(), r.Footer())
	}
}

type countingReader struct {
	r io.ReaderAt
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}
