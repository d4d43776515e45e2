package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

func (c *command) decideCommands() []*cobra.Command {
	return []*cobra.Command{
		c.decideCommand("approve", "Let a pending call run, exactly as it was shown", loop.Approve),
		c.decideCommand("reject", "Refuse a pending call; the refusal holds for its effect and the run", loop.Reject),
		c.decideCommand("edit", "Let a pending call run with other arguments", loop.Edit),
	}
}

func (c *command) decideCommand(name, about, decision string) *cobra.Command {
	var f runFlags
	var dec drive.Decision
	var args string
	var always []string
	var forSession, recordOnly bool
	var ttl time.Duration
	cmd := &cobra.Command{Use: name + " RUN CALL", Short: about, Args: cobra.ExactArgs(2), RunE: func(cmd *cobra.Command, a []string) error {
		ctx := cmd.Context()
		h, run, err := c.target(ctx, a[0])
		if err != nil {
			return err
		}
		dec.Decision, dec.By = decision, c.by
		if decision == loop.Edit {
			if args == "" {
				return usagef("edit: --args is missing: give the new arguments as JSON")
			}
			dec.Args = json.RawMessage(args)
		}
		if cmd.Flags().Changed("always") {
			if dec.Always, err = scope(always, forSession, ttl); err != nil {
				return err
			}
		}
		if err := h.Decide(ctx, run, a[1], dec); err != nil {
			return c.withPending(ctx, h, run, err)
		}
		return c.goOn(ctx, h, run, recordOnly, f)
	}}
	cmd.Flags().StringVarP(&dec.Message, "message", "m", "", "a word to the model and the record")
	cmd.Flags().StringVar(&dec.Digest, "digest", "", "only if the call still has this digest")
	cmd.Flags().BoolVar(&recordOnly, "record-only", false, "put it on record and leave the run to another process")
	if decision == loop.Edit {
		cmd.Flags().StringVar(&args, "args", "", "the new arguments, as JSON")
	}
	if decision == loop.Approve {
		cmd.Flags().StringArrayVar(&always, "always", nil, "also approve later calls whose arguments match, such as path=/tmp/* (may be given more than once; '' for any arguments)")
		cmd.Flags().BoolVar(&forSession, "for-session", false, "with --always: for the whole session, not only this run")
		cmd.Flags().DurationVar(&ttl, "for", 0, "with --always: no longer than this")
	}
	f.add(cmd, c)
	return cmd
}

func scope(patterns []string, session bool, ttl time.Duration) (*drive.Scope, error) {
	s := &drive.Scope{Args: map[string]string{}, Session: session}
	for _, p := range patterns {
		if p == "" {
			continue
		}
		name, pattern, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usagef("--always %q: want argument=pattern, such as path=/tmp/*", p)
		}
		s.Args[name] = pattern
	}
	if ttl > 0 {
		s.Until = loop.Micros(time.Now().Add(ttl).UnixMicro())
	}
	return s, nil
}

// target opens the store and finds the run.
func (c *command) target(ctx context.Context, name string) (*ronda.Host, string, error) {
	h, err := c.open()
	if err != nil {
		return nil, "", err
	}
	run, err := c.find(ctx, h, name)
	return h, run, err
}

// withPending adds to a refused decision what could be decided.
func (c *command) withPending(ctx context.Context, h *ronda.Host, run string, err error) error {
	if !errors.Is(err, ronda.ErrNotFound) && !errors.Is(err, ronda.ErrConflict) {
		return err
	}
	r, gerr := h.Get(ctx, run)
	if gerr != nil {
		return err
	}
	var calls []string
	for _, p := range r.Pending {
		if p.Call != "" {
			calls = append(calls, p.Call+" ("+p.Tool+")")
		}
	}
	if len(calls) == 0 {
		return fmt.Errorf("%w. Nothing of this run waits for a decision; %s show %s tells more", err, c.Name, run)
	}
	return fmt.Errorf("%w. Pending: %s", err, strings.Join(calls, ", "))
}

// goOn drives the run after something was put on record, unless another process does.
func (c *command) goOn(ctx context.Context, h *ronda.Host, run string, recordOnly bool, f runFlags) error {
	if !recordOnly {
		err := c.resume(ctx, h, run, f)
		if !errors.Is(err, journal.ErrHeld) {
			return err
		}
		fmt.Fprintln(c.Err, "on record; another process drives the run and goes on with it")
	}
	r, err := h.Get(ctx, run)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(jsonOf(r))
	}
	if recordOnly {
		fmt.Fprintf(c.Err, "on record. %s resume %s goes on\n", c.Name, run)
	}
	return nil
}

