package recording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Causes of what a run spent itself on.
const (
	CauseLoop        = "loop"        // rounds that repeat without anything new
	CauseRetries     = "retries"     // attempts that failed and were made again
	CauseGrowth      = "growth"      // a context that grows faster than what comes out of it
	CauseCorrections = "corrections" // answers that had to be mended
	CausePeople      = "people"      // waiting for a person
	CauseWork        = "work"        // rounds that each brought something new
)

// Claim is one thing that can be said of a run, with the events that show it.
type Claim struct {
	Topic  string  `json:"topic"` // stop, rounds, repeated, retries, nothing_new, growth, time, saved
	Text   string  `json:"text"`
	Events []int64 `json:"events"`
}

// Explanation says why a run took what it took.
type Explanation struct {
	Run     string      `json:"run"`
	Agent   string      `json:"agent"`
	Model   string      `json:"model"`
	Status  string      `json:"status"`
	Stop    loop.Reason `json:"stop,omitempty"`
	Limit   string      `json:"limit,omitempty"`
	Cause   string      `json:"cause"` // the main one of the closed list
	Summary string      `json:"summary"`
	Advice  []string    `json:"advice,omitempty"`

	Claims   []Claim                `json:"claims"`
	Counts   loop.Counts            `json:"counts"`
	Cost     loop.Pico              `json:"cost"`   // 10⁻¹² USD
	Active   loop.Micros            `json:"active"` // microseconds
	Wall     loop.Micros            `json:"wall"`
	Waits    map[string]loop.Micros `json:"waits"`   // by cause
	Reasons  map[string]int64       `json:"reasons"` // hand-backs by reason
	Rounds   []Round                `json:"rounds"`
	Repeated []Repeat               `json:"repeated,omitempty"`
	Saved    []Outcome              `json:"saved,omitempty"` // what an earlier stop would have saved
	Partial  bool                   `json:"partial,omitempty"`
}

// Repeat is a call that was made more than once.
type Repeat struct {
	Tool   string  `json:"tool"`
	Args   string  `json:"args"`
	Times  int     `json:"times"`
	Same   int     `json:"same_results"` // results that an earlier one had given already
	Events []int64 `json:"events"`
}

// Explain says of a run which counter stopped it, what repeated, what was tried again, where nothing new came, what made the context grow,
// what each round cost, what an earlier stop would have saved, and what an operator would do about it. It is a function of the events alone.
func Explain(events []loop.Event) Explanation {
	x := Explanation{Claims: []Claim{}, Waits: map[string]loop.Micros{}, Reasons: map[string]int64{}}
	if len(events) == 0 {
		x.Summary, x.Partial = "There are no events.", true
		return x
	}
	o := outline(events)
	x.Rounds, x.Partial = o.rounds, o.broken
	x.account(events, o.st)
	for _, r := range x.Rounds {
		if r.N > 0 {
			x.Reasons[r.Reason]++
		}
	}
	x.stop(events)
	x.byReason()
	x.repeats()
	nothing := x.stretches()
	retried := x.retries(events)
	grew := x.growth()
	x.times(events[0].Seq, events[len(events)-1].Seq)
	x.earlier(events, nothing)
	x.verdict(nothing, retried, grew)
	return x
}

func (x *Explanation) claim(topic string, events []int64, format string, a ...any) {
	x.Claims = append(x.Claims, Claim{topic, fmt.Sprintf(format, a...), events})
}

// account adds up what the time was spent on, and takes over the account of the fold.
func (x *Explanation) account(events []loop.Event, st loop.State) {
	var w waiting
	for i, ev := range events {
		cause := w.apply(ev.Body)
		if i > 0 {
			x.Waits[cause] += ev.Time - events[i-1].Time
		}
	}
	x.Wall = events[len(events)-1].Time - events[0].Time
	if b, ok := startOf(events); ok {
		x.Run, x.Agent, x.Model = b.Run, b.Config.Agent, b.Config.Model
	}
	if st.Phase != loop.PhaseNew {
		x.Status, _ = st.Status()
		x.Counts, x.Cost, x.Active = st.Ledger.Total(), st.Ledger.TotalCost(), st.ActiveTime(st.Time)
	}
}

