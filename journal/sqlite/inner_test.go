package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/journal"
)

func FuzzUnpackRecords(f *testing.F) {
	for _, rs := range [][]journal.Record{
		{{Seq: 1, Data: []byte(`{"s":1,"t":1764547200000000,"k":"ToolStarted","b":{"call":"3.0"}}`)}},
		{{Seq: 1, Data: nil}, {Seq: 2, Data: bytes.Repeat([]byte("ab"), 500)}, {Seq: 3, Data: []byte{0xff}}},
	} {
		f.Add(packRecords(rs), int64(len(rs)))
	}
	f.Add([]byte{}, int64(0))
	f.Add([]byte{packS2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}, int64(1))
	f.Fuzz(func(t *testing.T, data []byte, last int64) {
		rs, err := unpackRecords(nil, last, data)
		if err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("error %v is not of its class", err)
			}
			return
		}
		again, err := unpackRecords(nil, last, packRecords(rs))
		if d := cmp.Diff(rs, again); err != nil || d != "" {
			t.Errorf("packed again: %v\n%s", err, d)
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(make([]byte, 100_000))
	f.Add([]byte(`{"s":5,"t":1764547200000001,"k":"CallAuthorized","b":{"call":"3.0","verdict":"allow"}}`))
	f.Fuzz(func(t *testing.T, plain []byte) {
		packed := pack(plain)
		got, err := unpack(packed)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("unpacked %d of %d bytes: %v", len(got), len(plain), err)
		}
		if len(packed) > len(plain)+packHead {
			t.Errorf("%d bytes are packed into %d", len(plain), len(packed))
		}
		if len(plain) > 0 { // any change of a byte is noticed
			packed[int(plain[0])%len(packed)] ^= 0x10
			if got, err := unpack(packed); err == nil && !bytes.Equal(got, plain) {
				t.Error("damage was not noticed")
			}
		}
	})
}

func TestUnpackBounds(t *testing.T) {
	huge := binary.AppendUvarint([]byte{packS2, 0, 0, 0, 0}, 1<<31)
	for _, b := range [][]byte{nil, {0}, {9, 0, 0, 0, 0}, {packPlain, 1, 1, 1, 1}, append(huge, make([]byte, 100)...)} {
		if _, err := unpack(b); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("unpack %x: %v", b, err)
		}
	}
}

// TestFullInside has SQLite itself refuse to grow: the same as a full disk, without leave to mount one.
func TestFullInside(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "ronda.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	limit := func(pages int) {
		err := s.change(t.Context(), func(w *writer) error {
			_, _, err := w.number(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(40)
	// Many at once: those that still fit are accepted, and each answer is true.
	const runs = 30
	big := noise(6000)
	var wg sync.WaitGroup
	errs := make([]error, runs)
	make1 := func(i int) error {
		id := fmt.Sprintf("run_%d", i)
		_, err := s.Create(t.Context(), journal.Batch{
			Lease: journal.Lease{Run: id, Owner: "ana"}, Run: journal.Run{ID: id, Status: journal.Running},
			Records: []journal.Record{{Seq: 1, Data: []byte(big)}},
		})
		return err
	}
	for i := range runs {
		wg.Go(func() { errs[i] = make1(i) })
	}
	wg.Wait()
	full := 0
	for i, err := range errs {
		_, gerr := s.Get(t.Context(), fmt.Sprintf("run_%d", i))
		switch {
		case err == nil && gerr == nil:
		case errors.Is(err, journal.ErrDiskFull) && errors.Is(gerr, journal.ErrNotFound):
			full++
		default:
			t.Errorf("run %d: create %v, get %v", i, err, gerr)
		}
	}
	if full == 0 || full == runs {
		t.Errorf("%d of %d were refused, want some", full, runs)
	}
	limit(1 << 20)
	for i, err := range errs {
		if err != nil {
			if err := make1(i); err != nil {
				t.Errorf("when there is room: %v", err)
			}
		}
	}
}

func noise(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// TestOneFailureSpoilsNoOther: in a group, each request has its own answer.
func TestOneFailureSpoilsNoOther(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "ronda.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begun, gate := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.change(t.Context(), func(*writer) error { close(begun); <-gate; return nil }) })
	<-begun // the others queue up behind it
	mine := errors.New("mine")
	tries := 0
	results := make([]error, 10)
	for i := range results {
		wg.Go(func() {
			results[i] = s.change(t.Context(), func(w *writer) error {
				switch i {
				case 3:
					return mine
				case 5: // an error of SQLite, the first time that the group runs
					if tries++; tries == 1 {
						_, err := w.exec(`INSERT INTO nowhere VALUES (1)`)
						return err
					}
				}
				_, err := w.exec(`INSERT INTO keys (key, value) VALUES (?, '')`, fmt.Sprint("k", i))
				return err
			})
		})
	}
	for len(s.w.queue) < len(results) {
		runtime.Gosched()
	}
	close(gate)
	wg.Wait()
	for i, err := range results {
		if want := map[int]error{3: mine}[i]; err != want {
			t.Errorf("request %d: %v, want %v", i, err, want)
		}
	}
	var n int64
	err = s.reading(t.Context(), func(c *conn) (err error) { n, _, err = c.number(`SELECT count(*) FROM keys`); return err })
	if err != nil || n != 9 {
		t.Errorf("%d keys, %v; want 9", n, err)
	}
}

// TestLeave: a caller whose ctx ends while another process has the file leaves at once, and its change is never made.
func TestLeave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := connect(dsn(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if _, err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- s.PutDoc(ctx, "a", "left", nil) }()
	go func() { left <- s.PutDoc(t.Context(), "a", "stays", nil) }()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	if _, err := other.exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Errorf("stayed: %v", err)
	}
	docs, err := s.Docs(t.Context(), "a")
	if d := cmp.Diff(map[string][]byte{"stays": {}}, docs); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestFormat: the newest migration says what the code expects.
func TestFormat(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	if err != nil || len(files) != format {
		t.Errorf("%d migrations, format %d, %v", len(files), format, err)
	}
}

// TestPlans: the lists that drivers poll look at live runs alone.
func TestPlans(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "ronda.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct {
		q    journal.Query
		want string
	}{
		{journal.Query{}, "runs_created"},
		{journal.Query{Status: "waiting"}, "runs_live"},
		{journal.Query{Session: "s"}, "runs_session"},
		{journal.Query{WakeBy: 5}, "runs_wake"},
		{journal.Query{Inputs: true}, "runs_inputs"},
		{journal.Query{Parent: "p"}, "runs_parent"},
		{journal.Query{Root: "r"}, "runs_root"},
	} {
		f := conditions(&tt.q)
		sql := "EXPLAIN QUERY PLAN SELECT id FROM runs"
		if len(f.where) > 0 {
			sql += " WHERE " + strings.Join(f.where, " AND ")
		}
		plan := ""
		err := s.reading(t.Context(), func(c *conn) error {
			return c.query(sql+" ORDER BY created DESC, id DESC", func(r []driver.Value) error { plan += text(r[3]) + "; "; return nil }, f.args...)
		})
		if err != nil || !strings.Contains(plan, tt.want) {
			t.Errorf("%+v: plan %q, %v; want %s", tt.q, plan, err, tt.want)
		}
	}
}
