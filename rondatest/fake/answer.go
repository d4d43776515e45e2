package fake

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

// frame is one event of a stream.
type frame struct {
	data []byte
	kind frameKind
}

type frameKind int

const (
	opening frameKind = iota // before the content and around its parts
	delta                    // a piece of content
	ending                   // finish reason, usage, end marker
)

// rendered is a response in the form of a wire, both ways.
type rendered struct {
	id     string // of the request, for the header
	whole  []byte
	frames []frame
}

func (r *rendered) add(kind frameKind, data []byte) { r.frames = append(r.frames, frame{data, kind}) }

// sse writes an event of a stream.
func sse(event string, data []byte, end string) []byte {
	var b bytes.Buffer
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString(end)
	return b.Bytes()
}

// reply is an item made ready for a wire.
type reply struct {
	thinking, text string
	calls          []servedCall
	usage          *loop.Usage
	finish         loop.Finish
	malformed      bool
	broken         bool // the arguments of the last call are cut
}

// cutText is what a cut stream carries when the item has no content.
const cutText = "Let me look at this first and then tell you – step by step – what I have found out about it: "

func (s *Server) reply(seen *Seen, item *scripted.Item, r *rand.Rand, prefix string, n int) *reply {
	p := &reply{thinking: item.Thinking, text: item.Text, usage: item.Usage, finish: item.FinishOf(), malformed: item.Malformed}
	for _, c := range item.Calls {
		id := c.ID
		if id == "" && !s.opts.NoCallIDs {
			id = makeID(r, prefix, n)
		}
		p.calls = append(p.calls, servedCall{id: id, name: c.Name, args: c.Args})
	}
	if f := item.Fail; f != nil && p.thinking == "" && p.text == "" && len(p.calls) == 0 {
		switch {
		case f.CutAfter != nil:
			for range 2 + *f.CutAfter/4 {
				p.text += cutText
			}
		case f.NoEnd, f.ErrorEvent != "":
			p.text = cutText
		}
	}
	if item.Malformed && (s.wire == Anthropic || s.wire == OpenAI) {
		// These wires have no answer for a call that cannot be parsed: the arguments are broken.
		name := "tool"
		if len(seen.Tools) > 0 {
			name = seen.Tools[0].Name
		}
		p.calls = []servedCall{{id: makeID(r, prefix, n), name: name, args: `{"`}}
		p.finish, p.malformed = loop.FinishCalls, false
	}
	if last := len(p.calls) - 1; p.finish == loop.FinishLength && last >= 0 && (s.wire == OpenAI || s.wire == OpenAIChat) {
		// rig__openai_streaming_grammar_incomplete_mid_tool_call: the limit of tokens cuts the call.
		p.calls[last].args = p.calls[last].args[:len(p.calls[last].args)/2]
		p.broken = true
	}
	return p
}

// answer serves an item, or fails as it says.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, seen *Seen, item *scripted.Item) {
	r := s.led.rand()
	f := item.Fail
	if f != nil && f.Status != 0 {
		s.failure(w, r, f.Status, f.RetryAfter, f.Message)
		return
	}
	var out *rendered
	switch s.wire {
	case Anthropic:
		out = s.anthropic(seen, item, r)
	case OpenAI:
		out = s.responses(seen, item, r)
	case OpenAIChat:
		out = s.chat(seen, item, r)
	case Gemini:
		out = s.gemini(seen, item, r)
	}
	head(w, s.wire, out.id)
	if seen.Stream {
		s.stream(ctx, w, item, out, r)
		return
	}
	s.whole(ctx, w, item, out, r)
}

func (s *Server) whole(ctx context.Context, w http.ResponseWriter, item *scripted.Item, out *rendered, r *rand.Rand) {
	f := item.Fail
	switch {
	case item.Malformed && s.wire == OpenAIChat:
		s.toolUseFailed(w)
		return
	case f != nil && f.ErrorEvent != "":
		// A whole response has no place for an error event: the same error comes as a status.
		s.failure(w, r, statusOf(f.ErrorEvent), 0, f.Message)
		return
	case f != nil && f.Timeout:
		s.silence(ctx)
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentJSON(s.wire))
	switch {
	case f == nil:
		w.Header().Set("Content-Length", strconv.Itoa(len(out.whole)))
		w.Write(out.whole)
	case f.CutAfter != nil:
		w.Header().Set("Content-Length", strconv.Itoa(len(out.whole)))
		w.Write(out.whole[:len(out.whole)*2/3])
		flush(w)
		panic(http.ErrAbortHandler)
	default: // no end: the body is over before its JSON is
		w.Write(out.whole[:len(out.whole)*2/3])
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// stream sends the frames, as far as the item lets them come.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, item *scripted.Item, out *rendered, r *rand.Rand) {
	f := item.Fail
	empty := item.Thinking == "" && item.Text == "" && len(item.Calls) == 0
	if f != nil && f.Timeout && empty && r.IntN(2) == 0 { // no headers either
		s.silence(ctx)
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentSSE(s.wire))
	w.Header().Set("Cache-Control", "no-cache")
	frames, broken := out.frames, false
	switch {
	case f == nil:
	case f.CutAfter != nil:
		frames, broken = untilDelta(frames, *f.CutAfter), true
	case f.ErrorEvent != "":
		frames = append(withoutEnd(frames), frame{data: s.errorEvent(f.ErrorEvent, f.Message, len(frames))})
	default:
		frames = withoutEnd(frames)
	}
	s.send(w, frames, r)
	if f != nil && f.Timeout {
		s.silence(ctx)
		broken = true
	}
	if broken {
		panic(http.ErrAbortHandler)
	}
}

func contentSSE(wire string) string {
	if wire == Gemini {
		return "text/event-stream"
	}
	return "text/event-stream; charset=utf-8"
}

// send writes the frames, each by itself or all of them cut at changing places.
func (s *Server) send(w http.ResponseWriter, frames []frame, r *rand.Rand) {
	w.WriteHeader(http.StatusOK)
	flush(w)
	if !s.opts.Cut {
		for _, f := range frames {
			w.Write(f.data)
			flush(w)
		}
		return
	}
	var all []byte
	for _, f := range frames {
		all = append(all, f.data...)
	}
	most := 1 + r.IntN(200)
	for len(all) > 0 {
		n := min(1+r.IntN(most), len(all))
		if i := insideCharacter(all[:n]); i > 0 && r.IntN(2) == 0 { // as often as there is a chance
			n = i
		}
		w.Write(all[:n])
		flush(w)
		all = all[n:]
	}
}

// insideCharacter is a place in b inside of its last character that has more than one byte, 0 if there is none.
func insideCharacter(b []byte) int {
	for i := len(b) - 1; i > 0; i-- {
		if b[i]&0xC0 == 0x80 {
			return i
		}
	}
	return 0
}

func untilDelta(frames []frame, n int) []frame {
	for i, f := range frames {
		if f.kind == ending || f.kind == delta && n == 0 {
			return frames[:i:i]
		}
		if f.kind == delta {
			n--
		}
	}
	return frames
}

func withoutEnd(frames []frame) []frame {
	for i, f := range frames {
		if f.kind == ending {
			return frames[:i:i]
		}
	}
	return frames
}

// waitHeader is a wait in whole seconds, rounded up: what retry-after can say.
func waitHeader(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func requestID(r *rand.Rand, wire string) string {
	if wire == Anthropic {
		return makeID(r, "req_011C", 20)
	}
	return fmt.Sprintf("req_%016x%016x", r.Uint64(), r.Uint64())
}
