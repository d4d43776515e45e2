package loop

// This machine lets calls run as children: runs of their own, within a grant from this run's ledger.

// GrantFor is what a child started for call i may use: what is left at every level after the closing call, shared between the
// children that this turn still has to start, and never more than the tool's own limits.
func (s State) GrantFor(i int, now Micros) Limits {
	share := int64(0)
	for j, c := range s.Turn.Calls {
		if t := s.Config.tool(c.Tool); t != nil && t.Child && c.Status == CallReady && (j == i || s.Config.Parallel == "read") {
			share++
		}
	}
	share = max(share, 1)
	keep := s.closing(addSat(s.Model.Prefix, s.Model.Fresh), false)
	var grant Limits
	if t := s.Config.tool(s.Turn.Calls[i].Tool); t != nil && t.Limits != nil {
		grant = *t.Limits
	}
	var granted need
	for _, g := range s.Ledger.Grants {
		granted = granted.plus(need{deref(g.Limits.ModelCalls), deref(g.Limits.ToolCalls), deref(g.Limits.Tokens), Pico(deref((*int64)(g.Limits.Cost)))})
	}
	var room [3]account
	for _, a := range s.accounts(&room) {
		lower := func(have, limit *int64, used, held, keep int64) *int64 {
			if limit == nil {
				return have
			}
			left := max((*limit-used-held-keep)/share, 0)
			if have != nil && *have < left {
				return have
			}
			return &left
		}
		grant.ModelCalls = lower(grant.ModelCalls, a.limits.ModelCalls, a.counts.ModelCalls, granted.calls, keep.calls)
		grant.ToolCalls = lower(grant.ToolCalls, a.limits.ToolCalls, a.counts.ToolCalls+1, granted.tools, 0)
		grant.Tokens = lower(grant.Tokens, a.limits.Tokens, a.counts.Usage.Total(), granted.tokens, keep.tokens)
		grant.Cost = (*Pico)(lower((*int64)(grant.Cost), (*int64)(a.limits.Cost), int64(a.cost), int64(granted.cost), int64(keep.cost)))
		if l := a.limits.ActiveTime; l != nil {
			left := max(*l-s.closingTime(*l)-(a.active-s.Ledger.Active+s.active(now)), 0)
			if grant.ActiveTime == nil || *grant.ActiveTime > left {
				grant.ActiveTime = &left
			}
		}
		if l := a.limits.Deadline; l != nil {
			left := max(s.Started+*l-s.closingTime(*l)-now, 0)
			if grant.Deadline == nil || *grant.Deadline > left {
				grant.Deadline = &left
			}
		}
	}
	grant.Rounds = nil
	if t := s.Config.tool(s.Turn.Calls[i].Tool); t != nil && t.Limits != nil {
		grant.Rounds = t.Limits.Rounds
	}
	return grant
}

func (s State) childStarted(ev Event, b ChildStarted) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallReady || s.windingDown() || !s.mayStart(i) {
		return s, "the child may not start"
	}
	if t := s.Config.tool(s.Turn.Calls[i].Tool); t == nil || !t.Child {
		return s, "the call's tool is no agent"
	}
	n := need{calls: deref(b.Grant.ModelCalls), tokens: deref(b.Grant.Tokens), cost: Pico(deref((*int64)(b.Grant.Cost)))}
	if hit := s.fits(n); hit != nil {
		return s, "its grant does not fit the limit " + hit.Limit
	}
	c := s.Turn.Calls[i]
	c.Child = b.Run
	s = s.start(i, c, CallChild, ev.Time)
	s.Ledger.Grants = append(s.Ledger.Grants[:len(s.Ledger.Grants):len(s.Ledger.Grants)], Grant{b.Call, b.Grant})
	return s, ""
}

func (s State) childStopped(ev Event, b ChildStopped) (State, string) {
	i := s.Turn.find(b.Call)
	if s.Phase != PhaseTurn || i < 0 || s.Turn.Calls[i].Status != CallChild || s.Turn.Calls[i].Child != b.Run {
		return s, "stale: no such child is under way"
	}
	grants := make([]Grant, 0, len(s.Ledger.Grants))
	for _, g := range s.Ledger.Grants {
		if g.Call != b.Call {
			grants = append(grants, g)
		}
	}
	s.Ledger.Grants = grants
	below := b.Counts
	below.Rounds = 0
	s.Ledger.Below = Ledger{Own: s.Ledger.Below, Below: below}.Total()
	s.Ledger.CostBelow = Pico(addSat(int64(s.Ledger.CostBelow), int64(b.Cost)))
	s.Ledger.Active += b.Active
	s = s.adopt(b.Facts, ev.Seq)
	c := s.Turn.Calls[i]
	if t := s.Config.tool(c.Tool); t != nil && t.Handoff && !b.Error && s.End == nil && s.Cancel == nil {
		s.End = &RunStopped{Stop: b.Stop, Limit: b.Limit, Whose: "child", Answer: ev.Seq}
	}
	if b.Error {
		return s.settleCall(i, c, true, b.Text, "").closeTurn(), ""
	}
	return s.succeeded(i, b.Text, "").closeTurn(), ""
}
