package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/sqlite"
)

// fails checks class and hint of an error.
func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	var je *journal.Error
	if !errors.Is(err, want) || !errors.As(err, &je) || je.Op == "" || je.Hint == "" {
		t.Errorf("%s: %v, want one of class %q with a hint", what, err, want)
	}
}

// filled makes a file with one run of n events of noise, closed.
func filled(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ronda.db")
	s := open(t, path, sqlite.Options{})
	l, err := s.Create(t.Context(), batch(journal.Lease{Run: "run_1", Owner: "ana"}, 0, 1))
	for i := range n - 1 {
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Append(t.Context(), noisy(l, int64(i+1), 2000))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// noisy is a batch of one event that cannot be packed.
func noisy(l journal.Lease, after int64, size int) journal.Batch {
	b := batch(l, after, 1)
	r := rand.New(rand.NewPCG(uint64(after), 9))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	b.Records[0].Data = data
	return b
}

func TestFileModeAndFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "ronda.db")
	s := open(t, path, sqlite.Options{})
	if s.Path() != path {
		t.Errorf("path %s, want %s", s.Path(), path)
	}
	if _, err := os.Stat(path + ".owners"); !os.IsNotExist(err) {
		t.Errorf("the owners' folder is there before a lease was taken: %v", err)
	}
	if _, err := s.Create(t.Context(), batch(journal.Lease{Run: "run_1", Owner: s.Owner()}, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if size, err := s.Size(); err != nil || size < 4096 {
		t.Errorf("size %d, %v", size, err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of unix")
	}
	locks, _ := filepath.Glob(path + ".owners/*.lock")
	if len(locks) != 1 {
		t.Errorf("locks: %v, want one", locks)
	}
	for _, name := range append(locks, path, path+"-wal") {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("left beside the file: %v", left)
	}
}

func TestOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	if _, err := sqlite.Open(path, sqlite.Options{Durability: "most"}); err == nil || !strings.Contains(err.Error(), `"full" or "normal"`) {
		t.Errorf("error %v, want one that names what there is", err)
	}
	_, err := sqlite.Open(path, sqlite.Options{ReadOnly: true})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file for reading: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file was made: %v", err)
	}
}

func perform(t *testing.T, path string, stmts ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range stmts {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewerFormat(t *testing.T) {
	path := filled(t, 2)
	perform(t, path, "PRAGMA user_version = 99")
	before, _ := os.ReadFile(path)
	for _, opts := range []sqlite.Options{{}, {ReadOnly: true}} {
		_, err := sqlite.Open(path, opts)
		fails(t, "open", err, journal.ErrNewer)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file of a newer version was changed")
	}
}

func TestOtherDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	perform(t, path, "CREATE TABLE songs (name TEXT)")
	_, err := sqlite.Open(path, sqlite.Options{})
	if err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("error %v", err)
	}
}

func TestInterruptedMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	perform(t, path, "CREATE TABLE goose_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))",
		"INSERT INTO goose_version (version_id, is_applied) VALUES (0, 1)")
	s := open(t, path, sqlite.Options{})
	if _, err := s.Create(t.Context(), batch(journal.Lease{Run: "run_1", Owner: "ana"}, 0, 1)); err != nil {
		t.Error(err)
	}
}

func TestManyOpenANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	errs := make(chan error)
	for range 8 {
		go func() {
			s, err := sqlite.Open(path, sqlite.Options{})
			if err == nil {
				err = errors.Join(s.PutDoc(t.Context(), "a", "b", nil), s.Close())
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestCorrupt(t *testing.T) {
	whole, err := os.ReadFile(filled(t, 60))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, data := range map[string][]byte{
		"text":   []byte("this is a text file, and quite a long one, too"),
		"short":  whole[:10],
		"header": append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{0xff}, 8000)...),
	} {
		for _, opts := range []sqlite.Options{{}, {ReadOnly: true}} {
			path := write(name, data)
			_, err := sqlite.Open(path, opts)
			fails(t, name, err, journal.ErrCorrupt)
			if after, _ := os.ReadFile(path); !bytes.Equal(after, data) {
				t.Errorf("%s: the file was changed", name)
			}
		}
	}
	// Damage inside: whatever is read is right or refused, and something is refused.
	refused := 0
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		data := bytes.Clone(whole)
		page := 4096 * (1 + r.IntN(len(data)/4096-1))
		for i := range 4096 {
			data[page+i] = byte(r.Uint32())
		}
		s, err := sqlite.Open(write("ronda.db", data), sqlite.Options{})
		if err == nil {
			seq := int64(0)
			err = s.Read(t.Context(), "run_1", 0, func(rec journal.Record) error {
				seq++
				if want := noisy(journal.Lease{}, rec.Seq-1, 2000); rec.Seq != seq || seq > 1 && !bytes.Equal(rec.Data, want.Records[0].Data) {
					t.Errorf("event %d is %d and not what was written", seq, rec.Seq)
				}
				return nil
			})
			_ = s.Close()
		}
		if errors.Is(err, journal.ErrCorrupt) {
			refused++
		} else if err != nil && !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("damage gives %v", err)
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

func TestReadOnly(t *testing.T) {
	path := filled(t, 5)
	s := open(t, path, sqlite.Options{ReadOnly: true})
	checkReadOnly(t, s)
	if left, _ := filepath.Glob(path + ".owners"); len(left) > 0 {
		t.Errorf("made %v", left)
	}
	// Beside one that writes, it sees and hears what that one does.
	w := open(t, path, sqlite.Options{})
	ch, stop := s.Notify("run_1")
	defer stop()
	l, err := w.Acquire(t.Context(), "run_1", "ana")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), batch(l, 5, 1)); err != nil {
		t.Fatal(err)
	}
	<-ch
	if row, err := s.Get(t.Context(), "run_1"); err != nil || row.Seq != 6 {
		t.Errorf("seq %d, %v; want 6", row.Seq, err)
	}
}

