package loop

// This machine decides what happens to a call between its validation and its start: asked for, approved, edited, refused.

func (s State) callAuthorized(b CallAuthorized) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallNew {
		return s, "stale: the call is not to be decided"
	}
	c := s.Turn.Calls[i]
	c.Args, c.Digest, c.Reason, c.Finish = b.Args, b.Digest, b.Reason, b.Finish
	switch {
	case b.Finish != "" && i != s.finishIndex():
		return s, "only the finish tool has a finish status"
	case s.Config.tool(c.Tool) == nil && (i != s.finishIndex() || b.Verdict == Ask):
		return s, "the agent has no such tool to allow or to ask for"
	case b.Verdict == Allow:
		c.Status = CallReady
	case b.Verdict == Ask:
		c.Status = CallAsking
	default:
		return s, "a call that is denied is refused"
	}
	return s.setCall(i, c).judge(), ""
}

func (s State) callRefused(ev Event, b CallRefused) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 {
		return s, "stale: no such call"
	}
	c := s.Turn.Calls[i]
	wasNew := c.Status == CallNew
	switch c.Status {
	case CallNew, CallReady, CallAsking:
	case CallUnknown, CallResolve:
		if b.Why != WhyUnknown {
			return s, "its outcome is unknown: it cannot be refused any more"
		}
	default:
		return s, "stale: the call runs or has its result"
	}
	if b.Args != "" {
		c.Args = b.Args
	}
	c.Why, c.Unsure = b.Why, b.Why == WhyUnknown
	s = s.settleCall(i, c, true, b.Message, "")
	if t := s.Config.tool(c.Tool); b.Why == WhyDenied && t != nil && t.OnReject == "stop" && s.End == nil {
		s.End = &RunStopped{Stop: StopDenied, Message: b.Message}
	}
	if wasNew && s.End == nil && s.Cancel == nil {
		s = s.judge()
	}
	return s.closeTurn(), ""
}

// ask is the question for a call.
func (s State) ask(c Call, reason string) ApprovalAsked {
	a := ApprovalAsked{Call: c.ID, Digest: c.Digest, Reason: reason}
	if c.Ask > 0 {
		a.Ask = c.Ask + 1
	}
	if s.Config.ApprovalTTL > 0 {
		a.Expires = s.Time + s.Config.ApprovalTTL
	}
	return a
}

func (s State) approvalAsked(b ApprovalAsked) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 {
		return s, "stale: no such call"
	}
	c := s.Turn.Calls[i]
	if s.Config.tool(c.Tool) == nil {
		return s, "the agent has no such tool to ask for"
	}
	if c.Attempt > 0 || c.Status != CallReady && (c.Status != CallAsking || c.Asked) {
		return s, "stale: the call is not to be asked for"
	}
	if max(b.Ask, 1) != c.Ask+1 {
		return s, "it is asked for another time"
	}
	c.Status, c.Asked, c.Ask, c.Expires, c.By = CallAsking, true, c.Ask+1, b.Expires, ""
	if b.Digest != "" {
		c.Digest = b.Digest
	}
	if b.Reason != "" {
		c.Reason = b.Reason
	}
	return s.setCall(i, c), ""
}

func (s State) approvalDecided(ev Event, b ApprovalDecided) (State, string) {
	i := s.Turn.find(b.Call)
	if i < 0 || s.Turn.Calls[i].Status != CallAsking || !s.Turn.Calls[i].Asked {
		return s, "stale: no approval of this call is outstanding"
	}
	c := s.Turn.Calls[i]
	t := s.Config.tool(c.Tool)
	switch b.Decision {
	case Approve, Edit:
		if b.By == "" {
			return s, "an approval needs the person's name"
		}
		if b.Decision == Edit {
			if b.Args == "" || b.Digest == "" {
				return s, "an edit needs arguments and their digest"
			}
			c.Args, c.Digest, c.Edited = b.ArgsSum, b.Digest, true
			s.Model.Fresh = addSat(s.Model.Fresh, int64(len(b.Args)+len(b.By))+4*overhead) // the note that the result begins with
		} else if b.Digest != "" && b.Digest != c.Digest {
			return s, "the approval is for another digest"
		}
		c.Status, c.By, c.Expires = CallReady, b.By, 0
		if b.Standing != nil {
			s.Standing = append(s.Standing[:len(s.Standing):len(s.Standing)], *b.Standing)
		}
		return s.setCall(i, c), ""
	case Reject:
		s.Refused = append(s.Refused[:len(s.Refused):len(s.Refused)],
			Refusal{Label: t.LabelOf(), Tool: c.Tool, Args: c.Args, Message: cutText(b.Message, 500), By: b.By})
		c.Why = WhyDenied
		s = s.settleCall(i, c, true, refusedText(b.By, b.Message), "")
		if t.OnReject == "stop" && s.End == nil {
			s.End = &RunStopped{Stop: StopDenied, By: b.By, Message: b.Message}
		}
	case Expired:
		c.Why = Expired
		s = s.settleCall(i, c, true, textExpired, "")
	default:
		return s, "no such decision"
	}
	return s.closeTurn(), ""
}

// refusedText is what the model is told of a person's no.
func refusedText(by, message string) string {
	text := "Not executed: a person refused this call"
	if by != "" {
		text = "Not executed: " + by + " refused this call"
	}
	if message != "" {
		text += ": " + message
	}
	return text
}

// refusedLabel says whether a person refused an effect of this label in the run.
func (s State) refusedLabel(label string) bool {
	for _, r := range s.Refused {
		if r.Label == label {
			return true
		}
	}
	return false
}

// refusedBefore finds the refusal of the very same thing.
func (s State) refusedBefore(c Call) *Refusal {
	for i, r := range s.Refused {
		if r.Tool == c.Tool && r.Args == c.Args && r.Args != "" {
			return &s.Refused[i]
		}
	}
	return nil
}

// supersede answers every outstanding question because the user said something else.
func (s State) supersede() State {
	for i, c := range s.Turn.Calls {
		if c.Status == CallAsking {
			c.Why = WhySuperseded
			s = s.settleCall(i, c, true, textSuperseded, "")
		}
	}
	if s.Phase == PhaseTurn && len(s.Turn.Calls) > 0 {
		s = s.closeTurn()
	}
	return s
}

func (s State) standingRevoked(b StandingRevoked) (State, string) {
	for i, st := range s.Standing {
		if st.ID == b.ID {
			s.Standing = append(s.Standing[:i:i], s.Standing[i+1:]...)
			return s, ""
		}
	}
	return s, "stale: no such standing approval"
}

// StandingFor finds the standing approval that covers a call of a tool with the given definition digest: its argument patterns must
// match the values (strings as they are, other values as their JSON). A refusal in the run beats it.
func (s State) StandingFor(tool, digest string, args map[string]string, now Micros) (Standing, bool) {
	if t := s.Config.tool(tool); t == nil || s.refusedLabel(t.LabelOf()) {
		return Standing{}, false
	}
next:
	for _, st := range s.Standing {
		if st.Tool != tool || st.Digest != digest || st.Until != 0 && now >= st.Until {
			continue
		}
		for name, pattern := range st.Args {
			v, ok := args[name]
			if !ok || !Match(pattern, v) {
				continue next
			}
		}
		return st, true
	}
	return Standing{}, false
}
