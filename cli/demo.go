package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

// demoPace is what each delta takes in the runs that a visitor starts: about as quick as a model, so that there is something to watch.
// seedPace is that of the runs that are there from the beginning.
const (
	demoPace = 30 * time.Millisecond
	seedPace = 4 * time.Millisecond
)

// demoInputs are the runs that a demo begins with, each really driven by its script and its tools. decide answers every approval; "" leaves
// it to the visitor.
var demoInputs = []struct{ agent, input, decide string }{
	{"support", "Answer case 4815", loop.Approve},                                    // the rounds run out
	{"support", "Answer case 4816", loop.Approve},                                    // a tool fails: blocked
	{"support", "Answer case 4809", loop.Reject},                                     // a draft that must not be sent
	{"support", "Answer case 4821", loop.Approve},                                    // facts from older cases
	{"coach", "How much have I progressed in bench press this month?", loop.Approve}, // reads only
	{"coach", "Save a goal: deadlift 250 kg by Christmas.", loop.Reject},             // a write that is refused
	{"coach", "Set a squat goal for me that fits my whole year.", loop.Approve},      // more than the limit allows
	{"support", "Answer case 4806", loop.Approve},                                    // a normal case
	{"support", "Answer case 4812", ""},                                              // waits for the visitor
}

// demoStore points the store and the examples' databases to a folder that is removed when the command ends.
func (c *command) demoStore() error {
	if len(c.Builtins) == 0 {
		return usagef("--demo: this program has no examples built in")
	}
	dir, err := os.MkdirTemp("", "ronda-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	c.storeURL = filepath.Join(dir, "ronda.db")
	for _, v := range []struct{ name, file string }{{"RONDA_SUPPORT_DB", "support.db"}, {"RONDA_COACH_DB", "coach.db"}} {
		if err := os.Setenv(v.name, filepath.Join(dir, v.file)); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	if _, err := c.open(); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	c.closers = append(c.closers, func() error { return os.RemoveAll(dir) }) // behind the closing of the store
	return nil
}

// demoRuns drives the runs that a demo begins with, all at once, until each has stopped or waits for the visitor.
func (c *command) demoRuns(ctx context.Context, h *drive.Host) error {
	var wait sync.WaitGroup
	errs := make([]error, len(demoInputs))
	for i, d := range demoInputs {
		if !slices.ContainsFunc(c.Builtins, func(b Builtin) bool { return b.Name == d.agent }) {
			continue
		}
		o := origin{Agent: d.agent, Scripted: true, Input: d.input, Pace: seedPace}
		if d.decide == "" {
			o.Pace = demoPace / 3
		}
		a, err := c.make(ctx, o)
		if err != nil {
			return err
		}
		id := "run_" + uuid.Must(uuid.NewV7()).String()
		if err := c.keepOrigin(ctx, h.Store(), id, o); err != nil {
			return err
		}
		wait.Go(func() {
			errs[i] = demoRun(ctx, h, drive.Start{Agent: a, Input: drive.Text(d.input), ID: id, By: "demo"}, d.decide)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func demoRun(ctx context.Context, h *drive.Host, s drive.Start, decide string) error {
	r, err := h.Start(ctx, s)
	for err == nil && decide != "" && r.Status == loop.StatusWaiting && len(r.Pending) > 0 {
		for _, p := range r.Pending {
			dec := drive.Decision{Decision: decide, By: "demo", Digest: p.Digest}
			if decide == loop.Reject {
				dec.Message = "Not like this."
			}
			if err := h.Decide(ctx, r.ID, p.Call, dec); err != nil {
				return fmt.Errorf("demo: %s: %w", s.ID, err)
			}
		}
		r, err = h.Resume(ctx, r.ID)
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}
