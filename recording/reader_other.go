package recording

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/ronda-go/ronda/loop"
)

// other reads the lines that are neither events nor deltas.
func (r *Reader) other(e Entry, line []byte, w *wireLine) (Entry, error) {
	bad := func(err error) (Entry, error) {
		return e, &FormatError{ErrFormat, w.S, w.K + ": " + err.Error()}
	}
	switch w.K {
	case "ronda":
		return e, &FormatError{ErrFormat, w.S, "a second header"}
	case "check":
		return Entry{S: -1}, nil
	case "clock":
		var c struct {
			Wall loop.Micros `json:"wall"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return bad(err)
		}
		e.Clock = c.Wall
		if e.Clock == 0 {
			return Entry{S: -1}, nil
		}
	case "run":
		e.Info = &RunInfo{}
		if err := json.Unmarshal(w.B, e.Info); err != nil {
			return bad(err)
		}
	case "artifact":
		var a struct {
			Ref, MIME string
			Text      *string
			Data      []byte
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return bad(err)
		}
		e.Artifact = &Artifact{a.Ref, a.MIME, a.Data}
		if a.Text != nil {
			e.Artifact.Data = []byte(*a.Text)
		}
		if Ref(e.Artifact.Data) != a.Ref {
			return bad(errors.New("its bytes are not those that its name says"))
		}
		r.artifacts[a.Ref] = *e.Artifact
	case "tape":
		if err := json.Unmarshal(w.D, &e.Tape); err != nil {
			return bad(err)
		}
		if e.Tape == nil {
			return Entry{S: -1}, nil
		}
	default:
		x, err := r.extra(line, w)
		if err != nil {
			return bad(err)
		}
		e.Extra = x
	}
	return e, nil
}

func (r *Reader) extra(line []byte, w *wireLine) (*Extra, error) {
	x := &Extra{T: loop.Micros(w.T), Kind: w.K, Run: w.R, After: r.events}
	dec := json.NewDecoder(bytes.NewReader(line))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		switch key {
		case "s", "t", "k", "r", "h":
		default:
			x.Rest = append(x.Rest, appendString(nil, key), bytes.Clone(v))
		}
	}
	return x, nil
}
