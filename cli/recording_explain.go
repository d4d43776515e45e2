package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

func (c *command) explainCommand() *cobra.Command {
	var change string
	cmd := &cobra.Command{Use: "explain RUN|FILE", Short: "Say why a run took what it took: what stopped it, what repeated, where nothing new came, what to do about it",
		Long: "--what-if folds the run again under another configuration, without a model: rounds=5,stall=2,tokens=10000,cost_usd=0.1,on_limit=stop,\n" +
			"repairs=1,nudges=0, deny=TOOL and ask=TOOL (a policy that would have denied or asked).",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			rec, err := c.recordingOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("what-if") {
				return c.whatIf(rec, change)
			}
			x := recording.Explain(rec.Root().Events)
			if c.json {
				return c.printJSON(x)
			}
			fmt.Fprint(c.Out, x.Text())
			for _, child := range rec.Runs[1:] {
				fmt.Fprintf(c.Out, "\nchild %s (%s): %s\n", child.Run, child.Agent, recording.Explain(child.Events).Summary)
			}
			return nil
		}}
	cmd.Flags().StringVar(&change, "what-if", "", "what another configuration would have done")
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
	return cmd
}

func (c *command) whatIf(rec *recording.Recording, change string) error {
	ch, err := parseChange(change)
	if err != nil {
		return err
	}
	out, err := recording.WhatIf(rec.Root().Events, ch)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(out)
	}
	fmt.Fprintf(c.Out, "%s: %s\n", change, out.Text())
	return nil
}

// parseChange reads rounds=5,stall=2,deny=pay.
func parseChange(s string) (ch recording.Change, err error) {
	var limits []string
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "" {
			return ch, usagef("--what-if %q: want name=value, such as rounds=5 or stall=2", part)
		}
		number := func(to **int64) error {
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 0 {
				return usagef("--what-if %s: %q is no whole number", name, value)
			}
			*to = &n
			return nil
		}
		switch name {
		case "stall":
			err = number(&ch.Stall)
		case "nudges":
			err = number(&ch.Nudges)
		case "repairs":
			err = number(&ch.Repairs)
		case "on_limit":
			if value != "close" && value != "stop" && value != "pause" {
				return ch, usagef("--what-if on_limit=%s: use close, stop or pause", value)
			}
			ch.OnLimit = value
		case "deny":
			ch.Deny = append(ch.Deny, value)
		case "ask":
			ch.Ask = append(ch.Ask, value)
		default:
			limits = append(limits, part)
		}
		if err != nil {
			return ch, err
		}
	}
	if len(limits) > 0 {
		l, err := parseLimits(strings.Join(limits, ","), false)
		if err != nil {
			return ch, err
		}
		if ch.Limits, err = l.Loop(); err != nil {
			return ch, usagef("--what-if: %w", err)
		}
	}
	return ch, nil
}

func (c *command) diffCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "diff A B", Short: "Align two runs (or files) round by round and mark the first difference", Args: cobra.ExactArgs(2), RunE: func(cmd *cobra.Command, args []string) error {
		var events [2][]loop.Event
		for i, name := range args {
			rec, err := c.recordingOf(cmd.Context(), name)
			if err != nil {
				return err
			}
			events[i] = rec.Root().Events
		}
		d := recording.Diff(events[0], events[1])
		if c.json {
			return c.printJSON(d)
		}
		fmt.Fprint(c.Out, d.Text())
		return nil
	}}
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
	return cmd
}

func (c *command) forkCommand() *cobra.Command {
	var at int64
	var agent, script, limits, say string
	var o origin
	var f runFlags
	cmd := &cobra.Command{Use: "fork RUN --at SEQ", Short: "Start a new run from a prefix of an old one, with another agent, model or limits; nothing of the prefix is done again",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if at < 1 {
				return usagef("fork: --at is missing: the event after which the new run begins. %s events %s lists them", c.Name, args[0])
			}
			l, err := parseLimits(limits, false)
			if err != nil {
				return err
			}
			h, run, err := c.target(ctx, args[0])
			if err != nil {
				return err
			}
			was, err := c.forkOrigin(ctx, run)
			if err != nil {
				return err
			}
			if agent != "" {
				was = origin{Agent: c.absolute(agent), Input: was.Input}
			}
			if o.Model != "" {
				was.Model, was.BaseURL, was.Scripted, was.Script = o.Model, o.BaseURL, false, ""
			}
			if cmd.Flags().Changed("scripted") {
				was.Scripted, was.Script = true, ""
				if script != scriptOfAgent {
					was.Script = c.absolute(script)
				}
			}
			a, err := c.make(ctx, was)
			if err != nil {
				return err
			}
			id := "run_" + uuid.Must(uuid.NewV7()).String()
			if err := c.keepOrigin(ctx, h.Store(), id, was); err != nil {
				return err
			}
			s := drive.Start{Agent: a, ID: id, Limits: l, By: c.by}
			if say != "" {
				s.Input = drive.Text(say)
			}
			forked, done, err := h.BeginFork(ctx, run, at, s)
			if err != nil {
				_ = h.Store().DeleteDoc(ctx, originSpace, id)
				return err
			}
			fmt.Fprintf(c.Err, "%s: from event %d of %s\n", forked, at, run)
			return c.watch(ctx, h, forked, at, done, f)
		}}
	cmd.Flags().Int64Var(&at, "at", 0, "the last event that the new run repeats")
	cmd.Flags().StringVar(&agent, "agent", "", "another agent: a file, a folder, an example")
	cmd.Flags().StringVar(&o.Model, "model", "", "another provider/model")
	cmd.Flags().StringVar(&o.BaseURL, "base-url", "", "address of the provider, for compatible servers")
	cmd.Flags().StringVar(&script, "scripted", "", "answer with scripted responses: the agent's own, or those of FILE")
	cmd.Flags().Lookup("scripted").NoOptDefVal = scriptOfAgent
	cmd.Flags().StringVar(&limits, "limit", "", "limits in place of the run's: rounds=8,cost_usd=0.5 …")
	cmd.Flags().StringVar(&say, "say", "", "a message after the prefix")
	f.add(cmd, c)
	return cmd
}

// forkOrigin says how the agent of a run is made again.
func (c *command) forkOrigin(ctx context.Context, run string) (origin, error) {
	o, ok, err := c.originOf(ctx, run)
	if err != nil || ok {
		return o, err
	}
	row, err := c.host.Store().Get(ctx, run)
	return origin{Agent: row.Agent}, err
}