// stop says which counter stopped the run.
func (x *Explanation) stop(events []loop.Event) {
	last := events[len(events)-1]
	b, ok := last.Body.(loop.RunStopped)
	if !ok {
		x.claim("stop", []int64{last.Seq}, "The run has not stopped: the last event is %s.", last.Kind())
		return
	}
	x.Stop, x.Limit, x.Status = b.Stop, b.Limit, loop.StatusStopped
	at := []int64{last.Seq}
	for _, ev := range events {
		if l, ok := ev.Body.(loop.LimitReached); ok && b.Stop == loop.StopLimit && l.Limit == b.Limit {
			at = []int64{ev.Seq, last.Seq}
		}
	}
	whose := ""
	if b.Whose != "" {
		whose = " of the " + b.Whose
	}
	switch b.Stop {
	case loop.StopLimit:
		x.claim("stop", at, "The limit %s%s%s stopped the run.", b.Limit, whose, x.limitValue(events, b.Limit))
	case loop.StopStalled:
		x.claim("stop", at, "The stall rule stopped the run: %s", b.Message)
	case loop.StopCompleted:
		what := "The model ended with an answer and nothing was missing."
		if b.Declined {
			what = "The model declined the request."
		}
		x.claim("stop", at, "%s", what)
	default:
		text := "The run stopped: " + string(b.Stop)
		if b.Message != "" {
			text += ": " + b.Message
		}
		if len(b.Missing) > 0 {
			text += "; missing: " + strings.Join(b.Missing, "; ")
		}
		x.claim("stop", at, "%s.", strings.TrimSuffix(text, "."))
	}
}

func (x *Explanation) limitValue(events []loop.Event, limit string) string {
	b, ok := startOf(events)
	if !ok {
		return ""
	}
	l := b.Config.Limits
	show := func(v *int64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf(" (%d)", *v)
	}
	switch limit {
	case loop.LimitRounds:
		return show(l.Rounds)
	case loop.LimitModelCalls:
		return show(l.ModelCalls)
	case loop.LimitToolCalls:
		return show(l.ToolCalls)
	case loop.LimitTokens:
		return show(l.Tokens)
	case loop.LimitCost:
		if l.Cost != nil {
			return " (" + Dollars(*l.Cost) + ")"
		}
	case loop.LimitActiveTime:
		if l.ActiveTime != nil {
			return " (" + Length(*l.ActiveTime) + ")"
		}
	case loop.LimitDeadline:
		if l.Deadline != nil {
			return " (" + Length(*l.Deadline) + ")"
		}
	}
	return ""
}

func (x *Explanation) byReason() {
	var parts []string
	var at []int64
	for _, name := range sortedNames(x.Reasons) {
		parts = append(parts, fmt.Sprintf("%d for %s", x.Reasons[name], reasonText(name)))
	}
	for _, r := range x.Rounds {
		if r.N > 0 && r.Reason != "results" {
			at = append(at, r.Replied)
		}
	}
	if len(parts) > 0 {
		x.claim("rounds", at, "%s: %s.", plural(int64(x.total()), "round"), strings.Join(parts, ", "))
	}
}

// total counts the rounds that were handed back.
func (x *Explanation) total() (n int) {
	for _, r := range x.Rounds {
		if r.N > 0 {
			n++
		}
	}
	return n
}

func reasonText(name string) string {
	switch name {
	case "results":
		return "results of tools"
	case loop.NudgeEmpty:
		return "an empty answer"
	case loop.NudgeCut:
		return "an answer that was cut"
	case loop.NudgeContract:
		return "evidence that was missing"
	case loop.NudgeOutput:
		return "an answer that does not fit its schema"
	case loop.NudgeMalformed:
		return "a malformed call"
	case loop.NudgeImitation:
		return "a call written as text"
	case loop.NudgePlain:
		return "text instead of finish"
	case loop.NudgeContinue:
		return "a turn that the provider paused"
	}
	return name
}

