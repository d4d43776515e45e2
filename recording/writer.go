package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
)

// WriteOptions change what of a run goes into a recording. The zero value writes everything as it is.
type WriteOptions struct {
	Redactor *Redactor // replaces secrets before anything is chained or written
	Salt     []byte    // metadata: makes the fillers of equal texts equal within the recording only
}

// Pieces of a stream are packed into one line while they lie within packTime and packBytes.
const (
	packTime  = 100 * loop.Millisecond
	packBytes = 4 << 10
)

// waitFrom is the length from which a line says what the time before it was spent on.
const waitFrom = loop.Second

// segmentLines is how many lines a piece of an archive holds, and how often the chain is written whole.
const segmentLines = 1000

// sink takes finished lines. first says that a line begins a piece of an archive.
type sink interface {
	line(line []byte, at indexPoint) error
	artifact(a Artifact) (inline bool, err error)
	close(footer Footer) error
}

// Writer writes a recording line by line. It holds no events. Errors of the writer below it stay: every later call returns the first one.
// It belongs to one goroutine.
type Writer struct {
	out  sink
	head Header
	opts WriteOptions
	err  error

	s       int64
	t       loop.Micros // of the last line
	until   loop.Micros // of the last piece or event
	chain   chain
	foot    Footer
	runs    []writerRun
	refs    map[string]string // artifacts written: their names before redaction to those after
	rounds  int64
	modelNo int64
	toolNo  int64
	tokens  int64
}

type writerRun struct {
	attempt int64       // event that began the last attempt
	began   loop.Micros // its time
	pieces  int64       // deltas of that attempt
	calls   []string    // arguments of the calls of the last response, as they are written
	waits   waiting
	state   loop.State
	broken  bool // the events do not fold: the footer says nothing of the state
}

// NewWriter begins a .ronda.jsonl file: it writes the header and the first clock line.
func NewWriter(w io.Writer, h Header, o WriteOptions) (*Writer, error) {
	return newWriter(&lineSink{w: w}, h, o)
}

func newWriter(out sink, h Header, o WriteOptions) (*Writer, error) {
	if h.Run == "" {
		return nil, &FormatError{ErrFormat, -1, "the header names no run"}
	}
	if h.Capture == "" {
		h.Capture = Full
	}
	if h.Pace == "" {
		h.Pace = PaceReal
	}
	if o.Redactor != nil {
		h.Title, h.Redaction = o.Redactor.Redact(h.Title), o.Redactor.Policy()
	}
	if h.Capture == Metadata {
		h.Title = ""
	}
	w := &Writer{out: out, head: h, opts: o, runs: make([]writerRun, 1), refs: map[string]string{}}
	body, err := marshal(h)
	if err != nil {
		return nil, fmt.Errorf("recording: write header: %w", err)
	}
	line := lineHead(nil, 0, 0, "ronda", 0)
	line = append(line, `,"v":`+strconv.Itoa(Version)+`,"reader":1,"b":`...)
	if err := w.emit(append(line, body...)); err != nil {
		return nil, err
	}
	return w, w.clock(0, 0)
}

// emit seals and writes a line that has no tag yet.
func (w *Writer) emit(line []byte) error {
	if w.err != nil {
		return w.err
	}
	at := indexPoint{S: w.s, T: w.t, Events: w.foot.Events, Deltas: w.foot.Deltas, Rounds: w.rounds, ModelCalls: w.modelNo, ToolCalls: w.toolNo, Tokens: w.tokens}
	if w.s%segmentLines == 0 {
		at.Chain = w.chain.String()
	}
	line = append(w.chain.seal(line), '\n')
	if w.err = w.out.line(line, at); w.err != nil {
		w.err = fmt.Errorf("recording: write line %d: %w", w.s, w.err)
		return w.err
	}
	w.s++
	if w.s%segmentLines == segmentLines-1 {
		digest := w.chain.String()
		return w.emit(append(lineHead(nil, w.s, int64(w.t), "check", 0), `,"chain":"`+digest+`"`...))
	}
	return nil
}

