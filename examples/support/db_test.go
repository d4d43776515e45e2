package support

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// filled is a file as Open fills it, made once for all tests.
var filled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "support")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := Open(filepath.Join(dir, "support.db"))
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(db.Path())
})

// open returns a database of the test's own, at a fixed time.
func open(t testing.TB) *DB {
	t.Helper()
	b, err := filled()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "support.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.now = func() time.Time { return time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC) }
	return db
}

// numbers reads the first column of a query.
func numbers(t *testing.T, db *DB, text string, args ...any) []int64 {
	t.Helper()
	list, err := rows(context.Background(), db.sql, func(scan func(...any) error, n *int64) error { return scan(n) }, text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list
}

func count(t *testing.T, db *DB, text string, args ...any) int64 {
	t.Helper()
	return numbers(t, db, text, args...)[0]
}

func TestOpenMemory(t *testing.T) {
	db, err := Open(Memory)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.SendReply(t.Context(), Origin{"r1", "k2"}, drafted(t, db)); err != nil {
		t.Error(err)
	}
}

func TestOpenTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b%c?d", "support.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := Open(path)
			if err != nil {
				t.Errorf("open at the same time: %v", err)
				return
			}
			db.Close()
		})
	}
	wg.Wait()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n := count(t, db, `SELECT count(*) FROM cases`); n != 46 {
		t.Errorf("%d cases after five times of opening, want 46", n)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is not where it was asked for: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	make := func(name, statements string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", dsn(path))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statements); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := filepath.Join(dir, "damaged.db")
	if err := os.WriteFile(damaged, []byte(strings.Repeat("no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{make("other.db", `CREATE TABLE things (a)`), "a database of something else"},
		{make("newer.db", `CREATE TABLE cases (a); `+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 9", applicationID)), "version 9"},
		{damaged, "not a database"},
		{filepath.Join(damaged, "below.db"), PathVar},
	} {
		db, err := Open(c.path)
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("open %s: %v, want its path and %q", filepath.Base(c.path), err, c.want)
		}
	}
}

func TestDefaultPath(t *testing.T) {
	t.Setenv(PathVar, "/somewhere/else.db")
	if p, err := DefaultPath(); p != "/somewhere/else.db" || err != nil {
		t.Errorf("with %s: %q, %v", PathVar, p, err)
	}
	t.Setenv(PathVar, "")
	p, err := DefaultPath()
	if err != nil || filepath.Base(p) != "support.db" || filepath.Base(filepath.Dir(p)) != "ronda" {
		t.Errorf("without: %q, %v", p, err)
	}
}
