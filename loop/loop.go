// Package loop is the heart of ronda: a pure, deterministic machine that folds events into a state and derives from the state
// what the run owes. It has no clock, no randomness and no I/O; drivers perform commands and make events durable.
//
//	world ──▶ event ──▶ Next validates ──▶ journal appends ──▶ state adopts
//	  ▲                                                          │
//	  └──── effect ◀── driver performs ◀── command ◀── Ready ◀───┘
//
// This file holds the way of a round. The small machines that it calls have files of their own: ledger.go (limits, reserve
// and settle), turn.go (order of calls), corrections.go, approvals.go, effects.go (attempts and unknown outcomes), progress.go, children.go.
package loop

import (
	"fmt"
	"strings"
)

// Next folds one event. It checks that the event makes sense and returns the state after it; its argument is never changed.
// The caller validates with Next, then appends the event to the journal, then adopts the new state, then acts on Ready.
func Next(s State, ev Event) (State, error) {
	fail := func(err error, why string) (State, error) {
		return s, &EventError{Err: err, Kind: ev.Kind(), Seq: ev.Seq, Why: why, State: s.String()}
	}
	switch {
	case ev.Seq != s.Seq+1:
		return fail(ErrIllegal, fmt.Sprintf("want sequence %d", s.Seq+1))
	case ev.Time < s.Time:
		return fail(ErrIllegal, "its time lies before that of the last event")
	case s.Phase == PhaseStopped:
		return fail(ErrStale, "the run has stopped")
	}
	if b, first := ev.Body.(RunStarted); first != (s.Phase == PhaseNew) {
		return fail(ErrIllegal, "a journal begins with RunStarted and has only one")
	} else if b.Format > Format {
		return fail(ErrNewer, fmt.Sprintf("the journal has format %d, this version reads formats up to %d", b.Format, Format))
	}
	n, why := s.elapse(ev), ""
	switch b := ev.Body.(type) {
	case RunStarted:
		n, why = n.started(ev, b)
	case RunResumed:
		if b.Digest != "" {
			n.Digest = b.Digest
		}
	case ModelCallStarted:
		n, why = n.modelStarted(ev, b)
	case ModelReplied:
		n, why = n.modelReplied(ev, b)
	case ModelFailed:
		n, why = n.modelFailed(ev, b)
	case CallAuthorized:
		n, why = n.callAuthorized(b)
	case CallRefused:
		n, why = n.callRefused(ev, b)
	case ApprovalAsked:
		n, why = n.approvalAsked(b)
	case ApprovalDecided:
		n, why = n.approvalDecided(ev, b)
	case StandingRevoked:
		n, why = n.standingRevoked(b)
	case ToolStarted:
		n, why = n.toolStarted(ev, b)
	case ToolReturned:
		n, why = n.toolReturned(ev, b)
	case ToolFailed:
		n, why = n.toolFailed(ev, b)
	case EffectChecked:
		n, why = n.effectChecked(ev, b)
	case EffectResolved:
		n, why = n.effectResolved(ev, b)
	case ContractChecked:
		n, why = n.contractChecked(b)
	case LimitReached:
		n, why = n.limitReached(b)
	case LimitsExtended:
		n, why = n.limitsExtended(b)
	case Nudged:
		n, why = n.nudged(b)
	case MessageTaken:
		n, why = n.messageTaken(b)
	case CancelRequested:
		n, why = n.cancelRequested(b)
	case Compacted:
		n, why = n.compacted(b)
	case ChildStarted:
		n, why = n.childStarted(ev, b)
	case ChildStopped:
		n, why = n.childStopped(ev, b)
	case RunStopped:
		n, why = n.stopped(b)
	case Unknown:
		if !b.Optional {
			return fail(ErrNewer, "this version does not know the event")
		}
	default:
		return fail(ErrIllegal, "no such event")
	}
	if stale, ok := strings.CutPrefix(why, "stale: "); ok {
		return fail(ErrStale, stale)
	}
	if why != "" {
		return fail(ErrIllegal, why)
	}
	if !n.asking() {
		n.Model.Fresh, n.Model.Late = addSat(n.Model.Fresh, n.Model.Late), 0
	}
	n.Seq, n.Time = ev.Seq, ev.Time
	return n, nil
}

// Ready derives what the run owes at the time now, in the order in which it is to be done. Commands that are Started are under
// way. It never changes the state; the same state and time give the same commands.
func Ready(s State, now Micros) []Command {
	if hit := s.timeHit(now); hit != nil {
		return s.withAborts([]Command{record(s, *hit)})
	}
	var cmds []Command
	switch s.Phase {
	case PhasePrompt:
		cmds = s.readyPrompt(now)
	case PhaseModel:
		c := s.modelCommand()
		c.Started = true
		cmds = []Command{c}
	case PhaseTurn:
		cmds = s.readyTurn(now)
	case PhaseCheck:
		cmds = []Command{s.checkCommand()}
	case PhaseNudge:
		cmds = []Command{record(s, s.owedNudge())}
	case PhaseEnding:
		cmds = []Command{record(s, *s.End)}
	}
	return s.withWake(s.withAborts(cmds), now)
}

