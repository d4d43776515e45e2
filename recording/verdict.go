package recording

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// growth says how the context grew and what made it grow; it is true where that is what stands out.
func (x *Explanation) growth() bool {
	var first, last *Round
	var at []int64
	added := map[string]int64{}
	events := map[string][]int64{}
	var sum int64
	for i := range x.Rounds {
		r := &x.Rounds[i]
		if r.Prompt > 0 {
			if first == nil {
				first = r
			}
			last = r
			at = append(at, r.Replied)
		}
		for _, c := range r.Calls {
			added[c.Tool] += c.Bytes
			sum += c.Bytes
			if c.Bytes >= 1024 {
				events[c.Tool] = append(events[c.Tool], c.Ended)
			}
		}
	}
	if first == nil || last.Prompt <= first.Prompt {
		return false
	}
	x.claim("growth", at, "The prompt grew from %d to %d tokens over %s.", first.Prompt, last.Prompt, plural(last.Model-first.Model+1, "model call"))
	tools := slices.SortedFunc(maps.Keys(added), func(a, b string) int {
		if added[a] != added[b] {
			return int(added[b] - added[a])
		}
		return strings.Compare(a, b)
	})
	for i, tool := range tools {
		if i == 3 || added[tool] < 1024 {
			break
		}
		x.claim("growth", events[tool], "Results of %s are %d bytes of it, %d %% of all results.", tool, added[tool], added[tool]*100/max(sum, 1))
	}
	return last.Prompt >= 4*first.Prompt && last.Prompt-first.Prompt >= 4000
}

