package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress shows what a run does: on a terminal with a line that is rewritten, elsewhere in plain lines. It goes to standard error; the
// answer goes to standard output.
type progress struct {
	w       io.Writer
	out     io.Writer
	tty     bool
	quiet   bool
	stream  bool
	wrote   bool // a streamed answer was written
	live    bool // a rewritten line stands
	state   loop.State
	started map[string]loop.Micros
	tools   map[string]string
	width   int
}

func (c *command) progress(f runFlags) *progress {
	p := &progress{w: c.Err, out: c.Out, quiet: f.quiet || c.json, stream: f.stream && !c.json, tty: isTerminal(c.Err) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		started: map[string]loop.Micros{}, tools: map[string]string{}, width: 100}
	if p.tty {
		if file, ok := c.Err.(*os.File); ok {
			if w, _, err := term.GetSize(int(file.Fd())); err == nil && w > 20 {
				p.width = w
			}
		}
	}
	return p
}

// follow shows events after a sequence until the driver lets go; it returns the last sequence it saw.
func (p *progress) follow(ctx context.Context, h *ronda.Host, run string, after int64, done <-chan struct{}) int64 {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-done:
			stop(errDone)
		case <-ctx.Done():
		}
	}()
	last := after
	p.catchUp(h, run, after)
	for it, err := range h.Events(ctx, run, last, true) {
		if err != nil {
			break
		}
		if it.Delta != nil {
			p.delta(*it.Delta)
			continue
		}
		last = it.Seq
		p.event(it.Event)
	}
	for it, err := range h.Events(context.WithoutCancel(ctx), run, last, false) {
		if err != nil {
			break
		}
		last = it.Seq
		p.event(it.Event)
	}
	p.clear()
	return last
}

var errDone = errors.New("the driver has let go")

// catchUp folds what was shown before, so that names and costs are known.
func (p *progress) catchUp(h *ronda.Host, run string, upto int64) {
	if upto == 0 {
		return
	}
	for it, err := range h.Events(context.Background(), run, 0, false) {
		if err != nil || it.Seq > upto {
			return
		}
		p.fold(it.Event)
	}
}

func (p *progress) fold(ev loop.Event) {
	if next, err := loop.Next(p.state, ev); err == nil {
		p.state = next
	}
	if b, ok := ev.Body.(loop.ModelReplied); ok {
		i := 0
		for _, bl := range b.Blocks {
			if bl.Kind == loop.BlockCall {
				p.tools[loop.CallID(b.Call, i)] = bl.Name + " " + short(bl.Args, 80)
				i++
			}
		}
	}
}

func (p *progress) delta(d model.Delta) {
	if p.quiet && !p.stream {
		return
	}
	switch {
	case p.stream && d.Channel == model.Text:
		p.clear()
		fmt.Fprint(p.out, d.Text)
		p.wrote = true
	case p.tty && d.Channel == model.Thought:
		p.status("thinking: " + oneLine(d.Text))
	case p.tty && d.Channel == model.Arguments && d.Name != "":
		p.status("asking for " + d.Name)
	}
}