func (s State) readyPrompt(now Micros) []Command {
	if s.Side.Under {
		return []Command{s.sideCommand()}
	}
	if s.owesCompaction() {
		return []Command{s.compactCommand()}
	}
	c := s.modelCommand()
	if s.Model.After > now {
		c.After = s.Model.After
	}
	return []Command{c}
}

// --- the way of a round -------------------------------------------------------------------------------------------------

func (s State) started(ev Event, b RunStarted) (State, string) {
	if b.Config == nil || b.Run == "" {
		return s, "RunStarted needs a run and a config"
	}
	s = State{Run: b.Run, Started: ev.Time, Key: b.Key, Config: b.Config, Phase: PhasePrompt}
	if s.Key == "" {
		s.Key = b.Run
	}
	if b.Fork != nil {
		s.Fork = b.Fork.Seq
	}
	s.Model.Fresh = b.Config.Base + bound(b.Input)
	if b.Config.Session != nil {
		s.Standing = b.Config.Session.Standing
		s.Model.Prefix = b.Config.Session.Prefix
	}
	return s, ""
}

func (s State) modelStarted(ev Event, b ModelCallStarted) (State, string) {
	if b.Purpose != "" {
		return s.sideStarted(ev, b)
	}
	if s.Phase != PhasePrompt || s.Side.Under {
		return s, "no model call is owed"
	}
	want := s.modelCommand()
	if b.Call != want.N || max(b.Attempt, 1) != want.Attempt || b.Closing != want.Closing {
		return s, fmt.Sprintf("owed is call %d attempt %d closing %t", want.N, want.Attempt, want.Closing)
	}
	if ev.Time < s.Model.After {
		return s, "it is not time yet for another attempt"
	}
	if b.Attempt <= 1 {
		s.Model.Plan, s.Side = b.Plan, SideCall{}
	}
	s, why := s.hold(ev.Time, b)
	if why != "" {
		return s, why
	}
	s.Phase = PhaseModel
	s.Model.Asked, s.Model.Cut = b.Model, false
	if !b.Closing {
		s.Turn = Turn{}
	}
	s.Model.Call, s.Model.Attempt = want.N, want.Attempt
	s.Model.After, s.Model.Again, s.Model.Ended = 0, false, ""
	if b.Attempt <= 1 {
		s.Queued = 0
		s.Model.Failed, s.Model.Lost, s.Compacts = 0, 0, 0
		if b.Hint != "" {
			s.Model.Fresh = addSat(s.Model.Fresh, int64(len(b.Hint))+overhead)
		}
	}
	return s, ""
}

// modelReplied is the fork of the road: an answer, calls, or something to be corrected.
func (s State) modelReplied(ev Event, b ModelReplied) (State, string) {
	if b.Purpose != "" {
		return s.sideReplied(b)
	}
	if s.Phase != PhaseModel || b.Call != s.Model.Call {
		return s, "stale: no such model call is under way"
	}
	s.Overflows = 0
	s = s.settle(b.Usage, b.Usage == nil)
	if b.Usage == nil {
		s.Model.Fresh = addSat(s.Model.Fresh, bound(b.Blocks)) // else the report covers it
	}
	text, calls := contents(b.Blocks)
	blank := strings.TrimSpace(text) == ""
	s.Answer = 0
	if !blank {
		s.Answer = ev.Seq
	}
	switch {
	case s.Model.Closing:
		return s.end(RunStopped{Stop: StopLimit, Answer: s.Answer}), ""
	case s.Cancel != nil && len(calls) == 0:
		return s.end(RunStopped{Stop: StopCancelled}), ""
	case b.Finish == FinishLength || b.Finish == FinishFilter:
		return s.tryAgain(NudgeCut, textCut, RunStopped{
			Stop: StopIncomplete, Message: "the last response was cut (" + string(b.Finish) + ")" + detail(b.Detail)}), ""
	case b.Finish == FinishMalformed:
		return s.repair(NudgeMalformed, textMalformed+detail(b.Detail)), ""
	case len(calls) > 0:
		return s.openTurn(ev.Seq, calls), ""
	case b.Finish == FinishPause:
		return s.nudge(NudgeContinue, ""), ""
	case blank:
		return s.tryAgain(NudgeEmpty, textEmpty, RunStopped{Stop: StopNoAction}), ""
	case Imitates(text, s.Config.toolNames()):
		if s.Imitated {
			return s.end(RunStopped{Stop: StopIncomplete, Answer: s.Answer,
				Missing: []string{"a real call: the response only describes calls, again"}}), ""
		}
		return s.repair(NudgeImitation, textImitation), ""
	case s.Config.Finish:
		return s.repair(NudgePlain, textPlain), ""
	case s.Config.Output || s.Config.Contract.Needs():
		s.Phase = PhaseCheck
		return s, ""
	}
	return s.end(RunStopped{Stop: StopCompleted, Answer: s.Answer}), ""
}

