// Package cli is the ronda command as a package, so that a user's own program can have it: cli.Main(agents…) gives it every subcommand
// for the program's agents beside agent files.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
)

// Exit codes.
const (
	ExitCompleted = 0
	ExitFailed    = 1
	ExitUsage     = 2
	ExitWaiting   = 3
	ExitLimit     = 4
	ExitOther     = 5
	ExitCancelled = 130
)

// Builtin is an example that is part of the program: an agent that is made when it is asked for.
type Builtin struct {
	Name  string
	About string
	Model string // wire/name used where --model says nothing
	// Make builds the agent on a model. close frees what it opened.
	Make func(ctx context.Context, m model.Model) (a *drive.Agent, close func() error, err error)
	// Script picks scripted responses for an input; name is what the scripted model is called.
	Script func(input string) (s *scripted.Script, name string, err error)
}

// Program is what the command runs with.
type Program struct {
	Name     string // of the command; "" ronda
	Agents   []*ronda.Agent
	Builtins []Builtin
	In       io.Reader
	Out, Err io.Writer
	Version  string
	Hook     func(drive.Point) error // for tests of crashes: see drive.Options
}

// Main runs the command for a program's own agents and exits.
func Main(agents ...*ronda.Agent) {
	os.Exit(Program{Agents: agents}.Run(os.Args[1:]))
}

// exitError carries an exit code; a nil err says nothing more.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is an error of wrong use: exit code 2.
func usagef(format string, a ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, a...)}
}

// Run runs the command with arguments (without the program's name) and returns its exit code.
func (p Program) Run(args []string) int {
	if p.Name == "" {
		p.Name = "ronda"
	}
	if p.In == nil {
		p.In = os.Stdin
	}
	if p.Out == nil {
		p.Out = os.Stdout
	}
	if p.Err == nil {
		p.Err = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &command{Program: p}
	c.servers.Context = ctx
	c.servers.Note = c.noted
	root := c.root()
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	err := root.ExecuteContext(ctx)
	if cerr := c.close(); err == nil {
		err = cerr
	}
	return c.exit(err)
}

// exit says what went wrong and gives the exit code.
func (c *command) exit(err error) int {
	if err == nil {
		return ExitCompleted
	}
	code := ExitFailed
	var ex *exitError
	if errors.As(err, &ex) {
		code = ex.code
		if ex.err == nil {
			return code
		}
		err = ex.err
	} else if strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "unknown flag") ||
		strings.HasPrefix(err.Error(), "unknown shorthand") || strings.Contains(err.Error(), "arg(s)") || strings.HasPrefix(err.Error(), "flag needs") ||
		strings.HasPrefix(err.Error(), "invalid argument") {
		code = ExitUsage
		err = fmt.Errorf("%w. See %s --help", err, c.Name)
	}
	fmt.Fprintln(c.Err, "ronda: "+explainError(err))
	return code
}

// explainError writes an error for a person: without the names of packages, with what to do next.
func explainError(err error) string {
	text := err.Error()
	for _, prefix := range []string{"drive: ", "ronda: ", "journal: "} {
		text = strings.ReplaceAll(text, prefix, "")
	}
	switch {
	case errors.Is(err, ronda.ErrHeld) && !strings.Contains(text, "wait"):
		text += ". Another process drives this run: wait for it, end it, or record the decision with --record-only"
	case errors.Is(err, drive.ErrUnknownAgent) && !strings.Contains(text, "agents"):
		text += ". ronda agents lists what is known"
	}
	return text
}

// statusCode is the exit code for where a run stands.
func statusCode(r *ronda.Run) int {
	switch {
	case r.Status == loop.StatusWaiting:
		return ExitWaiting
	case r.Status != loop.StatusStopped:
		return ExitFailed
	}
	switch r.Stop {
	case loop.StopCompleted:
		return ExitCompleted
	case loop.StopLimit:
		return ExitLimit
	case loop.StopFailed:
		return ExitFailed
	case loop.StopCancelled:
		return ExitCancelled
	}
	return ExitOther
}

// command is one execution of the program.
type command struct {
	Program
	storeURL string
	json     bool
	by       string
	host     *ronda.Host
	servers  agentfile.Servers // that agent files name
	closers  []func() error
}

func (c *command) close() error {
	var errs []error
	if c.host != nil {
		errs = append(errs, c.host.Close(context.Background()))
	}
	errs = append(errs, c.servers.Close())
	for _, f := range c.closers {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// noted logs what of a server's or a document's definitions could not be used as it is.
func (c *command) noted(note string) { c.logger().Info(note) }

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use: c.Name, Short: "A runtime for agents: runs that stop for a reason, wait for people, and survive anything",
		SilenceUsage: true, SilenceErrors: true, Version: c.Version,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s: %w. See %s --help", cmd.Name(), err, cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&c.storeURL, "store", os.Getenv("RONDA_STORE"), "store URL: sqlite:///path.db, sqlite://relative.db, memory: (default: sqlite in the user's data folder; RONDA_STORE)")
	root.PersistentFlags().StringVar(&c.by, "by", userName(), "who says so: on record (default: the user of the system)")
	root.AddCommand(c.runCommand(), c.runsCommand(), c.showCommand(), c.eventsCommand(), c.resumeCommand(), c.sayCommand(),
		c.approvalsCommand(), c.extendCommand(), c.cancelCommand(), c.resolveCommand(), c.agentsCommand(), c.schemaCommand(), c.verifyCommand(), c.revokeCommand(), c.drillCommand(), c.testCommand(), c.serveCommand(), c.tokenCommand())
	root.AddCommand(c.decideCommands()...)
	root.AddCommand(c.recordingCommands()...)
	return root
}

func userName() string {
	for _, v := range []string{"RONDA_BY", "USER", "LOGNAME", "USERNAME"} {
		if u := os.Getenv(v); u != "" {
			return u
		}
	}
	return "someone"
}
