package foreign

import (
	"fmt"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

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
