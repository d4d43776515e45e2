//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ronda-go/ronda/cli"
	"github.com/ronda-go/ronda/drive"
)

// TestMain lets the test binary be the ronda command: a process of its own that can be killed.
func TestMain(m *testing.M) {
	if os.Getenv("RONDA_TEST_MAIN") == "" {
		os.Exit(m.Run())
	}
	at, _ := strconv.ParseInt(os.Getenv("RONDA_TEST_KILL_AT"), 10, 64)
	var n atomic.Int64
	os.Exit(cli.Program{Hook: func(p drive.Point) error {
		if n.Add(1) == at {
			fmt.Fprintf(os.Stderr, "killed at %s %s\n", p.Name, p.Call)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}.Run(os.Args[1:]))
}

const killAgent = `name: killer
limits: {rounds: 8}
tools:
  - {name: look, command: ["./tool.sh", "look"], effect: read}
  - {name: count, command: ["./tool.sh", "count"], effect: idempotent}
  - {name: pay, command: ["./tool.sh", "pay"], effect: once}
  - {name: refund, command: ["./tool.sh", "refund"], effect: once, approval: ask}
script:
  - {thinking: First I look., calls: [{look: {n: 1}}, {count: {n: 1}}]}
  - {text: Now I pay., calls: [{pay: {amount: 5}}]}
  - {calls: [{refund: {amount: 2}}, {look: {n: 2}}]}
  - {text: "All done."}
`

// tool.sh writes what really happened, under a lock so that the test can wait for a tool that outlived its ronda.
const killTool = `#!/bin/sh
cat > /dev/null
exec 9>>lock
flock 9
echo "$1 $RONDA_IDEMPOTENCY_KEY" >> effects
echo "$1 done"
`

// ronda is one life of the command.
type ronda struct {
	t   *testing.T
	dir string
}

func (r ronda) cmd(killAt int64, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	c := exec.Command(os.Args[0], append(args, "--store", "sqlite://"+filepath.Join(r.dir, "ronda.db"), "--by", "ana")...)
	c.Dir = r.dir
	c.Env = append(os.Environ(), "RONDA_TEST_MAIN=1", fmt.Sprintf("RONDA_TEST_KILL_AT=%d", killAt))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	return c, &out, &errs
}

type shown struct {
	Run     string
	Status  string
	Waiting []string
	Stop    string
	Answer  string
	Pending []struct{ Call, Kind, Tool string }
}

// run runs the command to its end; killed says that it died by the signal.
func (r ronda) run(killAt int64, args ...string) (s shown, killed bool) {
	r.t.Helper()
	c, out, errs := r.cmd(killAt, args...)
	err := c.Run()
	var ee *exec.ExitError
	if errors.As(err, &ee) && ee.Sys().(syscall.WaitStatus).Signaled() {
		return s, true
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		r.t.Fatalf("ronda %v: %v\nstdout %s\nstderr %s", args, err, out, errs)
	}
	return s, false
}

func (r ronda) effects() map[string][]string {
	lock, err := os.OpenFile(filepath.Join(r.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		r.t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(r.dir, "effects"))
	out := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		name, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = append(out[name], key)
	}
	return out
}

func newRonda(t *testing.T) ronda {
	dir := t.TempDir()
	for name, text := range map[string]string{"agent.yaml": killAgent, "tool.sh": killTool} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return ronda{t, dir}
}

// finish drives a run that was killed to its end, as an operator would: resume, approve, resolve with the truth. kill may kill each of
// those lives too. It returns how many unknown outcomes turned out not to have happened.
func (r ronda) finish(run string, kill func() int64) (s shown, didNot map[string]int) {
	r.t.Helper()
	didNot = map[string]int{}
	for range 40 {
		var killed bool
		s, killed = r.run(kill(), "resume", run, "--json")
		if killed {
			continue
		}
		if s.Status == "stopped" {
			return s, didNot
		}
		for _, p := range s.Pending {
			switch p.Kind {
			case "approval":
				_, _ = r.run(kill(), "approve", run, p.Call, "--json")
			case "resolution":
				happened := len(r.effects()[p.Tool]) > 0
				if _, killed := r.run(kill(), "resolve", run, p.Call, fmt.Sprintf("--happened=%t", happened), "--json"); !killed && !happened {
					didNot[p.Tool]++
				} else if killed && !happened {
					didNot[p.Tool]++ // the word is on record or will be given again
				}
			}
		}
	}
	r.t.Fatalf("the run does not end: %+v", s)
	return s, didNot
}

// check asserts what must hold however often the process died.
func (r ronda) check(s shown, didNot map[string]int) {
	r.t.Helper()
	e := r.effects()
	for _, once := range []string{"pay", "refund"} {
		switch n := len(e[once]); {
		case n > 1:
			r.t.Errorf("%s happened %d times", once, n)
		case n == 0 && didNot[once] == 0:
			r.t.Errorf("%s did not happen and nobody was told", once)
		}
	}
	for _, key := range e["count"] {
		if key == "" || key != e["count"][0] {
			r.t.Errorf("the idempotent tool got different keys: %v", e["count"])
		}
	}
	if s.Stop != "completed" || s.Answer != "All done." {
		r.t.Errorf("ended %s with %q", s.Stop, s.Answer)
	}
	c, out, errs := r.cmd(0, "verify", s.Run)
	if err := c.Run(); err != nil {
		r.t.Errorf("verify: %v %s %s", err, out, errs)
	}
}

// firstRun finds the run in the store; "" if the process died before it was there.
func (r ronda) firstRun() string {
	c, out, errs := r.cmd(0, "runs", "--json")
	if err := c.Run(); err != nil {
		r.t.Fatalf("runs: %v %s", err, errs)
	}
	var list struct{ Runs []struct{ Run string } }
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		r.t.Fatal(err)
	}
	if len(list.Runs) == 0 {
		return ""
	}
	return list.Runs[0].Run
}

// TestKilledAtEveryPoint kills the process before and after each append and each effect.
func TestKilledAtEveryPoint(t *testing.T) {
	for at := int64(1); ; at++ {
		r := newRonda(t)
		s, killed := r.run(at, "run", ".", "Do it.", "--scripted", "--json")
		if !killed {
			if s.Status != "waiting" {
				t.Fatalf("the run ended %+v", s)
			}
			// It only waits for the approval now: kill the life that approves.
			for at2 := int64(1); ; at2++ {
				r := newRonda(t)
				s, _ := r.run(0, "run", ".", "Do it.", "--scripted", "--json")
				if _, killed := r.run(at2, "approve", s.Run, s.Pending[0].Call, "--json"); !killed {
					t.Logf("%d points before the pause, %d after it", at-1, at2-1)
					return
				}
				end, didNot := r.finish(s.Run, func() int64 { return 0 })
				r.check(end, didNot)
				if t.Failed() {
					t.Fatalf("killed at point %d after the pause", at2)
				}
			}
		}
		run := r.firstRun()
		if run == "" {
			continue // it died before anything was promised
		}
		end, didNot := r.finish(run, func() int64 { return 0 })
		r.check(end, didNot)
		if t.Failed() {
			t.Fatalf("killed at point %d", at)
		}
	}
}

// TestKilledAtRandom kills lives at random moments, several times a run. RONDA_KILLS says how many kills; 60 without it.
func TestKilledAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	want := 60
	if v, err := strconv.Atoi(os.Getenv("RONDA_KILLS")); err == nil {
		want = v
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	kills := 0
	for kills < want {
		r := newRonda(t)
		c, _, errs := r.cmd(0, "run", ".", "Do it.", "--scripted", "--json")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rnd.IntN(150))*time.Millisecond, func() { _ = c.Process.Kill() })
		err := c.Wait()
		timer.Stop()
		if err == nil {
			t.Fatalf("want waiting or killed; stderr %s", errs)
		}
		if ee := new(exec.ExitError); errors.As(err, &ee) && ee.Sys().(syscall.WaitStatus).Signaled() {
			kills++
		}
		run := r.firstRun()
		if run == "" {
			continue
		}
		left := rnd.IntN(4)
		end, didNot := r.finish(run, func() int64 {
			if left == 0 {
				return 0
			}
			left--
			kills++
			return 1 + rnd.Int64N(12)
		})
		r.check(end, didNot)
		if t.Failed() {
			t.Fatalf("after %d kills", kills)
		}
	}
	t.Logf("%d kills", kills)
}
