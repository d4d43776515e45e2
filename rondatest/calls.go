package rondatest

import (
	"context"
	"encoding/json"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

// decision is what a person says of a call.
func (a act) decision() drive.Decision {
	dec := drive.Decision{Decision: a.kind, By: a.by, Message: a.message}
	switch a.kind {
	case loop.Edit:
		dec.Args = a.args.JSON()
	case "always":
		dec.Decision = loop.Approve
		dec.Always = &drive.Scope{Args: map[string]string{}}
		if a.args != nil {
			for _, f := range a.args.Fields {
				dec.Always.Args[f.Name] = returned(f.Value)
			}
		}
	}
	return dec
}

// find picks the call that an act is about: the first that waits for it and fits, else one of that description that does not wait any
// more, else the description itself, so that the answer is the host's.
func (w *world) find(a act, kind string) (string, error) {
	r, err := w.show()
	if err != nil || r == nil {
		return "", err
	}
	for _, p := range r.Pending {
		if p.Kind == kind && a.fits(p.Call, p.Wire, p.Tool, p.Args) {
			return p.Call, nil
		}
	}
	found := ""
	calls, err := w.calls(r.ID, "")
	if err != nil {
		return "", err
	}
	for _, c := range calls {
		if a.fits(c.id, c.wire, c.tool, json.RawMessage(c.args)) {
			found = c.id
		}
	}
	switch {
	case found != "":
		return found, nil
	case a.id != "":
		return a.id, nil
	case a.call != "":
		return a.call, nil
	}
	return "(no call has these arguments)", nil
}

func (a act) fits(id, wire, tool string, args json.RawMessage) bool {
	switch {
	case a.id != "" && a.id != id && a.id != wire, a.call != "" && a.call != tool:
		return false
	case a.args == nil || a.kind == "edit":
		return true
	case a.kind == "always":
		have := members(args)
		for _, f := range a.args.Fields {
			if !loop.Match(returned(f.Value), plainValue(have[f.Name])) {
				return false
			}
		}
		return true
	}
	return containsArgs(args, a.args)
}

// known1 is a call as the journals tell of it.
type known1 struct{ id, wire, tool, args string }

// calls lists all calls of a run and its children, by the ids that a person uses.
func (w *world) calls(run, prefix string) (out []known1, err error) {
	type childOf struct{ call, run string }
	var children []childOf
	err = w.events(run, func(ev loop.Event) error {
		switch b := ev.Body.(type) {
		case loop.ModelReplied:
			n := 0
			for _, bl := range b.Blocks {
				if bl.Kind == loop.BlockCall {
					out = append(out, known1{prefix + loop.CallID(b.Call, n), bl.ID, bl.Name, bl.Args})
					n++
				}
			}
		case loop.ChildStarted:
			children = append(children, childOf{b.Call, b.Run})
		}
		return nil
	})
	for _, c := range children {
		if err == nil {
			var below []known1
			below, err = w.calls(c.run, prefix+c.call+"/")
			out = append(out, below...)
		}
	}
	return out, err
}

// resolve answers an unknown outcome. Where the effect happened its facts and its result are told, as whoever looks it up would.
func (w *world) resolve(run, call string, happened bool, by, message string) error {
	e, really, toolName, err := w.truth(run, call)
	if err != nil {
		return err
	}
	var facts map[string]loop.Value
	if happened && really {
		facts = valuesOf(e.result.Facts)
		if message == "" {
			message = e.result.Text
		}
	}
	if err := w.current().host.Resolve(w.ctx, run, call, happened, by, message, facts); err != nil {
		return err
	}
	if happened && !really && w.killed {
		w.untold[toolName]++
	}
	return nil
}

// truth looks an outcome up in the log of effects.
func (w *world) truth(run, call string) (e effect, happened bool, toolName string, err error) {
	r, err := w.current().host.Show(context.Background(), run)
	if err != nil {
		return e, false, "", err
	}
	for _, p := range r.Pending {
		if p.Call != call {
			continue
		}
		st := r.State
		if p.Run != run {
			owner, err := w.current().host.Show(context.Background(), p.Run)
			if err != nil {
				return e, false, "", err
			}
			st = owner.State
		}
		for i, c := range st.Turn.Calls {
			if c.ID == lastPart(call) {
				e, happened = w.sim.find(st.IdempotencyKey(i))
				return e, happened, p.Tool, nil
			}
		}
	}
	return e, false, "", nil
}

// settle answers the unknown outcomes that only the death of the process brought about: by the scenario's own resolve act for the
// tool if it has one, else by the truth.
func (w *world) settle(expected waits) error {
	for w.killed {
		r, err := w.show()
		if err != nil || r == nil {
			return err
		}
		n := 0
		for _, p := range r.Pending {
			if p.Kind != loop.WaitResolution || expected[p.Call] == loop.WaitResolution {
				continue
			}
			_, happened, toolName, err := w.truth(r.ID, p.Call)
			if err != nil {
				return err
			}
			for _, a := range w.s.acts {
				if a.kind == "resolve" && a.fits(p.Call, p.Wire, p.Tool, p.Args) {
					happened = a.happened
				}
			}
			if err := w.resolve(r.ID, p.Call, happened, "somebody", ""); err != nil {
				return err
			}
			w.resolved = true
			if !happened {
				w.untold[toolName]++
				w.diverged = true
			}
			n++
		}
		if n == 0 {
			return nil
		}
		if err := w.goOn(r.ID); err != nil {
			return err
		}
	}
	return nil
}
