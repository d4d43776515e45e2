// Package memory is a store that lives and dies with the process. It keeps the whole contract of journal.Store but for
// durability, holds no goroutine, and costs about a microsecond for a batch: runs without a store and benchmarks use it.
package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/internal/watch"
)

const shards = 64

// Store keeps runs in shards by id, each run behind a lock of its own. Lock order: sessions, shard, run, bytes.
type Store struct {
	owner  string
	seed   maphash.Seed
	closed atomic.Bool
	serial atomic.Int64
	hub    watch.Hub
	shard  [shards]shard

	sessions struct {
		sync.Mutex
		live map[string]*run // the last root run of a session that was created alive
	}
	bytes struct {
		sync.RWMutex
		artifacts map[string]journal.Artifact
		docs      map[string]map[string][]byte
		keys      map[string]string
	}
}

type shard struct {
	sync.RWMutex
	runs map[string]*run
}

type run struct {
	sync.RWMutex
	n       int64 // of the store, in the order of creation
	row     journal.Run
	lease   journal.Lease // Owner "" when free
	records []journal.Record
	inputs  []*input // accepted, in order
	byID    map[string]*input
	byKey   map[string]*input
	tapes   []journal.Tape
}

type input struct {
	journal.Input
	taken bool
}

var _ journal.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	s := &Store{owner: fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()[:10]), seed: maphash.MakeSeed()}
	for i := range s.shard {
		s.shard[i].runs = map[string]*run{}
	}
	s.sessions.live = map[string]*run{}
	s.bytes.artifacts = map[string]journal.Artifact{}
	s.bytes.docs = map[string]map[string][]byte{}
	s.bytes.keys = map[string]string{}
	return s
}

// Owner is the same for the life of the store.
func (s *Store) Owner() string { return s.owner }

// Close makes every later call fail with journal.ErrClosed and forgets all data.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	for i := range s.shard {
		s.shard[i].Lock()
		s.shard[i].runs = nil
		s.shard[i].Unlock()
	}
	s.sessions.Lock()
	s.sessions.live = nil
	s.sessions.Unlock()
	s.bytes.Lock()
	s.bytes.artifacts, s.bytes.docs, s.bytes.keys = nil, nil, nil
	s.bytes.Unlock()
	return nil
}

// Notify is told of changes at once.
func (s *Store) Notify(run string) (<-chan struct{}, func()) { return s.hub.Subscribe(run) }

// enter says whether a call may go on.
func (s *Store) enter(ctx context.Context, op, what string) error {
	if err := ctx.Err(); err != nil {
		return failed(op, what, err, "")
	}
	if s.closed.Load() {
		return failed(op, what, journal.ErrClosed, "")
	}
	return nil
}

// find returns a run that the caller has to lock.
func (s *Store) find(ctx context.Context, op, id string) (*run, error) {
	if err := s.enter(ctx, op, id); err != nil {
		return nil, err
	}
	sh := s.shardOf(id)
	sh.RLock()
	r, gone := sh.runs[id], sh.runs == nil
	sh.RUnlock()
	switch {
	case gone:
		return nil, failed(op, id, journal.ErrClosed, "")
	case r == nil:
		return nil, failed(op, id, journal.ErrNotFound, "No run of this store has that id")
	}
	return r, nil
}

func (s *Store) shardOf(id string) *shard {
	return &s.shard[maphash.String(s.seed, id)%shards]
}

func failed(op, what string, err error, hint string) error {
	if what != "" {
		op += " " + what
	}
	return &journal.Error{Op: op, Err: err, Hint: hint}
}

// Create makes a run with its first events.
func (s *Store) Create(ctx context.Context, b journal.Batch) (journal.Lease, error) {
	const op = "create"
	id := b.Lease.Run
	if err := s.enter(ctx, op, id); err != nil {
		return journal.Lease{}, err
	}
	if err := b.Check(true); err != nil {
		return journal.Lease{}, failed(op, id, err, "")
	}
	r := &run{row: b.Begin(), records: slices.Clone(b.Records), lease: journal.Lease{Run: id, Owner: b.Lease.Owner, Epoch: 1}}
	if err := r.addTapes(b.Tapes); err != nil {
		return journal.Lease{}, failed(op, id, err, "")
	}
	root := r.row.Session != "" && r.row.Parent == "" && r.row.Status != journal.Stopped
	if root {
		s.sessions.Lock()
		defer s.sessions.Unlock()
		if other := s.sessions.live[r.row.Session]; other != nil && other.status() != journal.Stopped {
			return journal.Lease{}, failed(op, id, fmt.Errorf("%w: session %s has the live run %s", journal.ErrExists, r.row.Session, other.row.ID),
				"Send it a message, or wait for its end")
		}
	}
	sh := s.shardOf(id)
	sh.Lock()
	defer sh.Unlock()
	switch {
	case sh.runs == nil:
		return journal.Lease{}, failed(op, id, journal.ErrClosed, "")
	case sh.runs[id] != nil:
		return journal.Lease{}, failed(op, id, journal.ErrExists, "Choose another id")
	}
	r.n = s.serial.Add(1)
	sh.runs[id] = r
	if root && s.sessions.live != nil {
		s.sessions.live[r.row.Session] = r
	}
	s.keep(b.Artifacts)
	s.hub.Changed(id)
	return r.lease, nil
}

