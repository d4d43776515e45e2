package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/recording"
	"github.com/ronda-go/ronda/recording/foreign"
)

// recordingCommands work on recordings: files, or runs of the store.
func (c *command) recordingCommands() []*cobra.Command {
	return []*cobra.Command{c.replayCommand(), c.explainCommand(), c.diffCommand(), c.forkCommand(), c.exportCommand(), c.importCommand()}
}

// isFile says whether a name is that of a file rather than of a run.
func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && !st.IsDir()
}

// recordingOf reads a file, or takes a run out of the store.
func (c *command) recordingOf(ctx context.Context, name string) (*recording.Recording, error) {
	if isFile(name) {
		rec, err := recording.Open(name)
		if errors.Is(err, recording.ErrFormat) {
			list, ferr := foreign.Open(name)
			if ferr != nil {
				return nil, usagef("%w", ferr)
			}
			return list[0], nil
		}
		return rec, err
	}
	if strings.HasSuffix(name, recording.ZipExt) || strings.HasSuffix(name, recording.LineExt) {
		return nil, usagef("%s: there is no such file", name)
	}
	h, run, err := c.target(ctx, name)
	if err != nil {
		return nil, err
	}
	return h.Recording(ctx, run)
}

func (c *command) exportCommand() *cobra.Command {
	var out, capture string
	var secrets []string
	var redact bool
	cmd := &cobra.Command{Use: "export RUN -o FILE.ronda", Short: "Write a run, with its children, as a recording: one file that replays anywhere",
		Long: "FILE.ronda is a zip that one can jump into, FILE.ronda.jsonl is lines of JSON; - is standard output (lines).\n" +
			"--capture no_deltas leaves out the pieces of streams, --capture metadata keeps times, counters and names only.\n" +
			"--redact replaces what looks like a key or token; --redact-env NAME replaces the value of a variable, wherever it stands.",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			rec, err := c.recordingOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if out == "" {
				out = rec.Header.Run + recording.ZipExt
			}
			switch recording.Capture(capture) {
			case recording.Full, recording.NoDeltas, recording.Metadata:
				rec.Header.Capture = recording.Capture(capture)
			case "":
			default:
				return usagef("export: --capture %s is unknown. Use full, no_deltas or metadata", capture)
			}
			rec.Header.Source.Version = c.Version
			o := recording.WriteOptions{Salt: make([]byte, 16)}
			if _, err := rand.Read(o.Salt); err != nil {
				return err
			}
			if o.Redactor, err = redactorFor(redact, secrets); err != nil {
				return err
			}
			return c.writeRecording(rec, out, o)
		}}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file (default: RUN.ronda)")
	cmd.Flags().StringVar(&capture, "capture", "", "full, no_deltas or metadata")
	cmd.Flags().BoolVar(&redact, "redact", false, "replace what looks like a key or a token")
	cmd.Flags().StringArrayVar(&secrets, "redact-env", nil, "replace the value of this variable of the environment (may be given more than once)")
	return cmd
}

// redactorFor makes a redactor; nil where nothing is to be redacted.
func redactorFor(patterns bool, vars []string) (*recording.Redactor, error) {
	if !patterns && len(vars) == 0 {
		return nil, nil
	}
	var list []recording.Secret
	for _, v := range vars {
		value := os.Getenv(v)
		if value == "" {
			return nil, usagef("--redact-env %s: the variable is not set", v)
		}
		list = append(list, recording.Secret{Name: v, Value: value})
	}
	policy := "secrets"
	var p []recording.Pattern
	if patterns {
		p = recording.Patterns()
		policy = "secrets+patterns"
	}
	return recording.NewRedactor(policy, list, p)
}

func (c *command) writeRecording(rec *recording.Recording, out string, o recording.WriteOptions) error {
	form := recording.Zipped
	switch {
	case out == "-":
		return rec.Write(c.Out, recording.Lines, o)
	case strings.HasSuffix(out, recording.LineExt) || strings.HasSuffix(out, ".jsonl"):
		form = recording.Lines
	case !strings.HasSuffix(out, recording.ZipExt):
		return usagef("export: %s: name the file .ronda or .ronda.jsonl", out)
	}
	f, err := os.CreateTemp(dirOf(out), ".ronda-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = rec.Write(f, form, o)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		return fmt.Errorf("export to %s: %w", out, err)
	}
	events := 0
	for _, r := range rec.Runs {
		events += len(r.Events)
	}
	fmt.Fprintf(c.Err, "%s: %d events of %d runs\n", out, events, len(rec.Runs))
	return nil
}

