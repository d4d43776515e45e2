package recording

import "github.com/ronda-go/ronda/loop"

// Causes of waits.
const (
	WaitModel     = "model"
	WaitTool      = "tool"
	WaitHuman     = "human"
	WaitRateLimit = "rate_limit"
	WaitBackOff   = "back_off"
	WaitQueue     = "queue" // nobody drove the run
)

// waiting remembers of one run what it could be waiting for.
type waiting struct {
	asked   map[string]bool // approvals and resolutions outstanding
	paused  bool
	limited bool // the last failure was a rate limit
	model   bool // an attempt is under way
	tools   int
}

func (w *waiting) person() bool { return len(w.asked) > 0 || w.paused }

// apply says what the time before an event was spent on, and remembers the event.
func (w *waiting) apply(body loop.Body) (cause string) {
	if w.asked == nil {
		w.asked = map[string]bool{}
	}
	under := func() string {
		switch {
		case w.model:
			return WaitModel
		case w.tools > 0:
			return WaitTool
		case w.person():
			return WaitHuman
		}
		return WaitQueue
	}
	switch b := body.(type) {
	case loop.ModelCallStarted:
		cause = under()
		if b.Attempt > 1 && !w.person() {
			cause = WaitBackOff
			if w.limited {
				cause = WaitRateLimit
			}
		}
		w.model, w.limited = true, false
	case loop.ModelReplied:
		cause, w.model = WaitModel, false
	case loop.ModelFailed:
		cause, w.model = WaitModel, false
		w.limited = b.Status == 429 || b.Status == 529 || b.RetryAfter > 0
	case loop.ToolStarted:
		cause = under()
		if b.Attempt > 1 && w.tools == 0 && !w.person() {
			cause = WaitBackOff
		}
		w.tools++
	case loop.ChildStarted:
		cause = under()
		w.tools++
	case loop.ToolReturned:
		cause = WaitTool
		w.tools = max(w.tools-1, 0)
	case loop.ToolFailed:
		cause = WaitTool
		w.tools = max(w.tools-1, 0)
		if b.Class == loop.ClassUnknown {
			w.asked[b.Call] = true // until it is settled
		}
	case loop.ChildStopped:
		cause = WaitTool
		w.tools = max(w.tools-1, 0)
	case loop.EffectChecked:
		cause = WaitTool
		if b.Happened != loop.HappenedUnknown {
			delete(w.asked, b.Call)
		}
	case loop.ContractChecked:
		cause = WaitTool
	case loop.ApprovalAsked:
		cause = under()
		w.asked[b.Call] = true
	case loop.ApprovalDecided:
		cause = WaitHuman
		delete(w.asked, b.Call)
	case loop.EffectResolved:
		cause = WaitHuman
		delete(w.asked, b.Call)
	case loop.LimitReached:
		cause = under()
		w.paused = true // the next model call shows that it was not
	case loop.LimitsExtended:
		cause, w.paused = WaitHuman, false
	default:
		cause = under()
	}
	if _, ok := body.(loop.ModelCallStarted); ok {
		w.paused = false
		clear(w.asked)
	}
	return cause
}
