package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// held keeps the client's side of the newest connection, so that a test can cut it.
type held struct {
	sdk.Transport
	conn *atomic.Pointer[sdk.Connection]
}

func (h held) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := h.Transport.Connect(ctx)
	if err == nil {
		h.conn.Store(&c)
	}
	return c, err
}

func hold(spec Spec) (Spec, *atomic.Pointer[sdk.Connection]) {
	conn, makes := &atomic.Pointer[sdk.Connection]{}, spec.Transport
	spec.Transport = func(ctx context.Context) (sdk.Transport, error) {
		tr, err := makes(ctx)
		return held{tr, conn}, err
	}
	return spec, conn
}

// A connection that dies during a call leaves it unknown; it is not sent again, and the next call makes a new connection.
func TestTheConnectionDiesDuringACall(t *testing.T) {
	w := newWorld("dies", "1")
	spec, conn := hold(w.spec())
	var calls atomic.Int32
	w.add("t", nil, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if calls.Add(1) == 1 {
			(*conn.Load()).Close()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return says("alive")(nil, nil)
	})
	s := open(t, spec)
	tl := pick(t, s, "t")
	_, err := try(t, tl, args{})
	if e := tool.AsError(err); e == nil || e.Class != loop.ClassUnknown || e.NotRun || !strings.HasPrefix(e.Message, "the connection to the MCP server ended before its answer: ") {
		t.Errorf("got %+v", e)
	}
	if res := call(t, tl, args{}); res.Text != "alive" || calls.Load() != 2 {
		t.Errorf("got %+v after %d calls", res, calls.Load())
	}
}

// A connection that died between calls is made again before the next one is sent.
func TestTheConnectionDiesBetweenCalls(t *testing.T) {
	w := newWorld("between", "1")
	spec, conn := hold(w.spec())
	var calls atomic.Int32
	w.add("t", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return says(fmt.Sprint("call ", calls.Add(1)))(nil, nil)
	})
	s := open(t, spec)
	for _, want := range []string{"call 1", "call 2", "call 3"} {
		if res := call(t, pick(t, s, "t"), args{}); res.Text != want {
			t.Errorf("got %+v, want %s", res, want)
		}
		ss, err := s.current()
		if err != nil {
			t.Fatal(err)
		}
		(*conn.Load()).Close()
		<-ss.gone
	}
}

func TestAServerThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("away", "1")
		w.add("t", nil, says("here"))
		spec, conn := hold(w.spec())
		makes, away, tries := spec.Transport, atomic.Bool{}, 0
		spec.Transport = func(ctx context.Context) (sdk.Transport, error) {
			if away.Load() {
				tries++
				return nil, errors.New("nobody is there")
			}
			return makes(ctx)
		}
		s, err := Connect(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		away.Store(true)
		(*conn.Load()).Close()
		synctest.Wait()
		tl := pick(t, s, "t")
		start := time.Now()
		_, err = try(t, tl, args{})
		want := &tool.Error{Class: loop.ClassTransient, NotRun: true, Message: "the MCP server is not reached: nobody is there"}
		if diff := cmp.Diff(want, tool.AsError(err), ignoreErr); diff != "" || tries != maxConnects {
			t.Errorf("after %d tries (-want +got):\n%s", tries, diff)
		}
		if took := time.Since(start); took < firstPause {
			t.Errorf("no pause between the tries: %v", took)
		}
		away.Store(false)
		if res := call(t, tl, args{}); res.Text != "here" {
			t.Errorf("got %+v", res)
		}
	})
}

// Idle and longest time, and progress that keeps a call alive, on a virtual clock.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("clocks", "1")
		w.add("t", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Steps, Seconds int }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			for i := range in.Steps {
				select {
				case <-time.After(time.Duration(in.Seconds) * time.Second):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
				if err != nil {
					return nil, err
				}
			}
			return says("done")(nil, nil)
		})
		spec := w.spec()
		spec.Idle, spec.MaxTime = 10*time.Second, time.Minute
		spec.Overrides = []tool.Override{{Name: "t", Def: tool.Def{Timeout: 8 * time.Second}}}
		s, err := Connect(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, c := range []struct {
			steps, seconds int
			want           error
			took           time.Duration
		}{
			{8, 7, nil, 56 * time.Second},
			{1, 9, errIdle, 8 * time.Second},
			{10, 7, errLong, time.Minute},
		} {
			start := time.Now()
			_, err := try(t, pick(t, s, "t"), args{"steps": c.steps, "seconds": c.seconds})
			e := tool.AsError(err)
			if c.want == nil && err != nil || c.want != nil && (e == nil || e.Class != loop.ClassUnknown || e.Clock != "tool" || e.NotRun || e.Message != c.want.Error()) {
				t.Errorf("%d times %d s: %+v", c.steps, c.seconds, e)
			}
			if took := time.Since(start); took != c.took {
				t.Errorf("%d times %d s took %v, want %v", c.steps, c.seconds, took, c.took)
			}
		}
	})
}

