package loop

// This machine puts model calls on the account that serve the run beside its own: a summary of the transcript, the verdict of a judge.
// Such a call has the run's next number and the events of every model call, with their Purpose set; while one is under way nothing else
// of the run is.

// Purposes of model calls that are not the run's own.
const (
	PurposeCompaction = "compaction"
	PurposeJudge      = "judge"
)

// SideModel is a model that works for the run beside the agent's own.
type SideModel struct {
	Model     string `json:"model"`
	Price     *Price `json:"price,omitempty"`
	OutputCap int64  `json:"output_cap"`
}

// Judge is a model that looks at the answer.
type Judge struct {
	SideModel
	Calls int64 `json:"calls"` // in the whole run
}

// SideCall is the model call for another purpose that is under way or to be tried again.
type SideCall struct {
	Purpose string `json:"purpose,omitempty"` // of the last one since the run's own last call
	Calls   int64  `json:"calls,omitempty"`   // since the run's own last call
	Under   bool   `json:"under,omitempty"`   // an attempt is under way
	Again   bool   `json:"again,omitempty"`   // the next attempt is one more of the same call
	Attempt int64  `json:"attempt,omitempty"`
	Failed  int64  `json:"failed,omitempty"` // attempts that count against the retries
	Lost    int64  `json:"lost,omitempty"`   // attempts that died with their process
	After   Micros `json:"after,omitempty"`  // not before this time
	Unable  string `json:"unable,omitempty"` // it failed for good: why
}

// sideModel is the model for a purpose, nil where the agent has none.
func (s State) sideModel(purpose string) *SideModel {
	switch c := s.Config; {
	case purpose == PurposeCompaction && c.Compact != nil:
		return c.Compact.Writer
	case purpose == PurposeJudge && c.Contract != nil && c.Contract.Judge != nil:
		return &c.Contract.Judge.SideModel
	}
	return nil
}

// owedSide is the purpose for which a model may be asked now, "" if there is none.
func (s State) owedSide() string {
	purpose := ""
	switch {
	case s.Cancel != nil || s.Side.Under:
	case s.Phase == PhasePrompt && s.owesCompaction():
		purpose = PurposeCompaction
	case s.Phase == PhaseCheck:
		purpose = PurposeJudge
	case s.Phase == PhaseTurn && s.Turn.Judged && !s.windingDown():
		if i := s.finishIndex(); i >= 0 && s.Turn.Calls[i].Status == CallReady && s.Turn.openBefore(i) == 0 {
			purpose = PurposeJudge
		}
	}
	if s.sideModel(purpose) == nil {
		return ""
	}
	return purpose
}

// AdmitSide says how a model is asked for a summary or a verdict while such a command is owed: the event to append before the call is
// sent, or why it is not asked. input is a bound of the request's tokens.
func (s State) AdmitSide(input int64) (started ModelCallStarted, why string) {
	purpose := s.owedSide()
	m := s.sideModel(purpose)
	switch {
	case m == nil:
		return started, "no model is to be asked now"
	case s.Side.Purpose == purpose && s.Side.Unable != "":
		return started, s.Side.Unable
	case purpose == PurposeJudge && !s.Side.Again && s.Judged >= s.Config.Contract.Judge.Calls:
		return started, "the judge was asked as often as it may be in a run"
	}
	call := need{tokens: addSat(input, m.OutputCap), cost: m.Price.Worst(input, m.OutputCap)}
	started = ModelCallStarted{Purpose: purpose, Call: s.Model.Call + 1, Model: m.Model, Reserve: Reserve{Input: input, Output: m.OutputCap, Cost: call.cost}}
	if s.Side.Again {
		started.Call, started.Attempt = s.Model.Call, s.Side.Attempt+1
	} else {
		call.calls = 1
	}
	if hit := s.fits(call.plus(s.closing(addSat(s.Model.Prefix, s.Model.Fresh), false))); hit != nil {
		return ModelCallStarted{}, "the limit of " + hit.Limit + " leaves no room to ask " + m.Model
	}
	return started, ""
}

func (s State) sideStarted(ev Event, b ModelCallStarted) (State, string) {
	call, attempt := s.Model.Call+1, int64(1)
	if s.Side.Again {
		call, attempt = s.Model.Call, s.Side.Attempt+1
	}
	switch {
	case b.Purpose != s.owedSide():
		return s, "no model call for this purpose is owed"
	case b.Call != call || max(b.Attempt, 1) != attempt || b.Closing:
		return s, "it is not the call that is owed"
	case ev.Time < s.Side.After:
		return s, "it is not time yet for another attempt"
	}
	s, why := s.hold(ev.Time, b)
	if why != "" {
		return s, why
	}
	if attempt == 1 {
		s.Side = SideCall{Calls: s.Side.Calls + 1}
		if b.Purpose == PurposeJudge {
			s.Judged++
		}
	}
	s.Model.Call = call
	s.Side.Purpose, s.Side.Under, s.Side.Again, s.Side.Attempt, s.Side.After = b.Purpose, true, false, attempt, 0
	return s, ""
}

