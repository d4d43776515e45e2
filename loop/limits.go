package loop

// Limits are the run's own limits with all extensions.
func (s State) Limits() Limits {
	if s.Ledger.Extra == (Limits{}) {
		return s.Config.Limits
	}
	return s.Config.Limits.raised(s.Ledger.Extra)
}

// raised adds amounts to the limits that exist.
func (l Limits) raised(add Limits) Limits {
	sum := func(a, b *int64) *int64 {
		if a == nil || b == nil {
			return a
		}
		v := addSat(*a, *b)
		return &v
	}
	l.Rounds, l.ModelCalls = sum(l.Rounds, add.Rounds), sum(l.ModelCalls, add.ModelCalls)
	l.ToolCalls, l.Tokens = sum(l.ToolCalls, add.ToolCalls), sum(l.Tokens, add.Tokens)
	l.Cost = (*Pico)(sum((*int64)(l.Cost), (*int64)(add.Cost)))
	l.ActiveTime = (*Micros)(sum((*int64)(l.ActiveTime), (*int64)(add.ActiveTime)))
	l.Deadline = (*Micros)(sum((*int64)(l.Deadline), (*int64)(add.Deadline)))
	return l
}

// plus adds two sets of amounts, absent ones counting as zero.
func (l Limits) plus(add Limits) Limits {
	sum := func(a, b *int64) *int64 {
		switch {
		case a == nil:
			return b
		case b == nil:
			return a
		}
		v := addSat(*a, *b)
		return &v
	}
	l.Rounds, l.ModelCalls = sum(l.Rounds, add.Rounds), sum(l.ModelCalls, add.ModelCalls)
	l.ToolCalls, l.Tokens = sum(l.ToolCalls, add.ToolCalls), sum(l.Tokens, add.Tokens)
	l.Cost = (*Pico)(sum((*int64)(l.Cost), (*int64)(add.Cost)))
	l.ActiveTime = (*Micros)(sum((*int64)(l.ActiveTime), (*int64)(add.ActiveTime)))
	l.Deadline = (*Micros)(sum((*int64)(l.Deadline), (*int64)(add.Deadline)))
	return l
}

func (n need) plus(m need) need {
	return need{n.calls + m.calls, n.tools + m.tools, addSat(n.tokens, m.tokens), Pico(addSat(int64(n.cost), int64(m.cost)))}
}

// roundsLeft is the number of hand-backs that may still be made; a large number without a limit.
func (s State) roundsLeft() int64 {
	if l := s.Limits().Rounds; l != nil {
		return *l - s.Ledger.Own.Rounds
	}
	return 1 << 40
}

func (s State) hint() string {
	left := s.roundsLeft()
	if s.Config.HintRounds <= 0 || s.Ledger.Own.Rounds == 0 || left >= s.Config.HintRounds || left < 0 {
		return ""
	}
	return HintText(left)
}

func (s State) limitReached(b LimitReached) (State, string) {
	if s.Limit != nil {
		return s, "stale: a limit was reached before"
	}
	if s.Phase == PhaseEnding || s.Phase == PhaseNew {
		return s, "the run is ending"
	}
	s.Limit = &LimitHit{b.Limit, b.Whose, b.Overshoot}
	if s.Side.Under { // aborted first
		return s, ""
	}
	switch s.Phase {
	case PhaseModel: // aborted first
		return s, ""
	case PhaseTurn:
		if s.Config.OnLimit == "pause" && b.Overshoot == 0 && !isTime(b.Limit) && b.Limit != LimitToolCalls {
			s.Phase = PhasePaused
		}
		return s, ""
	}
	return s.limitMode(), ""
}

// limitMode goes on from a reached limit when nothing is under way: closing call, stop or pause.
func (s State) limitMode() State {
	switch {
	case s.Config.OnLimit == "stop", s.Limit.Overshoot > 0:
		return s.end(RunStopped{Stop: StopLimit})
	case s.Config.OnLimit == "pause":
		s.Phase = PhasePaused
		return s
	}
	s.Phase = PhasePrompt
	s.Model.Closing, s.Model.Again, s.Model.After, s.Model.Nudge = true, false, 0, nil
	s.Model.Fresh = addSat(s.Model.Fresh, int64(len(textLimit))+overhead)
	return s
}

func (s State) limitsExtended(b LimitsExtended) (State, string) {
	if !s.Extendable() {
		return s, "stale: it is too late to extend the limits"
	}
	s.Ledger.Extra = s.Ledger.Extra.plus(b.Add)
	if s.Limit == nil {
		return s, ""
	}
	s.Limit = nil
	if s.Phase == PhasePaused {
		switch {
		case s.Turn.open() > 0:
			s.Phase = PhaseTurn
		case s.Model.Nudge != nil: // what the hand-back would have said is still owed
			s.Phase = PhaseNudge
		default:
			s.Phase = PhasePrompt
		}
	}
	return s, ""
}

// Extendable says whether raising a limit can still change anything.
func (s State) Extendable() bool {
	if s.Phase == PhaseStopped || s.Phase == PhaseNew || s.Cancel != nil || s.End != nil {
		return false
	}
	return s.Limit == nil || s.Phase == PhasePaused || s.Config.OnLimit == "pause" && s.Limit.Overshoot == 0
}

func isTime(limit string) bool { return limit == LimitActiveTime || limit == LimitDeadline }
