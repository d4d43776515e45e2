package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// runFlags are those of commands that drive a run in this process.
type runFlags struct {
	stream bool
	tty    bool // --approve-on-tty
	quiet  bool
}

func (f *runFlags) add(cmd *cobra.Command, c *command) {
	cmd.Flags().BoolVar(&f.stream, "stream", false, "print the answer as it is written")
	cmd.Flags().BoolVar(&f.tty, "approve-on-tty", false, "ask here for approvals instead of stopping")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
}

func (c *command) runCommand() *cobra.Command {
	var o origin
	var f runFlags
	var session, limits, script string
	cmd := &cobra.Command{
		Use: "run AGENT [INPUT]", Short: "Run an agent to its stop or to the first thing that needs a person",
		Long: "AGENT is a file, a folder with agent.yaml, or the name of a built-in example. INPUT is the task; without it, it is read from standard input.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			input, err := c.input(args[1:])
			if err != nil {
				return err
			}
			l, err := parseLimits(limits, false)
			if err != nil {
				return err
			}
			o.Agent, o.Input = c.absolute(args[0]), input
			o.Scripted = cmd.Flags().Changed("scripted")
			if o.Scripted && script != scriptOfAgent {
				if o.Script, err = filepath.Abs(script); err != nil {
					return err
				}
			}
			a, err := c.make(ctx, o)
			if err != nil {
				return err
			}
			h, err := c.open()
			if err != nil {
				return err
			}
			return c.startRun(ctx, h, a, o, session, l, f)
		},
	}
	cmd.Flags().StringVar(&o.Model, "model", "", "provider/model instead of the agent's")
	cmd.Flags().StringVar(&o.BaseURL, "base-url", "", "address of the provider, for compatible servers")
	cmd.Flags().StringVar(&script, "scripted", "", "answer with scripted responses: the agent's own, or those of FILE")
	cmd.Flags().Lookup("scripted").NoOptDefVal = scriptOfAgent
	cmd.Flags().StringVar(&session, "session", "", "the session that the run belongs to")
	cmd.Flags().StringVar(&limits, "limit", "", "limits in place of the agent's: rounds=8,cost_usd=0.5,active_time=2m …")
	f.add(cmd, c)
	return cmd
}

// scriptOfAgent is --scripted without a file.
const scriptOfAgent = "\x00"

func (c *command) startRun(ctx context.Context, h *ronda.Host, a *drive.Agent, o origin, session string, l *drive.Limits, f runFlags) error {
	id := "run_" + uuid.Must(uuid.NewV7()).String()
	if err := c.keepOrigin(ctx, h.Store(), id, o); err != nil {
		return err
	}
	run, work, err := h.Begin(ctx, drive.Start{Agent: a, Input: drive.Text(o.Input), ID: id, Session: session, Limits: l, By: c.by})
	if err != nil {
		return errors.Join(err, h.Store().DeleteDoc(ctx, originSpace, id))
	}
	return c.watch(ctx, h, run, 0, work, f)
}

// watch shows progress until the driver lets go, asks on the terminal where it may, and reports.
func (c *command) watch(ctx context.Context, h *ronda.Host, run string, after int64, work *drive.Background, f runFlags) error {
	p := c.progress(f)
	for {
		last := p.follow(ctx, h, run, after, work.Done())
		if ctx.Err() != nil {
			return c.interrupted(h, run)
		}
		if err := work.Err(); err != nil {
			return fmt.Errorf("run %s was let go: %w. %s resume %s goes on once that is mended; nothing that is on record is lost", run, err, c.Name, run)
		}
		r, err := h.Get(ctx, run)
		if err != nil {
			return err
		}
		if !f.tty || r.Status != loop.StatusWaiting {
			return c.report(r, p)
		}
		again, err := c.ask(ctx, h, r)
		if err != nil {
			return err
		}
		if !again {
			return c.report(r, p)
		}
		after, work = last, h.ResumeInBackground(run)
	}
}

// interrupted lets go of the run: it is not cancelled, and can be resumed.
func (c *command) interrupted(h *ronda.Host, run string) error {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	err := h.Shutdown(ctx)
	return &exitError{ExitCancelled, errors.Join(fmt.Errorf("interrupted: run %s was let go, nothing of it is lost. %s resume %s goes on; %s cancel %s ends it", run, c.Name, run, c.Name, run), err)}
}

