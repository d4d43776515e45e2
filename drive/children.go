package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// beginChild puts the start of a child on record, with its grant, and drives it after the commit.
func (d *driver) beginChild(ctx context.Context, c loop.Command) (again bool, err error) {
	call, _ := d.state.Call(c.Call)
	args, err := d.args(c.Call)
	if err != nil {
		return false, err
	}
	if body := d.recheck(ctx, call, args); body != nil {
		return true, d.step(body)
	}
	b := d.c.tools[call.Tool]
	started := loop.ChildStarted{Call: c.Call, Run: d.h.opts.NewID(), Agent: b.child.Agent.Name, Grant: d.state.GrantFor(c.Index, d.now())}
	if err := d.step(started); err != nil {
		return false, err
	}
	return true, d.driveChild(ctx, c)
}

// driveChild drives the child of a call as work of this driver, from its beginning or from where it stood.
func (d *driver) driveChild(ctx context.Context, c loop.Command) error {
	call, _ := d.state.Call(c.Call)
	b := d.c.tools[call.Tool]
	if b == nil || b.child == nil {
		return fmt.Errorf("drive: run %s: %w: call %s runs as a child of a tool that the agent no longer has", d.lease.Run, ErrChanged, c.Call)
	}
	args, err := d.args(c.Call)
	if err != nil {
		return err
	}
	var grant loop.Limits
	for _, g := range d.state.Ledger.Grants {
		if g.Call == c.Call {
			grant = g.Limits
		}
	}
	root, path := d.lease.Run, []string(nil)
	if p := d.state.Config.Parent; p != nil {
		root, path = p.Root, p.Path
	}
	path = append(path[:len(path):len(path)], d.state.Config.Agent+"/"+c.Call)
	limit, follow := b.cap(d), d.state.Config.ToolSpec(ReadArtifact) != nil
	parent := &loop.ParentStart{Run: d.lease.Run, Root: root, Call: c.Call, Path: path, Grant: grant}
	d.under(ctx, c, func(ctx context.Context, w *work) {
		d.post(d.runChild(ctx, w, b.child, call.Child, args, parent, limit, follow))
	})
	return nil
}

// runChild drives the child until it stops; while it only waits it says so, so that this run can be let go.
func (d *driver) runChild(ctx context.Context, w *work, child *Child, run string, args []byte, parent *loop.ParentStart, limit int, follow bool) answer {
	a := answer{id: w.cmd.ID}
	inner, letGo := context.WithCancelCause(context.WithoutCancel(ctx))
	defer letGo(nil)
	leaves := context.AfterFunc(ctx, func() {
		var ab abortError
		if !errors.As(context.Cause(ctx), &ab) {
			letGo(errLetGo)
		}
	})
	defer leaves()
	release, err := d.h.claim(inner, run) // before it is opened: a driver of an earlier parent may still be leaving
	if err != nil {
		a.err = errLetGo
		return a
	}
	defer release()
	cd, err := d.h.openChild(context.WithoutCancel(ctx), child, run, args, parent) // a child that is to end must be open to hear of it
	if err != nil {
		var stored *journal.Error
		if errors.Is(err, ErrKilled) || errors.As(err, &stored) {
			a.err = err
			return a
		}
		a.body = loop.ChildStopped{Call: w.cmd.Call, Run: run, Stop: loop.StopFailed, Error: true, Text: "Error: the agent could not start: " + err.Error()}
		return a
	}
	if cd.state.Phase != loop.PhaseStopped {
		cd.waits = func(waiting bool) {
			if w.waiting.Swap(waiting) != waiting && waiting {
				d.post(answer{id: "note", again: true})
			}
		}
		cd.rest.enteredBy(ctx)
		w.driver.Store(cd)
		stop := context.AfterFunc(ctx, func() {
			var ab abortError
			if errors.As(context.Cause(ctx), &ab) {
				_ = d.h.Cancel(context.Background(), run, "parent", ab.cause)
				cd.rest.hears()
				cd.post(answer{id: "note", again: true})
			}
		})
		defer stop()
		if err := cd.run(inner); err != nil {
			a.err = err
			return a
		}
	}
	if cd.state.Stop == nil {
		a.err = errLetGo
		return a
	}
	f, err := d.h.folded(context.Background(), run)
	if err != nil {
		a.err = err
		return a
	}
	a.body, a.artifacts = childStopped(w.cmd.Call, run, f, limit, follow)
	return a
}

// childStopped is the typed result of a child for its parent.
func childStopped(call, run string, f *folded, limit int, follow bool) (loop.ChildStopped, []journal.Artifact) {
	st := f.state.Stop
	b := loop.ChildStopped{Call: call, Run: run, Stop: st.Stop, Limit: st.Limit, Error: st.Stop != loop.StopCompleted, Text: f.answer,
		Counts: f.state.Ledger.Total(), Cost: f.state.Ledger.TotalCost(), Active: f.state.Ledger.Active}
	b.Counts.Rounds = 0
	for name, fact := range f.state.Facts {
		if b.Facts == nil {
			b.Facts = map[string]loop.Value{}
		}
		b.Facts[name] = fact.Value
	}
	if !b.Error {
		var artifacts []journal.Artifact
		b.Text, b.Ref, artifacts = cutText(f.answer, limit, follow)
		return b, artifacts
	}
	text := "Error: the agent " + f.state.Config.Agent + " stopped: " + string(st.Stop)
	if st.Limit != "" {
		text += " (" + st.Limit + ")"
	}
	if st.Message != "" {
		text += ": " + st.Message
	}
	if f.answer != "" {
		text += ". What it said: " + f.answer
	}
	var artifacts []journal.Artifact
	b.Text, b.Ref, artifacts = cutText(text, limit, follow)
	return b, artifacts
}

// openChild finds the child's journal, or begins it.
func (h *Host) openChild(ctx context.Context, child *Child, run string, args []byte, parent *loop.ParentStart) (*driver, error) {
	h.Register(child.Agent)
	d, err := h.open(ctx, run)
	if !errors.Is(err, journal.ErrNotFound) {
		return d, err
	}
	c, err := h.compile(child.Agent)
	if err != nil {
		return nil, err
	}
	if err := h.storeDefinition(ctx, c); err != nil {
		return nil, err
	}
	cfg := c.config
	cfg.Parent = parent
	if r := parent.Grant.Rounds; r != nil && (cfg.Limits.Rounds == nil || *r < *cfg.Limits.Rounds) {
		cfg.Limits.Rounds = r // rounds are a run's own: the parent can only set how many
	}
	d, err = h.newRun(ctx, c, loop.RunStarted{Run: run, Config: &cfg, Input: Text(task(args)), By: parent.Run}, parent.Run, parent.Root)
	if err != nil {
		return nil, err
	}
	return d, d.commit(ctx)
}

// task is the child's input: the text of its one argument, or all arguments as JSON.
func task(args []byte) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) == nil && len(m) == 1 {
		for _, v := range m {
			var s string
			if json.Unmarshal(v, &s) == nil && s != "" {
				return s
			}
		}
	}
	return string(args)
}
