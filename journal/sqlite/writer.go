package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ronda-go/ronda/journal"
)

// writer is the one goroutine that changes the file. It takes all requests that wait, performs them in one transaction, and
// answers them when it is durable, so that hundreds of runs share one sync. A request that its data forbids has changed
// nothing when it says so, and does not disturb the others.
type writer struct {
	*conn
	store *Store
	queue chan *request
	ended chan struct{}

	heads   map[string]*head
	version int64 // PRAGMA data_version when heads were read: it changes when another connection writes
}

// request is one change. do checks everything before it changes anything; an error that is no dbError means that it changed
// nothing.
type request struct {
	do     func(w *writer) error // nil: only look whether another process wrote
	answer chan error
	state  atomic.Int32
	err    error
}

// States of a request: whoever moves it from waiting decides.
const (
	waiting int32 = iota
	taken         // by the writer, in a transaction: the answer comes
	left          // by the caller, whose ctx ended: it will not be done
)

// maxGroup bounds how long the first of a group waits for the last.
const maxGroup = 1024

// busyFor is how long the writer waits for other processes.
const busyFor = 30 * time.Second

// change performs do in a transaction. When ctx ends before the writer takes it, nothing of it is done; after that it is done
// whatever ctx says, so that the answer is never in doubt.
func (s *Store) change(ctx context.Context, do func(w *writer) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if s.w == nil {
		return journal.ErrReadOnly
	}
	r := &request{do: do, answer: make(chan error, 1)}
	s.closing.RLock()
	if s.closed {
		s.closing.RUnlock()
		return journal.ErrClosed
	}
	select {
	case s.w.queue <- r:
		s.closing.RUnlock()
	case <-ctx.Done():
		s.closing.RUnlock()
		return ctx.Err()
	}
	if ctx.Done() == nil {
		return <-r.answer
	}
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, left) {
			return ctx.Err()
		}
		return <-r.answer
	}
}

// run serves the queue until it is closed.
func (w *writer) run() {
	defer close(w.ended)
	group := make([]*request, 0, maxGroup)
	for r := range w.queue {
		group = w.gather(append(group[:0], r))
		w.serve(group)
		clear(group)
	}
}

// gather takes what waits. First it lets the others go on, again and again as long as that brings something: those who were
// answered just now come with their next request, and a transaction costs much the same for ten as for two hundred.
func (w *writer) gather(group []*request) []*request {
	for before := 0; before < len(group); {
		before = len(group)
		runtime.Gosched()
		for n := len(w.queue); n > 0 && len(group) < maxGroup; n-- {
			r, ok := <-w.queue
			if !ok {
				return group
			}
			group = append(group, r)
		}
	}
	return group
}

func (w *writer) serve(group []*request) {
	changes := group[:0]
	for _, r := range group {
		if r.do == nil {
			r.answer <- w.look()
		} else {
			changes = append(changes, r)
		}
	}
	if len(changes) == 0 {
		return
	}
	err := w.begin()
	// Until here, while other processes may have had the file, a caller could leave.
	changes = slices.DeleteFunc(changes, func(r *request) bool { return !r.state.CompareAndSwap(waiting, taken) })
	if err == nil {
		err = w.perform(changes)
	}
	if err != nil && len(changes) > 1 && !isBusy(err) {
		// Something about the file, not about one of them: a disk that is nearly full takes some of them still.
		for i := range changes {
			err := w.begin()
			if err == nil {
				err = w.perform(changes[i : i+1])
			}
			answer(changes[i:i+1], err)
		}
		return
	}
	answer(changes, err)
}

// answer tells each request how it went: by its own error, or by that of the transaction.
func answer(rs []*request, err error) {
	for _, r := range rs {
		if err != nil {
			r.err = err
		}
		r.answer <- r.err
	}
}

// perform performs requests in the transaction that was begun, and leaves each one's own error in it. Its error is that of the
// transaction: then nothing of any of them is there.
func (w *writer) perform(rs []*request) error {
	for _, r := range rs {
		r.err = r.do(w)
		var db *dbError
		if errors.As(r.err, &db) {
			return w.rollback(r.err)
		}
	}
	if _, err := w.exec("COMMIT"); err != nil {
		return w.rollback(err)
	}
	return nil
}

// begin takes the lock of the file. Other processes hold it for moments only, so it asks often: SQLite's own waits are long
// and would starve whoever comes second.
func (w *writer) begin() error {
	var start time.Time
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 4*time.Millisecond) {
		_, err := w.exec("BEGIN IMMEDIATE")
		if err == nil {
			break
		}
		if !isBusy(err) {
			return err
		}
		if start.IsZero() {
			start = time.Now()
		} else if time.Since(start) > busyFor {
			return err
		}
		time.Sleep(wait/2 + rand.N(wait))
	}
	if err := w.look(); err != nil {
		return w.rollback(err)
	}
	return nil
}

// look finds out whether another process wrote, forgets what may have changed, and tells those who watch.
func (w *writer) look() error {
	v, _, err := w.number("PRAGMA data_version")
	if err != nil {
		return err
	}
	if v != w.version {
		w.version = v
		clear(w.heads)
		w.store.hub.All()
	}
	return nil
}

func (w *writer) rollback(cause error) error {
	clear(w.heads)
	_, _ = w.exec("ROLLBACK") // fails where SQLite rolled back by itself
	return cause
}

func isBusy(err error) bool { return resultCode(err)&0xff == sqlite3.SQLITE_BUSY }
