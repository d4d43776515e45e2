package drive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// drive runs a driver in the caller's goroutine and says what came of it.
func (h *Host) drive(ctx context.Context, d *driver) (*Run, error) {
	release, err := h.claim(ctx, d.lease.Run)
	if err != nil {
		return nil, err
	}
	err = d.run(ctx)
	release()
	if !d.created {
		return nil, h.started(err, d)
	}
	return d.view(), err
}

func (h *Host) started(err error, d *driver) error {
	if errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("drive: session %s: %w: %w. Say something to that run, or cancel it", d.row.Session, ErrBusy, err)
	}
	return err
}

// Resume takes a run over and drives it until it waits or stops: after a crash, after a decision, on any process with the same store
// and agents. A run that has stopped is returned as it is. While another living process drives it: journal.ErrHeld.
func (h *Host) Resume(ctx context.Context, run string) (*Run, error) {
	release, err := h.claim(ctx, run)
	if err != nil {
		return nil, err
	}
	defer release()
	d, err := h.open(ctx, run)
	if err != nil {
		return nil, err
	}
	if d.state.Phase == loop.PhaseStopped {
		_ = h.store.Release(ctx, d.lease)
		return d.view(), nil
	}
	err = d.run(ctx)
	return d.view(), err
}

// ResumeInBackground is Resume in a goroutine of the host.
func (h *Host) ResumeInBackground(run string) *Background {
	return h.background(run, func(ctx context.Context) error {
		_, err := h.Resume(ctx, run)
		return err
	})
}

// open takes the lease of a run and folds its journal. A run that has stopped needs no lease.
func (h *Host) open(ctx context.Context, run string) (*driver, error) {
	row, err := h.store.Get(ctx, run)
	if err != nil {
		return nil, err
	}
	agent, err := h.agentOf(ctx, row)
	if err != nil {
		if row.Status == loop.StatusStopped {
			agent, err = nil, nil
		} else {
			return nil, err
		}
	}
	d := h.newDriver(nil)
	d.created = true
	d.lease = journal.Lease{Run: run}
	if agent != nil {
		if d.c, err = h.compile(agent); err != nil {
			return nil, err
		}
	}
	if row.Status != loop.StatusStopped {
		if d.lease, err = h.store.Acquire(ctx, run, h.owner); err != nil {
			return nil, err
		}
	}
	giveUp := func(err error) (*driver, error) {
		if d.lease.Owner != "" {
			_ = h.store.Release(context.WithoutCancel(ctx), d.lease)
		}
		return nil, err
	}
	if err := d.fold(ctx); err != nil {
		return giveUp(err)
	}
	if d.state.Phase == loop.PhaseStopped {
		return d, nil
	}
	if err := d.sameAgent(); err != nil {
		return giveUp(err)
	}
	resumed := loop.RunResumed{Epoch: d.lease.Epoch}
	if d.c.ref != d.state.Config.Digest && d.c.ref != d.state.Digest || d.state.Digest != "" && d.c.ref != d.state.Digest {
		resumed.Digest = d.c.ref
		if err := h.storeDefinition(ctx, d.c); err != nil {
			return giveUp(err)
		}
	}
	if status, _ := d.state.Status(); status == loop.StatusRunning || resumed.Digest != "" {
		return d, d.step(resumed)
	}
	return d, nil
}

// fold reads the journal from its beginning.
func (d *driver) fold(ctx context.Context) error {
	row, err := d.h.store.Get(ctx, d.lease.Run)
	if err != nil {
		return err
	}
	d.row, d.state, d.known, d.previous = row, loop.State{}, evidence{}, previous{gone: d.previous.gone}
	d.memory = memory{}
	clear(d.caches)
	clear(d.refs)
	return d.h.read(ctx, d.lease.Run, func(ev loop.Event) error {
		if b, ok := ev.Body.(loop.RunStarted); ok {
			before, err := d.h.sessionMessages(ctx, b.Config)
			if err != nil {
				return err
			}
			d.talk = loop.NewTranscript(before)
		}
		next, err := loop.Next(d.state, ev)
		if err != nil {
			return fmt.Errorf("drive: run %s: its journal does not fold: %w", d.lease.Run, err)
		}
		d.adopt(ev, next)
		return nil
	})
}

