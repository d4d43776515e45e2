package loop

// This machine hands back what no tool made: nudges and requests to mend.

// tryAgain nudges while nudges and rounds are left, and ends as told else.
func (s State) tryAgain(reason, text string, end RunStopped) State {
	if s.Nudges >= s.Config.Nudges || s.roundsLeft() <= 0 {
		if end.Stop == StopIncomplete {
			end.Answer = s.Answer
		}
		return s.end(end)
	}
	return s.nudge(reason, text)
}

// repair nudges while repairs are left; else the run has failed.
func (s State) repair(reason, text string) State {
	if s.Repairs >= s.Config.Repairs {
		return s.end(RunStopped{Stop: StopFailed, Class: ClassInvalid, Message: "the repairs are used up: " + repairCause(reason)})
	}
	return s.nudge(reason, text)
}

func (s State) nudge(reason, text string) State {
	if s.Limit != nil {
		return s.limitMode()
	}
	s.Phase = PhaseNudge
	s.Model.Nudge = &Nudged{Reason: reason, Text: text}
	return s
}

// owedNudge is the hand-back owed in PhaseNudge, or the limit that stands in its way: a hand-back is a round.
func (s State) owedNudge() Body {
	if s.Model.Nudge.Reason != NudgeStall && s.roundsLeft() <= 0 {
		return LimitReached{Limit: LimitRounds}
	}
	return *s.Model.Nudge
}

func (s State) nudged(b Nudged) (State, string) {
	if s.Phase != PhaseNudge || *s.Model.Nudge != b || s.owedNudge() != Body(b) {
		return s, "no such hand-back is owed"
	}
	switch b.Reason {
	case NudgeEmpty, NudgeCut:
		s.Nudges++
	case NudgeMalformed, NudgePlain, NudgeOutput:
		s.Repairs++
	case NudgeImitation:
		s.Repairs++
		s.Imitated = true
	}
	if b.Reason != NudgeStall {
		s.Ledger.Own.Rounds++
	}
	s.Model.Fresh = addSat(s.Model.Fresh, int64(len(b.Text))+overhead)
	s.Phase, s.Model.Nudge = PhasePrompt, nil
	return s, ""
}
