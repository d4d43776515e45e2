package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// importSpace holds, by run, the header of the recording that the run came from.
const importSpace = "imported"

// Imported is what Import did.
type Imported struct {
	Run     string
	Known   bool  // the store has the very same run already: nothing was done
	Settled int64 // events that were added because the recording was of a run that had not ended
}

// Import stores a recording: each of its runs becomes a run that has stopped, whose journal is what was recorded, byte for byte where the
// recording was not redacted. A run that had not ended is ended with a cancellation, on record: two stores must not go on with the same run.
// as, where set, is the new id of the first run (children get ids after it).
func (h *Host) Import(ctx context.Context, rec *recording.Recording, as, by string) (Imported, error) {
	out := Imported{Run: rec.Header.Run}
	what := "import run " + rec.Header.Run
	if rec.Header.Capture == recording.Metadata {
		return out, inputError(what, ErrInvalid, "the recording holds metadata only, which no journal can be made of; replay, explain and diff work on the file")
	}
	if as != "" && as != rec.Header.Run {
		rec = rec.Renamed(as)
		out.Run = as
	}
	for i := range rec.Runs {
		run := &rec.Runs[i]
		st, err := run.Fold()
		if err != nil {
			return out, inputError(what, ErrInvalid, "its events do not fold: "+err.Error())
		}
		if st.Phase == loop.PhaseStopped || st.Phase == loop.PhaseNew {
			continue
		}
		rec = rec.With(i, recording.Settle(st, st.Time, by, "imported: the recording ends here"))
		if i == 0 {
			out.Settled = int64(len(rec.Runs[0].Events) - len(run.Events))
		}
	}
	if known, err := h.knows(ctx, rec, what); known || err != nil {
		out.Known = known
		return out, err
	}
	var arts []journal.Artifact
	for _, ref := range sortedKeys(rec.Artifacts) {
		a := rec.Artifacts[ref]
		arts = append(arts, journal.Artifact{Ref: ref, MIME: a.MIME, Data: a.Data})
	}
	if err := h.store.PutArtifacts(ctx, arts); err != nil {
		return out, err
	}
	head := rec.Header
	head.Run = out.Run
	doc, err := json.Marshal(head)
	if err != nil {
		return out, err
	}
	for i := len(rec.Runs) - 1; i >= 0; i-- { // children first: a run that is there has its children
		if err := h.importRun(ctx, rec, i); err != nil {
			return out, err
		}
		if err := h.store.PutDoc(ctx, importSpace, rec.Runs[i].Run, doc); err != nil {
			return out, err
		}
	}
	return out, nil
}

// knows says whether the store has the first run with the same journal; one with another journal is a conflict.
func (h *Host) knows(ctx context.Context, rec *recording.Recording, what string) (bool, error) {
	row, err := h.store.Get(ctx, rec.Root().Run)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	digest := ""
	for _, ev := range rec.Root().Events {
		data, err := loop.Encode(ev)
		if err != nil {
			return false, err
		}
		digest = Chain(digest, data)
	}
	if digest == row.Digest {
		return true, nil
	}
	return false, inputError(what, ErrConflict, "the store has a run of this id whose journal is another one. Give the import another id (--as)")
}

// importRun stores one run of a recording.
func (h *Host) importRun(ctx context.Context, rec *recording.Recording, i int) error {
	run := &rec.Runs[i]
	if len(run.Events) == 0 {
		return nil
	}
	st, err := run.Fold()
	if err != nil {
		return err
	}
	started, ok := run.Events[0].Body.(loop.RunStarted)
	if !ok {
		return fmt.Errorf("drive: import run %s: it does not begin with RunStarted", run.Run)
	}
	d := h.newDriver(nil)
	d.lease = journal.Lease{Run: run.Run, Owner: h.owner, Epoch: 1}
	d.row = journal.Run{ID: run.Run, Session: run.Run, Root: rec.Root().Run, Parent: run.Parent, Agent: started.Config.Agent, Model: started.Config.Model,
		Created: run.Events[0].Time, Title: title(started.Input)}
	if i == 0 {
		d.row.Parent = ""
	} else {
		d.row.Session = ""
	}
	d.state, d.batch = st, run.Events
	for id, data := range run.Tapes {
		d.tapes = append(d.tapes, journal.Tape{Run: run.Run, ID: id, Data: data})
	}
	b, err := d.encode()
	if err != nil {
		return err
	}
	lease, err := h.store.Create(ctx, b)
	if err != nil {
		return err
	}
	return h.store.Release(ctx, lease)
}

// imported puts what is known of where an imported run came from into its header.
func (h *Host) imported(ctx context.Context, run string, head *recording.Header) error {
	doc, err := h.store.Doc(ctx, importSpace, run)
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var was recording.Header
	if err := json.Unmarshal(doc, &was); err != nil {
		return fmt.Errorf("drive: run %s: what is known of its import cannot be read: %w", run, err)
	}
	head.Source, head.Pace, head.Capture, head.Redaction = was.Source, was.Pace, was.Capture, was.Redaction
	return nil
}
