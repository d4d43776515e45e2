package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// public is the program of a public server, as scripts/mcp-servers.sh installs it.
func public(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("RONDA_MCP_SERVERS")
	if dir == "" {
		dir = "../../.tools/mcp-servers"
	}
	path, err := filepath.Abs(filepath.Join(dir, "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed: run scripts/mcp-servers.sh, or set RONDA_MCP_SERVERS", name)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	return path
}

func open(t *testing.T, spec Spec) *Server {
	t.Helper()
	s, err := Connect(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// pick finds a tool by the name that a model sees.
func pick(t *testing.T, s *Server, name string) tool.Tool {
	t.Helper()
	var names []string
	for _, tl := range s.Tools() {
		if tl.Def().Name == name {
			return tl
		}
		names = append(names, tl.Def().Name)
	}
	t.Fatalf("there is no tool %s; there are %s", name, strings.Join(names, ", "))
	return nil
}

func call(t *testing.T, tl tool.Tool, args any) tool.Result {
	t.Helper()
	res, err := try(t, tl, args)
	if err != nil {
		t.Fatalf("%s: %v", tl.Def().Name, err)
	}
	return res
}

func try(t *testing.T, tl tool.Tool, args any) (tool.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return tl.Run(t.Context(), tool.Call{Run: "r", ID: "c", Name: tl.Def().Name, Key: "key-1", Attempt: 1, Args: raw})
}

type args = map[string]any

// effectsOf lists effect and approval of each tool.
func effectsOf(s *Server) map[string]string {
	out := map[string]string{}
	for _, tl := range s.Tools() {
		d := tl.Def()
		out[d.Name] = string(d.Effect) + " " + string(d.Approval)
	}
	return out
}

func TestPublicFilesystem(t *testing.T) {
	bin := public(t, "mcp-server-filesystem")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.md"), []byte("# Returns\n30 days.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, Spec{Command: []string{bin, dir}})
	got := effectsOf(s)
	for name, want := range map[string]string{"read_text_file": "read allow", "list_directory": "read allow", "write_file": "idempotent ask", "edit_file": "once ask", "create_directory": "idempotent allow"} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	read := pick(t, s, "read_text_file")
	if d := read.Def().Destination; !strings.HasPrefix(d, bin+" "+dir+" (secure-filesystem-server ") {
		t.Errorf("destination %q", d)
	}
	if res := call(t, read, args{"path": filepath.Join(dir, "policy.md")}); !strings.Contains(res.Text, "30 days.") || res.More != nil {
		t.Errorf("read: %+v", res)
	}
	call(t, pick(t, s, "write_file"), args{"path": filepath.Join(dir, "new.txt"), "content": "año"})
	if b, err := os.ReadFile(filepath.Join(dir, "new.txt")); err != nil || string(b) != "año" {
		t.Errorf("written: %q, %v", b, err)
	}
	_, err = try(t, read, args{"path": "/etc/passwd"})
	if e := tool.AsError(err); e == nil || e.Class != loop.ClassError || !strings.Contains(e.Message, "denied") {
		t.Errorf("outside of its folders: %v", err)
	}
	if len(s.Notes()) > 0 {
		t.Errorf("notes: %q", s.Notes())
	}
}

func TestPublicFilesystemIsGoneAfterClose(t *testing.T) {
	bin := public(t, "mcp-server-filesystem")
	dir := t.TempDir()
	s := open(t, Spec{Command: []string{"sh", "-c", `exec 3<&0; node "$0" "$1" <&3 & wait`, bin, dir}}) // a child of the program
	ss, err := s.current()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := signalGroup(ss.program.cmd.Process); err == nil {
		t.Error("the group of the program is still there")
	}
	_, err = try(t, pick(t, s, "list_allowed_directories"), args{})
	if !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A server that was killed is started again for the next call.
func TestPublicFilesystemKilled(t *testing.T) {
	bin := public(t, "mcp-server-filesystem")
	dir := t.TempDir()
	s := open(t, Spec{Command: []string{bin, dir}})
	tl := pick(t, s, "list_allowed_directories")
	before := call(t, tl, args{})
	ss, err := s.current()
	if err != nil {
		t.Fatal(err)
	}
	ss.program.kill()
	<-ss.gone
	if diff := cmp.Diff(before, call(t, tl, args{})); diff != "" {
		t.Error(diff)
	}
	if now, err := s.current(); err != nil || now == ss {
		t.Errorf("the same connection, %v", err)
	}
}

func TestPublicMemory(t *testing.T) {
	bin := public(t, "mcp-server-memory")
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	t.Setenv("RONDA_TEST_MEMORY", file)
	s := open(t, Spec{Command: []string{bin}, Env: map[string]string{"MEMORY_FILE_PATH": "${RONDA_TEST_MEMORY}"}, Offer: tool.Offer{Prefix: "mem_"}})
	call(t, pick(t, s, "mem_create_entities"), args{"entities": []any{args{"name": "Ana", "entityType": "person", "observations": []string{"likes tea"}}}})
	res := call(t, pick(t, s, "mem_read_graph"), args{})
	var graph struct {
		Entities []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(res.Text), &graph); err != nil || len(graph.Entities) != 1 || graph.Entities[0].Name != "Ana" {
		t.Errorf("%v: %+v", err, res)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the variable was not passed on: %v", err)
	}
}

func everything(t *testing.T, s *Server) {
	t.Helper()
	if res := call(t, pick(t, s, "echo"), args{"message": "hola"}); res.Text != "Echo: hola" {
		t.Errorf("echo: %+v", res)
	}
	res := call(t, pick(t, s, "get-tiny-image"), args{})
	var media []string
	for _, b := range res.More {
		if b.Media != nil {
			media = append(media, fmt.Sprint(b.Media.MIME, " ", len(b.Media.Data) > 100))
		}
	}
	if !slices.Equal(media, []string{"image/png true"}) || res.Text == "" {
		t.Errorf("image: %q, text %q", media, res.Text)
	}
	res = call(t, pick(t, s, "get-structured-content"), args{"location": "New York"})
	if !strings.Contains(res.Text, "temperature") || res.More != nil || strings.Contains(res.Text, "does not fit") {
		t.Errorf("structured: %+v", res)
	}
	if pick(t, s, "get-structured-content").Def().Output == nil {
		t.Error("no schema of the result")
	}
	res = call(t, pick(t, s, "get-resource-reference"), args{"resourceType": "Text", "resourceId": 1})
	if !strings.Contains(res.Text, "[Resource demo://") {
		t.Errorf("resource: %+v", res)
	}
	res = call(t, pick(t, s, "get-resource-links"), args{"count": 2})
	if strings.Count(res.Text, "[Resource ") != 2 {
		t.Errorf("links: %+v", res)
	}
	_, err := try(t, pick(t, s, "echo"), args{"message": 7})
	if e := tool.AsError(err); e == nil || e.Class != loop.ClassError && e.Class != loop.ClassInvalid {
		t.Errorf("bad arguments: %v", err)
	}
}

func TestPublicEverything(t *testing.T) {
	s := open(t, Spec{Command: []string{public(t, "mcp-server-everything"), "stdio"}})
	everything(t, s)
	t.Setenv("RONDA_TEST_SECRET", "not to be passed")
	if res := call(t, pick(t, s, "get-env"), args{}); strings.Contains(res.Text, "RONDA_TEST_SECRET") || !strings.Contains(res.Text, "PATH") {
		t.Errorf("environment: %s", res.Text)
	}
}

// Progress keeps a call alive beyond the idle time, but not beyond the longest time.
func TestPublicEverythingProgress(t *testing.T) {
	bin := public(t, "mcp-server-everything")
	s := open(t, Spec{Command: []string{bin, "stdio"}, Idle: 3 * time.Second})
	if res := call(t, pick(t, s, "trigger-long-running-operation"), args{"duration": 4, "steps": 16}); !strings.Contains(res.Text, "completed") {
		t.Errorf("%+v", res)
	}
	idle := open(t, Spec{Command: []string{bin, "stdio"}, Idle: 300 * time.Millisecond})
	_, err := try(t, pick(t, idle, "trigger-long-running-operation"), args{"duration": 60, "steps": 1})
	want := &tool.Error{Class: loop.ClassUnknown, Clock: "tool", Message: errIdle.Error()}
	if diff := cmp.Diff(want, tool.AsError(err), ignoreErr); diff != "" {
		t.Errorf("no progress (-want +got):\n%s", diff)
	}
	long := open(t, Spec{Command: []string{bin, "stdio"}, MaxTime: 500 * time.Millisecond})
	_, err = try(t, pick(t, long, "trigger-long-running-operation"), args{"duration": 60, "steps": 600})
	want.Message = errLong.Error()
	if diff := cmp.Diff(want, tool.AsError(err), ignoreErr); diff != "" {
		t.Errorf("progress for ever (-want +got):\n%s", diff)
	}
}

func TestPublicEverythingOverHTTP(t *testing.T) {
	bin := public(t, "mcp-server-everything")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(bin, "streamableHttp")
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	p, err := run(cmd, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(); _ = p.end() })
	url := fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	for up := false; !up; { // until it listens
		select {
		case <-p.exited:
			t.Fatalf("the server ended: %s", p.said())
		case <-time.After(50 * time.Millisecond):
			resp, err := nethttp.Get(url)
			if up = err == nil; up {
				resp.Body.Close()
			}
		}
	}
	s := open(t, Spec{URL: url})
	everything(t, s)
	if d := pick(t, s, "echo").Def().Destination; !strings.HasPrefix(d, url+" (") {
		t.Errorf("destination %q", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pick(t, s, "echo").Run(ctx, tool.Call{Args: json.RawMessage(`{"message":"x"}`)}); !tool.AsError(err).NotRun {
		t.Errorf("cancelled before: %+v", err)
	}
}