// repeats lists calls of the same tool with the same arguments.
func (x *Explanation) repeats() {
	index := map[string]int{}
	sums := map[string]map[string]bool{}
	var list []Repeat
	for _, r := range x.Rounds {
		for _, c := range r.Calls {
			switch c.Why {
			case loop.WhyLimit, loop.WhyCancelled, loop.WhyNotRun:
				continue // asked for, not made
			}
			if r.Reason == "closing" {
				continue
			}
			i, ok := index[c.key]
			if !ok {
				i = len(list)
				index[c.key], sums[c.key] = i, map[string]bool{}
				list = append(list, Repeat{Tool: c.Tool, Args: c.Args})
			}
			list[i].Times++
			if c.Ended != 0 {
				if sums[c.key][c.Sum] {
					list[i].Same++
				}
				sums[c.key][c.Sum] = true
				list[i].Events = append(list[i].Events, c.Ended)
			}
		}
	}
	for _, rep := range list {
		if rep.Times > 1 {
			x.Repeated = append(x.Repeated, rep)
		}
	}
	slices.SortStableFunc(x.Repeated, func(a, b Repeat) int { return b.Times - a.Times })
	for i, rep := range x.Repeated {
		if i == 5 {
			x.claim("repeated", nil, "%d more calls were repeated.", len(x.Repeated)-i)
			break
		}
		x.claim("repeated", rep.Events, "%s %s was called %d times; %s nothing that an earlier one had not said.", rep.Tool, prefix(rep.Args, 80), rep.Times,
			pluralVerb(rep.Same, "result said", "results said"))
	}
}

func pluralVerb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stretches finds rounds in a row that brought nothing new; it returns how many there were in all.
func (x *Explanation) stretches() (nothing int) {
	from := -1
	flush := func(to int) {
		if n := to - from; from >= 0 && n >= 2 {
			var at []int64
			for _, r := range x.Rounds[from:to] {
				at = append(at, r.Replied)
			}
			x.claim("nothing_new", at, "Rounds %d to %d brought no new fact and no new result.", x.Rounds[from].N, x.Rounds[to-1].N)
		}
		from = -1
	}
	for i, r := range x.Rounds {
		if r.N > 0 && !r.New {
			nothing++
			if from < 0 {
				from = i
			}
			continue
		}
		flush(i)
	}
	flush(len(x.Rounds))
	return nothing
}

// retries finds chains of attempts; it returns how many attempts failed.
func (x *Explanation) retries(events []loop.Event) (failed int) {
	at := func(seq int64) loop.Event {
		if i := seq - events[0].Seq; i >= 0 && int(i) < len(events) {
			return events[i]
		}
		return loop.Event{}
	}
	for _, r := range x.Rounds {
		if len(r.Failures) > 0 {
			failed += len(r.Failures)
			why := ""
			if b, ok := at(r.Failures[0]).Body.(loop.ModelFailed); ok {
				why = failureWords(string(b.Class), b.Status, b.Message)
			}
			x.claim("retries", r.Failures, "Model call %d took %d attempts in %s: %s.", r.Model, r.Attempts, Length(at(max(r.Replied, r.Failures[len(r.Failures)-1])).Time-r.Begins), why)
		}
		for _, c := range r.Calls {
			if len(c.Failures) > 1 || len(c.Failures) == 1 && c.Attempts > 1 {
				failed += len(c.Failures)
				why := ""
				if b, ok := at(c.Failures[0]).Body.(loop.ToolFailed); ok {
					why = failureWords(string(b.Class), 0, b.Message)
				}
				x.claim("retries", c.Failures, "%s %s took %d attempts: %s.", c.Tool, prefix(c.Args, 80), c.Attempts, why)
			}
		}
	}
	return failed
}

func failureWords(class string, status int, message string) string {
	text := class
	if status != 0 {
		text += fmt.Sprintf(" %d", status)
	}
	if message != "" {
		text += " (" + prefix(strings.TrimSuffix(message, "."), 120) + ")"
	}
	return text
}
