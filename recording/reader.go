package recording

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Entry is one line of a recording as a reader gives it. Exactly one of Event (with a Body), Deltas, Clock, Run, Artifact and Extra is set.
type Entry struct {
	S     int64       // line
	T     loop.Micros // since the start
	Run   int         // 0 is the first run of the file
	Wait  string      // what the time before this line was spent on, where that was long
	Event loop.Event
	// Broken says why an event could not be read whole (a missing artifact): its Body is then what could be read, or nil.
	Broken   error
	Deltas   *Deltas
	Clock    loop.Micros // wall time
	Info     *RunInfo
	Artifact *Artifact
	Tape     []byte // of the attempt that began with the event Tape of the run; see Deltas
	Extra    *Extra
}

// ChainError says where the hash chain breaks: the line was changed, or one before it was taken out or put in.
type ChainError struct {
	Line      int64
	Want, Got string
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("recording: the chain breaks at line %d: its tag is %s and ought to be %s. The line, or the one before it, was changed after it was written", e.Line, e.Got, e.Want)
}

// Reader reads a recording line by line. It checks the chain as it goes and reads on where that breaks: see Broken. It holds artifacts that
// stand among the lines, and the pieces of the attempt under way. It belongs to one goroutine.
type Reader struct {
	// Partial says that the reader began in the middle of a file: references to what lies before it cannot be resolved.
	Partial bool
	// Lean leaves the texts of events that are references unresolved, which is quicker where only kinds and counters are wanted.
	Lean bool

	in      *bufio.Reader
	head    Header
	headed  bool
	foot    *Footer
	cut     bool
	broken  *ChainError
	chain   chain
	chained bool // the chain is known at this place
	line    int64
	at      loop.Micros
	// collecting says that the texts of pieces are only wanted as parts of their messages.
	collecting bool
	started    loop.Micros
	events     int64
	buf        []byte

	artifacts map[string]Artifact
	resolve   func(ref string) (Artifact, bool)
	runs      []readerRun
}

type readerRun struct {
	attempt int64
	began   loop.Micros
	texts   map[int][]byte // of the attempt under way, by block
	calls   []string       // arguments of the calls of the last response
	tape    []TapePiece    // collecting: of the attempt under way
}

func newReader(in io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), artifacts: map[string]Artifact{}, chained: true, runs: make([]readerRun, 1)}
}

// NewReader reads the header of a .ronda.jsonl file.
func NewReader(in io.Reader) (*Reader, error) {
	r := newReader(in)
	if _, err := r.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// begin reads the header.
func (r *Reader) begin() (Header, error) {
	line, err := r.readLine()
	if err == io.EOF {
		return Header{}, &FormatError{ErrFormat, 0, "it is empty"}
	}
	if err != nil {
		return Header{}, err
	}
	var w wireLine
	if err := json.Unmarshal(line, &w); err != nil || w.K != "ronda" || w.S != 0 {
		return Header{}, &FormatError{ErrFormat, 0, "it does not begin with a header"}
	}
	if w.Reader > Version {
		return Header{}, &FormatError{ErrNewer, 0, fmt.Sprintf("its format needs a reader of version %d, this one knows %d. Update ronda", w.Reader, Version)}
	}
	if err := json.Unmarshal(w.B, &r.head); err != nil {
		return Header{}, &FormatError{ErrFormat, 0, "its header cannot be read: " + err.Error()}
	}
	r.check(line)
	r.line, r.started, r.headed = 1, r.head.Started, true
	return r.head, nil
}

// Header is the first line.
func (r *Reader) Header() Header { return r.head }

// Footer is the last line; nil until it was read, and for a file that was cut off.
func (r *Reader) Footer() *Footer { return r.foot }

// CutOff says, after io.EOF, that the file has no footer: it was cut off, or is still being written.
func (r *Reader) CutOff() bool { return r.cut }

// Broken is the first place where the chain breaks, nil if it holds so far.
func (r *Reader) Broken() *ChainError { return r.broken }

// readLine returns the next line without its end. A last line without an end counts only if it is whole.
func (r *Reader) readLine() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		switch {
		case len(r.buf) > maxLine:
			return nil, &FormatError{ErrTooLarge, r.line, fmt.Sprintf("a line of more than %d bytes", maxLine)}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF:
			if line := bytes.TrimSpace(r.buf); len(line) > 0 && json.Valid(line) {
				return line, nil
			}
			r.cut = r.foot == nil
			return nil, io.EOF
		case err != nil:
			return nil, fmt.Errorf("recording: read line %d: %w", r.line, err)
		}
		if line := bytes.TrimRight(r.buf, "\r\n"); len(line) > 0 {
			return line, nil
		}
		r.buf = r.buf[:0]
	}
}

func (c *chain) parse(digest string) bool {
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) != len(c) {
		return false
	}
	copy(c[:], b)
	return true
}

// check folds a line into the chain.
func (r *Reader) check(line []byte) {
	body, tag, ok := unseal(line)
	if !ok {
		r.breaks("", "none")
		return
	}
	if !r.chained {
		return
	}
	r.chain = r.chain.next(body)
	if want := r.chain.tag(); want != tag {
		r.breaks(want, tag)
	}
}

func (r *Reader) breaks(want, got string) {
	if r.broken == nil {
		r.broken = &ChainError{r.line, want, got}
	}
	r.chained = false
}

// Next returns the next line that is not the file's own bookkeeping; io.EOF at the end.
func (r *Reader) Next() (Entry, error) {
	if !r.headed {
		if _, err := r.begin(); err != nil {
			return Entry{}, err
		}
	}
	for {
		e, err := r.next()
		if err != nil || e.S >= 0 {
			return e, err
		}
	}
}

