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
	call  string // the source's id
	text  string
	fail  bool
	began loop.Micros
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

// add folds an event at the time that was reached.
func (m *maker) add(b loop.Body) error {
	m.now = max(m.now, m.st.Time)
	ev := loop.Event{Seq: m.st.Seq + 1, Time: m.now, Body: b}
	next, err := loop.Next(m.st, ev)
	if err != nil {
		return err
	}
	m.st, m.events = next, append(m.events, ev)
	return nil
}

// owed puts on record what the loop itself owes.
func (m *maker) owed() error {
	for range 1000 {
		cmds := loop.Ready(m.st, max(m.now, m.st.Time))
		if len(cmds) == 0 || cmds[0].Kind != loop.Record || m.st.Phase == loop.PhaseEnding {
			return nil
		}
		if err := m.add(cmds[0].Body); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) say(x *say) error {
	switch {
	case x.user != "":
		m.now = max(m.now, x.at)
		if err := m.closeTurn(); err != nil {
			return err
		}
		return m.add(loop.MessageTaken{Blocks: text(x.user), By: "import"})
	case x.reply != nil:
		return m.reply(x)
	}
	return m.result(x)
}

// reply begins a model call and ends it with the response.
func (m *maker) reply(x *say) error {
	if err := m.closeTurn(); err != nil {
		return err
	}
	if m.st.Phase == loop.PhaseEnding {
		m.added++
		if err := m.add(loop.MessageTaken{Blocks: text("(the source goes on here)"), By: "import"}); err != nil {
			return err
		}
	}
	if m.st.Phase != loop.PhasePrompt {
		return fmt.Errorf("the run cannot go on here: %s", m.st)
	}
	m.now = max(m.now, x.began)
	cmds := loop.Ready(m.st, max(m.now, m.st.Time))
	if len(cmds) == 0 || cmds[0].Kind != loop.CallModel {
		return fmt.Errorf("the run cannot go on here: %s", m.st)
	}
	cmd := cmds[0]
	m.now = max(m.now, cmd.After)
	start := loop.ModelCallStarted{Call: cmd.N}
	if cmd.Attempt > 1 {
		start.Attempt = cmd.Attempt
	}
	if err := m.add(start); err != nil {
		return err
	}
	r := x.reply
	m.now = max(m.now, x.at)
	if r.failed != "" {
		if err := m.add(loop.ModelFailed{Call: cmd.N, Attempt: start.Attempt, Class: loop.ClassFatal, Message: r.failed}); err != nil {
			return err
		}
		return nil
	}
	b := loop.ModelReplied{Call: cmd.N, Blocks: r.blocks, Finish: loop.FinishStop, Usage: r.usage, ID: r.id}
	if r.finish != "" {
		b.Finish = r.finish
	}
	if len(r.ids) > 0 {
		b.Finish = loop.FinishCalls
	}
	if r.model != "" && r.model != m.src.model {
		b.Model = r.model
	}
	if b.Usage == nil {
		b.Usage = &loop.Usage{}
	}
	if len(r.tape) > 0 {
		b.Tape = fmt.Sprintf("model/%d/1", cmd.N)
		m.tapes[b.Tape] = recording.EncodeTape(r.tape)
	}
	if err := m.add(b); err != nil {
		return err
	}
	m.known = map[string]string{}
	for i, id := range r.ids {
		m.known[id] = loop.CallID(cmd.N, i)
	}
	return m.authorize(r)
}

// authorize lets every call of the turn run.
func (m *maker) authorize(r *reply) error {
	args := map[string]string{}
	n := 0
	for _, b := range r.blocks {
		if b.Kind == loop.BlockCall {
			args[loop.CallID(m.st.Model.Call, n)] = b.Args
			n++
		}
	}
	for range n + 1000 {
		if err := m.owed(); err != nil {
			return err
		}
		cmds := loop.Ready(m.st, max(m.now, m.st.Time))
		if len(cmds) == 0 || cmds[0].Kind != loop.Authorize {
			break
		}
		sum := loop.Fingerprint([]byte(args[cmds[0].Call]))
		if c, err := loop.Canonical([]byte(args[cmds[0].Call])); err == nil {
			sum = loop.Fingerprint(c)
		}
		if err := m.add(loop.CallAuthorized{Call: cmds[0].Call, Verdict: loop.Allow, Args: sum, Rule: "import"}); err != nil {
			return err
		}
	}
	for range n {
		started := false
		for _, c := range loop.Ready(m.st, max(m.now, m.st.Time)) {
			if c.Kind == loop.RunTool && !c.Started {
				if err := m.add(loop.ToolStarted{Call: c.Call}); err != nil {
					return err
				}
				started = true
				break
			}
		}
		if !started {
			break
		}
	}
	return nil
}

func (m *maker) result(x *say) error {
	id, ok := m.known[x.result.call]
	if !ok {
		return nil // of a call that is not in the source
	}
	delete(m.known, x.result.call)
	m.now = max(m.now, x.at)
	var b loop.Body = loop.ToolReturned{Call: id, Text: x.result.text}
	if x.result.fail {
		b = loop.ToolFailed{Call: id, Class: loop.ClassError, Message: x.result.text}
	}
	return m.add(b)
}

// closeTurn answers calls whose results the source does not have, and puts on record what is owed.
func (m *maker) closeTurn() error {
	for range 1000 {
		if err := m.owed(); err != nil {
			return err
		}
		open := false
		for _, c := range loop.Ready(m.st, max(m.now, m.st.Time)) {
			if c.Kind == loop.RunTool && c.Started {
				m.lost++
				open = true
				if err := m.add(loop.ToolFailed{Call: c.Call, Class: loop.ClassError, Message: "(the source has no result of this call)"}); err != nil {
					return err
				}
				break
			}
		}
		if !open {
			return nil
		}
	}
	return nil
}

// end ends the run as the source did: with the last answer, or by cancelling what is left.
func (m *maker) end() {
	if m.closeTurn() == nil && m.st.Phase == loop.PhaseEnding {
		if cmds := loop.Ready(m.st, m.st.Time); len(cmds) > 0 && cmds[0].Kind == loop.Record {
			_ = m.add(cmds[0].Body)
		}
	}
	if m.st.Phase != loop.PhaseStopped {
		why := "the source ends here"
		if m.src.stopped != "" {
			why = m.src.stopped
		}
		m.events = append(m.events, recording.Settle(m.st, m.now, "import", why)...)
	}
}