// ErrChanged is wrapped where a pending call's tool is not what it was when the call was asked for. The run keeps its pause.
var ErrChanged = errors.New("the agent's definition has changed")

// sameAgent refuses to go on where a call that waits would run a tool that is not the one it was decided for; other differences go on
// record.
func (d *driver) sameAgent() error {
	if d.state.Config.Digest == d.c.ref {
		return nil
	}
	for _, c := range d.state.Turn.Calls {
		if c.Status == loop.CallSettled || c.Status == loop.CallNew || c.Tool == loop.FinishTool {
			continue
		}
		was := d.state.Config.ToolSpec(c.Tool)
		now := d.c.tools[c.Tool]
		switch {
		case was == nil:
		case now == nil:
			return fmt.Errorf("drive: run %s: %w: call %s waits for the tool %s, which the agent no longer has. Resume with the tool, or cancel the run", d.lease.Run, ErrChanged, c.ID, c.Tool)
		case was.Digest != now.digest:
			return fmt.Errorf("drive: run %s: %w: call %s waits for the tool %s, whose definition is another one now. Resume with the definition that was asked for, or reject the call", d.lease.Run, ErrChanged, c.ID, c.Tool)
		}
	}
	return nil
}

// read decodes the journal of a run.
func (h *Host) read(ctx context.Context, run string, fn func(loop.Event) error) error {
	return h.read1(ctx, run, 0, fn)
}

// read1 decodes the journal of a run after a sequence.
func (h *Host) read1(ctx context.Context, run string, after int64, fn func(loop.Event) error) error {
	return h.store.Read(ctx, run, after, func(r journal.Record) error {
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return fmt.Errorf("drive: run %s: %w", run, err)
		}
		return fn(ev)
	})
}

// stateOf folds a run without its messages.
func (h *Host) stateOf(ctx context.Context, run string) (loop.State, error) {
	var st loop.State
	err := h.read(ctx, run, func(ev loop.Event) error {
		next, err := loop.Next(st, ev)
		st = next
		return err
	})
	return st, err
}

// encode makes the batch for the store: the records, the row of the run after them, and what is stored with them.
func (d *driver) encode() (journal.Batch, error) {
	b := journal.Batch{Lease: d.lease, After: d.row.Seq, Take: d.take, NoInputs: d.noInputs, Artifacts: d.extra, Tapes: d.tapes}
	digest := d.row.Digest
	b.Records = make([]journal.Record, len(d.batch))
	for i, ev := range d.batch {
		data, err := loop.Encode(ev)
		if err != nil {
			return b, err
		}
		digest = Chain(digest, data)
		b.Records[i] = journal.Record{Seq: ev.Seq, Data: data}
	}
	row := d.row
	row.Status, row.Waiting = d.state.Status()
	if d.state.Stop != nil {
		row.Stop, row.Limit = d.state.Stop.Stop, d.state.Stop.Limit
	}
	row.Updated, row.Seq, row.Digest = d.state.Time, d.state.Seq, digest
	row.Wake = 0
	if row.Status == loop.StatusWaiting {
		row.Wake = d.state.NextWake(d.state.Time)
	}
	row.Summary = summary(d.state)
	b.Run = row
	return b, nil
}

// Chain is the rolling digest of a journal: 32 hex digits of SHA-256 over the digest before and the record.
func Chain(before string, record []byte) string {
	room := chainRoom.Get().(*[]byte)
	buf := append(append((*room)[:0], before...), record...)
	sum := sha256.Sum256(buf)
	*room = buf
	chainRoom.Put(room)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

var chainRoom = sync.Pool{New: func() any { return new([]byte) }}

// summary is what lists show of a run.
func summary(s loop.State) json.RawMessage {
	t := s.Ledger.Total()
	return fmt.Appendf(nil, `{"rounds":%d,"model_calls":%d,"tool_calls":%d,"tokens":%d,"cost":%d}`, t.Rounds, t.ModelCalls, t.ToolCalls, t.Usage.Total(), s.Ledger.TotalCost())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