// next reads one line; an entry with S −1 is to be skipped.
func (r *Reader) next() (Entry, error) {
	if r.foot != nil {
		return Entry{}, io.EOF
	}
	line, err := r.readLine()
	if err != nil {
		return Entry{}, err
	}
	before := r.chain
	r.check(line)
	var w wireLine
	if !parseLine(line, &w) {
		if err := json.Unmarshal(line, &w); err != nil {
			return Entry{}, &FormatError{ErrFormat, r.line, "it is no line of a recording: " + err.Error()}
		}
	}
	if w.K == "" || w.R < 0 || w.R > len(r.runs) {
		return Entry{}, &FormatError{ErrFormat, r.line, "it has no kind, or belongs to a run that did not begin"}
	}
	if w.S != r.line {
		r.breaks(strconv.FormatInt(r.line, 10), "s "+strconv.FormatInt(w.S, 10))
		r.line = w.S
	}
	r.line++
	if w.R == len(r.runs) {
		if w.K != "run" && !r.Partial {
			return Entry{}, &FormatError{ErrFormat, w.S, "it belongs to a run that did not begin"}
		}
		r.runs = append(r.runs, readerRun{})
	}
	t := loop.Micros(w.T)
	r.at = max(r.at, t)
	if w.E != nil {
		t = loop.Micros(*w.E)
	}
	e := Entry{S: w.S, T: t, Run: w.R, Wait: w.Wait}
	switch {
	case isEvent(w.K):
		r.events++
		return r.event(e, &w)
	case w.K == "delta":
		return r.deltas(e, &w)
	case w.K == "end":
		var f Footer
		if err := json.Unmarshal(w.B, &f); err != nil {
			return e, &FormatError{ErrFormat, w.S, "its footer cannot be read: " + err.Error()}
		}
		if r.foot = &f; r.chained && f.Chain != before.String() {
			r.breaks(before.String()[:8], "footer "+prefix(f.Chain, 8))
		}
		return Entry{}, io.EOF
	}
	return r.other(e, line, &w)
}

// event rebuilds the record of the journal and decodes it.
func (r *Reader) event(e Entry, w *wireLine) (Entry, error) {
	if w.Q < 1 || len(w.B) == 0 {
		return e, &FormatError{ErrFormat, w.S, w.K + ": it has no sequence number or no body"}
	}
	run := &r.runs[e.Run]
	body := []byte(w.B)
	if w.Refs > 0 && !r.Lean {
		restored, err := restore(body, run.text, run.sum, r.lookup)
		if err != nil {
			e.Broken = err
		} else {
			body = restored
		}
	}
	ev, err := loop.Assemble(w.Q, r.started+e.T, w.K, w.Opt, body)
	if err != nil {
		if w.Refs > 0 { // the body holds a reference where a text ought to be
			e.Event = loop.Event{Seq: w.Q, Time: r.started + e.T, Body: loop.Unknown{Name: w.K, Optional: true, Raw: body}}
			if e.Broken == nil {
				e.Broken = err
			}
			return e, nil
		}
		return e, &FormatError{ErrFormat, w.S, err.Error()}
	}
	e.Event = ev
	switch ev.Body.(type) {
	case loop.ModelCallStarted:
		run.attempt, run.began, run.texts = ev.Seq, e.T, nil
	case loop.ModelReplied, loop.ModelFailed:
		run.texts = nil
	}
	if b, ok := ev.Body.(loop.ModelReplied); ok {
		run.calls = callArgs(b)
	}
	return e, nil
}

func (r *readerRun) sum(call int) (string, bool) { return argsSum(r.calls, call) }

func (r *readerRun) text(block int) (string, bool) {
	t, ok := r.texts[block]
	return string(t), ok
}

func (r *Reader) lookup(ref string) (Artifact, bool) {
	if a, ok := r.artifacts[ref]; ok {
		if a.MIME == "" {
			a.MIME = mimeText
		}
		return a, true
	}
	if r.resolve == nil {
		return Artifact{}, false
	}
	return r.resolve(ref)
}

// deltas reads the pieces of a line.
func (r *Reader) deltas(e Entry, w *wireLine) (Entry, error) {
	bad := func(why string) (Entry, error) { return e, &FormatError{ErrFormat, w.S, "delta: " + why} }
	var id string
	if err := json.Unmarshal(w.B, &id); err != nil || !strings.HasPrefix(id, "b") {
		return bad("it names no block")
	}
	block, err := strconv.Atoi(id[1:])
	if err != nil || block < 0 || block > maxBlock {
		return bad("it names no block")
	}
	pieces, ok := parsePieces(w.D, !r.collecting)
	if !ok {
		return bad("its pieces are not pairs of a time and a text")
	}
	return r.placed(e, w, block, pieces), nil
}

// placed gives pieces their times and collects their texts.
func (r *Reader) placed(e Entry, w *wireLine, block int, pieces []Piece) Entry {
	run := &r.runs[e.Run]
	if run.texts == nil || run.attempt != w.Q {
		run.texts = map[int][]byte{}
	}
	began := run.began
	if run.attempt != w.Q { // a reader that began in the middle
		run.attempt, run.began, began = w.Q, e.T, e.T
	}
	d := &Deltas{Seq: w.Q, Offset: w.O, Block: block, Channel: w.C, Pieces: pieces}
	at := e.T - began
	text := run.texts[block]
	for i := range pieces {
		at += pieces[i].At
		pieces[i].At = at
		before := len(text)
		if text = append(text, pieces[i].Text...); pieces[i].raw != nil {
			text = appendUnquoted(text, pieces[i].raw)
		}
		if r.collecting {
			run.tape = append(run.tape, TapePiece{at, w.C, block, len(text) - before})
		}
	}
	run.texts[block] = text
	e.Deltas = d
	return e
}