func checkReadOnly(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx := t.Context()
	if row, err := s.Get(ctx, "run_1"); err != nil || row.Seq != 5 {
		t.Errorf("get: %+v, %v", row, err)
	}
	if p, err := s.List(ctx, journal.Query{}); err != nil || len(p.Runs) != 1 {
		t.Errorf("list: %+v, %v", p, err)
	}
	n := 0
	if err := s.Read(ctx, "run_1", 0, func(journal.Record) error { n++; return nil }); err != nil || n != 5 {
		t.Errorf("read: %d, %v", n, err)
	}
	_, err := s.Acquire(ctx, "run_1", "ana")
	fails(t, "acquire", err, journal.ErrReadOnly)
	_, err = s.Create(ctx, batch(journal.Lease{Run: "run_2", Owner: "ana"}, 0, 1))
	fails(t, "create", err, journal.ErrReadOnly)
	_, err = s.Append(ctx, batch(journal.Lease{Run: "run_1", Owner: "ana", Epoch: 1}, 5, 1))
	fails(t, "append", err, journal.ErrReadOnly)
	_, _, err = s.Put(ctx, journal.Input{ID: "i", Run: "run_1", Kind: "message"})
	fails(t, "put", err, journal.ErrReadOnly)
	fails(t, "put document", s.PutDoc(ctx, "a", "b", nil), journal.ErrReadOnly)
}

// TestNotWritable has the system refuse: as a user who may read, but not write.
func TestNotWritable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of unix")
	}
	path := filled(t, 5)
	dir := filepath.Dir(path)
	for dir := dir; dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // of this test
			break
		}
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		checkReadOnly(t, open(t, path, sqlite.Options{}))
		_, err := sqlite.Open(filepath.Join(dir, "new.db"), sqlite.Options{})
		fails(t, "a new file", err, journal.ErrReadOnly)
		return
	}
	exe, err := os.ReadFile(must(os.Executable()))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test.exe")                 // where the other user can run it
	if err := os.WriteFile(copied, exe, 0o755); err != nil { //nolint:gosec // of this test
		t.Fatal(err)
	}
	said := asNobody(t, copied, "read", path)
	if !strings.HasPrefix(said, "5 true ") || !strings.Contains(said, "writable") {
		t.Errorf("the child says %q", said)
	}
	said = asNobody(t, copied, "read", filepath.Join(dir, "new.db"))
	if !strings.HasPrefix(said, "open:") || !strings.Contains(said, "read-only") {
		t.Errorf("a new file: the child says %q", said)
	}
}

// fill appends until the disk is full, makes room, and appends again.
func fill(t *testing.T, s *sqlite.Store, room func()) {
	t.Helper()
	ctx := context.Background()
	l, err := s.Create(ctx, batch(journal.Lease{Run: "run_1", Owner: s.Owner()}, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	acked := int64(1)
	for {
		if _, err = s.Append(ctx, noisy(l, acked, 9000)); err != nil {
			break
		}
		if acked++; acked > 1000 {
			t.Fatal("the disk is never full")
		}
	}
	for range 3 {
		fails(t, "append", err, journal.ErrDiskFull)
		_, err = s.Append(ctx, noisy(l, acked, 9000))
	}
	if acked < 5 {
		t.Fatalf("full after %d", acked)
	}
	check := func() {
		t.Helper()
		n := int64(0)
		err := s.Read(ctx, "run_1", 0, func(r journal.Record) error {
			if n++; n > 1 && !bytes.Equal(r.Data, noisy(l, r.Seq-1, 9000).Records[0].Data) {
				return fmt.Errorf("event %d differs", r.Seq)
			}
			return nil
		})
		if err != nil || n != acked {
			t.Errorf("%d events, %v; acknowledged %d", n, err, acked)
		}
	}
	check()
	room()
	for range 10 {
		if _, err := s.Append(ctx, noisy(l, acked, 9000)); err != nil {
			t.Fatalf("append when there is room: %v", err)
		}
		acked++
	}
	check()
}