// times says what the time was spent on.
func (x *Explanation) times(first, last int64) {
	var parts []string
	names := slices.SortedFunc(maps.Keys(x.Waits), func(a, b string) int {
		if x.Waits[a] != x.Waits[b] {
			return int(x.Waits[b] - x.Waits[a])
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if x.Waits[name] >= 10*loop.Millisecond && x.Waits[name]*100 >= x.Wall {
			parts = append(parts, Length(x.Waits[name])+" for "+waitText(name))
		}
	}
	if len(parts) > 0 {
		x.claim("time", []int64{first, last}, "It took %s: %s.", Length(x.Wall), strings.Join(parts, ", "))
	}
}

func waitText(cause string) string {
	switch cause {
	case WaitModel:
		return "the model"
	case WaitTool:
		return "tools"
	case WaitHuman:
		return "a person"
	case WaitRateLimit:
		return "a rate limit"
	case WaitBackOff:
		return "back-off"
	}
	return "the loop itself, or nobody drove it"
}

// earlier folds the run again with tighter rules and tells which of them would have saved something.
func (x *Explanation) earlier(events []loop.Event, nothing int) {
	b, ok := startOf(events)
	if !ok || x.Partial || nothing < 2 {
		return
	}
	now := b.Config.Stall.Repeats
	for _, k := range []int64{2, 3} {
		if now != 0 && k >= now {
			continue
		}
		out, err := WhatIf(events, Change{Stall: &k})
		if err != nil || out.Stop != loop.StopStalled || out.Rounds < 1 {
			continue
		}
		x.Saved = append(x.Saved, out)
		x.claim("saved", append([]int64{out.Event}, out.Nudged...), "stall at %d would have ended it at round %d: %s.", k, out.Round, out.Savings())
		break
	}
}

// Savings says in words what an outcome saves.
func (o Outcome) Savings() string {
	parts := []string{plural(o.Rounds, "round"), plural(o.ModelCalls, "model call"), plural(o.ToolCalls, "tool call"), plural(o.Tokens, "token")}
	if o.Cost != 0 {
		parts = append(parts, Dollars(o.Cost))
	}
	return strings.Join(parts, ", ") + " less"
}

// Text says in a line what an outcome is.
func (o Outcome) Text() string {
	limit := ""
	if o.Limit != "" {
		limit = " (" + o.Limit + ")"
	}
	var parts []string
	switch {
	case o.Same:
		return "nothing would have been different"
	case o.Stop != "":
		s := fmt.Sprintf("it would have stopped: %s%s at round %d", o.Stop, limit, o.Round)
		if o.Closing {
			s += ", after one more call for a closing answer"
		}
		parts = append(parts, s+": "+o.Savings())
	case o.Open:
		parts = append(parts, fmt.Sprintf("the same until round %d (event %d); from there it would have gone on another way, which only a model can tell", o.Round, o.Event))
	default:
		parts = append(parts, "it would have gone the same way")
	}
	if len(o.Denied) > 0 {
		parts = append(parts, "denied: "+strings.Join(o.Denied, ", "))
	}
	if o.Waits > 0 {
		parts = append(parts, plural(o.Waits, "call")+" would have waited for a person")
	}
	if len(o.Nudged) > 0 {
		parts = append(parts, fmt.Sprintf("the model would have been told that it repeats itself after event %d", o.Nudged[0]))
	}
	return strings.Join(parts, "; ")
}

// verdict names the main cause and what to do about it.
func (x *Explanation) verdict(nothing, retried int, grew bool) {
	n := max(x.total(), 1)
	mended := 0
	for reason, k := range x.Reasons {
		if reason != "results" && reason != loop.NudgeContinue {
			mended += int(k)
		}
	}
	for _, r := range x.Rounds {
		for _, c := range r.Calls {
			switch c.Why {
			case loop.WhyInvalid, loop.WhyUnknownTool, loop.WhyUngrounded, loop.WhyRequires:
				mended++
			}
		}
	}
	held := x.Waits[WaitRateLimit] + x.Waits[WaitBackOff]
	worked := x.Wall - x.Waits[WaitHuman] - x.Waits[WaitQueue]
	switch {
	case nothing >= 2 && nothing*2 >= n:
		x.Cause = CauseLoop
		x.Summary = fmt.Sprintf("It went in circles: %d of %d rounds brought nothing new.", nothing, n)
		x.advise("Say in the instructions what to do when a search finds nothing, or let the tool's result say so.")
		for _, o := range x.Saved {
			x.advise(fmt.Sprintf("Set stall: %d in the agent: the run would have ended at round %d.", *o.Change.Stall, o.Round))
		}
		if len(x.Repeated) > 0 {
			x.advise("Cap the tool that repeats: calls_max on " + x.Repeated[0].Tool + ".")
		}
	case x.Wall > 0 && x.Waits[WaitHuman]*2 > x.Wall && x.Waits[WaitHuman] > loop.Minute:
		x.Cause = CausePeople
		x.Summary = fmt.Sprintf("It waited for a person: %s of %s.", Length(x.Waits[WaitHuman]), Length(x.Wall))
		x.advise("Let approvals expire (approval_ttl), tell somebody when one is asked for, or grant a standing approval for calls that are always approved.")
	case retried > 0 && held*2 > worked:
		x.Cause = CauseRetries
		x.Summary = fmt.Sprintf("It tried again and again: %s failed, and %s of %s were spent waiting for the next one.", plural(int64(retried), "attempt"), Length(held), Length(worked))
		x.advise("Look at the other side: its limits, its load, its errors. A fallback model takes over when a provider is overloaded.")
		x.advise("Fewer retries (retries of the tool, model retries of the agent) end such a run sooner.")
	case mended*2 > n:
		x.Cause = CauseCorrections
		x.Summary = fmt.Sprintf("It mended answers: %d corrections in %d rounds.", mended, n)
		x.advise("Make schemas and descriptions say what the model gets wrong; give an example of a valid call. Fewer repairs end such a run sooner.")
	case grew:
		x.Cause = CauseGrowth
		x.Summary = "Its context grew: results are most of what each call had to read again."
		x.advise("Cap results (result_cap): what is cut is kept, and the model can ask for the range that it needs. Let the tool return less: fields, pages, a summary.")
		x.advise("Compaction shortens a transcript that cannot be kept small.")
	default:
		x.Cause = CauseWork
		x.Summary = fmt.Sprintf("It did real work: %d of %d rounds brought something new.", n-nothing, n)
		if x.total() == 0 {
			x.Summary = "It answered without calling a tool."
		}
	}
	if x.Stop == loop.StopLimit && x.Cause == CauseWork {
		x.advise("The work was not done when the limit came: raise " + x.Limit + " (ronda extend, or the agent's limits).")
	}
	if x.Stop == loop.StopFailed {
		x.advise("Mend the error that the stop names, then fork the run before it: nothing before the fork is done again.")
	}
}

func (x *Explanation) advise(s string) { x.Advice = append(x.Advice, s) }

// Text is the explanation for a person: each claim with the events that show it.
func (x Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", x.Summary)
	for _, a := range x.Advice {
		fmt.Fprintf(&b, "  → %s\n", a)
	}
	b.WriteString("\n")
	for _, c := range x.Claims {
		fmt.Fprintf(&b, "- %s%s\n", c.Text, eventList(c.Events))
	}
	if len(x.Rounds) > 0 {
		b.WriteString("\nround  event  in      out    cost         new  what\n")
	}
	for _, r := range x.Rounds {
		name, is := "·", ""
		if r.N > 0 {
			name = fmt.Sprint(r.N)
		}
		if r.New {
			is = "yes"
		}
		fmt.Fprintf(&b, "%5s  %5d  %-6d  %-5d  %-11s  %-3s  %s\n", name, r.Replied, r.Prompt, r.Output, Dollars(r.Cost), is, r.what())
	}
	if x.Partial {
		b.WriteString("\nThe events do not fold (metadata only, or cut off in front): counts and what-ifs are left out.\n")
	}
	return b.String()
}

func (r Round) what() string {
	if len(r.Calls) == 0 {
		return r.Reason
	}
	var parts []string
	for _, c := range r.Calls {
		parts = append(parts, c.Tool+" "+prefix(c.Args, 50))
	}
	return strings.Join(parts, "; ")
}

func eventList(list []int64) string {
	if len(list) == 0 {
		return ""
	}
	var parts []string
	for i, n := range list {
		if i == 8 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprint(n))
	}
	return " [events " + strings.Join(parts, ", ") + "]"
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Dollars writes money with six decimals.
func Dollars(p loop.Pico) string {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	return fmt.Sprintf("%s$%d.%06d", sign, p/loop.USD, p%loop.USD/1_000_000)
}

// Length writes a length of time for a person.
func Length(d loop.Micros) string {
	t := time.Duration(d) * time.Microsecond
	switch {
	case t >= 10*time.Second:
		return t.Round(time.Second).String()
	case t >= time.Second:
		return t.Round(100 * time.Millisecond).String()
	}
	return t.Round(time.Millisecond).String()
}
