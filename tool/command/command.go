// Package command makes tools from programs: arguments as JSON on standard input, the result on standard output, the class
// of an error in the exit code.
package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// Exit codes with a meaning; 65, 70, 75 and 77 are those of sysexits.h. Every other one but 0 is an ordinary error.
const (
	ExitInvalid   = 65 // EX_DATAERR: the model can mend the arguments
	ExitFatal     = 70 // EX_SOFTWARE: the run stops
	ExitTransient = 75 // EX_TEMPFAIL: it did not happen; worth another attempt
	ExitDenied    = 77 // EX_NOPERM
)

// Defaults of a Spec.
const (
	DefaultMaxOutput = 10 << 20
	DefaultGrace     = time.Second // less than the grace time of a run, so that the run still hears how the command ended
)

// Spec describes a command tool. Zero values are useful but for the name and the command.
type Spec struct {
	// Def is what the tool declares. Check is set by New. An empty Destination becomes the command line as it is written,
	// so that an approval binds it.
	tool.Def
	// Command is the program and its arguments; no shell is involved. A program with a slash is relative to Dir, one
	// without is looked up in PATH, both when the tool is made.
	Command []string
	Dir     string // the working folder; "": that of this process
	// Env is added to the environment. Values may refer to variables of this process as ${NAME}; they are resolved at each
	// call, and hidden again in what the command says.
	Env map[string]string
	// InheritEnv passes the whole environment of this process on, its secrets included. Else the command gets only what
	// names no secret: PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_*, TZ, TMPDIR, TERM and the like.
	InheritEnv bool
	// Check is a command that tells whether the effect of a call happened, without changing anything. It gets the same
	// input and environment. Exit 0: it did, with the result on standard output; 1: it did not; else nobody knows.
	Check     []string
	MaxOutput int           // bytes of standard output that are kept; 0: 10 MiB
	Grace     time.Duration // between SIGTERM and SIGKILL, and for output after the program's own end; 0: 1 s
}

// New makes the tool. It fails where the program cannot be found or run, or where Env is wrong; the error names the field.
//
// A call's time-out (Def.Timeout, or the end of the context) sends SIGTERM to the whole process group, and SIGKILL after the
// grace time; it is an error of class unknown whatever the program makes of it. A program that dies by a signal is unknown,
// too. When the program ends by itself, what is left of its process group is killed: work does not outlive its call. A program
// that means to leave a daemon behind must put it into a session of its own.
//
// The error's message is what the program wrote to standard error (its last 4 KiB), else the head of its output. Facts of a
// {"result", "facts"} object count on errors too.
func New(s Spec) (tool.Tool, error) {
	wrap := func(err error) (tool.Tool, error) { return nil, fmt.Errorf("tool %q: %w", s.Name, err) }
	if err := s.checkEnv(); err != nil {
		return wrap(err)
	}
	if s.MaxOutput < 0 || s.Grace < 0 {
		return wrap(errors.New("max_output and grace must not be negative"))
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return wrap(fmt.Errorf("dir: %w", err))
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return wrap(fmt.Errorf("dir: %s is no folder", dir))
	}
	p := program{dir: dir, env: maps.Clone(s.Env), inherit: s.InheritEnv, timeout: s.Timeout, maxOutput: s.MaxOutput, grace: s.Grace}
	if p.maxOutput == 0 {
		p.maxOutput = DefaultMaxOutput
	}
	if p.grace == 0 {
		p.grace = DefaultGrace
	}
	run, err := p.resolve("command", s.Command)
	if err != nil {
		return wrap(err)
	}
	if s.Destination == "" {
		s.Destination = strings.Join(s.Command, " ")
	}
	s.Def.Check = false
	var opts []tool.Option
	if len(s.Check) > 0 {
		check, err := p.resolve("check", s.Check)
		if err != nil {
			return wrap(err)
		}
		opts = append(opts, tool.CheckCalls(func(ctx context.Context, c tool.Call) (string, tool.Result, error) {
			return check.check(ctx, c)
		}))
	}
	t := tool.New(s.Def, run.run, opts...)
	if _, err := tool.Verify(t); err != nil {
		return nil, err
	}
	return t, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s *Spec) checkEnv() error {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(name) {
			return fmt.Errorf("env: %q is no name of a variable", name)
		}
		if strings.HasPrefix(name, "RONDA_") {
			return fmt.Errorf("env: %s: names that begin with RONDA_ are kept for ronda", name)
		}
		if strings.ContainsRune(s.Env[name], 0) {
			return fmt.Errorf("env: %s: the value holds a NUL", name)
		}
		if err := tool.CheckReferences(s.Env[name]); err != nil {
			return fmt.Errorf("env: %s: %w", name, err)
		}
	}
	return nil
}

// resolve finds the program and returns p with it.
func (p program) resolve(field string, command []string) (*program, error) {
	if len(command) == 0 || command[0] == "" {
		return nil, fmt.Errorf("%s: name the program to run, as a list of the program and its arguments", field)
	}
	for _, a := range command {
		if strings.ContainsRune(a, 0) {
			return nil, fmt.Errorf("%s: %q holds a NUL", field, a)
		}
	}
	path := command[0]
	if strings.ContainsRune(path, '/') || strings.ContainsRune(path, filepath.Separator) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.dir, path)
		}
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w. Check the path, that the file exists and that it may be executed", field, err)
	}
	p.path, p.args = found, command
	return &p, nil
}

// passed are the variables that every command gets. None of them holds a secret by its purpose.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "XDG_RUNTIME_DIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "WINDIR",
}

// environment makes the environment of one call.
func (p *program) environment(call tool.Call, secrets *tool.Secrets) ([]string, error) {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if p.inherit || slices.Contains(passed, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		v, err := secrets.Expand(p.env[name], os.LookupEnv)
		if err != nil {
			return nil, &tool.Error{Class: loop.ClassFatal, NotRun: true, Err: fmt.Errorf("env: %s: %w", name, err)}
		}
		env = append(env, name+"="+v)
	}
	return append(env,
		"RONDA_IDEMPOTENCY_KEY="+call.Key,
		"RONDA_RUN="+call.Run,
		"RONDA_CALL="+call.ID,
		fmt.Sprintf("RONDA_ATTEMPT=%d", max(call.Attempt, 1)),
	), nil
}
