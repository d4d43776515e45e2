package loop

// This machine takes what comes from outside a run: cancellations and messages. Decisions are in approvals.go.

func (s State) cancelRequested(b CancelRequested) (State, string) {
	if s.Cancel != nil {
		return s, "stale: the run is being cancelled already"
	}
	s.Cancel = &Cancelled{By: b.By, Reason: b.Reason}
	if s.Side.Under { // what is under way ends first
		s.End = nil
		return s, ""
	}
	switch s.Phase {
	case PhaseModel, PhaseTurn:
		s.End = nil
		return s, "" // what is under way ends first
	}
	return s.windDown(RunStopped{Stop: StopCancelled}), ""
}

// messageTaken queues a message of the user for the next prompt. A run that was about to end with an answer goes on.
func (s State) messageTaken(b MessageTaken) (State, string) {
	s.Queued++
	s.Model.Late = addSat(s.Model.Late, bound(b.Blocks))
	s.Progress = Progress{}
	if s.Phase == PhaseEnding && s.yields(s.End.Stop) {
		s.End, s.Phase = nil, PhasePrompt
	}
	if b.Supersede {
		s = s.supersede()
	}
	return s, ""
}

// asking says whether a model call is under way: each of its attempts sends the same prompt, so messages wait for its end.
func (s State) asking() bool { return s.Phase == PhaseModel || s.Phase == PhasePrompt && s.Model.Again }

// yields says whether a stop gives way to a message of the user: the model ended by itself, and the message may say more.
func (s State) yields(stop Reason) bool {
	if s.Cancel != nil || s.Limit != nil {
		return false
	}
	switch stop {
	case StopCompleted, StopIncomplete, StopNoAction, StopBlocked, StopStalled:
		return true
	}
	return false
}
