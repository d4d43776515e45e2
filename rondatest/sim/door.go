package sim

import (
	"context"
	"fmt"
	"sync"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// door is the way of one process to the store. It watches what passes, and lets nothing pass once the process is dead.
type door struct {
	journal.Store
	w *world

	mu   sync.Mutex
	gone bool
	live map[string]string // the drivers' states before the append, by run
	end  chan struct{}
}

func newDoor(w *world) *door {
	return &door{Store: w.store, w: w, live: map[string]string{}, end: make(chan struct{})}
}

func (d *door) dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.gone {
		d.gone = true
		close(d.end)
	}
}

// hook counts the moments at which a process can die, and dies at the chosen ones.
func (d *door) hook(p drive.Point) error {
	if d.dead() {
		return drive.ErrKilled
	}
	d.w.mu.Lock()
	n := d.w.points
	d.w.points++
	die := false
	for _, c := range d.w.crash {
		die = die || c == n
	}
	d.w.mu.Unlock()
	if p.Name == "append" && p.State != nil {
		d.note(p.Run, *p.State)
	}
	if !die {
		return nil
	}
	d.shut()
	return drive.ErrKilled
}

func (d *door) note(run string, st loop.State) {
	if d.w.plant.live != nil {
		d.w.plant.live(&st)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[run] = asJSON(st)
}

func (d *door) liveState(run string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[run]
}

func (d *door) Create(ctx context.Context, b journal.Batch) (journal.Lease, error) {
	if d.dead() {
		return journal.Lease{}, drive.ErrKilled
	}
	l, err := d.Store.Create(ctx, b)
	if err == nil {
		d.w.written(d, b)
	}
	return l, err
}

func (d *door) Append(ctx context.Context, b journal.Batch) (int, error) {
	if d.dead() {
		return 0, drive.ErrKilled
	}
	n, err := d.Store.Append(ctx, b)
	if err == nil {
		d.w.written(d, b)
	}
	return n, err
}

func (d *door) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	if d.dead() {
		return journal.Lease{}, drive.ErrKilled
	}
	return d.Store.Acquire(ctx, run, owner)
}

func (d *door) Release(ctx context.Context, l journal.Lease) error {
	if d.dead() {
		return nil // a dead process releases nothing
	}
	return d.Store.Release(ctx, l)
}

func (d *door) Put(ctx context.Context, in journal.Input) (journal.Input, bool, error) {
	if d.dead() {
		return journal.Input{}, false, drive.ErrKilled
	}
	return d.Store.Put(ctx, in)
}

func (d *door) String() string { return fmt.Sprintf("door of %d", d.w.seed) }
