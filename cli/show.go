package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pretty is canonical JSON with a space after each comma and colon outside of strings.
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	var out strings.Builder
	inString, escaped := false, false
	for _, r := range string(raw) {
		out.WriteRune(r)
		switch {
		case escaped:
			escaped = false
		case inString && r == '\\':
			escaped = true
		case r == '"':
			inString = !inString
		case !inString && (r == ',' || r == ':'):
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// pendingJSON is what --json says of a pending call.
type pendingJSON struct {
	Call        string          `json:"call,omitempty"`
	Kind        string          `json:"kind"`
	Tool        string          `json:"tool,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Digest      string          `json:"digest,omitempty"`
	Destination string          `json:"destination,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Expires     string          `json:"expires,omitempty"`
	Run         string          `json:"run,omitempty"`
}

// runJSON is the one object that --json prints.
type runJSON struct {
	Run      string                     `json:"run"`
	Session  string                     `json:"session,omitempty"`
	Agent    string                     `json:"agent"`
	Model    string                     `json:"model"`
	Status   string                     `json:"status"`
	Waiting  []string                   `json:"waiting,omitempty"`
	Stop     string                     `json:"stop,omitempty"`
	Limit    string                     `json:"limit,omitempty"`
	Whose    string                     `json:"whose,omitempty"`
	Declined bool                       `json:"declined,omitempty"`
	Message  string                     `json:"message,omitempty"`
	Missing  []string                   `json:"missing,omitempty"`
	Unknown  []string                   `json:"unknown,omitempty"`
	NotRun   []string                   `json:"not_run,omitempty"`
	Answer   string                     `json:"answer"`
	Counts   countsJSON                 `json:"counts"`
	Usage    usageJSON                  `json:"usage"`
	Facts    map[string]json.RawMessage `json:"facts"`
	Pending  []pendingJSON              `json:"pending"`
}

type countsJSON struct {
	Rounds        int64 `json:"rounds"`
	ModelCalls    int64 `json:"model_calls"`
	ModelAttempts int64 `json:"model_attempts"`
	ToolCalls     int64 `json:"tool_calls"`
	ToolAttempts  int64 `json:"tool_attempts"`
}

type usageJSON struct {
	Input      int64       `json:"input"`
	CacheRead  int64       `json:"cache_read"`
	CacheWrite int64       `json:"cache_write"`
	Output     int64       `json:"output"`
	Reasoning  int64       `json:"reasoning"`
	Estimated  int64       `json:"estimated,omitempty"`
	CostUSD    json.Number `json:"cost_usd"`
}

// exactUSD writes 10⁻¹² USD as a decimal number without rounding.
func exactUSD(p loop.Pico) json.Number {
	s := fmt.Sprintf("%d.%012d", p/loop.USD, p%loop.USD)
	return json.Number(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

func jsonOf(r *ronda.Run) runJSON {
	t := r.Total
	out := runJSON{Run: r.ID, Session: r.Session, Agent: r.Agent, Model: r.Model, Status: r.Status, Waiting: r.Waiting, Stop: string(r.Stop), Limit: r.Limit, Answer: r.Answer,
		Counts: countsJSON{t.Rounds, t.ModelCalls, t.ModelAttempts, t.ToolCalls, t.ToolAttempts},
		Usage: usageJSON{Input: t.Usage.Input, CacheRead: t.Usage.CacheRead, CacheWrite: t.Usage.CacheWrite, Output: t.Usage.Output, Reasoning: t.Usage.Reasoning,
			Estimated: t.Estimated, CostUSD: exactUSD(r.Cost)},
		Facts: map[string]json.RawMessage{}, Pending: []pendingJSON{}}
	if s := r.Stopped; s != nil {
		out.Whose, out.Declined, out.Message, out.Missing, out.Unknown, out.NotRun = s.Whose, s.Declined, s.Message, s.Missing, s.Unknown, s.NotRun
	}
	for name, f := range r.Facts {
		out.Facts[name] = f.Value
	}
	for _, p := range r.Pending {
		out.Pending = append(out.Pending, pendingOf(r.ID, p))
	}
	return out
}

func pendingOf(run string, p drive.Pending) pendingJSON {
	j := pendingJSON{Call: p.Call, Kind: p.Kind, Tool: p.Tool, Args: p.Args, Digest: p.Digest, Destination: p.Dest, Reason: p.Reason}
	if p.Run != run {
		j.Run = p.Run
	}
	if p.Expires > 0 {
		j.Expires = clock(p.Expires)
	}
	return j
}

func clock(m loop.Micros) string { return time.UnixMicro(int64(m)).UTC().Format(time.RFC3339) }

func (c *command) printJSON(v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := c.Out.Write(buf.Bytes())
	return err
}

// report says where a run stands and what to do next, and gives the exit code.
func (c *command) report(r *ronda.Run, p *progress) error {
	if c.json {
		if err := c.printJSON(jsonOf(r)); err != nil {
			return err
		}
		return codeOf(r)
	}
	if r.Answer != "" {
		if p != nil && p.wrote {
			fmt.Fprintln(c.Out)
		} else {
			fmt.Fprintln(c.Out, r.Answer)
		}
	}
	fmt.Fprintln(c.Err, standing(r))
	c.next(r)
	return codeOf(r)
}

func codeOf(r *ronda.Run) error {
	if code := statusCode(r); code != ExitCompleted {
		return &exitError{code: code}
	}
	return nil
}

// standing is the run's state in one line.
func standing(r *ronda.Run) string {
	var b strings.Builder
	switch r.Status {
	case loop.StatusWaiting:
		b.WriteString("waiting: " + strings.Join(r.Waiting, ", "))
	case loop.StatusStopped:
		b.WriteString("stopped: " + string(r.Stop))
		if r.Limit != "" {
			b.WriteString(" (" + r.Limit + ")")
		}
		if s := r.Stopped; s != nil {
			if s.Declined {
				b.WriteString(" (declined)")
			}
			if s.Message != "" {
				b.WriteString(": " + s.Message)
			}
			if len(s.Missing) > 0 {
				b.WriteString("; missing: " + strings.Join(s.Missing, "; "))
			}
			if len(s.Unknown) > 0 {
				b.WriteString("; outcome unknown: " + strings.Join(s.Unknown, ", "))
			}
			if s.By != "" {
				b.WriteString(" by " + s.By)
			}
		}
	default:
		b.WriteString(r.Status)
	}
	t := r.Total
	fmt.Fprintf(&b, " · %d rounds, %d model calls, %d tool calls, %d tokens", t.Rounds, t.ModelCalls, t.ToolCalls, t.Usage.Total())
	if r.Cost > 0 {
		b.WriteString(", " + dollars(r.Cost))
	}
	if len(r.Facts) > 0 {
		b.WriteString(" · facts: " + strings.Join(sortedKeys(r.Facts), ", "))
	}
	return b.String()
}

// next says how to go on from a pause.
func (c *command) next(r *ronda.Run) {
	for _, p := range r.Pending {
		switch p.Kind {
		case loop.WaitApproval:
			fmt.Fprintf(c.Err, "\n%s %s\n", p.Tool, pretty(p.Args))
			if p.Dest != "" {
				fmt.Fprintf(c.Err, "  to %s\n", p.Dest)
			}
			if p.Reason != "" {
				fmt.Fprintf(c.Err, "  %s\n", p.Reason)
			}
			if p.Expires > 0 {
				fmt.Fprintf(c.Err, "  expires %s\n", clock(p.Expires))
			}
			fmt.Fprintf(c.Err, "  %s approve %s %s\n  %s reject  %s %s -m \"why not\"\n", c.Name, r.ID, p.Call, c.Name, r.ID, p.Call)
		case loop.WaitResolution:
			fmt.Fprintf(c.Err, "\n%s %s: nobody knows whether it happened. Look, then say:\n  %s resolve %s %s --happened=true|false\n", p.Tool, pretty(p.Args), c.Name, r.ID, p.Call)
		case loop.WaitExtension:
			fmt.Fprintf(c.Err, "\n%s. To go on:\n  %s extend %s %s=+5\n", p.Reason, c.Name, r.ID, r.State.Limit.Limit)
		}
	}
	if r.Status == loop.StatusRunning {
		fmt.Fprintf(c.Err, "  %s resume %s\n", c.Name, r.ID)
	}
}

func (c *command) showCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show RUN", Short: "Show one run: state, counters, what is pending, why it stopped, the ledger", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		id, err := c.find(cmd.Context(), h, args[0])
		if err != nil {
			return err
		}
		r, err := h.Get(cmd.Context(), id)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(jsonOf(r))
		}
		c.show(r)
		return nil
	}}
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
	return cmd
}

