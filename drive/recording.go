package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// Recording reads a run out of the store, with the runs of its children, its tapes and the artifacts that its events name. A run that is
// still running is recorded as far as it is.
func (h *Host) Recording(ctx context.Context, run string) (*recording.Recording, error) {
	row, err := h.store.Get(ctx, run)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, inputError("record run "+run, ErrNotFound, "there is no such run; ronda runs lists them")
	}
	if err != nil {
		return nil, err
	}
	rec := &recording.Recording{Artifacts: map[string]recording.Artifact{}}
	refs := map[string]bool{}
	if err := h.recordRun(ctx, rec, recording.RunInfo{Run: row.ID, Parent: row.Parent, Agent: row.Agent}, refs); err != nil {
		return nil, err
	}
	root := rec.Root()
	if len(root.Events) == 0 {
		return nil, fmt.Errorf("drive: record run %s: its journal is empty", run)
	}
	rec.Header = recording.Header{Run: row.ID, Session: row.Session, Parent: row.Parent, Agent: row.Agent, Title: row.Title, Capture: recording.Full,
		Started: root.Events[0].Time, Source: recording.Source{Name: "ronda"}, Pace: recording.PaceReal, Models: models(rec)}
	if b, ok := root.Events[0].Body.(loop.RunStarted); ok {
		rec.Header.Limits = b.Config.Limits
	}
	if err := h.imported(ctx, run, &rec.Header); err != nil {
		return nil, err
	}
	for _, ref := range sortedKeys(refs) {
		a, err := h.store.Artifact(ctx, ref)
		if errors.Is(err, journal.ErrNotFound) {
			continue // readers show that it is missing
		}
		if err != nil {
			return nil, err
		}
		rec.Artifacts[ref] = recording.Artifact{Ref: ref, MIME: a.MIME, Data: a.Data}
	}
	return rec, nil
}

// recordRun adds a run and its children to a recording, and the references that its events make.
func (h *Host) recordRun(ctx context.Context, rec *recording.Recording, info recording.RunInfo, refs map[string]bool) error {
	r := recording.Run{RunInfo: info, Tapes: map[string][]byte{}}
	var children []recording.RunInfo
	err := h.read(ctx, info.Run, func(ev loop.Event) error {
		r.Events = append(r.Events, ev)
		switch b := ev.Body.(type) {
		case loop.RunStarted:
			refs[b.Config.Digest] = true
			mediaRefs(b.Input, refs)
		case loop.RunResumed:
			refs[b.Digest] = true
		case loop.ModelReplied:
			mediaRefs(b.Blocks, refs)
		case loop.ToolReturned:
			refs[b.Ref] = true
			mediaRefs(b.More, refs)
		case loop.MessageTaken:
			mediaRefs(b.Blocks, refs)
		case loop.ChildStarted:
			children = append(children, recording.RunInfo{Run: b.Run, Parent: info.Run, Call: b.Call, Agent: b.Agent})
		case loop.ChildStopped:
			refs[b.Ref] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	delete(refs, "")
	tapes, err := h.store.Tapes(ctx, info.Run)
	if err != nil {
		return err
	}
	for _, t := range tapes {
		r.Tapes[t.ID] = t.Data
	}
	rec.Runs = append(rec.Runs, r)
	for _, c := range children {
		err := h.recordRun(ctx, rec, c, refs)
		if err != nil && !errors.Is(err, journal.ErrNotFound) { // a child that had not begun when its parent's driver died
			return err
		}
	}
	return nil
}

func mediaRefs(blocks []loop.Block, refs map[string]bool) {
	for _, b := range blocks {
		if b.Media != nil && strings.HasPrefix(b.Media.Ref, "sha256:") {
			refs[b.Media.Ref] = true
		}
		mediaRefs(b.More, refs)
	}
}

// models lists the models that answered, in order.
func models(rec *recording.Recording) []string {
	var out []string
	add := func(m string) {
		if m != "" && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	for _, r := range rec.Runs {
		for _, ev := range r.Events {
			switch b := ev.Body.(type) {
			case loop.RunStarted:
				add(b.Config.Model)
			case loop.ModelCallStarted:
				add(b.Model)
			}
		}
	}
	return out
}