// at gives the time of the next line: never before the last one.
func (w *Writer) at(t loop.Micros) loop.Micros {
	w.t = max(w.t, t)
	return w.t
}

func (w *Writer) clock(run int, t loop.Micros) error {
	line := lineHead(nil, w.s, int64(w.at(t)), "clock", run)
	line = append(line, `,"wall":`...)
	return w.emit(strconv.AppendInt(line, int64(w.head.Started+w.t), 10))
}

// StartRun introduces a child run and returns its number for Event. The first run of the file has number 0.
func (w *Writer) StartRun(info RunInfo, at loop.Micros) (run int, err error) {
	body, err := marshal(info)
	if err != nil {
		return 0, err
	}
	w.runs = append(w.runs, writerRun{})
	n := len(w.runs) - 1
	line := append(lineHead(nil, w.s, int64(w.at(at-w.head.Started)), "run", n), `,"b":`...)
	return n, w.emit(append(line, body...))
}

// Artifact writes the bytes of a reference, unless they were written before. It comes before the events that name it. With a redactor text
// is redacted and gets another name; events are written with that one.
func (w *Writer) Artifact(a Artifact) error {
	if _, known := w.refs[a.Ref]; known || w.head.Capture == Metadata {
		return nil
	}
	before := a.Ref
	if w.opts.Redactor != nil && utf8.Valid(a.Data) {
		if red := w.opts.Redactor.Redact(string(a.Data)); red != string(a.Data) {
			a.Data = []byte(red)
			a.Ref = Ref(a.Data)
		}
	}
	w.refs[before] = a.Ref
	inline, err := w.out.artifact(a)
	if err != nil || !inline {
		return err
	}
	line := append(lineHead(nil, w.s, int64(w.t), "artifact", 0), `,"ref":"`...)
	line = append(line, a.Ref...)
	line = append(line, `","mime":`...)
	line = appendString(line, a.MIME)
	if utf8.Valid(a.Data) {
		line = append(line, `,"text":`...)
		line = appendString(line, string(a.Data))
	} else {
		line = append(line, `,"data":"`...)
		line = base64.StdEncoding.AppendEncode(line, a.Data)
		line = append(line, '"')
	}
	return w.emit(line)
}

// Event writes an event of a run, in the order of its journal. tape, where the event is a response that was streamed, gives the times of
// its pieces; they are written before it.
func (w *Writer) Event(run int, ev loop.Event, tape []byte) error {
	if run < 0 || run >= len(w.runs) {
		return fmt.Errorf("recording: write event %d: there is no run %d", ev.Seq, run)
	}
	record, err := loop.Encode(ev)
	if err != nil {
		return err
	}
	var rec struct {
		O bool            `json:"o"`
		B json.RawMessage `json:"b"`
	}
	if err := json.Unmarshal(record, &rec); err != nil {
		return fmt.Errorf("recording: write event %d: %w", ev.Seq, err)
	}
	r := &w.runs[run]
	t := ev.Time - w.head.Started
	switch ev.Body.(type) {
	case loop.ModelCallStarted:
		r.attempt, r.began, r.pieces = ev.Seq, t, 0
	case loop.RunResumed:
		if err := w.clock(run, t); err != nil {
			return err
		}
	}
	p := w.prepare(rec.B)
	if reply, ok := ev.Body.(loop.ModelReplied); ok && len(tape) > 0 && w.head.Capture == Full {
		if err := w.streamed(run, p, reply, tape); err != nil {
			return err
		}
	}
	body, err := w.setAside(r, p, ev)
	if err != nil {
		return err
	}
	if reply, ok := ev.Body.(loop.ModelReplied); ok {
		if !bytes.Equal(p.body, rec.B) {
			reply = loop.ModelReplied{}
			if err := json.Unmarshal(p.body, &reply); err != nil {
				return fmt.Errorf("recording: write event %d: %w", ev.Seq, err)
			}
		}
		r.calls = callArgs(reply)
	}
	cause := r.waits.apply(ev.Body)
	gap := t - w.until
	line := lineHead(nil, w.s, int64(w.at(t)), ev.Kind(), run)
	line = append(line, `,"q":`...)
	line = strconv.AppendInt(line, ev.Seq, 10)
	if w.t != t {
		line = append(line, `,"e":`...)
		line = strconv.AppendInt(line, int64(t), 10)
	}
	if rec.O {
		line = append(line, `,"opt":true`...)
	}
	if p.refs > 0 {
		line = append(line, `,"refs":`...)
		line = strconv.AppendInt(line, int64(p.refs), 10)
	}
	if gap >= waitFrom {
		line = append(line, `,"wait":"`+cause+`"`...)
	}
	line = append(line, `,"b":`...)
	w.until = max(w.until, t)
	if err := w.emit(append(line, body...)); err != nil {
		return err
	}
	w.count(r, ev)
	return nil
}

