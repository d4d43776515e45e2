package foreign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// say is one thing of a source, in its order.
type say struct {
	at     loop.Micros // 0: the source does not say
	began  loop.Micros // reply: when the call began; 0: after what came before
	user   string
	reply  *reply
	result *result
}

// reply is one response of a model. Replies that follow one another without anything between are one.
type reply struct {
	blocks []loop.Block
	ids    []string // of the calls, in order
	usage  *loop.Usage
	model  string
	id     string
	finish loop.Finish
	tape   []recording.TapePiece
	failed string // the attempt failed
}

// result is what a call gave.
type result struct {
	call string // the source's id
	text string
	fail bool
}

// source is what a reader found.
type source struct {
	name    string
	version string
	run     string
	session string
	agent   string
	model   string
	wire    string
	says    []say
	notes   []string
	pace    recording.Pace
	stopped string // a failure that ended it
	split   bool   // a response may stand in several messages
}

// maker folds what a source says into events.
type maker struct {
	src    *source
	st     loop.State
	events []loop.Event
	now    loop.Micros
	tapes  map[string][]byte
	known  map[string]string // the source's id of a call of the turn: the loop's
	added  int               // hand-backs that the source does not have
	lost   int
}

// build makes a recording.
func (s *source) build() (*recording.Recording, error) {
	s.merge()
	s.times()
	first := -1
	for i, x := range s.says {
		if x.user != "" && first < 0 {
			first = i
		}
		if x.reply != nil && first < 0 {
			break
		}
	}
	input := "(the source does not say what was asked)"
	says := s.says
	if first >= 0 {
		input, says = s.says[first].user, slices.Delete(slices.Clone(s.says), first, first+1)
	}
	if len(s.says) == 0 {
		return nil, fmt.Errorf("foreign: %s: there is no message in it", s.name)
	}
	if s.run == "" {
		s.run = "run_" + loop.Fingerprint([]byte(s.name), []byte(input), fmt.Append(nil, s.says[0].at))[:16]
	}
	m := &maker{src: s, now: s.says[0].at, tapes: map[string][]byte{}}
	cfg := &loop.Config{Agent: s.agent, Model: s.wire + "/" + s.model, Nudges: 1 << 20, Repairs: 1 << 20, Parallel: "read", Tools: s.tools()}
	if err := m.add(loop.RunStarted{Run: s.run, Config: cfg, Input: text(input), By: "import"}); err != nil {
		return nil, err
	}
	for i := range says {
		if err := m.say(&says[i]); err != nil {
			return nil, fmt.Errorf("foreign: %s: message %d: %w", s.name, i+1, err)
		}
	}
	m.end()
	if m.added > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d hand-backs were added (by import): the source goes on without one", m.added))
	}
	if m.lost > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d calls have no result in the source", m.lost))
	}
	return m.recording(input), nil
}

func (m *maker) recording(input string) *recording.Recording {
	s := m.src
	line, _, _ := strings.Cut(strings.TrimSpace(input), "\n")
	if r := []rune(line); len(r) > 120 {
		line = string(r[:120]) + "…"
	}
	return &recording.Recording{
		Header: recording.Header{Run: s.run, Session: s.session, Agent: s.agent, Models: []string{s.wire + "/" + s.model}, Title: line, Started: m.events[0].Time,
			Capture: recording.Full, Source: recording.Source{Name: s.name, Version: s.version, Notes: s.notes}, Pace: s.pace},
		Runs:      []recording.Run{{RunInfo: recording.RunInfo{Run: s.run, Agent: s.agent}, Events: m.events, Tapes: m.tapes}},
		Artifacts: map[string]recording.Artifact{},
	}
}

// tools lists the tools that were called. What they do to the world is not known to the importer and does not matter: nothing runs again.
func (s *source) tools() []loop.ToolSpec {
	var out []loop.ToolSpec
	seen := map[string]bool{}
	for _, x := range s.says {
		if x.reply == nil {
			continue
		}
		for _, b := range x.reply.blocks {
			if b.Kind == loop.BlockCall && !seen[b.Name] {
				seen[b.Name] = true
				out = append(out, loop.ToolSpec{Name: b.Name, Effect: loop.Read})
			}
		}
	}
	return out
}

// merge joins replies that follow one another, and drops what is empty.
func (s *source) merge() {
	if s.agent == "" {
		s.agent = s.name
	}
	if s.model == "" {
		s.model = "unknown"
	}
	var out []say
	for _, x := range s.says {
		if x.user == "" && x.reply == nil && x.result == nil {
			continue
		}
		if n := len(out); s.split && x.reply != nil && n > 0 && out[n-1].reply != nil && out[n-1].reply.failed == "" && x.reply.failed == "" {
			was := *out[n-1].reply
			for i := range x.reply.tape {
				x.reply.tape[i].Block += len(was.blocks)
			}
			was.blocks = append(slices.Clip(was.blocks), x.reply.blocks...)
			was.ids = append(slices.Clip(was.ids), x.reply.ids...)
			was.tape = append(slices.Clip(was.tape), x.reply.tape...)
			if u := x.reply.usage; u != nil {
				sum := *u
				if was.usage != nil {
					sum = sum.Add(*was.usage)
				}
				was.usage = &sum
			}
			out[n-1].reply = &was
			out[n-1].at = max(out[n-1].at, x.at)
			continue
		}
		out = append(out, x)
	}
	s.says = out
}

// synthetic is the time that a message without one takes: a beat, and what reading it takes.
func (x *say) synthetic() loop.Micros {
	n := len(x.user)
	if x.reply != nil {
		for _, b := range x.reply.blocks {
			n += len(b.Text) + len(b.Args)
		}
	}
	if x.result != nil {
		n = min(len(x.result.text), 400)
	}
	return 300*loop.Millisecond + min(loop.Micros(n)*4*loop.Millisecond, 20*loop.Second)
}

// times fills in times that the source does not have; they never go back.
func (s *source) times() {
	known := 0
	for _, x := range s.says {
		if x.at > 0 {
			known++
		}
	}
	if known < len(s.says) && known > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d of %d messages have no time of their own", len(s.says)-known, len(s.says)))
	}
	if known == 0 {
		s.pace = recording.PaceSynthetic
	}
	last := loop.Micros(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	for i := range s.says {
		x := &s.says[i]
		switch {
		case x.at == 0 && i == 0 && known > 0:
			for _, y := range s.says {
				if y.at > 0 {
					x.at = y.at
					break
				}
			}
		case x.at == 0 && known > 0:
			x.at = last
		case x.at == 0:
			x.at = last + x.synthetic()
		}
		if i > 0 {
			x.at = max(x.at, last)
		}
		last = x.at
	}
}
