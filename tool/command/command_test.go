//go:build unix

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

var call = tool.Call{Run: "r1", ID: "1.0", Name: "t", Key: "key-1", Attempt: 2, Args: json.RawMessage(`{"q":"año"}`)}

// shell is a tool that runs a script of the shell.
func shell(t *testing.T, script string, change ...func(*Spec)) tool.Tool {
	t.Helper()
	s := Spec{Def: tool.Def{Name: "t"}, Command: []string{"sh", "-c", script}, Dir: t.TempDir()}
	for _, c := range change {
		c(&s)
	}
	made, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func failure(t *testing.T, err error) *tool.Error {
	t.Helper()
	var e *tool.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%v is no *tool.Error", err)
	}
	return e
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		script string
		want   tool.Result
	}{
		{`cat`, tool.Result{Text: `{"q":"año"}`}},
		{`echo hello; echo aside >&2`, tool.Result{Text: "hello"}},
		{`printf '{"result": {"b": 1, "a": "x"}, "facts": {"paid": "R-1"}}'`,
			tool.Result{Text: `{"b":1,"a":"x"}`, Facts: map[string]json.RawMessage{"paid": json.RawMessage(`"R-1"`)}}},
		{`printf '{"result": "two\\nlines"}'`, tool.Result{Text: "two\nlines"}},
		{`printf 'a\377b'`, tool.Result{Text: "a\ufffdb"}},
		{`:`, tool.Result{}},
		{`echo "$RONDA_IDEMPOTENCY_KEY $RONDA_RUN $RONDA_CALL $RONDA_ATTEMPT"`, tool.Result{Text: "key-1 r1 1.0 2"}},
	} {
		res, err := shell(t, c.script).Run(context.Background(), call)
		if diff := cmp.Diff(c.want, res); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.script, err, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		script string
		want   tool.Error
	}{
		{`echo no such case >&2; exit 1`, tool.Error{Class: loop.ClassError, Message: "no such case"}},
		{`echo on stdout; exit 2`, tool.Error{Class: loop.ClassError, Message: "on stdout"}},
		{`exit 3`, tool.Error{Class: loop.ClassError, Message: "the command ended with exit code 3 and said nothing"}},
		{`echo q: too long >&2; exit 65`, tool.Error{Class: loop.ClassInvalid, Message: "q: too long"}},
		{`echo broken >&2; exit 70`, tool.Error{Class: loop.ClassFatal, Message: "broken"}},
		{`echo busy >&2; exit 75`, tool.Error{Class: loop.ClassTransient, Message: "busy", NotRun: true}},
		{`echo not you >&2; exit 77`, tool.Error{Class: loop.ClassDenied, Message: "not you"}},
		{`echo '{"result": "half done", "facts": {"draft": true}}'; exit 4`,
			tool.Error{Class: loop.ClassError, Message: "half done", Facts: map[string]json.RawMessage{"draft": json.RawMessage("true")}}},
		{`exit 137`, tool.Error{Class: loop.ClassError, Message: "the command ended with exit code 137 and said nothing"}},
		{`echo last words >&2; kill -KILL $$`, tool.Error{Class: loop.ClassUnknown, Message: "the command died by a signal: killed; it said: last words"}},
		{`kill -SEGV $$`, tool.Error{Class: loop.ClassUnknown, Message: "the command died by a signal: segmentation fault"}},
		{`printf 'bad \377' >&2; exit 1`, tool.Error{Class: loop.ClassError, Message: "bad \ufffd"}},
	} {
		res, err := shell(t, c.script).Run(context.Background(), call)
		if diff := cmp.Diff(&c.want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.script, diff)
		}
		if diff := cmp.Diff(tool.Result{}, res); diff != "" {
			t.Errorf("%s: a result beside the error: %s", c.script, diff)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	_, err := shell(t, `i=0; while [ $i -lt 5000 ]; do echo "line é $i" >&2; i=$((i+1)); done; exit 1`).Run(context.Background(), call)
	e := failure(t, err)
	if len(e.Message) > maxStderr+8 || !strings.HasPrefix(e.Message, "… ") || !strings.HasSuffix(e.Message, "line é 4999") || !utf8.ValidString(e.Message) {
		t.Errorf("%d bytes: %.80s", len(e.Message), e.Message)
	}
	_, err = shell(t, `i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done; exit 1`).Run(context.Background(), call)
	if e := failure(t, err); len(e.Message) > maxStderr+8 || !strings.HasPrefix(e.Message, "line 0\n") {
		t.Errorf("%d bytes: %.80s", len(e.Message), e.Message)
	}
}

