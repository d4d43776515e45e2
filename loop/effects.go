package loop

import "strconv"

// This machine counts attempts of calls and deals with outcomes that nobody knows (design, section 7).

// Causes of failed attempts that no error class tells.
const (
	CauseCrash     = "crash"     // the process that ran the attempt died
	CauseCancelled = "cancelled" // the run was cancelled
	CauseLimit     = "limit"     // a time limit of the run
	CausePlan      = "plan"      // of a model call that was never sent: the hook before it failed
)

// maxLost is how many attempts of one model or read call may die with their process before the run fails: a call that kills its
// process each time must not do so for ever.
const maxLost = 5

// IdempotencyKey is the key of a call of the turn: the same in each attempt, another for each call, round and argument.
func (s State) IdempotencyKey(i int) string {
	key := s.Key
	if s.Turn.Seq > s.Fork && s.Fork > 0 {
		key = s.Run // what a fork asks for after its prefix is another thing than what the old run did
	}
	return Fingerprint([]byte(key), []byte(s.Turn.Calls[i].ID), []byte(s.Turn.Calls[i].Tool), []byte(s.Turn.Calls[i].Args))
}

// settleCall gives a call its result. sum is the fingerprint of a result whose text is only a preview.
func (s State) settleCall(i int, c Call, failure bool, text, sum string) State {
	c.Status, c.Failure, c.Expires, c.After = CallSettled, failure, 0, 0
	if sum == "" {
		sum = Fingerprint([]byte(text))
	}
	c.Result = sum
	s.Model.Fresh = addSat(s.Model.Fresh, int64(len(text))+overhead)
	return s.setCall(i, c)
}

func (s State) toolStarted(ev Event, b ToolStarted) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallReady || s.windingDown() {
		return s, "the call may not start"
	}
	c := s.Turn.Calls[i]
	if t := s.Config.tool(c.Tool); t == nil || t.Child || i == s.finishIndex() {
		return s, "it is no call of a tool that runs by itself"
	}
	if max(b.Attempt, 1) != c.Attempt+1 {
		return s, "owed is attempt " + strconv.FormatInt(c.Attempt+1, 10)
	}
	if !s.mayStart(i) || ev.Time < s.startAfter(c) {
		return s, "it is not the call's turn"
	}
	return s.start(i, c, CallRunning, ev.Time), ""
}

func (s State) mayStart(i int) bool {
	for _, j := range s.startable() {
		if i == j {
			return true
		}
	}
	return false
}

// start counts an attempt.
func (s State) start(i int, c Call, status CallStatus, now Micros) State {
	if c.Attempt == 0 {
		s.Ledger.Own.ToolCalls++
		s = s.tally(c.Tool, func(t *Tally) { t.Calls++; t.Last = now })
	}
	s.Ledger.Own.ToolAttempts++
	c.Attempt++
	c.Status, c.After = status, 0
	return s.setCall(i, c)
}

// running finds a call whose attempt is under way.
func (s State) running(id string, attempt int64) (int, bool) {
	i := s.Turn.find(id)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallRunning || s.Turn.Calls[i].Attempt != max(attempt, 1) {
		return 0, false
	}
	return i, true
}

func (s State) toolReturned(ev Event, b ToolReturned) (State, string) {
	i, ok := s.running(b.Call, b.Attempt)
	if !ok {
		return s, "stale: no such attempt is under way"
	}
	s = s.adopt(b.Facts, ev.Seq)
	s.Model.Fresh = addSat(s.Model.Fresh, bound(b.More))
	return s.succeeded(i, b.Text, b.Sum).closeTurn(), ""
}

func (s State) succeeded(i int, text, sum string) State {
	s = s.tally(s.Turn.Calls[i].Tool, func(t *Tally) { t.Succeeded++ })
	return s.settleCall(i, s.Turn.Calls[i], false, text, sum)
}

