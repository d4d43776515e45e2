package coach

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// filled is a file as Open fills it, made once for all tests.
var filled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "coach")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := Open(filepath.Join(dir, "coach.db"), Options{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(db.Path())
})

// open returns a database of the test's own.
func open(t testing.TB) *DB {
	t.Helper()
	b, err := filled()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "coach.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// count reads the one number of a query.
func count(t testing.TB, db *DB, text string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := db.sql.QueryRowContext(context.Background(), text, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func wantClass(t *testing.T, err error, class loop.Class, contains string) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) || e.Class != class || !strings.Contains(e.Message, contains) {
		t.Errorf("error %v (%T), want class %s with %q", err, err, class, contains)
	}
}

func TestToday(t *testing.T) {
	if db := open(t); db.Today() != lastDay {
		t.Errorf("today is %s, want the latest day of the data, %s", db.Today(), lastDay)
	}
	db, err := Open(Memory, Options{Today: "2026-07-15"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := db.ListWorkouts(t.Context(), WorkoutsQuery{})
	if err != nil || got.From != "2026-07-01" || got.To != "2026-07-15" || len(got.Workouts) == 0 {
		t.Errorf("this month: %+v, %v", got, err)
	}
	if a := Agent(nil, db); !strings.Contains(a.Instructions, "Today is 2026-07-15.") {
		t.Errorf("the instructions do not say what today is: %.120s", a.Instructions)
	}
	if _, err := Open(Memory, Options{Today: "30/11/2026"}); err == nil || !strings.Contains(err.Error(), "Options.Today") {
		t.Errorf("a day that is none: %v", err)
	}
}

func TestOpenTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b%c?d", "coach.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := Open(path, Options{})
			if err != nil {
				t.Errorf("open at the same time: %v", err)
				return
			}
			db.Close()
		})
	}
	wg.Wait()
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n, want := count(t, db, `SELECT count(*) FROM workouts`), int64(len(makeYear(Seed).workouts)); n != want {
		t.Errorf("%d workouts after five times of opening, want %d", n, want)
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
		{make("newer.db", `CREATE TABLE goals (a); `+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 9", applicationID)), "version 9"},
		{damaged, "not a database"},
		{filepath.Join(damaged, "below.db"), PathVar},
	} {
		db, err := Open(c.path, Options{})
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
	if err != nil || filepath.Base(p) != "coach.db" || filepath.Base(filepath.Dir(p)) != "ronda" {
		t.Errorf("without: %q, %v", p, err)
	}
}