func dirOf(path string) string {
	if i := strings.LastIndexAny(path, "/\\"); i >= 0 {
		return path[:i+1]
	}
	return "."
}

func (c *command) importCommand() *cobra.Command {
	var as, sample string
	cmd := &cobra.Command{Use: "import FILE", Short: "Store a recording, or another tool's transcript, as a run that has stopped",
		Long: "Understood are ronda's own recordings, transcripts of Claude Code, rollouts of Codex, .eval logs of inspect, AG-UI event streams and\n" +
			"OTLP JSON with gen_ai spans. The run can then be shown, replayed, explained, compared and exported; it cannot be resumed.",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if !isFile(args[0]) {
				return usagef("import %s: there is no such file", args[0])
			}
			list, err := importable(args[0])
			if err != nil {
				return err
			}
			if sample != "" {
				if list = pickSample(list, sample); len(list) == 0 {
					return usagef("import %s: it has no sample %s", args[0], sample)
				}
			}
			if as != "" && len(list) > 1 {
				return usagef("import %s: --as names one run, the file holds %d. Pick one with --sample", args[0], len(list))
			}
			h, err := c.open()
			if err != nil {
				return err
			}
			for _, rec := range list {
				if err := c.import1(ctx, h, rec, as); err != nil {
					return err
				}
			}
			return nil
		}}
	cmd.Flags().StringVar(&as, "as", "", "the id of the run in this store")
	cmd.Flags().StringVar(&sample, "sample", "", "of a file with several runs only the one whose id ends with this")
	return cmd
}

func importable(path string) ([]*recording.Recording, error) {
	rec, err := recording.Open(path)
	if err == nil {
		if rec.Broken != nil {
			return nil, fmt.Errorf("import %s: %w", path, rec.Broken)
		}
		return []*recording.Recording{rec}, nil
	}
	if !errors.Is(err, recording.ErrFormat) {
		return nil, err
	}
	list, ferr := foreign.Open(path)
	if errors.Is(ferr, foreign.ErrUnknown) {
		return nil, fmt.Errorf("import: %w (as a recording: %w)", ferr, err)
	}
	return list, ferr
}

func pickSample(list []*recording.Recording, sample string) []*recording.Recording {
	for _, rec := range list {
		if strings.HasSuffix(rec.Header.Run, sample) {
			return []*recording.Recording{rec}
		}
	}
	return nil
}

func (c *command) import1(ctx context.Context, h *ronda.Host, rec *recording.Recording, as string) error {
	done, err := h.Import(ctx, rec, as, c.by)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Out, done.Run)
	src := rec.Header.Source
	fmt.Fprintf(c.Err, "%s: %d events from %s, pace %s", done.Run, len(rec.Root().Events), src.Name, rec.Header.Pace)
	switch {
	case done.Known:
		fmt.Fprint(c.Err, "; the store had it already")
	case done.Settled > 0:
		fmt.Fprintf(c.Err, "; it had not ended, so it was cancelled here (%d events added)", done.Settled)
	}
	fmt.Fprintln(c.Err)
	for _, n := range src.Notes {
		fmt.Fprintf(c.Err, "  %s\n", n)
	}
	return nil
}

// verifyFile checks a recording file.
func (c *command) verifyFile(path string) error {
	rec, err := recording.Open(path)
	if err != nil {
		return err
	}
	rep := recording.Verify(rec)
	if !rep.OK() {
		return fmt.Errorf("%s: %w", path, errors.Join(rep.Problems...))
	}
	tail := ""
	if rep.CutOff {
		tail = "; the file was cut off: what is there is right"
	}
	what := "chain, fold and account hold"
	if rec.Header.Capture == recording.Metadata {
		what = "the chain holds (metadata only: nothing to fold)"
	}
	fmt.Fprintf(c.Out, "%s: %d events, %d deltas, %d runs: %s%s\n", path, rep.Events, rep.Deltas, rep.Runs, what, tail)
	return nil
}