func (s State) sideReplied(b ModelReplied) (State, string) {
	if !s.Side.Under || b.Purpose != s.Side.Purpose || b.Call != s.Model.Call {
		return s, "stale: no such model call is under way"
	}
	s = s.settleSide(b.Usage)
	s.Side.Under = false
	return s.sideEnded(), ""
}

func (s State) sideFailed(ev Event, b ModelFailed) (State, string) {
	if !s.Side.Under || b.Purpose != s.Side.Purpose || b.Call != s.Model.Call || max(b.Attempt, 1) != s.Side.Attempt {
		return s, "stale: no such attempt is under way"
	}
	if b.Usage != nil || b.Lost {
		s = s.settleSide(b.Usage)
	} else {
		s = s.release()
	}
	s.Side.Under = false
	switch {
	case s.Cancel != nil || s.Limit != nil:
	case b.Cause == CauseCrash && s.Side.Lost < maxLost:
		s.Side.Lost++
		s.Side.Again = true
	case b.Class == ClassTransient && s.Side.Failed < s.Config.ModelRetries:
		s.Side.Failed++
		s.Side.Again = true
		s.Side.After = ev.Time + backoff(s.Key+b.Purpose, s.Side.Failed, b.RetryAfter)
	case b.Purpose == PurposeCompaction:
		s.Side = SideCall{Calls: s.Side.Calls}
		s = s.notCompacted(failure(b))
	default:
		s.Side.Unable = "the judge could not be asked: " + failure(b)
	}
	return s.sideEnded(), ""
}

// sideEnded goes on with what came meanwhile: a cancellation, the end of the time.
func (s State) sideEnded() State {
	switch {
	case s.Phase == PhaseTurn || s.Phase == PhaseEnding: // winds down by itself
	case s.Cancel != nil:
		return s.windDown(RunStopped{Stop: StopCancelled})
	case s.Limit != nil:
		return s.limitMode()
	}
	return s
}

// settleSide books what an attempt used, at the price of its model; nil books the reserve, marked estimated.
func (s State) settleSide(u *Usage) State {
	if u == nil {
		u = &Usage{Input: s.Ledger.Held.Input, Output: s.Ledger.Held.Output}
		s.Ledger.Own.Estimated += u.Total()
		s.Ledger.Cost = Pico(addSat(int64(s.Ledger.Cost), int64(s.Ledger.Held.Cost)))
	} else {
		s.Ledger.Cost = Pico(addSat(int64(s.Ledger.Cost), int64(s.sideModel(s.Side.Purpose).Price.Of(*u))))
	}
	s.Ledger.Own.Usage = s.Ledger.Own.Usage.Add(*u)
	return s.release()
}

// asked is the run's own last model call.
func (s State) asked() int64 { return s.Model.Call - s.Side.Calls }

// checkCommand asks for the check of an answer, in text or through the finish call.
func (s State) checkCommand() Command {
	c := Command{ID: id("check", s.asked()), Kind: CheckDone, Started: s.Side.Under, After: s.Side.After, N: s.Model.Call, Attempt: s.Side.Attempt}
	if i := s.finishIndex(); s.Phase == PhaseTurn && i >= 0 {
		c.Call = s.Turn.Calls[i].ID
	}
	return c
}

func (s State) compactCommand() Command {
	return Command{ID: id("compact", s.Compacts+1), Kind: Compaction, Attempt: s.Compacts + 1, Started: s.Side.Under, After: s.Side.After}
}

// sideCommand is the command that a call for another purpose works for.
func (s State) sideCommand() Command {
	if s.Side.Purpose == PurposeCompaction {
		return s.compactCommand()
	}
	return s.checkCommand()
}

// SideLost is the end of the attempt under way when it died with its process.
func (s State) SideLost() ModelFailed {
	b := ModelFailed{Call: s.Model.Call, Class: ClassTransient, Lost: true, Cause: CauseCrash, Purpose: s.Side.Purpose,
		Message: "the process that made the call died"}
	if s.Side.Attempt > 1 {
		b.Attempt = s.Side.Attempt
	}
	return b
}
