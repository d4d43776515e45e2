package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ronda-go/ronda/journal"
)

// failed makes the error of a method: what was being done, the class of why it failed, what to try.
func (s *Store) failed(op, what string, err error) error {
	if what != "" {
		op += " " + what
	}
	hint, err := classify(err)
	if errors.Is(err, journal.ErrReadOnly) && s.readOnlyWhy != "" {
		hint = s.readOnlyWhy
	}
	return &journal.Error{Op: op, Err: err, Hint: hint}
}

// dbError marks errors of SQLite itself: after one the transaction is over, whatever it was about.
type dbError struct{ err error }

func (e *dbError) Error() string { return e.err.Error() }
func (e *dbError) Unwrap() error { return e.err }

// hinted is an error that brings its own advice.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

const (
	hintFull     = "Make room on the disk; nothing that was acknowledged is lost, and the store goes on as soon as there is room"
	hintCorrupt  = "Keep a copy of the file and restore a backup; the sqlite3 tool's .recover command may save what is readable"
	hintReadOnly = "Make the file and its folder writable for this user, or open another store"
	hintBusy     = "Another process holds the database; end it or try again"
	hintNewer    = "Use the version of ronda that wrote it, or a later one"
)

// classify gives an error of SQLite or the system its class.
func classify(err error) (hint string, class error) {
	var h *hinted
	if errors.As(err, &h) {
		return h.hint, h.error
	}
	switch code := resultCode(err); {
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_WRITE, code == sqlite3.SQLITE_IOERR_SHMSIZE,
		errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		class, hint = journal.ErrDiskFull, hintFull
	case code&0xff == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB, code == sqlite3.SQLITE_IOERR_SHORT_READ,
		errors.Is(err, journal.ErrCorrupt):
		class, hint = journal.ErrCorrupt, hintCorrupt
	case code&0xff == sqlite3.SQLITE_READONLY, errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission),
		errors.Is(err, journal.ErrReadOnly):
		class, hint = journal.ErrReadOnly, hintReadOnly
	case code&0xff == sqlite3.SQLITE_BUSY:
		return hintBusy, err
	}
	if class == nil || errors.Is(err, class) {
		return hint, err
	}
	return hint, fmt.Errorf("%w: %w", class, err)
}

// resultCode is SQLite's extended result code; 0 where err is none of SQLite's.
func resultCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}
