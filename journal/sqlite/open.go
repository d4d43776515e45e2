package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ronda-go/ronda/journal"
)

// application is "ROND" in the file's application_id; format, the number of the newest migration, is its user_version.
const (
	application = 1380929092
	format      = 1
)

//go:embed migrations/*.sql
var migrations embed.FS

// makeFile makes the file and its folder if they are missing, and looks whether it can be a database.
func (s *Store) makeFile() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return checkMagic(f)
}

func checkMagic(f *os.File) error {
	const magic = "SQLite format 3\x00"
	var head [len(magic)]byte
	switch n, err := io.ReadFull(f, head[:]); {
	case err == io.EOF:
		return nil // new, or made by another process just now
	case err != nil && err != io.ErrUnexpectedEOF:
		return err
	case string(head[:n]) != magic:
		return &hinted{fmt.Errorf("%w: it is no SQLite database", journal.ErrCorrupt), "Choose another path, or restore a backup"}
	}
	return nil
}

// cannotWrite reports whether an error of opening means that the file can at best be read.
func cannotWrite(err error) bool {
	code := resultCode(err)
	return code&0xff == sqlite3.SQLITE_READONLY || code&0xff == sqlite3.SQLITE_CANTOPEN ||
		errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

func (s *Store) openWriter(sync string) error {
	c, err := connect(dsn(s.path, url.Values{"_pragma": {"busy_timeout(5000)"}}))
	if err != nil {
		return err
	}
	for _, pragma := range []string{ // the first counts in a new file only, and before the second
		"page_size = 8192", "journal_mode = WAL", "synchronous = " + sync,
		// Rows of runs change again and again: a log of 16 MiB writes each of their pages to the file less often.
		"wal_autocheckpoint = 2000", "journal_size_limit = 33554432", "temp_store = MEMORY", "cache_size = -16000",
	} {
		if _, err := c.exec("PRAGMA " + pragma); err != nil {
			_ = c.close()
			return err
		}
	}
	s.w = &writer{conn: c, store: s, queue: make(chan *request, maxGroup), ended: make(chan struct{}), heads: map[string]*head{}}
	if err := s.migrate(); err != nil {
		return err
	}
	// From here on the writer waits for other processes in its own way.
	if _, err := c.exec("PRAGMA busy_timeout = 10"); err != nil {
		return err
	}
	s.w.version, _, err = c.number("PRAGMA data_version")
	return err
}

// version reads the format of the file; 0 for a new one.
func version(c *conn) (int64, error) {
	app, _, err := c.number("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	v, _, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	others, _, err := c.number(`SELECT count(*) FROM sqlite_schema WHERE tbl_name NOT LIKE 'goose_%' AND name NOT LIKE 'sqlite_%'`)
	switch {
	case err != nil:
		return 0, err
	case app == application && v > format:
		return 0, &hinted{fmt.Errorf("%w: format %d, this version knows %d", journal.ErrNewer, v, format), hintNewer}
	case app == application:
		return v, nil
	case app != 0 || others > 0:
		return 0, &hinted{errors.New("it is a database of another program"), "Choose another path"}
	}
	return 0, nil
}

// migrate brings the file to the format of this version. Several processes may do so at once: each migration is one
// transaction, and who comes second finds it done.
func (s *Store) migrate() error {
	for deadline := time.Now().Add(busyFor); ; {
		v, err := version(s.w.conn)
		if err != nil || v == format {
			return err
		}
		err = s.migrateOnce()
		if err == nil {
			continue // and see that it is so
		}
		if v2, verr := version(s.w.conn); verr != nil || v2 == v && !isBusy(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// migrateOnce need not wait for the disk: whatever is lost with the power is migrated again, and the first change that is
// acknowledged takes it along.
func (s *Store) migrateOnce() error {
	db, err := sql.Open("sqlite", dsn(s.path, url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "synchronous(NORMAL)"}}))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName("goose_version"))
	if err != nil {
		return err
	}
	if _, err := p.Up(context.Background()); err != nil {
		return fmt.Errorf("migration: %w", err)
	}
	return nil
}

// openReadOnly opens a file that exists, without making any file beside it where that is possible.
func (s *Store) openReadOnly() error {
	if s.w != nil {
		_ = s.w.close()
		s.w = nil
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	err = checkMagic(f)
	_ = f.Close()
	if err != nil {
		return err
	}
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	err = s.tryReadOnly(q)
	if code := resultCode(err); code&0xff != sqlite3.SQLITE_CANTOPEN && code&0xff != sqlite3.SQLITE_READONLY {
		return err
	}
	// A log needs a file for its index. Where there is no log the file is whole and, as it cannot be written here, read as it is.
	if st, serr := os.Stat(s.path + "-wal"); serr == nil && st.Size() > 0 {
		return &hinted{fmt.Errorf("%w: the log beside the file is not in it yet, and its index cannot be made: %w", journal.ErrReadOnly, err),
			"Open it once where its folder can be written, or copy the file together with the one that ends in -wal"}
	}
	q.Set("immutable", "1")
	return s.tryReadOnly(q)
}

func (s *Store) tryReadOnly(q url.Values) error {
	p := newPool(dsn(s.path, q))
	c, err := p.get()
	if err != nil {
		return err
	}
	v, err := version(c)
	p.put(c)
	if err == nil && v < format {
		err = &hinted{fmt.Errorf("%w: its format %d is older than %d and cannot be brought up to date", journal.ErrReadOnly, v, format),
			"Open it once where it can be written"}
	}
	if err != nil {
		_ = p.close()
		return err
	}
	s.pool = p
	return nil
}
