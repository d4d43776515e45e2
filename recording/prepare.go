package recording

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// prepared is an event's body on its way into a line.
type prepared struct {
	body  []byte
	spans map[int][]span // by block: what redaction did to its text
	cut   map[int]bool   // blocks whose text stands in delta lines
	refs  int
}

// prepare redacts and, for metadata, masks a body.
func (w *Writer) prepare(body []byte) *prepared {
	p := &prepared{body: body}
	if w.head.Capture == Metadata {
		p.body = mask(body, w.opts.Salt)
		return p
	}
	red := w.opts.Redactor
	if red == nil {
		return p
	}
	p.body = rewrite(body, func(at *walk, scalar []byte) []byte {
		if scalar[0] != '"' || at.opaque() {
			return nil
		}
		s := unquote(scalar)
		if isRef(s) {
			if now, ok := w.refs[s]; ok && now != s {
				return appendString(nil, now)
			}
			return nil
		}
		out, spans := red.redact(s)
		if len(spans) == 0 {
			return nil
		}
		for _, name := range []string{"text", "args"} {
			if i, ok := at.block(name); ok {
				if p.spans == nil {
					p.spans = map[int][]span{}
				}
				p.spans[i] = spans
			}
		}
		return appendString(nil, out)
	})
	return p
}

// streamed writes the pieces of a response.
func (w *Writer) streamed(run int, p *prepared, reply loop.ModelReplied, tape []byte) error {
	pieces, err := DecodeTape(tape)
	if err != nil {
		return nil // a tape that cannot be read is left out: the message is whole without it
	}
	blocks := reply.Blocks
	if p.spans != nil {
		var red loop.ModelReplied
		if err := json.Unmarshal(p.body, &red); err != nil {
			return err
		}
		blocks = red.Blocks
	}
	var bounds func(block, pos int) int
	if p.spans != nil {
		bounds = func(block, pos int) int { return mapPosition(p.spans[block], pos) }
	}
	cut, ok := cutMessage(pieces, blocks, bounds)
	r := &w.runs[run]
	if !ok {
		if p.spans != nil {
			return nil // times alone could tell the length of what was replaced
		}
		line := append(lineHead(nil, w.s, int64(w.t), "tape", run), `,"q":`...)
		line = strconv.AppendInt(line, r.attempt, 10)
		line = append(line, `,"d":`...)
		data, err := json.Marshal(tape)
		if err != nil {
			return err
		}
		return w.emit(append(line, data...))
	}
	p.cut = map[int]bool{}
	for i := range cut {
		p.cut[cut[i].Block] = true
	}
	return w.deltas(run, cut)
}

// deltas packs pieces into lines.
func (w *Writer) deltas(run int, pieces []cutPiece) error {
	r := &w.runs[run]
	for len(pieces) > 0 {
		n, size := 1, len(pieces[0].text)
		for n < len(pieces) && pieces[n].Block == pieces[0].Block && pieces[n].Channel == pieces[0].Channel &&
			pieces[n].At-pieces[0].At < packTime && size+len(pieces[n].text) <= packBytes {
			size += len(pieces[n].text)
			n++
		}
		first := r.began + pieces[0].At
		gap := first - w.until
		line := lineHead(nil, w.s, int64(w.at(first)), "delta", run)
		line = append(line, `,"q":`...)
		line = strconv.AppendInt(line, r.attempt, 10)
		if w.t != first {
			line = append(line, `,"e":`...)
			line = strconv.AppendInt(line, int64(first), 10)
		}
		if gap >= waitFrom {
			line = append(line, `,"wait":"model"`...)
		}
		line = append(line, `,"o":`...)
		line = strconv.AppendInt(line, r.pieces+1, 10)
		line = append(line, `,"b":"b`...)
		line = strconv.AppendInt(line, int64(pieces[0].Block), 10)
		line = append(line, `","c":"`...)
		line = append(line, pieces[0].Channel...)
		line = append(line, `","d":[`...)
		last := pieces[0].At
		for i, piece := range pieces[:n] {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(line, '[')
			line = strconv.AppendInt(line, int64(piece.At-last), 10)
			line = append(line, ',')
			line = appendString(line, piece.text)
			line = append(line, ']')
			last = piece.At
		}
		w.until = max(w.until, r.began+last)
		if err := w.emit(append(line, ']')); err != nil {
			return err
		}
		r.pieces += int64(n)
		w.foot.Deltas += int64(n)
		pieces = pieces[n:]
	}
	return nil
}

// setAside replaces texts that stand in delta lines, and long strings, by references; it writes the artifacts of the latter.
func (w *Writer) setAside(r *writerRun, p *prepared, ev loop.Event) ([]byte, error) {
	if nextMark(p.body) >= 0 {
		a, obj := aside(p.body) // what looks like a reference of ours is none
		p.refs = 1
		return obj, w.reference(a)
	}
	var failed error
	out := rewrite(p.body, func(at *walk, scalar []byte) []byte {
		if scalar[0] != '"' {
			return nil
		}
		for _, name := range []string{"text", "args"} {
			if i, ok := at.block(name); ok && p.cut[i] && bytes.Equal(appendString(nil, unquote(scalar)), scalar) {
				p.refs++
				return fmtDelta(i)
			}
		}
		if sum, call, ok := r.sumOf(ev.Body); ok && len(at.steps) == 1 && at.key() == "args" && string(scalar) == `"`+sum+`"` {
			p.refs++
			return append(strconv.AppendInt(bytes.Clone(sumMark), int64(call), 10), '}')
		}
		if len(scalar) <= refAt {
			return nil
		}
		a, obj := aside(scalar)
		if err := w.reference(a); err != nil && failed == nil {
			failed = err
		}
		p.refs++
		return obj
	})
	return out, failed
}

// sumOf is the digest of the arguments that an event's call had in the response, and the call's index.
func (r *writerRun) sumOf(body loop.Body) (sum string, call int, ok bool) {
	id := ""
	switch b := body.(type) {
	case loop.CallAuthorized:
		id = b.Call
	case loop.CallRefused:
		id = b.Call
	default:
		return "", 0, false
	}
	_, n, _ := strings.Cut(id, ".")
	call, err := strconv.Atoi(n)
	if err != nil {
		return "", 0, false
	}
	sum, ok = argsSum(r.calls, call-1)
	return sum, call - 1, ok
}

func fmtDelta(block int) []byte {
	return append(strconv.AppendInt(bytes.Clone(deltaMark), int64(block), 10), '}')
}

// reference writes an artifact that was made of an event's own value: it is redacted already.
func (w *Writer) reference(a Artifact) error {
	red := w.opts.Redactor
	w.opts.Redactor = nil
	defer func() { w.opts.Redactor = red }()
	if w.head.Capture == Metadata {
		w.head.Capture = Full
		defer func() { w.head.Capture = Metadata }()
	}
	return w.Artifact(a)
}