func (s State) toolFailed(ev Event, b ToolFailed) (State, string) {
	i, ok := s.running(b.Call, b.Attempt)
	if !ok {
		return s, "stale: no such attempt is under way"
	}
	s = s.adopt(b.Facts, ev.Seq)
	c := s.Turn.Calls[i]
	t := s.Config.tool(c.Tool)
	effect, class := t.EffectOf(), b.Class
	if b.NotRun && class == ClassUnknown {
		class = ClassTransient
	}
	if class == ClassUnknown && effect == Read {
		class = ClassTransient // nothing can have happened: the same as an error after its retries
	}
	switch {
	case s.windingDown():
		c.Unsure = class == ClassUnknown
		if c.Unsure {
			c.Why = WhyUnknown
		} else if b.Cause != "" {
			c.Why = WhyCancelled
		}
	case class == ClassFatal:
		s = s.settleCall(i, c, true, FailureText(b), "")
		s.End = &RunStopped{Stop: StopFailed, Class: ClassFatal, Message: c.Tool + ": " + b.Message}
		return s.closeTurn(), ""
	case class == ClassTransient || class == ClassUnknown && effect == Idempotent:
		count, limit := &c.Failed, t.Retries
		if b.Cause == CauseCrash || class == ClassUnknown {
			count, limit = &c.Lost, maxLost // a repetition that the effect allows, not one that the tool asked for
		}
		if *count < limit {
			*count++
			c.Status = CallReady
			if b.Cause != CauseCrash {
				c.After = ev.Time + backoff(s.Key+c.ID, *count, b.RetryAfter)
			}
			return s.setCall(i, c), ""
		}
		c.Unsure = class == ClassUnknown
	case class == ClassUnknown:
		c.Status = CallResolve
		if t.Check {
			c.Status = CallUnknown
		}
		return s.setCall(i, c), ""
	}
	return s.settleCall(i, c, true, FailureText(b), "").closeTurn(), ""
}

// FailureText is what the model is told of a failed call.
func FailureText(b ToolFailed) string {
	text := b.Message
	if text == "" {
		text = "the tool failed"
	}
	switch {
	case b.Class == ClassUnknown:
		return "Outcome unknown: " + text
	case b.Cause == CauseCancelled:
		return "Interrupted: " + text
	}
	return "Error: " + text
}

func (s State) effectChecked(ev Event, b EffectChecked) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallUnknown {
		return s, "stale: no outcome of this call is to be checked"
	}
	c := s.Turn.Calls[i]
	switch b.Happened {
	case HappenedYes:
		s = s.adopt(b.Facts, ev.Seq)
		return s.succeeded(i, b.Text, "").closeTurn(), ""
	case HappenedNo:
		if c.Lost < maxLost {
			c.Lost++
			c.Status, c.After = CallReady, ev.Time+backoff(s.Key+c.ID, c.Lost, 0)
			return s.setCall(i, c), ""
		}
		return s.settleCall(i, c, true, textNotHappened, "").closeTurn(), ""
	case HappenedUnknown:
		c.Status = CallResolve
		return s.setCall(i, c), ""
	}
	return s, "happened is yes, no or unknown"
}

func (s State) effectResolved(ev Event, b EffectResolved) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallResolve {
		return s, "stale: no resolution of this call is outstanding"
	}
	if b.Happened {
		s = s.adopt(b.Facts, ev.Seq)
		return s.succeeded(i, ResolvedText(b), "").closeTurn(), ""
	}
	return s.settleCall(i, s.Turn.Calls[i], true, ResolvedText(b), "").closeTurn(), ""
}

const textNotHappened = "Error: the call failed and did not happen."

// ResolvedText is what the model is told of a person's word on an unknown outcome.
func ResolvedText(b EffectResolved) string {
	who := b.By
	if who == "" {
		who = "a person"
	}
	text := "Error: the call did not happen (confirmed by " + who + ")."
	if b.Happened {
		text = "The call did happen (confirmed by " + who + "); its result was lost."
	}
	if b.Message != "" {
		text += " " + b.Message
	}
	return text
}