func (c *command) input(args []string) (string, error) {
	if len(args) > 0 && args[0] != "-" {
		return args[0], nil
	}
	if len(args) == 0 && isTerminal(c.In) {
		return "", usagef("the input is missing: say what the agent is to do, as the last argument or on standard input")
	}
	b, err := io.ReadAll(io.LimitReader(c.In, 16<<20))
	if err != nil {
		return "", fmt.Errorf("read the input: %w", err)
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", usagef("the input is empty: say what the agent is to do, as the last argument or on standard input")
	}
	return text, nil
}

// parseLimits reads rounds=8,cost_usd=0.5 (or rounds=+5 where amounts are added).
func parseLimits(s string, add bool) (*drive.Limits, error) {
	if s == "" {
		return nil, nil
	}
	var l drive.Limits
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, usagef("limit %q: want name=value, such as rounds=8", part)
		}
		if add {
			value = strings.TrimPrefix(value, "+")
		}
		if err := setLimit(&l, name, value); err != nil {
			return nil, usagef("limit %s: %w", name, err)
		}
	}
	return &l, nil
}

func setLimit(l *drive.Limits, name, value string) error {
	count := func(zero int64) (int64, error) {
		n, err := strconv.ParseInt(value, 10, 32)
		switch {
		case err != nil && name == loop.LimitTokens:
			n, err = strconv.ParseInt(value, 10, 64)
		}
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is no whole number", value)
		case n < 0:
			return 0, fmt.Errorf("%d is negative; a limit of 0 means nothing", n)
		case n == 0:
			return zero, nil
		}
		return n, nil
	}
	duration := func(to *time.Duration) error {
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no length of time, such as 90s or 2m", value)
		case d < 0:
			return fmt.Errorf("%v is negative", d)
		case d == 0:
			d = drive.Zero
		}
		*to = d
		return nil
	}
	switch name {
	case loop.LimitRounds, loop.LimitModelCalls, loop.LimitToolCalls, loop.LimitTokens:
		n, err := count(drive.Zero)
		switch name {
		case loop.LimitRounds:
			l.Rounds = int(n)
		case loop.LimitModelCalls:
			l.ModelCalls = int(n)
		case loop.LimitToolCalls:
			l.ToolCalls = int(n)
		default:
			l.Tokens = n
		}
		return err
	case "cost_usd", loop.LimitCost:
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no amount of dollars", value)
		case v < 0:
			return fmt.Errorf("%v is negative", v)
		case v == 0:
			v = drive.ZeroUSD
		}
		l.CostUSD = v
		return nil
	case loop.LimitActiveTime:
		return duration(&l.ActiveTime)
	case loop.LimitDeadline:
		return duration(&l.Deadline)
	}
	return errors.New("there is no such limit. Use rounds, model_calls, tool_calls, tokens, cost_usd, active_time or deadline")
}

func (c *command) resumeCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{Use: "resume RUN", Short: "Go on with a run after a crash or a decision", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		run, err := c.find(cmd.Context(), h, args[0])
		if err != nil {
			return err
		}
		return c.resume(cmd.Context(), h, run, f)
	}}
	f.add(cmd, c)
	return cmd
}

// resume goes on with a run in this process and shows what happens. What it cannot do it says: Resume fails before anything happens.
func (c *command) resume(ctx context.Context, h *ronda.Host, run string, f runFlags) error {
	before, err := h.Get(ctx, run)
	if err != nil {
		return err
	}
	if before.Status == loop.StatusStopped {
		return c.report(before, c.progress(f))
	}
	err = c.watch(ctx, h, run, before.Row.Seq, h.ResumeInBackground(run), f)
	if errors.Is(err, journal.ErrHeld) || errors.Is(err, drive.ErrChanged) {
		return errors.Unwrap(err) // nothing was let go: the run was never taken
	}
	return err
}