// status rewrites the line that says what goes on now.
func (p *progress) status(s string) {
	if !p.tty || p.quiet {
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[2K\x1b[2m%s\x1b[0m", short(s, p.width-1))
	p.live = true
}

func (p *progress) clear() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[2K")
		p.live = false
	}
}

func (p *progress) line(format string, a ...any) {
	if p.quiet {
		return
	}
	p.clear()
	if p.wrote {
		fmt.Fprintln(p.out)
		p.wrote = false
	}
	fmt.Fprintf(p.w, format+"\n", a...)
}

func (p *progress) event(ev loop.Event) {
	before := p.state
	p.fold(ev)
	switch b := ev.Body.(type) {
	case loop.RunStarted:
		scripted := ""
		if strings.HasPrefix(b.Config.Model, "scripted/") {
			scripted = " (scripted responses: no model is called)"
		}
		p.line("%s on %s%s · %s", b.Config.Agent, b.Config.Model, scripted, b.Run)
	case loop.ModelCallStarted:
		p.started["model"] = ev.Time
		what := fmt.Sprintf("model call %d", b.Call)
		if b.Closing {
			what = "closing call"
		}
		if b.Attempt > 1 {
			what += fmt.Sprintf(", attempt %d", b.Attempt)
		}
		p.status(what + " …")
	case loop.ModelReplied:
		p.replied(ev, b)
	case loop.ModelFailed:
		p.line("  model failed (%s): %s", b.Class, oneLine(b.Message))
	case loop.CallRefused:
		p.line("  %s: %s", p.tools[b.Call], oneLine(b.Message))
	case loop.ApprovalAsked:
		p.line("  %s: waits for an approval", p.tools[b.Call])
	case loop.ApprovalDecided:
		p.line("  %s: %s by %s%s", p.tools[b.Call], b.Decision, b.By, suffix(": ", b.Message))
	case loop.ToolStarted:
		p.started[b.Call] = ev.Time
		p.status(p.tools[b.Call] + " …")
	case loop.ToolReturned:
		p.line("  %s → %s (%s)", p.tools[b.Call], short(oneLine(b.Text), 70), took(ev.Time-p.started[b.Call]))
		for _, name := range sortedKeys(b.Facts) {
			p.line("    fact %s = %s", name, short(string(b.Facts[name]), 80))
		}
	case loop.ToolFailed:
		p.line("  %s failed (%s%s): %s", p.tools[b.Call], b.Class, suffix(", clock ", b.Clock), oneLine(b.Message))
	case loop.EffectChecked:
		p.line("  %s: the tool says that it happened: %s", p.tools[b.Call], b.Happened)
	case loop.EffectResolved:
		p.line("  %s: %s says that it happened: %t", p.tools[b.Call], b.By, b.Happened)
	case loop.LimitReached:
		p.line("  limit reached: %s%s", b.Limit, suffix(" of the ", b.Whose))
	case loop.LimitsExtended:
		p.line("  limits extended by %s", b.By)
	case loop.Nudged:
		p.line("  told the model: %s", oneLine(b.Text))
	case loop.ContractChecked:
		if !b.OK {
			p.line("  not done: missing %s", strings.Join(b.Missing, "; "))
		}
	case loop.ChildStarted:
		p.line("  %s runs as %s", b.Agent, b.Run)
	case loop.ChildStopped:
		p.line("  %s → %s: %s", p.tools[b.Call], b.Stop, short(oneLine(b.Text), 70))
	case loop.MessageTaken:
		p.line("  message taken")
	case loop.CancelRequested:
		p.line("  cancelled by %s", b.By)
	case loop.RunResumed:
		if before.Seq > 0 {
			p.line("  taken over")
		}
	}
}

func (p *progress) replied(ev loop.Event, b loop.ModelReplied) {
	in, out := int64(0), int64(0)
	if b.Usage != nil {
		in, out = b.Usage.Prefix(), b.Usage.Output
	}
	spent := ""
	if cost := p.state.Ledger.TotalCost(); cost > 0 {
		spent = " · " + dollars(cost) + " so far"
	}
	for _, bl := range b.Blocks {
		switch {
		case bl.Kind == loop.BlockThought && bl.Text != "":
			p.line("  thought: %s", short(oneLine(bl.Text), 90))
		case bl.Kind == loop.BlockText && hasCalls(b.Blocks) && strings.TrimSpace(bl.Text) != "":
			p.line("  said: %s", short(oneLine(bl.Text), 90))
		}
	}
	p.line("  model call %d: %d tokens in, %d out, %s%s", b.Call, in, out, took(ev.Time-p.started["model"]), spent)
}

func hasCalls(blocks []loop.Block) bool {
	for _, b := range blocks {
		if b.Kind == loop.BlockCall {
			return true
		}
	}
	return false
}

func took(d loop.Micros) string {
	return (time.Duration(d) * time.Microsecond).Round(time.Millisecond).String()
}

func suffix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// short cuts a text to n characters.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(n-1, 0)]) + "…"
}

func dollars(p loop.Pico) string {
	return fmt.Sprintf("$%d.%06d", p/loop.USD, p%loop.USD/1_000_000)
}
