package coach

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

//go:embed schema.sql
var schema string

// Marks of the file: SQLite's application id, by which a database of something else is told apart, and the version of the
// schema.
const (
	applicationID = 0x52434F41 // "RCOA"
	schemaVersion = 1
)

// Memory is the path of a database that lives as long as its DB.
const Memory = ":memory:"

// PathVar is the environment variable that overrides DefaultPath.
const PathVar = "RONDA_COACH_DB"

// Options of a database. The zero value is useful.
type Options struct {
	// Today is what "today" means, YYYY-MM-DD; "" is the latest day of the data.
	Today string
}

// DB is the coach's database. It is safe for concurrent use, by several processes too.
type DB struct {
	sql   *sql.DB
	path  string
	today string
}

// DefaultPath is where the database lives unless PathVar says otherwise: coach.db in ronda's folder below the user's data
// folder (XDG_DATA_HOME or ~/.local/share; on macOS ~/Library/Application Support; on Windows %LOCALAPPDATA%).
func DefaultPath() (string, error) {
	if p := os.Getenv(PathVar); p != "" {
		return p, nil
	}
	dir, err := dataFolder()
	if err != nil {
		return "", fmt.Errorf("coach: no folder for the database: %w. Set %s to a path, or to %s", err, PathVar, Memory)
	}
	return filepath.Join(dir, "ronda", "coach.db"), nil
}

func dataFolder() (string, error) {
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LOCALAPPDATA"); dir != "" {
			return dir, nil
		}
	} else if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(home, "AppData", "Local"), nil
	case "darwin":
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "share"), nil
}

// Open opens the database at path, or at DefaultPath where path is "". A file that does not exist or is empty is created and
// filled with a year of training, once, also when several processes open it at the same time. The folder is made.
func Open(path string, o Options) (*DB, error) {
	if o.Today != "" {
		if _, err := parseDay(o.Today); err != nil {
			return nil, fmt.Errorf("coach: open: Options.Today: %q is not a day. Write it as YYYY-MM-DD", o.Today)
		}
	}
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, err
		}
	}
	if path != Memory {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("coach: open %s: %w. Set %s to a path that can be written", path, err, PathVar)
		}
	}
	pool, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, fmt.Errorf("coach: open %s: %w", path, err)
	}
	if path == Memory {
		pool.SetMaxOpenConns(1) // each connection would have a database of its own
	}
	db := &DB{sql: pool, path: path, today: o.Today}
	err = db.prepare(context.Background())
	if err == nil && db.today == "" {
		err = db.latestDay(context.Background())
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("coach: open %s: %w", path, err)
	}
	return db, nil
}

// Close closes the database. Calls after it fail.
func (db *DB) Close() error { return db.sql.Close() }

// Path is the path that was opened.
func (db *DB) Path() string { return db.path }

// Today is the day that the coach works on: it does not change while the database is open.
func (db *DB) Today() string { return db.today }

func (db *DB) latestDay(ctx context.Context) error {
	err := db.sql.QueryRowContext(ctx, `SELECT max(day) FROM (SELECT max(day) AS day FROM workouts UNION ALL
		SELECT max(day) FROM measurements)`).Scan(&db.today)
	if err != nil {
		return fmt.Errorf("find the latest day of the data: %w", err)
	}
	return nil
}

// dsn asks for a write-ahead log, full durability, foreign keys, and for transactions that take the write lock when they
// begin, so that none fails half-way because another process wrote.
func dsn(path string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "foreign_keys(1)", "journal_mode(WAL)", "synchronous(FULL)",
	}}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// prepare creates and fills a new database, and refuses one that is not ours.
func (db *DB) prepare(ctx context.Context) error {
	return db.write(ctx, func(tx *sql.Tx) error {
		var app, version, tables int64
		row := tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
			(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`)
		if err := row.Scan(&app, &version, &tables); err != nil {
			return fmt.Errorf("read its header: %w. If the file is damaged, move it away and a new one is made", err)
		}
		switch {
		case tables == 0:
		case app != applicationID:
			return fmt.Errorf("it is a database of something else. Set %s to another path", PathVar)
		case version > schemaVersion:
			return fmt.Errorf("its schema is version %d, this program knows %d. Use the newer program, or another path in %s",
				version, schemaVersion, PathVar)
		default:
			return nil
		}
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return fmt.Errorf("create its tables: %w", err)
		}
		if err := makeYear(Seed).insert(ctx, tx); err != nil {
			return fmt.Errorf("fill it with a year of training: %w", err)
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
		return err
	})
}

// write runs f in one transaction that holds the write lock from its beginning.
func (db *DB) write(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return &commitError{err}
	}
	return nil
}

// commitError is the end of a commit of which nobody knows whether it happened.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// query is what a transaction and the pool have in common.
type query interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// rows reads all rows of a query; scan fills one value from one row.
func rows[T any](ctx context.Context, q query, scan func(scan func(...any) error, v *T) error, text string, args ...any) ([]T, error) {
	rs, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	list := []T{} // an empty list is shown to the model as one
	for rs.Next() {
		var v T
		if err := scan(rs.Scan, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rs.Err()
}

// invalid is an error that the model can mend.
func invalid(format string, args ...any) error {
	return &tool.Error{Class: loop.ClassInvalid, Message: fmt.Sprintf(format, args...), NotRun: true}
}

// failed classes an error of the database; errors that have a class already, and nil, stay as they are. doing says what was
// being done, in words for the model.
func failed(doing string, err error) error {
	var known *tool.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &tool.Error{Class: loop.ClassError, Message: doing + ": the coach's database failed: " + err.Error(), NotRun: true, Err: err}
	var lite *sqlite.Error
	var commit *commitError
	switch {
	case errors.As(err, &commit):
		e.Class, e.NotRun = loop.ClassUnknown, false
	case errors.As(err, &lite) && (lite.Code()&0xff == sqlite3.SQLITE_BUSY || lite.Code()&0xff == sqlite3.SQLITE_LOCKED):
		e.Class, e.RetryAfter = loop.ClassTransient, time.Second
		e.Message = doing + ": another program is writing to the coach's database"
	}
	return e
}
