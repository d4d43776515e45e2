package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// passed are the variables that every program gets, as command tools do. None of them holds a secret by its purpose.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "XDG_RUNTIME_DIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "WINDIR",
}

// program is a server that was started.
type program struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	grace  time.Duration
	stderr tail
	exited chan struct{} // closed when the program has ended and what was left of its group was killed
	wrote  atomic.Int64  // bytes that it was sent
	once   sync.Once
}

// start starts the server's program in a process group of its own.
func (s *Server) start(hide *secrets) (*program, error) {
	dir, err := filepath.Abs(s.spec.Dir)
	if err != nil {
		return nil, &permanentError{fmt.Errorf("dir: %w", err)}
	}
	path := s.spec.Command[0]
	if strings.ContainsRune(path, '/') || strings.ContainsRune(path, filepath.Separator) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, &permanentError{fmt.Errorf("command: %w. Check the path, that the file exists and that it may be executed", err)}
	}
	env, err := s.environment(hide)
	if err != nil {
		return nil, &permanentError{err}
	}
	cmd := exec.Command(found, s.spec.Command[1:]...)
	cmd.Args[0], cmd.Dir, cmd.Env = s.spec.Command[0], dir, env
	return run(cmd, s.spec.Grace)
}

func (s *Server) environment(hide *secrets) ([]string, error) {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.spec.Env)) {
		v, err := hide.expand(s.spec.Env[name])
		if err != nil {
			return nil, fmt.Errorf("env: %s: %w", name, err)
		}
		env = append(env, name+"="+v)
	}
	return env, nil
}

// run starts a command. The pipes are files, so that the end of the program is seen at once, whoever else holds them.
func run(cmd *exec.Cmd, grace time.Duration) (*program, error) {
	p := &program{cmd: cmd, grace: grace, exited: make(chan struct{})}
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	in, stdin, err1 := pipe()
	stdout, out, err2 := pipe()
	stderr, errs, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, fmt.Errorf("start the program: %w", err)
	}
	p.stdin, p.stdout = stdin, stdout
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		closeAll()
		return nil, fmt.Errorf("start the program: %w", err)
	}
	in.Close()
	out.Close()
	errs.Close()
	heard := make(chan struct{})
	go func() {
		_, _ = io.Copy(&p.stderr, stderr)
		stderr.Close()
		close(heard)
	}()
	go func() {
		_ = cmd.Wait()
		killGroup(cmd.Process)
		select {
		case <-heard:
		case <-time.After(grace): // somebody outside of the group holds the pipe
		}
		close(p.exited)
	}()
	return p, nil
}

// said is the end of what the program wrote to its standard error.
func (p *program) said() string { return strings.TrimSpace(p.stderr.text()) }

// kill ends the whole group at once.
func (p *program) kill() { killGroup(p.cmd.Process) }

// end ends the program: its input is closed; if it does not go within the grace time, its group gets SIGTERM, and after
// another grace time SIGKILL.
func (p *program) end() error {
	p.once.Do(func() {
		p.stdin.Close()
		for _, next := range []func(){func() { terminate(p.cmd.Process) }, p.kill, nil} {
			select {
			case <-p.exited:
				return
			case <-time.After(p.grace):
			}
			if next != nil {
				next()
			}
		}
	})
	select {
	case <-p.exited:
		return nil
	default:
		return errors.New("the program does not end")
	}
}

func (p *program) transport(maxLine int) sdk.Transport {
	return &sdk.IOTransport{Reader: p.stdout, Writer: toProgram{p}, MaxLineLength: maxLine}
}

// toProgram counts what it writes; closing it ends the program.
type toProgram struct{ p *program }

func (w toProgram) Write(b []byte) (int, error) {
	n, err := w.p.stdin.Write(b)
	w.p.wrote.Add(int64(n))
	return n, err
}

func (w toProgram) Close() error { return w.p.end() }

// noting is a transport that notes in an attempt whether its call was sent. program may be nil.
type noting struct {
	sdk.Transport
	program *program
}

func (t noting) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &notingConn{Connection: c, program: t.program}, nil
}

type notingConn struct {
	sdk.Connection
	program *program
	mu      sync.Mutex // one write at a time, so that the bytes are those of this one
}

func (c *notingConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	at := attemptOf(ctx)
	if r, ok := msg.(*jsonrpc.Request); !ok || at == nil || r.Method != "tools/call" {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.Connection.Write(ctx, msg)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	before := int64(0)
	if c.program != nil {
		before = c.program.wrote.Load()
	}
	at.sent.Store(true)
	err := c.Connection.Write(ctx, msg)
	if err != nil && c.program != nil && c.program.wrote.Load() == before {
		at.sent.Store(false)
	}
	return err
}

// maxStderr bounds what is kept of a program's standard error.
const maxStderr = 4 << 10

// tail keeps the last bytes of what is written.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxStderr; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.buf), "\ufffd")
}
