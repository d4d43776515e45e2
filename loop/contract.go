package loop

import "strings"

// MissingEvidence lists the facts and tools that the contract asks for and the state does not show. The rest of a contract
// (schema, citations, checks) is the driver's to look at.
func (s State) MissingEvidence() []string {
	c := s.Config.Contract
	if c == nil {
		return nil
	}
	var missing []string
	for _, f := range c.Facts {
		if _, ok := s.Facts[f]; !ok {
			missing = append(missing, "the fact "+f)
		}
	}
	for _, t := range c.Called {
		if s.Tools[t].Succeeded == 0 {
			missing = append(missing, "a successful call of "+t)
		}
	}
	return missing
}

// MissingText is what the model is told of evidence that is missing.
func MissingText(b ContractChecked) string {
	list := strings.Join(b.Missing, "; ")
	if b.Output {
		return "The answer does not fit its schema: " + list + ". Answer again with a valid value."
	}
	return "The task is not done: missing is " + list + ". Do what is missing with the tools, or say plainly that you cannot."
}

// FinishText is the result of a finish call that ended the run.
const FinishText = "The run ends with this."

// contractChecked goes on from the check of an answer, in text or through the finish tool.
func (s State) contractChecked(b ContractChecked) (State, string) {
	if s.Side.Under {
		return s, "stale: the judge is being asked"
	}
	if s.Phase == PhaseTurn {
		return s.finishChecked(b)
	}
	if s.Phase != PhaseCheck {
		return s, "stale: nothing is being checked"
	}
	switch {
	case b.OK:
		return s.end(RunStopped{Stop: StopCompleted, Answer: s.Answer}), ""
	case b.Undone || s.roundsLeft() <= 0 || b.Output && s.Repairs >= s.Config.Repairs:
		return s.end(RunStopped{Stop: StopIncomplete, Answer: s.Answer, Missing: b.Missing}), ""
	case b.Output:
		return s.nudge(NudgeOutput, MissingText(b)), ""
	}
	return s.nudge(NudgeContract, MissingText(b)), ""
}

// finishChecked ends the run through the finish call, or hands the call back with what is missing.
func (s State) finishChecked(b ContractChecked) (State, string) {
	i := s.finishIndex()
	if i < 0 || s.Turn.Calls[i].Status != CallReady || s.Turn.openBefore(i) > 0 || s.windingDown() {
		return s, "stale: no finish call is being checked"
	}
	c := s.Turn.Calls[i]
	if !b.OK {
		c.Why = WhyContract
		s = s.settleCall(i, c, true, MissingText(b), "")
		if b.Undone || s.roundsLeft() <= 0 {
			s.End = &RunStopped{Stop: StopIncomplete, Answer: s.Turn.Seq, Missing: b.Missing}
		}
		return s.closeTurn(), ""
	}
	end := RunStopped{Stop: StopCompleted, Answer: s.Turn.Seq}
	switch c.Finish {
	case FinishDeclined:
		end.Declined = true
	case FinishBlocked:
		end.Stop = StopBlocked
	}
	s.End = &end
	return s.settleCall(i, c, false, FinishText, "").closeTurn(), ""
}
