package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ronda-go/ronda/loop"
)

// Recording is a recording in memory. Nobody changes it after it was made.
type Recording struct {
	Header    Header
	Runs      []Run // the first is the one that the header names, the others its children
	Artifacts map[string]Artifact
	Extras    []Extra
	Footer    *Footer     // nil: it was cut off, or made from a store
	CutOff    bool        // read from a file without a footer
	Broken    *ChainError // where the chain breaks
	Missing   []error     // events that could not be read whole
}

// Run is one run of a recording.
type Run struct {
	RunInfo
	Events []loop.Event
	Tapes  map[string][]byte // by the name that ModelReplied.Tape gives
}

// Root is the run that the header names.
func (r *Recording) Root() *Run { return &r.Runs[0] }

// Of finds a run by its id; nil if the recording does not have it.
func (r *Recording) Of(run string) *Run {
	for i := range r.Runs {
		if r.Runs[i].Run == run {
			return &r.Runs[i]
		}
	}
	return nil
}

// Open reads a recording file of either form.
func Open(path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("recording: open: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("recording: open: %w", err)
	}
	rec, err := ReadAt(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rec, nil
}

// ReadAt reads a recording of either form whole.
func ReadAt(r io.ReaderAt, size int64) (*Recording, error) {
	var magic [4]byte
	if n, err := r.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("recording: read: %w", err)
	} else if n == 4 && string(magic[:]) == "PK\x03\x04" {
		a, err := OpenArchive(r, size)
		if err != nil {
			return nil, err
		}
		rec, err := collect(a.Reader())
		if err != nil {
			return nil, err
		}
		for _, ref := range a.refs() {
			if art, ok := a.Artifact(ref); ok {
				rec.Artifacts[ref] = art
			}
		}
		return rec, nil
	}
	return Read(io.NewSectionReader(r, 0, size))
}

// Read reads a .ronda.jsonl file whole.
func Read(in io.Reader) (*Recording, error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, err
	}
	return collect(r)
}

// collect reads every line.
func collect(r *Reader) (*Recording, error) {
	if !r.headed {
		if _, err := r.begin(); err != nil {
			return nil, err
		}
	}
	r.collecting = true
	rec := &Recording{Header: r.Header(), Artifacts: map[string]Artifact{}}
	rec.Runs = []Run{{RunInfo: RunInfo{Run: rec.Header.Run, Parent: rec.Header.Parent, Agent: rec.Header.Agent}, Tapes: map[string][]byte{}}}
	whole := [][]byte{nil} // tapes of the attempts under way that came as they are
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for e.Run >= len(rec.Runs) {
			rec.Runs = append(rec.Runs, Run{Tapes: map[string][]byte{}})
			whole = append(whole, nil)
		}
		run := &rec.Runs[e.Run]
		switch {
		case e.Info != nil:
			run.RunInfo = *e.Info
		case e.Artifact != nil:
			rec.Artifacts[e.Artifact.Ref] = *e.Artifact
		case e.Extra != nil:
			rec.Extras = append(rec.Extras, *e.Extra)
		case e.Tape != nil:
			whole[e.Run] = e.Tape
		case e.Event.Body != nil:
			if e.Broken != nil {
				rec.Missing = append(rec.Missing, fmt.Errorf("event %d: %w", e.Event.Seq, e.Broken))
			}
			run.Events = append(run.Events, e.Event)
			if b, ok := e.Event.Body.(loop.ModelReplied); ok {
				switch {
				case b.Tape == "":
				case whole[e.Run] != nil:
					run.Tapes[b.Tape] = whole[e.Run]
				case len(r.runs[e.Run].tape) > 0:
					run.Tapes[b.Tape] = EncodeTape(r.runs[e.Run].tape)
				}
			}
			switch e.Event.Body.(type) {
			case loop.ModelReplied, loop.ModelFailed, loop.ModelCallStarted:
				r.runs[e.Run].tape, whole[e.Run] = r.runs[e.Run].tape[:0], nil
			}
		}
	}
	rec.Footer, rec.CutOff, rec.Broken = r.Footer(), r.CutOff(), r.Broken()
	return rec, nil
}

// Form is a form of the file.
type Form string

// The forms.
const (
	Lines   Form = "jsonl" // .ronda.jsonl
	Zipped  Form = "zip"   // .ronda
	LineExt      = ".ronda.jsonl"
	ZipExt       = ".ronda"
)

// Write writes the recording: the runs in the order of their times, each artifact before the first event that names it. The capture mode is
// that of the header.
func (r *Recording) Write(out io.Writer, form Form, o WriteOptions) error {
	begin := NewWriter
	if form == Zipped {
		begin = NewArchive
	}
	w, err := begin(out, r.Header, o)
	if err != nil {
		return err
	}
	refs := make([]string, 0, len(r.Artifacts))
	for ref := range r.Artifacts {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		if err := w.Artifact(r.Artifacts[ref]); err != nil {
			return err
		}
	}
	if err := r.lines(w); err != nil {
		return err
	}
	return w.Close()
}

// lines merges the runs by time.
func (r *Recording) lines(w *Writer) error {
	next := make([]int, len(r.Runs))
	number := make([]int, len(r.Runs))
	extras, events := r.Extras, int64(0)
	for {
		best := -1
		for i, run := range r.Runs {
			if next[i] < len(run.Events) && (best < 0 || run.Events[next[i]].Time < r.Runs[best].Events[next[best]].Time) {
				best = i
			}
		}
		for len(extras) > 0 && (extras[0].After <= events || best < 0) {
			x := extras[0]
			if x.Run = 0; best >= 0 && extras[0].Run < len(number) {
				x.Run = number[extras[0].Run]
			}
			if err := w.Extra(x); err != nil {
				return err
			}
			extras = extras[1:]
		}
		if best < 0 {
			return nil
		}
		run := &r.Runs[best]
		ev := run.Events[next[best]]
		if best > 0 && next[best] == 0 {
			n, err := w.StartRun(run.RunInfo, ev.Time)
			if err != nil {
				return err
			}
			number[best] = n
		}
		next[best]++
		events++
		var tape []byte
		if b, ok := ev.Body.(loop.ModelReplied); ok && b.Tape != "" {
			tape = run.Tapes[b.Tape]
		}
		if err := w.Event(number[best], ev, tape); err != nil {
			return err
		}
	}
}

// Bytes is the recording in one of its forms.
func (r *Recording) Bytes(form Form, o WriteOptions) ([]byte, error) {
	var buf bytes.Buffer
	err := r.Write(&buf, form, o)
	return buf.Bytes(), err
}

// startOf is the first event of a run; false where it is not there or says nothing of the configuration.
func startOf(events []loop.Event) (loop.RunStarted, bool) {
	if len(events) == 0 {
		return loop.RunStarted{}, false
	}
	b, ok := events[0].Body.(loop.RunStarted)
	return b, ok && b.Config != nil
}

// Fold folds the events of a run; the state is that after the last event that could be folded.
func (r *Run) Fold() (loop.State, error) {
	var st loop.State
	for _, ev := range r.Events {
		next, err := loop.Next(st, ev)
		if err != nil {
			return st, err
		}
		st = next
	}
	return st, nil
}