func (c *command) resolveCommand() *cobra.Command {
	var f runFlags
	var happened, recordOnly bool
	var message string
	var facts []string
	cmd := &cobra.Command{Use: "resolve RUN CALL --happened=true|false", Short: "Say whether an effect whose outcome is unknown happened", Args: cobra.ExactArgs(2), RunE: func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("happened") {
			return usagef("resolve: --happened is missing: look whether the effect happened, then say --happened=true or --happened=false")
		}
		h, run, err := c.target(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		values, err := parseFacts(facts)
		if err != nil {
			return err
		}
		if err := h.Resolve(cmd.Context(), run, args[1], happened, c.by, message, values); err != nil {
			return c.withPending(cmd.Context(), h, run, err)
		}
		return c.goOn(cmd.Context(), h, run, recordOnly, f)
	}}
	cmd.Flags().BoolVar(&happened, "happened", false, "whether the effect happened")
	cmd.Flags().StringVarP(&message, "message", "m", "", "a word to the model and the record")
	cmd.Flags().StringArrayVar(&facts, "fact", nil, "a fact that the effect established, name=JSON")
	cmd.Flags().BoolVar(&recordOnly, "record-only", false, "put it on record and leave the run to another process")
	f.add(cmd, c)
	return cmd
}

func parseFacts(list []string) (map[string]loop.Value, error) {
	var out map[string]loop.Value
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usagef("--fact %q: want name=value", s)
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			raw, _ = json.Marshal(value)
		}
		if out == nil {
			out = map[string]loop.Value{}
		}
		out[name] = raw
	}
	return out, nil
}

func (c *command) extendCommand() *cobra.Command {
	var f runFlags
	var recordOnly bool
	cmd := &cobra.Command{Use: "extend RUN rounds=+5[,…]", Short: "Raise limits of a run", Args: cobra.ExactArgs(2), RunE: func(cmd *cobra.Command, args []string) error {
		l, err := parseLimits(args[1], true)
		if err != nil {
			return err
		}
		if l == nil {
			return usagef("extend: nothing to add. Say for example rounds=+5")
		}
		h, run, err := c.target(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := h.Extend(cmd.Context(), run, *l, c.by); err != nil {
			return err
		}
		return c.goOn(cmd.Context(), h, run, recordOnly, f)
	}}
	cmd.Flags().BoolVar(&recordOnly, "record-only", false, "put it on record and leave the run to another process")
	f.add(cmd, c)
	return cmd
}

func (c *command) cancelCommand() *cobra.Command {
	var f runFlags
	var reason string
	var recordOnly bool
	cmd := &cobra.Command{Use: "cancel RUN", Short: "End a run; what is under way is told to end", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		h, run, err := c.target(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := h.Cancel(cmd.Context(), run, c.by, reason); err != nil {
			return err
		}
		return c.goOn(cmd.Context(), h, run, recordOnly, f)
	}}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why")
	cmd.Flags().BoolVar(&recordOnly, "record-only", false, "put it on record and leave the run to another process")
	f.add(cmd, c)
	return cmd
}

func (c *command) revokeCommand() *cobra.Command {
	return &cobra.Command{Use: "revoke RUN STANDING", Short: "End a standing approval (show lists them)", Args: cobra.ExactArgs(2), RunE: func(cmd *cobra.Command, args []string) error {
		h, run, err := c.target(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := h.Revoke(cmd.Context(), run, args[1], c.by); err != nil {
			return err
		}
		fmt.Fprintln(c.Err, "on record")
		return nil
	}}
}

func (c *command) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "approvals", Short: "List what waits for a person", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		list := []pendingJSON{}
		q := journal.Query{Status: loop.StatusWaiting, Roots: true, Limit: 200}
		for {
			page, err := h.Store().List(cmd.Context(), q)
			if err != nil {
				return err
			}
			for _, row := range page.Runs {
				r, err := h.Get(cmd.Context(), row.ID)
				if err != nil {
					return err
				}
				if c.json {
					for _, p := range r.Pending {
						j := pendingOf("", p)
						j.Run = r.ID
						list = append(list, j)
					}
					continue
				}
				fmt.Fprintf(c.Out, "%s %s · %s\n", r.ID, r.Agent, short(row.Title, 60))
				old := c.Err
				c.Err = c.Out
				c.next(r)
				c.Err = old
			}
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
		if c.json {
			return c.printJSON(map[string]any{"approvals": list})
		}
		return nil
	}}
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}