// Changes are told; tools that an agent has keep their definition, and what is another tool now is not called.
func TestChanges(t *testing.T) {
	w := newWorld("changes", "1")
	w.add("gone", nil, says("gone"))
	w.add("kept", nil, says("kept"))
	w.add("other", nil, says("before"))
	w.add("reads", &sdk.ToolAnnotations{ReadOnlyHint: true}, says("before"))
	w.add("words", nil, says("before"))
	var mu sync.Mutex
	got := map[string]string{}
	all := make(chan struct{})
	spec := w.spec()
	spec.OnChange = func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		got[c.Tool] += c.Kind + " "
		if (c.Was == "") != (c.Kind == "added") || (c.Is == "") != (c.Kind == "removed") {
			t.Errorf("%+v", c)
		}
		if c.Tool == "last" {
			close(all)
		}
	}
	s := open(t, spec)
	before := map[string]tool.Tool{}
	for _, tl := range s.Tools() {
		before[tl.Def().Name] = tl
	}
	w.RemoveTools("gone")
	input := json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`)
	for _, n := range []string{"other", "reads"} {
		w.AddTool(&sdk.Tool{Name: n, InputSchema: input, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: n == "reads"}}, says("after"))
	}
	w.AddTool(&sdk.Tool{Name: "words", Description: "Better words.", InputSchema: json.RawMessage(`{"type":"object"}`)}, says("after"))
	w.add("last", nil, says("last"))
	<-all
	want := map[string]string{"gone": "removed ", "other": "changed ", "reads": "changed ", "words": "reworded ", "last": "added "}
	mu.Lock()
	for name, kinds := range want { // the server may have told in between, so that a change came in two parts
		if !strings.HasSuffix(got[name], kinds) {
			t.Errorf("%s: %q, want %q", name, got[name], kinds)
		}
	}
	if _, ok := got["kept"]; ok {
		t.Errorf("kept: %q", got["kept"])
	}
	mu.Unlock()
	for name, want := range map[string]string{"kept": "kept", "words": "after", "reads": "after",
		"gone":  "the MCP server does not offer gone any more; it was not called",
		"other": "the MCP server has changed other since this run was given it; it was not called. Resume the run to take the new definition"} {
		res, err := try(t, before[name], args{})
		if err != nil {
			if e := tool.AsError(err); e.Class != loop.ClassError || !e.NotRun {
				t.Errorf("%s: %+v", name, e)
			}
			res.Text = err.Error()
		}
		if res.Text != want {
			t.Errorf("%s: %q, want %q", name, res.Text, want)
		}
	}
	if res := call(t, pick(t, s, "other"), args{"to": "x"}); res.Text != "after" {
		t.Errorf("the new definition: %+v", res)
	}
}

func TestProgramsThatDoNotServe(t *testing.T) {
	t.Setenv("RONDA_TEST_TOKEN", "hunter2222")
	for _, c := range []struct {
		spec Spec
		want []string
	}{
		{Spec{Command: []string{"no-such-program-anywhere"}}, []string{`mcp: no-such-program-anywhere: command: exec: "no-such-program-anywhere": executable file not found`}},
		{Spec{Command: []string{"sh", "-c", "echo wrong folder >&2; exit 3"}}, []string{"wrong folder"}},
		{Spec{Command: []string{"sh", "-c", "echo no key $KEY >&2"}, Env: map[string]string{"KEY": "${RONDA_TEST_TOKEN}"}}, []string{"no key ${RONDA_TEST_TOKEN}"}},
		{Spec{Command: []string{"sh", "-c", "exec sleep 1000"}, ConnectTime: 300 * time.Millisecond}, []string{"there was no answer within 300ms"}},
		{Spec{}, []string{"mcp: want exactly one of command and url"}},
		{Spec{Command: []string{"x"}, URL: "http://x/"}, []string{"mcp: want exactly one of command and url"}},
		{Spec{URL: "http://u:p@x/"}, []string{"mcp: url: credentials do not belong here"}},
		{Spec{URL: "x"}, []string{`mcp: url: "x" is not absolute`}},
		{Spec{URL: "http://x/", Headers: map[string]string{"Mcp-Session-Id": "x"}}, []string{"mcp: headers: Mcp-Session-Id: this header is not yours to set"}},
		{Spec{Command: []string{"x"}, Env: map[string]string{"A": "${"}}, []string{`mcp: env: A: "${" is no reference; write ${NAME}`}},
		{Spec{Command: []string{"x"}, MaxTime: -1}, []string{"mcp: times and max_result must not be negative"}},
	} {
		c.spec.Grace = 200 * time.Millisecond
		if _, err := exec.LookPath("sh"); err != nil {
			t.Skip("there is no sh here")
		}
		s, err := Connect(t.Context(), c.spec)
		if err == nil {
			s.Close()
			t.Errorf("%+v connects", c.spec)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v:\n got %v\nwant %s", c.spec, err, want)
			}
		}
		if strings.Contains(err.Error(), "hunter2222") {
			t.Errorf("a secret: %v", err)
		}
	}
}

// TestMain is a server on the standard streams where the tests start this program as one.
func TestMain(m *testing.M) {
	if how := os.Getenv("MCP_TEST_SERVER"); how != "" {
		serveStdio(how)
		return
	}
	os.Exit(m.Run())
}

func serveStdio(how string) {
	w := newWorld("stdio", "1")
	w.add("t", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if how == "dies" {
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(9)
		}
		return says(os.Getenv("MCP_TEST_SAYS"))(nil, nil)
	})
	_ = w.Run(context.Background(), &sdk.StdioTransport{})
}

func TestAProgram(t *testing.T) {
	t.Setenv("RONDA_TEST_TOKEN", "hunter2222")
	spec := func(how string) Spec {
		return Spec{Command: []string{os.Args[0]}, Env: map[string]string{"MCP_TEST_SERVER": how, "MCP_TEST_SAYS": "I know ${RONDA_TEST_TOKEN}"}}
	}
	s := open(t, spec("serves"))
	if res := call(t, pick(t, s, "t"), args{}); res.Text != "I know ${RONDA_TEST_TOKEN}" {
		t.Errorf("got %+v", res)
	}
	_, err := try(t, pick(t, open(t, spec("dies")), "t"), args{})
	if e := tool.AsError(err); e == nil || e.Class != loop.ClassUnknown || e.NotRun || !strings.Contains(e.Message, "the program said: out of memory") {
		t.Errorf("got %+v", e)
	}
}