func (c *command) show(r *ronda.Run) {
	w := tabwriter.NewWriter(c.Out, 0, 4, 2, ' ', 0)
	row := func(name, format string, a ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, a...)) }
	model := r.Model
	if strings.HasPrefix(model, "scripted/") {
		model += " (scripted)"
	}
	row("run", "%s", r.ID)
	row("session", "%s", r.Session)
	row("agent", "%s on %s", r.Agent, model)
	row("started", "%s", clock(r.State.Started))
	row("status", "%s", strings.SplitN(standing(r), " · ", 2)[0])
	t := r.Total
	row("counts", "%d rounds, %d model calls (%d attempts), %d tool calls (%d attempts)", t.Rounds, t.ModelCalls, t.ModelAttempts, t.ToolCalls, t.ToolAttempts)
	u := t.Usage
	row("usage", "%d input, %d cache read, %d cache write, %d output (%d reasoning)", u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning)
	if t.Estimated > 0 {
		row("", "%d tokens of it estimated: the end of an attempt was lost", t.Estimated)
	}
	row("active time", "%s", took(r.Active))
	for _, l := range ledgerLines(r) {
		row("ledger", "%s", l)
	}
	for _, name := range sortedKeys(r.Facts) {
		row("fact", "%s = %s (event %d)", name, short(string(r.Facts[name].Value), 200), r.Facts[name].Seq)
	}
	for _, s := range r.State.Standing {
		row("standing", "%s: %s %v by %s", s.ID, s.Tool, s.Args, s.By)
	}
	for _, ref := range r.State.Refused {
		row("refused", "%s by %s%s", ref.Label, ref.By, suffix(": ", ref.Message))
	}
	_ = w.Flush()
	if r.Answer != "" {
		fmt.Fprintf(c.Out, "\n%s\n", r.Answer)
	}
	old := c.Err
	c.Err = c.Out
	c.next(r)
	c.Err = old
}

