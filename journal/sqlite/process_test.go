package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/sqlite"
)

// The test binary is its own second process: RONDA_TEST_CHILD says what it does there, the arguments follow in the environment.
func TestMain(m *testing.M) {
	act := map[string]func(path string){"append": childAppends, "contend": childContends, "hold": childHolds, "read": childReads}
	if fn := act[os.Getenv("RONDA_TEST_CHILD")]; fn != nil {
		fn(os.Getenv("RONDA_TEST_PATH"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, act, path string, env ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(exe)}
	c.Env = append(append(os.Environ(), "RONDA_TEST_CHILD="+act, "RONDA_TEST_PATH="+path), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		c.in, err = c.StdinPipe()
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

// line waits for one line of the child.
func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.out.Scan() {
		t.Fatalf("the child ended: %v", c.out.Err())
	}
	return c.out.Text()
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	return v
}

func event(run string, seq int64) []byte {
	return fmt.Appendf(nil, `{"s":%d,"t":1,"k":"Noted","b":{"run":%q,"text":%q}}`, seq, run, strings.Repeat("x", int(seq*37%900)))
}

func batch(l journal.Lease, after int64, n int) journal.Batch {
	b := journal.Batch{Lease: l, After: after, Run: journal.Run{ID: l.Run, Agent: "a", Status: journal.Running, Created: t0}}
	for i := range int64(n) {
		b.Records = append(b.Records, journal.Record{Seq: after + i + 1, Data: event(l.Run, after+i+1)})
	}
	return b
}

// childAppends drives 16 runs, new ones or those that an earlier child left, and says what was acknowledged, "run seq" a line.
func childAppends(path string) {
	s := must(sqlite.Open(path, sqlite.Options{}))
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			id := fmt.Sprintf("run_%d", i)
			ctx := context.Background()
			l, err := s.Create(ctx, batch(journal.Lease{Run: id, Owner: s.Owner()}, 0, 2))
			seq := int64(2)
			if errors.Is(err, journal.ErrExists) {
				l = must(s.Acquire(ctx, id, s.Owner()))
				seq = must(s.Get(ctx, id)).Seq
			} else {
				must(0, err)
			}
			for {
				mu.Lock()
				fmt.Fprintln(out, id, seq)
				_ = out.Flush()
				mu.Unlock()
				must(s.Append(ctx, batch(l, seq, 3)))
				seq += 3
			}
		})
	}
	wg.Wait()
}

func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	path := filepath.Join(t.TempDir(), "ronda.db")
	acked := map[string]int64{}
	r := rand.New(rand.NewPCG(3, uint64(time.Now().UnixNano())))
	for kill := range 12 {
		c := start(t, "append", path)
		lines := r.IntN(400)
		for i := 0; i < lines || len(acked) < 16; i++ {
			note(t, acked, c.line(t))
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for c.out.Scan() { // acknowledged before the end, read after it
			note(t, acked, c.out.Text())
		}
		_ = c.Wait()
		s, err := sqlite.Open(path, sqlite.Options{})
		if err != nil {
			t.Fatalf("open after kill %d: %v", kill, err)
		}
		for id, seq := range acked {
			checkRun(t, s, id, seq)
		}
		if l, err := s.Acquire(t.Context(), "run_0", s.Owner()); err != nil {
			t.Errorf("the dead process holds its lease: %v", err)
		} else if err := s.Release(t.Context(), l); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checkFile(t, path)
	}
	if left, err := filepath.Glob(path + ".owners/*"); err != nil || len(left) > 0 {
		t.Errorf("locks of the dead are left: %v %v", left, err)
	}
}

func note(t *testing.T, acked map[string]int64, line string) {
	t.Helper()
	id, n, ok := strings.Cut(line, " ")
	seq, err := strconv.ParseInt(n, 10, 64)
	if !ok || err != nil {
		return // the last line of a killed process may be half
	}
	acked[id] = max(acked[id], seq)
}