// count keeps the counters of the index and the footer.
func (w *Writer) count(r *writerRun, ev loop.Event) {
	w.foot.Events++
	switch b := ev.Body.(type) {
	case loop.ModelCallStarted:
		if b.Attempt <= 1 {
			w.modelNo++
		}
	case loop.ModelReplied:
		if b.Usage != nil {
			w.tokens += b.Usage.Total()
		}
	case loop.ToolStarted:
		if b.Attempt <= 1 {
			w.toolNo++
		}
	}
	if r.broken {
		return
	}
	next, err := loop.Next(r.state, ev)
	if err != nil {
		r.broken = true
		return
	}
	if r == &w.runs[0] {
		w.rounds = next.Ledger.Own.Rounds
	}
	r.state = next
}

// Extra writes a line of a kind that this version does not know, as it was read.
func (w *Writer) Extra(x Extra) error {
	line := lineHead(nil, w.s, int64(w.at(x.T)), x.Kind, x.Run)
	for i := 0; i+1 < len(x.Rest); i += 2 {
		line = append(line, ',')
		line = append(line, x.Rest[i]...)
		line = append(line, ':')
		line = append(line, x.Rest[i+1]...)
	}
	return w.emit(line)
}

// Close writes the footer. It does not close the writer below.
func (w *Writer) Close() error {
	w.foot.Lines, w.foot.Runs, w.foot.Chain = w.s, len(w.runs), w.chain.String()
	if r := &w.runs[0]; !r.broken && r.state.Phase != loop.PhaseNew {
		w.foot.Status, _ = r.state.Status()
		w.foot.Counts, w.foot.Cost = r.state.Ledger.Total(), r.state.Ledger.TotalCost()
		if s := r.state.Stop; s != nil {
			w.foot.Stop, w.foot.Limit = s.Stop, s.Limit
		}
	}
	body, err := marshal(w.foot)
	if err != nil {
		return err
	}
	line := append(lineHead(nil, w.s, int64(w.t), "end", 0), `,"b":`...)
	if err := w.last(append(line, body...)); err != nil {
		return err
	}
	return w.out.close(w.foot)
}

// last is emit without a check line after it.
func (w *Writer) last(line []byte) error {
	if w.err != nil {
		return w.err
	}
	line = append(w.chain.seal(line), '\n')
	w.err = w.out.line(line, indexPoint{S: w.s, T: w.t, Events: w.foot.Events, Deltas: w.foot.Deltas, Rounds: w.rounds, ModelCalls: w.modelNo,
		ToolCalls: w.toolNo, Tokens: w.tokens, Chain: w.foot.Chain})
	return w.err
}

// lineSink writes lines one after the other, artifacts among them.
type lineSink struct{ w io.Writer }

func (s *lineSink) line(line []byte, _ indexPoint) error {
	_, err := s.w.Write(line)
	return err
}

func (s *lineSink) artifact(Artifact) (bool, error) { return true, nil }

func (s *lineSink) close(Footer) error { return nil }

// isRef says whether a string could name an artifact.
func isRef(s string) bool { return len(s) == 71 && strings.HasPrefix(s, "sha256:") }
