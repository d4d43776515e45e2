package agentfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

// CheckSpec is a program that looks at the end of a run with its own eyes.
type CheckSpec struct {
	Args []string // program and arguments; a program with a slash begins at the agent file's folder
	Dir  string
	Line int
}

func (r *reader) check(n *node, c *drive.Contract) {
	before := r.p.Len()
	s := CheckSpec{Dir: r.f.Dir, Line: n.Line}
	r.p.Object(n, yamldoc.Keys{"command": func(n *node) { s.Args = r.program(n) }})
	r.needs(n, "command")
	if r.p.Len() > before {
		return
	}
	makes := r.o.Check
	if makes == nil {
		makes = RunCheck
	}
	check, err := makes(s)
	if err != nil {
		r.p.Add(n, err.Error(), "")
		return
	}
	c.Check, c.CheckName = check, strings.Join(s.Args, " ")
}

// maxMissing bounds what a check may say, in bytes.
const maxMissing = 4096

// RunCheck makes a check that runs a program in the agent file's folder. It gets {"run", "answer", "facts"} as JSON on its
// standard input. Exit 0: the contract holds; 1: it does not, and each line of the standard output is something that is
// missing; any other exit is an error of the check itself.
func RunCheck(s CheckSpec) (func(context.Context, drive.Evidence) ([]string, bool, error), error) {
	return func(ctx context.Context, e drive.Evidence) ([]string, bool, error) {
		in, err := json.Marshal(struct {
			Run    string               `json:"run"`
			Answer string               `json:"answer"`
			Facts  map[string]loop.Fact `json:"facts"`
		}{e.Run, e.Answer, e.Facts})
		if err != nil {
			return nil, false, fmt.Errorf("check of the contract: %w", err)
		}
		var out, warn bytes.Buffer
		cmd := exec.CommandContext(ctx, program(s.Dir, s.Args[0]), s.Args[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Dir, bytes.NewReader(in), &out, &warn
		err = cmd.Run()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil, false, nil
		case errors.As(err, &exit) && exit.ExitCode() == 1:
			return missing(out.String()), false, nil
		}
		return nil, true, fmt.Errorf("check of the contract: %s: %w: %s", s.Args[0], err, cut(strings.TrimSpace(warn.String())))
	}, nil
}

// program finds a program with a slash in its name from the agent file's folder.
func program(dir, name string) string {
	if !strings.ContainsRune(name, '/') || filepath.IsAbs(name) {
		return name
	}
	if abs, err := filepath.Abs(filepath.Join(dir, name)); err == nil {
		return abs
	}
	return filepath.Join(dir, name)
}

func missing(out string) []string {
	var lines []string
	for l := range strings.Lines(cut(out)) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return []string{"the check does not say what"}
	}
	return lines
}

func cut(s string) string {
	if len(s) > maxMissing {
		s = s[:maxMissing] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
