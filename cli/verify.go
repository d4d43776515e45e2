package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

func (c *command) verifyCommand() *cobra.Command {
	return &cobra.Command{Use: "verify RUN|FILE", Short: "Check the chain, the fold and the account of a run's journal", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		if isFile(args[0]) {
			return c.verifyFile(args[0])
		}
		h, run, err := c.target(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		n, err := verifyRun(cmd.Context(), h, run)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s: %d events: chain, fold and account hold\n", run, n)
		return nil
	}}
}

// verifyRun reads a journal again and compares it with what the store and the state say of it.
func verifyRun(ctx context.Context, h *ronda.Host, run string) (n int64, err error) {
	row, err := h.Store().Get(ctx, run)
	if err != nil {
		return 0, err
	}
	var st loop.State
	var usage loop.Usage
	estimated := int64(0)
	held := loop.Reserve{}
	chain := ""
	err = h.Store().Read(ctx, run, 0, func(r journal.Record) error {
		chain = drive.Chain(chain, r.Data)
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return err
		}
		next, err := loop.Next(st, ev)
		if err != nil {
			return fmt.Errorf("event %d does not fold: %w", r.Seq, err)
		}
		switch b := ev.Body.(type) {
		case loop.ModelCallStarted:
			held = b.Reserve
		case loop.ModelReplied:
			usage, estimated = book(usage, estimated, b.Usage, held, true)
		case loop.ModelFailed:
			usage, estimated = book(usage, estimated, b.Usage, held, b.Lost)
		}
		st, n = next, n+1
		return nil
	})
	switch {
	case err != nil:
		return n, fmt.Errorf("run %s: %w", run, err)
	case chain != row.Digest:
		return n, fmt.Errorf("run %s: the chain is broken: the journal's digest is %s, on record is %s. The journal was changed after it was written", run, chain, row.Digest)
	case st.Seq != row.Seq:
		return n, fmt.Errorf("run %s: the journal ends at event %d, on record is %d", run, st.Seq, row.Seq)
	case usage != st.Ledger.Own.Usage:
		was, _ := json.Marshal(st.Ledger.Own.Usage)
		is, _ := json.Marshal(usage)
		return n, fmt.Errorf("run %s: the account is wrong: the events say %s, the ledger %s", run, is, was)
	}
	return n, nil
}

func book(sum loop.Usage, estimated int64, u *loop.Usage, held loop.Reserve, lost bool) (loop.Usage, int64) {
	switch {
	case u != nil:
		return sum.Add(*u), estimated
	case lost:
		e := loop.Usage{Input: held.Input, Output: held.Output}
		return sum.Add(e), estimated + e.Total()
	}
	return sum, estimated
}