// checkRun checks that a run has all that was acknowledged, whole, and nothing after it but whole batches.
func checkRun(t *testing.T, s *sqlite.Store, id string, acked int64) {
	t.Helper()
	row, err := s.Get(t.Context(), id)
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	var last int64
	err = s.Read(t.Context(), id, 0, func(r journal.Record) error {
		if last++; r.Seq != last || string(r.Data) != string(event(id, last)) {
			return fmt.Errorf("event %d is %d, %.80s", last, r.Seq, r.Data)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	if last < acked || last != row.Seq || (last-2)%3 != 0 {
		t.Errorf("%s: journal ends at %d, row says %d, acknowledged %d", id, last, row.Seq, acked)
	}
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var said string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity check: %q, %v", said, err)
	}
}

// childContends waits for a line, then puts 10 inputs under one key and takes the lease of a run, and says what it won.
func childContends(path string) {
	s := must(sqlite.Open(path, sqlite.Options{}))
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 10 {
		wg.Go(func() {
			id := fmt.Sprintf("%s-%d", s.Owner(), i)
			_, mine, err := s.Put(context.Background(), journal.Input{ID: id, Run: "run_1", Key: "decide", Kind: "decide"})
			must(0, err)
			mu.Lock()
			defer mu.Unlock()
			if mine {
				won++
			}
		})
	}
	lease := "none"
	if l, err := s.Acquire(context.Background(), "run_1", s.Owner()); err == nil {
		lease = strconv.FormatInt(l.Epoch, 10)
	} else if !errors.Is(err, journal.ErrHeld) {
		must(0, err)
	}
	wg.Wait()
	fmt.Println(won, lease)
	_, _ = io.Copy(io.Discard, os.Stdin) // holds the lease until the parent is done
}

func TestProcessesContend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	s := open(t, path, sqlite.Options{})
	l, err := s.Create(t.Context(), batch(journal.Lease{Run: "run_1", Owner: s.Owner()}, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	var children []*child
	for range 5 {
		children = append(children, start(t, "contend", path))
	}
	for _, c := range children {
		c.line(t)
	}
	for _, c := range children {
		fmt.Fprintln(c.in, "go")
	}
	winners, holders := 0, 0
	for _, c := range children {
		won, lease, _ := strings.Cut(c.line(t), " ")
		n, err := strconv.Atoi(won)
		if err != nil {
			t.Fatal(err)
		}
		winners += n
		if lease != "none" {
			holders++
			if lease != "2" {
				t.Errorf("lease of epoch %s, want 2", lease)
			}
		}
	}
	if winners != 1 || holders != 1 {
		t.Errorf("%d inputs of 50 won and %d of 5 hold the lease, want one each", winners, holders)
	}
	if n := len(inputs(t, s, "run_1")); n != 1 {
		t.Errorf("%d inputs wait, want 1", n)
	}
}

func inputs(t *testing.T, s journal.Store, run string) []journal.Input {
	t.Helper()
	ins, err := s.Inputs(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return ins
}

// childReads opens the file for reading as whoever it runs as, and says what it read and what writing gives.
func childReads(path string) {
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	row := must(s.Get(context.Background(), "run_1"))
	_, err = s.Acquire(context.Background(), "run_1", s.Owner())
	fmt.Println(row.Seq, errors.Is(err, journal.ErrReadOnly), err)
}

// childHolds takes the lease and says so, appends when told to, and says what became of it.
func childHolds(path string) {
	s := must(sqlite.Open(path, sqlite.Options{}))
	l := must(s.Create(context.Background(), batch(journal.Lease{Run: "run_1", Owner: "a name of its own"}, 0, 1)))
	fmt.Println("held")
	in := bufio.NewReader(os.Stdin)
	for seq := int64(1); ; seq++ {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		_, err := s.Append(context.Background(), batch(l, seq, 1))
		fmt.Println(err)
	}
}

func TestLeaseOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ronda.db")
	c := start(t, "hold", path)
	c.line(t)
	s := open(t, path, sqlite.Options{})
	ch, stop := s.Notify("run_1")
	defer stop()
	for range 2 { // the head of the run that this process remembers must not outlive the other's append
		if _, err := s.Acquire(t.Context(), "run_1", s.Owner()); !errors.Is(err, journal.ErrHeld) || !strings.Contains(err.Error(), "a name of its own") {
			t.Errorf("acquire from the living: %v", err)
		}
		fmt.Fprintln(c.in, "append")
		if said := c.line(t); said != "<nil>" {
			t.Errorf("append of the holder: %s", said)
		}
		<-ch
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	l, err := s.Acquire(t.Context(), "run_1", s.Owner())
	if err != nil {
		t.Fatalf("acquire from the dead: %v", err)
	}
	if l.Epoch != 2 {
		t.Errorf("epoch %d, want 2", l.Epoch)
	}
	if _, err := s.Append(t.Context(), batch(l, 3, 1)); err != nil {
		t.Error(err)
	}
}