func TestOutputIsCapped(t *testing.T) {
	made := shell(t, `head -c 3000000 /dev/zero | tr '\0' é`, func(s *Spec) { s.MaxOutput = 1001 })
	res, err := made.Run(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(res.Text, "\n[The output was cut: 1001 of 3000000 bytes are shown.]") || len(res.Text) > 1100*3 {
		t.Errorf("%d bytes: …%s", len(res.Text), res.Text[len(res.Text)-80:])
	}
	made = shell(t, `printf '{"result":"1234567890"}'`, func(s *Spec) { s.MaxOutput = 12 })
	res, err = made.Run(context.Background(), call)
	if want := "{\"result\":\"1\n[The output was cut: 12 of 23 bytes are shown.]"; err != nil || res.Text != want {
		t.Errorf("got %q, %v\nwant %q", res.Text, err, want)
	}
}

func TestInputThatNobodyReads(t *testing.T) {
	big := call
	big.Args = json.RawMessage(`{"q":"` + strings.Repeat("x", 1<<20) + `"}`)
	res, err := shell(t, `echo done`).Run(context.Background(), big)
	if err != nil || res.Text != "done" {
		t.Errorf("got %+v, %v", res, err)
	}
	empty := call
	empty.Args = nil
	if res, err := shell(t, `cat`).Run(context.Background(), empty); err != nil || res.Text != "{}" {
		t.Errorf("no arguments: %+v, %v", res, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("RONDA_TEST_SECRET", "hunter2222")
	t.Setenv("LC_TEST", "x")
	script := `echo "${RONDA_TEST_SECRET-none} ${TOKEN-none} ${LC_TEST-none} ${PATH:+path}"; pwd >&2`
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   string
	}{
		{"secrets stay here", func(*Spec) {}, "none none x path"},
		{"a reference is resolved and hidden again", func(s *Spec) { s.Env = map[string]string{"TOKEN": "Bearer ${RONDA_TEST_SECRET}"} }, "none Bearer ${RONDA_TEST_SECRET} x path"},
		{"inherited when asked for", func(s *Spec) { s.InheritEnv = true }, "hunter2222 none x path"},
	} {
		res, err := shell(t, script, c.change).Run(context.Background(), call)
		if err != nil || res.Text != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, res.Text, err, c.want)
		}
	}
	made := shell(t, `[ "$T" = hunter2222 ] && echo "$T is wrong" >&2; exit 1`, func(s *Spec) { s.Env = map[string]string{"T": "${RONDA_TEST_SECRET}"} })
	_, err := made.Run(context.Background(), call)
	if e := failure(t, err); e.Message != "${RONDA_TEST_SECRET} is wrong" {
		t.Errorf("got %q", e.Message)
	}
	made = shell(t, `:`, func(s *Spec) { s.Env = map[string]string{"T": "${RONDA_TEST_UNSET}"} })
	_, err = made.Run(context.Background(), call)
	want := &tool.Error{Class: loop.ClassFatal, NotRun: true}
	if diff := cmp.Diff(want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" || err.Error() != "env: T: the environment variable RONDA_TEST_UNSET is not set" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("tool.sh", "#!/bin/sh\necho \"$0 $1\"; cat beside.txt\n", 0o755)
	write("beside.txt", "beside\n", 0o644)
	write("plain.txt", "no program\n", 0o644)
	made, err := New(Spec{Def: tool.Def{Name: "t"}, Command: []string{"./tool.sh", "a b"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	res, err := made.Run(context.Background(), call)
	if want := filepath.Join(dir, "tool.sh") + " a b\nbeside"; err != nil || res.Text != want {
		t.Errorf("got %q, %v, want %q", res.Text, err, want)
	}
	if got := made.Def().Destination; got != "./tool.sh a b" {
		t.Errorf("destination %q", got)
	}
	if err := os.Remove(filepath.Join(dir, "tool.sh")); err != nil {
		t.Fatal(err)
	}
	_, err = made.Run(context.Background(), call)
	want := &tool.Error{Class: loop.ClassError, NotRun: true}
	if diff := cmp.Diff(want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" {
		t.Errorf("a program that is gone (-want +got):\n%s", diff)
	}

	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, `command: name the program to run, as a list of the program and its arguments`},
		{Spec{Command: []string{"./none"}}, `command: exec: "` + dir + `/none": stat `},
		{Spec{Command: []string{"./plain.txt"}}, `command: exec: "` + dir + `/plain.txt": permission denied. Check the path`},
		{Spec{Command: []string{"no-such-program-anywhere"}}, `command: exec: "no-such-program-anywhere": executable file not found in $PATH. Check the path`},
		{Spec{Command: []string{"sh", "a\x00b"}}, `command: "a\x00b" holds a NUL`},
		{Spec{Command: []string{"sh"}, Check: []string{"./none"}}, `check: exec: `},
		{Spec{Command: []string{"sh"}, Dir: dir + "/none"}, `dir: ` + dir + `/none is no folder`},
		{Spec{Command: []string{"sh"}, Env: map[string]string{"A=B": ""}}, `env: "A=B" is no name of a variable`},
		{Spec{Command: []string{"sh"}, Env: map[string]string{"RONDA_RUN": ""}}, `env: RONDA_RUN: names that begin with RONDA_ are kept for ronda`},
		{Spec{Command: []string{"sh"}, Env: map[string]string{"A": "${B"}}, `env: A: "${B" is no reference; write ${NAME}`},
		{Spec{Command: []string{"sh"}, MaxOutput: -1}, `max_output and grace must not be negative`},
		{Spec{Command: []string{"sh"}, Def: tool.Def{Effect: "write"}}, `effect: "write" is none`},
	} {
		c.spec.Name = "t"
		if c.spec.Dir == "" {
			c.spec.Dir = dir
		}
		if _, err := New(c.spec); err == nil || !strings.HasPrefix(err.Error(), `tool "t": `+c.want) {
			t.Errorf("New(%+v)\n got %v\nwant tool \"t\": %s", c.spec, err, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		script   string
		happened string
		want     tool.Result
		err      string
	}{
		{`cat; echo " $RONDA_IDEMPOTENCY_KEY"`, loop.HappenedYes, tool.Result{Text: `{"q":"año"} key-1`}, ""},
		{`echo never; exit 1`, loop.HappenedNo, tool.Result{}, ""},
		{`echo cannot tell >&2; exit 2`, loop.HappenedUnknown, tool.Result{}, "the check ended with exit code 2: cannot tell"},
		{`kill -KILL $$`, loop.HappenedUnknown, tool.Result{}, "the check died by a signal: killed"},
	} {
		made := shell(t, `exit 1`, func(s *Spec) { s.Check = []string{"sh", "-c", c.script} })
		if !made.Def().Check {
			t.Fatal("the definition does not say that it can check")
		}
		happened, res, err := made.(tool.Checker).Check(context.Background(), call)
		if diff := cmp.Diff(c.want, res); happened != c.happened || diff != "" || c.err == "" && err != nil || c.err != "" && fmt.Sprint(err) != c.err {
			t.Errorf("%s: %s, %v (-want +got):\n%s", c.script, happened, err, diff)
		}
	}
}

// timedOut is a context whose time is up when the test says so.
type timedOut struct {
	context.Context
	done chan struct{}
}

func (c timedOut) Done() <-chan struct{} { return c.done }

func (c timedOut) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// watch makes a fifo that processes of a script hold open for writing: opened is closed when the first does, gone when the last
// of them is dead.
func watch(t *testing.T, dir string) (opened, gone chan struct{}) {
	t.Helper()
	path := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, gone = make(chan struct{}), make(chan struct{})
	go func() {
		f, err := os.Open(path) // blocks until somebody writes
		if err != nil {
			return
		}
		defer f.Close()
		buf := make([]byte, 1)
		if _, err := io.ReadFull(f, buf); err == nil {
			close(opened)
		}
		_, _ = io.Copy(io.Discard, f)
		close(gone)
	}()
	return opened, gone
}

func TestTimeOutEndsTheWholeGroup(t *testing.T) {
	for _, c := range []struct{ name, script, said string }{
		{"a child and a grandchild", `echo started >&2; exec 3>alive; sh -c 'sleep 1000 & sleep 1000 & echo x >&3; wait' & wait`, "; it said: started"},
		{"who ignore SIGTERM", `trap '' TERM; exec 3>alive; sh -c 'trap "" TERM; echo x >&3; while :; do sleep 1000; done' & while :; do wait; done`, ""},
		{"the program ends at SIGTERM, its child does not", `exec 3>alive; sh -c 'trap "" TERM; echo x >&3; while :; do sleep 1000; done' & trap 'exit 0' TERM; while :; do wait; done`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			opened, gone := watch(t, dir)
			ctx := timedOut{context.Background(), make(chan struct{})}
			go func() { <-opened; close(ctx.done) }()
			made := shell(t, c.script, func(s *Spec) { s.Dir, s.Grace = dir, 100*time.Millisecond })
			_, err := made.Run(ctx, call)
			want := &tool.Error{Class: loop.ClassUnknown, Clock: "tool", Message: "the command took too long and was ended" + c.said}
			if diff := cmp.Diff(want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			<-gone // hangs where a process survives
		})
	}
}

func TestOwnTimeOut(t *testing.T) {
	made := shell(t, `sleep 1000`, func(s *Spec) { s.Timeout, s.Grace = 50*time.Millisecond, 50*time.Millisecond })
	_, err := made.Run(context.Background(), call)
	want := &tool.Error{Class: loop.ClassUnknown, Clock: "tool", Message: "the command took too long and was ended"}
	if diff := cmp.Diff(want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestCancel(t *testing.T) {
	dir := t.TempDir()
	opened, gone := watch(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-opened; cancel() }()
	made := shell(t, `trap 'echo bye; exit 0' TERM; exec 3>alive; sleep 1000 & echo x >&3; wait`, func(s *Spec) { s.Dir = dir })
	_, err := made.Run(ctx, call)
	want := &tool.Error{Class: loop.ClassUnknown, Message: "the command was cancelled and ended; it said: bye"}
	if diff := cmp.Diff(want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	<-gone
	_, err = made.Run(ctx, call)
	want = &tool.Error{Class: loop.ClassUnknown, NotRun: true}
	if diff := cmp.Diff(want, failure(t, err), cmpopts.IgnoreFields(tool.Error{}, "Err")); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
}

// A program that ended is not held up by those who inherited its pipes, and its group ends with it.
func TestStragglers(t *testing.T) {
	dir := t.TempDir()
	_, gone := watch(t, dir)
	made := shell(t, `exec 3>alive; echo x >&3; sleep 1000 & echo done`, func(s *Spec) { s.Dir, s.Grace = dir, 100*time.Millisecond })
	res, err := made.Run(context.Background(), call)
	if err != nil || res.Text != "done" {
		t.Errorf("got %+v, %v", res, err)
	}
	<-gone
}

func TestStragglersOutsideOfTheGroup(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	made, err := New(Spec{Def: tool.Def{Name: "t"}, Dir: dir, Grace: 100 * time.Millisecond,
		Command: []string{"sh", "-c", `setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 1000' & while [ ! -e pid ]; do sleep 0.01; done; echo done`}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := made.Run(context.Background(), call)
	if err != nil || res.Text != "done" {
		t.Errorf("got %+v, %v", res, err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(string(b), &n); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon that left the group is gone: %v", err)
	}
}