func (r *run) status() string {
	r.RLock()
	defer r.RUnlock()
	return r.row.Status
}

// Acquire takes the lease. In one process every owner that has not released is alive.
func (s *Store) Acquire(ctx context.Context, id, owner string) (journal.Lease, error) {
	const op = "acquire"
	r, err := s.find(ctx, op, id)
	if err != nil {
		return journal.Lease{}, err
	}
	if owner == "" {
		return journal.Lease{}, failed(op, id, errors.New("the owner is empty"), "")
	}
	r.Lock()
	defer r.Unlock()
	if r.lease.Owner != "" && r.lease.Owner != owner {
		return journal.Lease{}, failed(op, id, fmt.Errorf("%w: %s", journal.ErrHeld, r.lease.Owner), "Its driver goes on with the run")
	}
	r.lease.Owner = owner
	r.lease.Epoch++
	return r.lease, nil
}

// Release gives the lease up; a lost lease is no error.
func (s *Store) Release(ctx context.Context, l journal.Lease) error {
	r, err := s.find(ctx, "release", l.Run)
	if err != nil {
		return err
	}
	r.Lock()
	defer r.Unlock()
	if r.lease == l {
		r.lease.Owner = ""
	}
	return nil
}

// Append appends a batch. It keeps the bytes of the records, as nobody changes them.
func (s *Store) Append(ctx context.Context, b journal.Batch) (int, error) {
	const op = "append"
	id := b.Lease.Run
	r, err := s.find(ctx, op, id)
	if err != nil {
		return 0, err
	}
	if err := b.Check(false); err != nil {
		return 0, failed(op, id, err, "")
	}
	r.Lock()
	inputs, err := r.append(&b, s)
	r.Unlock()
	if err != nil {
		return 0, failed(op, id, err, "")
	}
	s.hub.Changed(id)
	return inputs, nil
}

// append checks everything before it changes anything.
func (r *run) append(b *journal.Batch, s *Store) (int, error) {
	switch {
	case r.lease != b.Lease:
		return 0, fmt.Errorf("%w: epoch %d of %s, now %d of %q", journal.ErrLease, b.Lease.Epoch, b.Lease.Owner, r.lease.Epoch, r.lease.Owner)
	case r.row.Status == journal.Stopped:
		return 0, journal.ErrStopped
	case r.row.Seq != b.After:
		return 0, fmt.Errorf("%w: the journal is at %d, not at %d", journal.ErrConflict, r.row.Seq, b.After)
	}
	for i, id := range b.Take {
		in := r.byID[id]
		if in == nil || in.taken || slices.Contains(b.Take[:i], id) {
			return 0, fmt.Errorf("%w: the input %q does not wait", journal.ErrConflict, id)
		}
	}
	if b.NoInputs && r.row.Inputs > len(b.Take) {
		return 0, journal.ErrInbox
	}
	if err := r.addTapes(b.Tapes); err != nil {
		return 0, err
	}
	for _, id := range b.Take {
		r.byID[id].taken = true
	}
	r.records = append(r.records, b.Records...)
	r.row = b.Continue(r.row)
	s.keep(b.Artifacts)
	return r.row.Inputs, nil
}

func (r *run) addTapes(tapes []journal.Tape) error {
	for i, t := range tapes {
		same := func(o journal.Tape) bool { return o.ID == t.ID }
		if slices.ContainsFunc(r.tapes, same) || slices.ContainsFunc(tapes[:i], same) {
			return fmt.Errorf("%w: tape %s", journal.ErrExists, t.ID)
		}
	}
	for _, t := range tapes {
		r.tapes = append(r.tapes, journal.Tape{Run: r.row.ID, ID: t.ID, Data: slices.Clone(t.Data)})
	}
	return nil
}
