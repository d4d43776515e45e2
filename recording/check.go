package recording

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/ronda-go/ronda/loop"
)

// Difference is the first place at which today's loop does something else than the one that recorded a run.
type Difference struct {
	Event    int64  `json:"event"` // the recorded event
	Recorded string `json:"recorded"`
	Owed     string `json:"owed"` // what today's loop owes there
}

func (d *Difference) Error() string {
	return fmt.Sprintf("recording: event %d: recorded is %s, today's loop owes %s", d.Event, d.Recorded, d.Owed)
}

// Check gives the recorded answers of a run to today's loop: each event must be one that Next accepts and that answers a command of Ready, or
// comes from outside; what the loop itself puts on record must be the same. It returns the first difference, nil if there is none. Nothing is
// performed. A masked recording differs where its texts decided something.
func Check(events []loop.Event) *Difference {
	var st loop.State
	for _, ev := range events {
		if diff := against(st, ev); diff != nil {
			return diff
		}
		next, err := loop.Next(st, ev)
		if err != nil {
			return &Difference{ev.Seq, describe(ev.Body), "nothing of the kind: " + err.Error()}
		}
		st = next
	}
	return nil
}

// against compares an event with what the loop owes before it.
func against(st loop.State, ev loop.Event) *Difference {
	if st.Phase == loop.PhaseNew || outside(ev.Body) {
		return nil
	}
	now := max(ev.Time, st.Time)
	owed := loop.Ready(st, now)
	if fits(st, owed, ev, now) {
		return nil
	}
	if before := loop.Ready(st, st.Time); fits(st, before, ev, st.Time) { // the driver looked at the clock a moment before
		return nil
	}
	what := "nothing"
	if len(owed) > 0 {
		what = "the command " + owed[0].ID
		if owed[0].Kind == loop.Record {
			what = describe(owed[0].Body)
		}
	}
	return &Difference{ev.Seq, describe(ev.Body), what}
}

func describe(b loop.Body) string {
	data, err := marshal(b)
	if err != nil {
		return b.Kind()
	}
	return b.Kind() + " " + prefix(string(data), 300)
}

// outside says whether an event answers no command.
func outside(b loop.Body) bool {
	switch b := b.(type) {
	case loop.RunResumed, loop.StandingRevoked, loop.EffectResolved, loop.LimitsExtended, loop.MessageTaken, loop.CancelRequested, loop.Unknown:
		return true
	case loop.ApprovalDecided:
		return b.Decision != loop.Expired
	}
	return false
}

// fits says whether an event is one of the answers to what is owed.
func fits(st loop.State, owed []loop.Command, ev loop.Event, now loop.Micros) bool {
	if len(owed) > 0 && owed[0].Kind == loop.Record {
		return reflect.DeepEqual(owed[0].Body, ev.Body)
	}
	return slices.ContainsFunc(owed, func(c loop.Command) bool { return answers(st, c, ev.Body, now) })
}

func answers(st loop.State, c loop.Command, body loop.Body, now loop.Micros) bool {
	side := c.Kind == loop.Compaction || c.Kind == loop.CheckDone // work for which a model may be asked
	switch b := body.(type) {
	case loop.ModelCallStarted, loop.LimitReached, loop.RunStopped:
		if b, ok := b.(loop.ModelCallStarted); ok && side && !c.Started {
			got, why := st.AdmitSide(b.Reserve.Input)
			return why == "" && reflect.DeepEqual(got, b)
		}
		if c.Kind == loop.CallModel && !c.Started {
			return admits(st, body, now)
		}
		return c.Kind == loop.Record && reflect.DeepEqual(c.Body, body)
	case loop.ModelReplied:
		return c.Started && (c.Kind == loop.CallModel && b.Call == c.N || side && b.Purpose == st.Side.Purpose && b.Call == st.Model.Call)
	case loop.ModelFailed:
		if b.Cause == loop.CausePlan {
			return c.Kind == loop.CallModel && !c.Started && b.Call == c.N
		}
		if side {
			return c.Started && b.Purpose == st.Side.Purpose && b.Call == st.Model.Call && max(b.Attempt, 1) == st.Side.Attempt
		}
		return c.Kind == loop.CallModel && c.Started && b.Call == c.N && max(b.Attempt, 1) == c.Attempt
	case loop.CallAuthorized:
		return c.Kind == loop.Authorize && b.Call == c.Call
	case loop.CallRefused:
		return (c.Kind == loop.Authorize || (c.Kind == loop.RunTool || c.Kind == loop.RunChild) && !c.Started) && b.Call == c.Call
	case loop.ApprovalAsked: // a policy that was tightened while the call waited
		return (c.Kind == loop.RunTool || c.Kind == loop.RunChild) && !c.Started && b.Call == c.Call
	case loop.ToolStarted:
		return c.Kind == loop.RunTool && !c.Started && b.Call == c.Call && max(b.Attempt, 1) == c.Attempt
	case loop.ToolReturned:
		return c.Kind == loop.RunTool && c.Started && b.Call == c.Call
	case loop.ToolFailed:
		return c.Kind == loop.RunTool && c.Started && b.Call == c.Call
	case loop.ChildStarted:
		return c.Kind == loop.RunChild && !c.Started && b.Call == c.Call
	case loop.ChildStopped:
		return c.Kind == loop.RunChild && c.Started && b.Call == c.Call
	case loop.EffectChecked:
		return c.Kind == loop.CheckEffect && b.Call == c.Call
	case loop.ContractChecked:
		return c.Kind == loop.CheckDone
	case loop.Compacted:
		return c.Kind == loop.Compaction
	case loop.ApprovalDecided:
		return c.Kind == loop.Record && reflect.DeepEqual(c.Body, body)
	}
	return false
}

// admits says whether today's loop would have let the model call start, or not, as recorded. The size of the request is only on record where
// the call started; without it any size may have been the reason.
func admits(st loop.State, body loop.Body, now loop.Micros) bool {
	if b, ok := body.(loop.ModelCallStarted); ok {
		for _, input := range []int64{-1, b.Reserve.Input} {
			if got, ok := st.AdmitPlan(now, input, b.Plan).(loop.ModelCallStarted); ok {
				got.Prefix, got.Notes = b.Prefix, b.Notes // the first was left out by older versions, the second is the driver's
				if reflect.DeepEqual(got, b) {
					return true
				}
			}
		}
		return false
	}
	for _, input := range []int64{-1, 0, 1 << 40} {
		if reflect.DeepEqual(st.Admit(now, input), body) {
			return true
		}
	}
	return false
}
