package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

func (c *command) replayCommand() *cobra.Command {
	var o recording.PlayerOptions
	var wait time.Duration
	var plain, check bool
	cmd := &cobra.Command{Use: "replay RUN|FILE", Short: "Play a run or a recording at its own pace; --check gives its answers to today's loop",
		Long: "On a terminal: space plays and pauses, ←/→ go by event, [ and ] by round, , and . slower and faster, 0–9 to a tenth, / searches\n" +
			"(n, N), e unfolds thoughts, ? helps, q quits. Elsewhere, or with --plain, it prints lines: at once, or with --speed at that pace.\n" +
			"--check plays nothing: it runs the recorded answers through the loop of this version and reports the first difference.",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			rec, err := c.recordingOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if check {
				return c.checkRecording(rec)
			}
			if o.Speed < 0 {
				return usagef("replay: --speed %v is negative", o.Speed)
			}
			o.MaxWait = loop.Micros(wait.Microseconds())
			if wait == 0 {
				o.MaxWait = loop.Millisecond // nothing is left of waits
			}
			c.warnOf(rec)
			in, tty := c.In.(*os.File)
			if plain || !tty || !isTerminal(c.In) || !isTerminal(c.Out) {
				paced := cmd.Flags().Changed("speed") || plain && isTerminal(c.Out)
				return c.playPlain(cmd.Context(), rec, o, paced)
			}
			return c.playTerminal(cmd.Context(), rec, o, in)
		}}
	cmd.Flags().Float64Var(&o.Speed, "speed", 1, "times the recorded pace")
	cmd.Flags().DurationVar(&wait, "max-wait", 2*time.Second, "what is left of longer waits; negative: nothing is cut")
	cmd.Flags().BoolVar(&o.Step, "step", false, "stop after each event")
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines, also on a terminal")
	cmd.Flags().BoolVar(&check, "check", false, "run the recorded answers through today's loop and report the first difference")
	return cmd
}

// warnOf says what a viewer has to know of a recording.
func (c *command) warnOf(rec *recording.Recording) {
	if rec.Broken != nil {
		fmt.Fprintf(c.Err, "warning: %v\n", rec.Broken)
	}
	if rec.CutOff {
		fmt.Fprintln(c.Err, "the recording was cut off: it ends before its run did")
	}
	if p := rec.Header.Pace; p != recording.PaceReal && p != "" {
		fmt.Fprintf(c.Err, "imported from %s: its pace is %s\n", rec.Header.Source.Name, map[recording.Pace]string{
			recording.PaceBlock: "that of whole messages", recording.PaceSynthetic: "made up"}[p])
	}
	for _, m := range rec.Header.Models {
		if strings.HasPrefix(m, "scripted/") {
			fmt.Fprintf(c.Err, "%s: scripted responses, no model was called\n", m)
		}
	}
}

func (c *command) checkRecording(rec *recording.Recording) error {
	if rec.Header.Capture == recording.Metadata {
		return usagef("replay --check: the recording holds metadata only: what the loop decided by texts cannot be checked")
	}
	events := 0
	for _, run := range rec.Runs {
		if diff := recording.Check(run.Events); diff != nil {
			return fmt.Errorf("run %s: %w", run.Run, diff)
		}
		events += len(run.Events)
	}
	fmt.Fprintf(c.Out, "%s: %d events of %d runs: today's loop does the same\n", rec.Header.Run, events, len(rec.Runs))
	return nil
}

// playPlain prints the timeline as lines.
func (c *command) playPlain(ctx context.Context, rec *recording.Recording, o recording.PlayerOptions, paced bool) error {
	items := recording.Timeline(rec)
	began := time.Now()
	now := func() loop.Micros { return loop.Micros(time.Since(began).Microseconds()) }
	o.Step = false
	p := recording.NewPlayer(items, o, 0)
	shown := 0
	print := func() {
		blocks := p.View().Blocks
		for shown < len(blocks) && !blocks[shown].Open {
			for _, line := range blockLines(blocks[shown], 0, rec) {
				fmt.Fprintln(c.Out, line)
			}
			shown++
		}
	}
	if !paced {
		p.Key(0, "e")
		p.End()
		print()
		return nil
	}
	p.Key(0, "e")
	for {
		print()
		next, ok := p.Next(now())
		if !ok {
			print()
			return nil
		}
		select {
		case <-time.After(time.Duration(next-now()) * time.Microsecond):
		case <-ctx.Done():
			return &exitError{code: ExitCancelled}
		}
		p.Tick(now())
	}
}

// playTerminal plays on the terminal's other screen.
func (c *command) playTerminal(ctx context.Context, rec *recording.Recording, o recording.PlayerOptions, in *os.File) error {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("replay: the terminal cannot be set up: %w. Use --plain", err)
	}
	fmt.Fprint(c.Out, "\x1b[?1049h\x1b[?25l")
	defer func() {
		fmt.Fprint(c.Out, "\x1b[?25h\x1b[?1049l")
		_ = term.Restore(int(in.Fd()), old)
	}()
	keys := make(chan string)
	quit := make(chan struct{})
	defer close(quit)
	go readKeys(in, keys, quit)
	began := time.Now()
	now := func() loop.Micros { return loop.Micros(time.Since(began).Microseconds()) }
	p := recording.NewPlayer(recording.Timeline(rec), o, 0)
	marks := p.Marks()
	for {
		w, h := c.size()
		fmt.Fprint(c.Out, frame(p.View(), marks, rec, w, h))
		wait := time.Hour
		if next, ok := p.Next(now()); ok {
			wait = max(min(time.Duration(next-now())*time.Microsecond, 100*time.Millisecond), 15*time.Millisecond)
		}
		timer := time.NewTimer(wait)
		select {
		case k, ok := <-keys:
			if !ok || k == "ctrl-c" || k == "q" && !p.View().Typing {
				timer.Stop()
				return nil
			}
			p.Key(now(), k)
		case <-timer.C:
			p.Tick(now())
		case <-ctx.Done():
			return &exitError{code: ExitCancelled}
		}
		timer.Stop()
	}
}

func (c *command) size() (w, h int) {
	if f, ok := c.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 2 {
			return w, h
		}
	}
	return 80, 24
}

// readKeys reads keys until the input ends.
func readKeys(in io.Reader, keys chan<- string, quit <-chan struct{}) {
	defer close(keys)
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		for _, k := range parseKeys(buf[:n]) {
			select {
			case keys <- k:
			case <-quit:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// parseKeys names the keys that a terminal sent.
func parseKeys(b []byte) []string {
	var out []string
	for len(b) > 0 {
		switch {
		case len(b) >= 3 && b[0] == 0x1b && (b[1] == '[' || b[1] == 'O'):
			switch b[2] {
			case 'C':
				out = append(out, "right")
			case 'D':
				out = append(out, "left")
			}
			b = b[3:]
			continue
		case b[0] == 0x1b:
			out = append(out, "escape")
		case b[0] == '\r' || b[0] == '\n':
			out = append(out, "enter")
		case b[0] == 0x7f || b[0] == 8:
			out = append(out, "backspace")
		case b[0] == 3:
			out = append(out, "ctrl-c")
		case b[0] == ' ':
			out = append(out, "space")
		case b[0] < 0x20:
		default:
			r, size := utf8.DecodeRune(b)
			if r == utf8.RuneError {
				return out
			}
			out = append(out, string(r))
			b = b[size:]
			continue
		}
		b = b[1:]
	}
	return out
}
