// Package sqlite keeps journals in one SQLite file: the store that ronda uses when nothing else is asked for.
//
// Several processes may have the file open. All changes of one process go through one goroutine that commits whatever waits
// at once, so that many runs share a sync. Which process drives which run is decided by the leases in the file; whether the
// holder of a lease is alive, by a lock on a file in the folder <database>.owners.
//
// The file must be on a disk of this machine: SQLite's locks and the owners' locks do not hold over networks.
package sqlite

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/internal/watch"
)

// Options of Open. The zero value is the safe one.
type Options struct {
	// Durability says what an acknowledged change survives. "full" (also ""): the loss of power. "normal": the death of the
	// process; a loss of power may take the last changes, all later than what stays.
	Durability string
	// ReadOnly opens a file that exists and never writes to it. A store on a file or folder that cannot be written is opened in
	// this way too: reading works, and each change fails with journal.ErrReadOnly.
	ReadOnly bool
}

// Store is a journal.Store. Make one with Open.
type Store struct {
	path   string
	opts   Options
	owners owners
	hub    watch.Hub
	w      *writer // nil: read-only
	pool   *pool

	readOnlyWhy string // a better hint than the usual one

	closing sync.RWMutex // held for reading while a request is being queued
	closed  bool
	once    sync.Once
	err     error

	poll poll
}

var _ journal.Store = (*Store)(nil)

// Open opens the file at path; if it is missing it is made, with mode 0600, and its folder too. Errors wrap journal.ErrNewer
// (a later version of ronda wrote it), ErrCorrupt, ErrReadOnly (it is missing and cannot be made) or ErrDiskFull.
func Open(path string, opts Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", path, err)
	}
	name := fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()[:10])
	s := &Store{path: abs, opts: opts, owners: owners{dir: abs + ".owners", name: name}}
	if err := s.open(); err != nil {
		if s.w != nil {
			_ = s.w.close()
		}
		return nil, s.failed("open", path, err)
	}
	if s.w != nil {
		go s.w.run()
	}
	return s, nil
}

func (s *Store) open() error {
	sync := ""
	switch s.opts.Durability {
	case "", "full":
		sync = "FULL"
	case "normal":
		sync = "NORMAL"
	default:
		return &hinted{fmt.Errorf("Durability is %q", s.opts.Durability), `It is "full" or "normal"`}
	}
	if !s.opts.ReadOnly {
		err := s.makeFile()
		if err == nil {
			err = s.openWriter(sync)
		}
		switch {
		case err == nil:
			s.pool = newPool(dsn(s.path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}))
			return nil
		case !cannotWrite(err):
			return err
		}
		if _, serr := os.Stat(s.path); serr != nil {
			return fmt.Errorf("%w: %w", journal.ErrReadOnly, err)
		}
	} else {
		s.readOnlyWhy = "It was opened for reading only"
	}
	return s.openReadOnly()
}

// Owner is the name of this opened store; see journal.Store.
func (s *Store) Owner() string { return s.owners.name }

// Path is the absolute path of the file.
func (s *Store) Path() string { return s.path }

// Size is the number of bytes that the database takes on the disk: the file and the log of what is not in it yet.
func (s *Store) Size() (int64, error) {
	var size int64
	for _, name := range []string{s.path, s.path + "-wal"} {
		st, err := os.Stat(name)
		switch {
		case err == nil:
			size += st.Size()
		case !os.IsNotExist(err):
			return 0, s.failed("size", s.path, err)
		}
	}
	return size, nil
}

// Close performs what was asked before, then makes every call fail with journal.ErrClosed. Leases that the store holds are
// free afterwards for whoever asks.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closing.Lock()
		s.closed = true
		s.closing.Unlock()
		if s.w != nil {
			close(s.w.queue)
			<-s.w.ended
		}
		s.poll.close()
		s.err = s.pool.close()
		if s.w != nil {
			// The last one to close the file moves the log into it.
			if err := s.w.close(); err != nil && s.err == nil {
				s.err = err
			}
		}
		s.owners.close()
		if s.err != nil {
			s.err = s.failed("close", s.path, s.err)
		}
	})
	return s.err
}

// enter says whether a call may go on.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return journal.ErrClosed
	}
	return nil
}