// ledgerLines say of each limit what is used of it.
func ledgerLines(r *ronda.Run) []string {
	l, t := r.State.Limits(), r.Total
	var out []string
	add := func(name string, limit *int64, used int64) {
		if limit != nil {
			out = append(out, fmt.Sprintf("%s: %d of %d", name, used, *limit))
		}
	}
	add(loop.LimitRounds, l.Rounds, t.Rounds)
	add(loop.LimitModelCalls, l.ModelCalls, t.ModelCalls)
	add(loop.LimitToolCalls, l.ToolCalls, t.ToolCalls)
	add(loop.LimitTokens, l.Tokens, t.Usage.Total())
	switch {
	case l.Cost != nil:
		out = append(out, fmt.Sprintf("cost: %s of %s", dollars(r.Cost), dollars(*l.Cost)))
	case r.Cost > 0:
		out = append(out, "cost: "+dollars(r.Cost))
	}
	if l.ActiveTime != nil {
		out = append(out, fmt.Sprintf("active_time: %s of %s", took(r.Active), took(*l.ActiveTime)))
	}
	if l.Deadline != nil {
		out = append(out, "deadline: "+clock(r.State.Started+*l.Deadline))
	}
	if r.State.Ledger.GivenUp {
		out = append(out, "the closing call does not fit beside the first call: its reserve was given up")
	}
	return out
}
