package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Format is the newest format of the journal that this version writes and reads.
const Format = 1

// ErrNewer is wrapped by errors about a journal that a newer version wrote.
var ErrNewer = errors.New("written by a newer version of ronda")

// wireEvent is the JSON form of an event: {"s":1,"t":…,"k":"RunStarted","b":{…}}. "o" marks a kind that readers may skip.
type wireEvent struct {
	S int64           `json:"s"`
	T Micros          `json:"t"`
	K string          `json:"k"`
	O bool            `json:"o,omitempty"`
	B json.RawMessage `json:"b"`
}

// bodies makes an empty body for each kind. A new event needs a line here; TestCodecKnowsEveryEvent says so.
var bodies = map[string]func([]byte) (Body, error){
	"RunStarted":       decodeAs[RunStarted],
	"RunResumed":       decodeAs[RunResumed],
	"ModelCallStarted": decodeAs[ModelCallStarted],
	"ModelReplied":     decodeAs[ModelReplied],
	"ModelFailed":      decodeAs[ModelFailed],
	"CallAuthorized":   decodeAs[CallAuthorized],
	"CallRefused":      decodeAs[CallRefused],
	"ApprovalAsked":    decodeAs[ApprovalAsked],
	"ApprovalDecided":  decodeAs[ApprovalDecided],
	"StandingRevoked":  decodeAs[StandingRevoked],
	"ToolStarted":      decodeAs[ToolStarted],
	"ToolReturned":     decodeAs[ToolReturned],
	"ToolFailed":       decodeAs[ToolFailed],
	"EffectChecked":    decodeAs[EffectChecked],
	"EffectResolved":   decodeAs[EffectResolved],
	"ContractChecked":  decodeAs[ContractChecked],
	"LimitReached":     decodeAs[LimitReached],
	"LimitsExtended":   decodeAs[LimitsExtended],
	"Nudged":           decodeAs[Nudged],
	"MessageTaken":     decodeAs[MessageTaken],
	"CancelRequested":  decodeAs[CancelRequested],
	"Compacted":        decodeAs[Compacted],
	"ChildStarted":     decodeAs[ChildStarted],
	"ChildStopped":     decodeAs[ChildStopped],
	"RunStopped":       decodeAs[RunStopped],
}

func decodeAs[T Body](b []byte) (Body, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}

// Encode writes the event as one line of JSON without a line end. An event that came from Decode is written back byte for
// byte, also where it holds members or is of a kind that this version does not know.
func Encode(e Event) ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	if u, ok := e.Body.(Unknown); ok {
		return marshal(wireEvent{S: e.Seq, T: e.Time, K: u.Name, O: u.Optional, B: u.Raw})
	}
	if e.Body == nil {
		return nil, fmt.Errorf("loop: encode event %d: it has no body", e.Seq)
	}
	out := make([]byte, 0, sizeHint(e.Body))
	out = append(out, `{"s":`...)
	out = appendInt(out, e.Seq)
	out = append(out, `,"t":`...)
	out = appendInt(out, int64(e.Time))
	out = append(out, `,"k":"`...)
	out = append(out, e.Body.Kind()...)
	out = append(out, `","b":`...)
	if fast, ok := appendBody(out, e.Body); ok {
		return append(fast, '}'), nil
	}
	b, err := marshal(e.Body)
	if err != nil {
		return nil, fmt.Errorf("loop: encode event %d, %s: %w", e.Seq, e.Kind(), err)
	}
	return append(append(out, b...), '}'), nil
}

// sizeHint is about how long the event's line will be.
func sizeHint(b Body) int {
	n := 160
	switch b := b.(type) {
	case ToolReturned:
		n += len(b.Text) + len(b.Text)/16
	case ModelReplied:
		for i := range b.Blocks {
			n += 64 + len(b.Blocks[i].Text) + len(b.Blocks[i].Args) + len(b.Blocks[i].Raw)
		}
	}
	return n
}

// Decode reads what Encode wrote. It keeps b: the caller must not change it afterwards. An unknown kind is an Unknown, not
// an error; a body that does not fit its kind is an error that names both.
func Decode(b []byte) (Event, error) {
	var w wireEvent
	if err := json.Unmarshal(b, &w); err != nil {
		return Event{}, fmt.Errorf("loop: decode event: %w", err)
	}
	if w.K == "" || w.S < 1 {
		return Event{}, fmt.Errorf("loop: decode event: %.60q has no kind or no sequence number", b)
	}
	ev := Event{Seq: w.S, Time: w.T, raw: b}
	dec, ok := bodies[w.K]
	if !ok {
		ev.Body = Unknown{Name: w.K, Optional: w.O, Raw: w.B}
		return ev, nil
	}
	body, err := dec(w.B)
	if err != nil {
		return Event{}, fmt.Errorf("loop: decode event %d, %s: %w", w.S, w.K, err)
	}
	ev.Body = body
	return ev, nil
}

// Assemble makes an event of its parts, as Decode does of a line: for readers whose files hold bodies in an envelope of their own. It keeps
// nothing of body. Encode of the event is the line with that body.
func Assemble(seq int64, t Micros, kind string, optional bool, body []byte) (Event, error) {
	if kind == "" || seq < 1 {
		return Event{}, fmt.Errorf("loop: assemble event %d: it has no kind or no sequence number", seq)
	}
	raw := make([]byte, 0, len(body)+len(kind)+64)
	raw = append(raw, `{"s":`...)
	raw = appendInt(raw, seq)
	raw = append(raw, `,"t":`...)
	raw = appendInt(raw, int64(t))
	raw = append(raw, `,"k":"`...)
	raw = append(raw, kind...)
	raw = append(raw, '"')
	if optional {
		raw = append(raw, `,"o":true`...)
	}
	raw = append(raw, `,"b":`...)
	from := len(raw)
	raw = append(append(raw, body...), '}')
	body = raw[from : len(raw)-1 : len(raw)-1]
	ev := Event{Seq: seq, Time: t, raw: raw}
	dec, ok := bodies[kind]
	if !ok {
		if !json.Valid(body) {
			return Event{}, fmt.Errorf("loop: assemble event %d, %s: its body is no JSON", seq, kind)
		}
		ev.Body = Unknown{Name: kind, Optional: optional, Raw: body}
		return ev, nil
	}
	b, err := dec(body)
	if err != nil {
		return Event{}, fmt.Errorf("loop: assemble event %d, %s: %w", seq, kind, err)
	}
	ev.Body = b
	return ev, nil
}

// marshal is json.Marshal without the escaping of <, > and &: results hold much HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