func (c *command) sayCommand() *cobra.Command {
	var f runFlags
	var supersede, recordOnly bool
	cmd := &cobra.Command{Use: "say RUN|SESSION TEXT", Short: "Say something: to a live run at its next safe point, else in a new run of the session", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			h, err := c.open()
			if err != nil {
				return err
			}
			text, err := c.input(args[1:])
			if err != nil {
				return err
			}
			last, err := c.lastOf(ctx, h, args[0])
			if err != nil {
				return err
			}
			if last.Status != loop.StatusStopped {
				if err := h.Message(ctx, last.ID, drive.Text(text), c.by, supersede); err != nil {
					return err
				}
				return c.goOn(ctx, h, last.ID, recordOnly, f)
			}
			o, ok, err := c.originOf(ctx, last.ID)
			if err != nil {
				return err
			}
			if !ok {
				o = origin{Agent: last.Agent}
			}
			a, err := c.make(ctx, o)
			if err != nil {
				return err
			}
			if !o.Scripted || o.Script != "" {
				o.Input = text
			}
			first := o.Input
			o.Input = text
			return c.startRunAs(ctx, h, a, o, first, last.Session, f)
		}}
	cmd.Flags().BoolVar(&supersede, "supersede", false, "what waits for an approval is answered \"not run\"")
	cmd.Flags().BoolVar(&recordOnly, "record-only", false, "put it on record and leave the run to another process")
	f.add(cmd, c)
	return cmd
}

// startRunAs starts a run whose origin keeps the words that chose the script.
func (c *command) startRunAs(ctx context.Context, h *ronda.Host, a *drive.Agent, o origin, chosenBy, session string, f runFlags) error {
	text := o.Input
	o.Input = chosenBy
	id := "run_" + uuid.Must(uuid.NewV7()).String()
	if err := c.keepOrigin(ctx, h.Store(), id, o); err != nil {
		return err
	}
	run, work, err := h.Begin(ctx, drive.Start{Agent: a, Input: drive.Text(text), ID: id, Session: session, By: c.by})
	if err != nil {
		return errors.Join(err, h.Store().DeleteDoc(ctx, originSpace, id))
	}
	return c.watch(ctx, h, run, 0, work, f)
}

// lastOf finds the run, or the last run of the session, that a name means.
func (c *command) lastOf(ctx context.Context, h *ronda.Host, name string) (journal.Run, error) {
	page, err := h.Store().List(ctx, journal.Query{Session: name, Roots: true, Limit: 1})
	if err != nil {
		return journal.Run{}, err
	}
	if len(page.Runs) > 0 {
		return page.Runs[0], nil
	}
	id, err := c.find(ctx, h, name)
	if err != nil {
		return journal.Run{}, err
	}
	row, err := h.Store().Get(ctx, id)
	if err != nil {
		return row, err
	}
	page, err = h.Store().List(ctx, journal.Query{Session: row.Session, Roots: true, Limit: 1})
	if err == nil && len(page.Runs) > 0 {
		row = page.Runs[0]
	}
	return row, err
}

// ask puts what waits to the person at the terminal. again says that something was decided.
func (c *command) ask(ctx context.Context, h *ronda.Host, r *ronda.Run) (again bool, err error) {
	in := bufio.NewScanner(c.In)
	for _, p := range r.Pending {
		if p.Kind != loop.WaitApproval {
			continue
		}
		fmt.Fprintf(c.Err, "\n%s wants to run:\n  %s %s\n", r.Agent, p.Tool, pretty(p.Args))
		if p.Reason != "" {
			fmt.Fprintf(c.Err, "  because %s\n", p.Reason)
		}
		fmt.Fprint(c.Err, "Write yes to approve exactly this, no [reason] to refuse, anything else to leave it waiting: ")
		if !in.Scan() {
			return again, nil
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(in.Text()), " ")
		dec := drive.Decision{By: c.by, Digest: p.Digest, Message: strings.TrimSpace(rest)}
		switch strings.ToLower(word) {
		case "yes":
			dec.Decision = loop.Approve
		case "no":
			dec.Decision = loop.Reject
		default:
			return again, nil
		}
		if err := h.Decide(ctx, r.ID, p.Call, dec); err != nil {
			return again, err
		}
		again = true
	}
	return again, nil
}
