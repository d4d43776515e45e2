package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// owners tells the living holders of leases from the dead ones. Each opened store that takes leases holds the lock on a file of
// its own in <database>.owners; the kernel frees it when the process ends, however it ends.
type owners struct {
	dir  string
	name string

	mu   sync.Mutex
	lock *flock.Flock // nil until the first lease
	held string       // the name of the lock file
}

const lockSuffix = ".lock"

// claim makes this store's lock file at the first call and returns its name.
func (o *owners) claim() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock != nil {
		return o.held, nil
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return "", fmt.Errorf("folder of the owners' locks: %w", err)
	}
	o.sweep()
	for i := range 100 {
		held := o.name
		if i > 0 {
			held = fmt.Sprintf("%s-%d", o.name, i)
		}
		l := flock.New(o.path(held), flock.SetPermissions(0o600))
		ok, err := l.TryLock()
		if errors.Is(err, os.ErrNotExist) { // whoever closed last took the folder away just now
			_ = os.MkdirAll(o.dir, 0o700)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("owner's lock: %w", err)
		}
		if ok && sameFile(l) {
			o.lock, o.held = l, held
			return held, nil
		}
		_ = l.Close() // a sweep came between making and locking it: another name
	}
	return "", errors.New("owner's lock: every name is taken")
}

// sameFile reports whether the file that is locked is still the one that others see.
func sameFile(l *flock.Flock) bool {
	mine, err := l.Stat()
	if err != nil {
		return false
	}
	seen, err := os.Stat(l.Path())
	return err == nil && os.SameFile(mine, seen)
}

// sweep removes the lock files of the dead.
func (o *owners) sweep() {
	files, err := os.ReadDir(o.dir)
	if err != nil {
		return
	}
	for _, f := range files {
		if held, ok := strings.CutSuffix(f.Name(), lockSuffix); ok {
			o.living(held)
		}
	}
}

// living reports whether the store that made a lock file is still open. It removes the file of a dead one. Whoever asks takes
// the lock for sharing only, so that two who ask at once do not take each other for the living owner.
func (o *owners) living(held string) bool {
	if held == "" || strings.ContainsAny(held, `/\`) {
		return false
	}
	l := flock.New(o.path(held), flock.SetFlag(os.O_RDONLY))
	ok, err := l.TryRLock()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false
	case err != nil:
		return true // nobody can tell: then it is not taken over
	case !ok:
		return true
	}
	_ = os.Remove(o.path(held)) // while it is locked: its maker, if just about to lock it, sees that it is gone
	_ = l.Close()
	return false
}

func (o *owners) path(held string) string { return filepath.Join(o.dir, held+lockSuffix) }

func (o *owners) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock != nil {
		_ = os.Remove(o.lock.Path())
		_ = o.lock.Close()
		o.lock = nil
		_ = os.Remove(o.dir) // where it was the last
	}
}