func (s State) modelFailed(ev Event, b ModelFailed) (State, string) {
	if b.Purpose != "" {
		return s.sideFailed(ev, b)
	}
	if c := s.modelCommand(); b.Cause == CausePlan && s.Phase == PhasePrompt && b.Call == c.N && c.Attempt == 1 && !c.Closing && !s.Side.Under {
		return s.end(RunStopped{Stop: StopFailed, Class: ClassFatal, Message: failure(b)}), ""
	}
	if s.Phase != PhaseModel || b.Call != s.Model.Call || max(b.Attempt, 1) != s.Model.Attempt {
		return s, "stale: no such attempt is under way"
	}
	if b.Usage != nil || b.Lost {
		s = s.settle(b.Usage, b.Usage == nil)
	} else {
		s = s.release()
	}
	s.Phase = PhasePrompt
	s.Model.Ended = b.Cause
	switch {
	case s.Cancel != nil:
		return s.end(RunStopped{Stop: StopCancelled}), ""
	case s.Limit != nil && !s.Model.Closing: // reached while the call was under way: no other attempt
		return s.limitMode(), ""
	case b.Cause == CauseCrash && s.Model.Lost < maxLost:
		s.Model.Lost++
		s.Model.Again = true
		return s, ""
	case b.Gone && s.Model.Lost < maxLost:
		s.Model.Lost++
		s.Model.Again = true
		return s, ""
	case b.Class == ClassTransient && s.Model.Failed < s.Config.ModelRetries:
		s.Model.Failed++
		s.Model.Again = true
		s.Model.After = ev.Time + backoff(s.Key, s.Model.Failed, b.RetryAfter)
		return s, ""
	}
	if shorter, ok := s.overflows(b); ok {
		return shorter, ""
	}
	if other, ok := s.takeOver(b.Class); ok {
		return other, ""
	}
	if s.Model.Closing {
		return s.end(RunStopped{Stop: StopLimit, Class: b.Class, Message: b.Message}), ""
	}
	return s.end(RunStopped{Stop: StopFailed, Class: b.Class, Message: failure(b)}), ""
}

// --- the end ------------------------------------------------------------------------------------------------------------

// end decides how the run ends. Calls without a result are answered first (readyTurn winds down); a decision that is made is
// only replaced by a cancellation. A message that no prompt held yet keeps the run from ending by itself.
func (s State) end(r RunStopped) State {
	s.Model.Nudge = nil
	if s.Queued > 0 && s.Turn.open() == 0 && s.yields(r.Stop) {
		s.End, s.Phase = nil, PhasePrompt
		return s
	}
	if r.Stop == StopLimit && s.Limit != nil {
		r.Limit, r.Whose = s.Limit.Limit, s.Limit.Whose
	}
	if r.Stop == StopCancelled && s.Cancel != nil {
		r.By, r.Message = s.Cancel.By, s.Cancel.Reason
	}
	r.Unknown, r.NotRun = nil, nil
	for _, c := range s.Turn.Calls {
		switch {
		case c.Unsure:
			r.Unknown = append(r.Unknown, c.ID)
		case c.Status == CallSettled && (c.Why == WhyLimit || c.Why == WhyCancelled || c.Why == WhyNotRun):
			r.NotRun = append(r.NotRun, c.ID)
		}
	}
	s.End = &r
	s.Phase = PhaseEnding
	if s.Turn.open() > 0 {
		s.Phase = PhaseTurn
	}
	return s
}

func (s State) stopped(b RunStopped) (State, string) {
	if s.Phase == PhasePrompt && s.Model.Closing && b.Stop == StopLimit { // Admit: the closing call cannot be paid
		s = s.end(RunStopped{Stop: StopLimit})
	}
	if s.Phase != PhaseEnding || s.End == nil {
		return s, "the run does not end yet"
	}
	if b.Stop != s.End.Stop || b.Limit != s.End.Limit || b.Answer != s.End.Answer {
		return s, "owed is the stop " + string(s.End.Stop)
	}
	s.Phase, s.Stop, s.End = PhaseStopped, &b, nil
	return s, ""
}
