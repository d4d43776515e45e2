package loop

// Ledger is the account of a run. What a call may use is reserved before it starts and settled after; children draw on it through
// grants. Own and Below are disjoint: the whole tree is their sum.
type Ledger struct {
	Own       Counts  `json:"own,omitzero"`
	Below     Counts  `json:"below,omitzero"` // of children that have stopped
	Cost      Pico    `json:"cost,omitempty"`
	CostBelow Pico    `json:"cost_below,omitempty"`
	Active    Micros  `json:"active,omitempty"`
	Held      Reserve `json:"held,omitzero"` // of the attempt under way
	Grants    []Grant `json:"grants,omitempty"`
	Extra     Limits  `json:"extra,omitzero"`     // by extensions
	GivenUp   bool    `json:"given_up,omitempty"` // there is no closing reserve
}

// Grant is what a living child may still use at most.
type Grant struct {
	Call   string `json:"call"`
	Limits Limits `json:"limits"`
}

// Total counts the run and its children. Rounds are the run's own.
func (l Ledger) Total() Counts {
	t := l.Own
	t.ModelCalls += l.Below.ModelCalls
	t.ModelAttempts += l.Below.ModelAttempts
	t.ToolCalls += l.Below.ToolCalls
	t.ToolAttempts += l.Below.ToolAttempts
	t.Usage = t.Usage.Add(l.Below.Usage)
	t.Estimated += l.Below.Estimated
	return t
}

// TotalCost is the cost of the run and its children.
func (l Ledger) TotalCost() Pico { return Pico(addSat(int64(l.Cost), int64(l.CostBelow))) }

// overhead bounds the tokens that a message's or block's frame adds.
const overhead = 16

// mediaBound bounds the tokens of one image or file page set as providers bill them; files are bounded by their bytes.
const mediaBound = 4096

// Bound is an upper bound of the tokens that a message adds to a prompt.
func (m *Message) Bound() int64 { return bound(m.Blocks) }

// bound is an upper bound of the tokens that blocks add to a prompt: a token never covers less than one byte of text, so bytes
// bound tokens for every tokenizer that works on bytes.
func bound(blocks []Block) int64 {
	var n int64
	for _, b := range blocks {
		n += int64(len(b.Text)+len(b.Args)+len(b.Name)+len(b.Raw)) + overhead + bound(b.More)
		if b.Media != nil {
			n += max(mediaBound, int64(len(b.Media.Data)))
		}
	}
	return n
}

// account is a level of the tree whose limits a call must fit.
type account struct {
	whose  string
	limits Limits
	counts Counts
	cost   Pico
	active Micros
}

// accounts lists the levels from the run outwards, in room of the caller's.
func (s *State) accounts(room *[3]account) []account {
	total, cost := s.Ledger.Total(), s.Ledger.TotalCost()
	room[0] = account{"", s.Limits(), total, cost, s.Ledger.Active}
	list := room[:1]
	if p := s.Config.Parent; p != nil {
		list = append(list, account{"parent", p.Grant, total, cost, s.Ledger.Active})
	}
	if ses := s.Config.Session; ses != nil {
		sum := Ledger{Own: total, Below: ses.Counts}.Total()
		list = append(list, account{"session", ses.Limits, sum, Pico(addSat(int64(cost), int64(ses.Cost))), s.Ledger.Active + ses.Active})
	}
	return list
}

// need is what a call may use at most.
type need struct {
	calls, tools, tokens int64
	cost                 Pico
}

// fits names the first limit that does not hold n beside all that is used, held and granted; nil if all do.
func (s State) fits(n need) *LimitHit {
	held := need{tokens: addSat(s.Ledger.Held.Input, s.Ledger.Held.Output), cost: s.Ledger.Held.Cost}
	for _, g := range s.Ledger.Grants {
		held = held.plus(need{deref(g.Limits.ModelCalls), deref(g.Limits.ToolCalls), deref(g.Limits.Tokens), Pico(deref((*int64)(g.Limits.Cost)))})
	}
	want := n.plus(held)
	var room [3]account
	accounts := s.accounts(&room)
	for _, name := range [...]string{LimitModelCalls, LimitToolCalls, LimitTokens, LimitCost} {
		for i := range accounts {
			if accounts[i].crossed(name, n, want) {
				return &LimitHit{Limit: name, Whose: accounts[i].whose}
			}
		}
	}
	return nil
}

// crossed says whether n would cross the limit of that name, where want is n beside all that is held and granted.
func (a *account) crossed(name string, n, want need) bool {
	switch name {
	case LimitModelCalls:
		return n.calls > 0 && crosses(a.limits.ModelCalls, a.counts.ModelCalls, want.calls)
	case LimitToolCalls:
		return n.tools > 0 && crosses(a.limits.ToolCalls, a.counts.ToolCalls, want.tools)
	case LimitTokens:
		return n.tokens > 0 && crosses(a.limits.Tokens, a.counts.Usage.Total(), want.tokens)
	}
	if a.limits.Cost == nil || n.cost == 0 && n.calls == 0 {
		return false
	}
	return crosses((*int64)(a.limits.Cost), int64(a.cost), int64(want.cost)) || n.calls > 0 && *a.limits.Cost == 0
}

func crosses(limit *int64, used, want int64) bool { return limit != nil && addSat(used, want) > *limit }

func deref(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// Admit answers the command CallModel at the time now: the event to append before the call is sent, or the one that says why it
// is not. input is the exact size of the request in tokens where the driver knows it, negative where it does not: then the last
// reported prefix plus a bound for the new bytes is reserved.
func (s State) Admit(now Micros, input int64) Body { return s.AdmitPlan(now, input, nil) }

// AdmitPlan is Admit with what the hook before the call chose. A plan belongs to the first attempt of a call; further attempts and the
// closing call take none.
func (s State) AdmitPlan(now Micros, input int64, plan *Plan) Body {
	c := s.modelCommand()
	if c.Closing {
		plan = nil
	} else if c.Attempt > 1 {
		plan = s.Model.Plan
	}
	prefix := s.broken(plan)
	s.Model.Plan = plan
	exact := input >= 0
	hint := ""
	if c.Attempt == 1 && !c.Closing && s.Overflows == 0 { // else it was said before the attempt that did not fit
		hint = s.hint()
	}
	if !exact {
		input = addSat(s.Model.Prefix, s.Model.Fresh)
		if c.Closing {
			input = addSat(input, closingText)
		}
		if hint != "" {
			input = addSat(input, int64(len(hint))+overhead)
		}
		if plan != nil && plan.Context != "" {
			input = addSat(input, int64(len(plan.Context))+overhead)
		}
	}
	call := need{tokens: addSat(input, s.Config.OutputCap), cost: s.price().Worst(input, s.Config.OutputCap)}
	if c.Attempt == 1 {
		call.calls = 1
	}
	started := ModelCallStarted{Call: c.N, Closing: c.Closing, Model: s.ModelRef(), Prefix: prefix,
		Reserve: Reserve{Input: input, Output: s.Config.OutputCap, Cost: call.cost}}
	if c.Attempt > 1 {
		started.Attempt = c.Attempt
	} else {
		started.Plan = plan
	}
	started.Hint = hint
	if c.Closing {
		if s.fits(call) != nil || s.outOfTime(now) {
			end := RunStopped{Stop: StopLimit}
			return *s.end(end).End
		}
		return started
	}
	hit := s.fits(call.plus(s.closing(input, exact)))
	if hit != nil && s.Ledger.Own.ModelCalls == 0 && s.keepsClosing() && s.fits(call) == nil {
		hit, started.GivenUp = nil, true
	}
	if hit != nil {
		return LimitReached{Limit: hit.Limit, Whose: hit.Whose}
	}
	return started
}

// keepsClosing says whether the reserve holds a closing call.
func (s State) keepsClosing() bool {
	return (s.Config.OnLimit == "" || s.Config.OnLimit == "close") && !s.Ledger.GivenUp
}

// closingText bounds the tokens of the instruction that only the closing call has.
const closingText = 512

// closing is the worst case of the closing call after a call with the given input. Where that size is a bound, the response, its
// overhead and the closing instruction are counted too; an exact one is taken as it is.
func (s State) closing(input int64, exact bool) need {
	if !s.keepsClosing() {
		return need{}
	}
	s.Model.Plan = nil
	if !exact {
		input = addSat(input, s.Config.OutputCap+overhead+closingText)
	}
	return need{calls: 1, tokens: addSat(input, s.Config.OutputCap), cost: s.price().Worst(input, s.Config.OutputCap)}
}

// hold reserves what an admitted attempt may use. It checks the caps again: an event that crosses them is illegal.
func (s State) hold(now Micros, b ModelCallStarted) (State, string) {
	n := need{tokens: addSat(b.Reserve.Input, b.Reserve.Output), cost: b.Reserve.Cost}
	if b.Attempt <= 1 {
		n.calls = 1
	}
	if hit := s.fits(n); hit != nil {
		return s, "it does not fit the limit " + hit.Limit
	}
	if b.GivenUp {
		s.Ledger.GivenUp = true
	}
	if b.Attempt <= 1 {
		s.Ledger.Own.ModelCalls++
	}
	s.Ledger.Own.ModelAttempts++
	s.Ledger.Held = b.Reserve
	return s, ""
}

// settle books what an attempt used; nil books the reserve, marked estimated.
func (s State) settle(u *Usage, estimated bool) State {
	if u == nil {
		u = &Usage{Input: s.Ledger.Held.Input, Output: s.Ledger.Held.Output}
		s.Ledger.Own.Estimated += u.Total()
		s.Ledger.Cost = Pico(addSat(int64(s.Ledger.Cost), int64(s.Ledger.Held.Cost)))
	} else {
		s.Ledger.Cost = Pico(addSat(int64(s.Ledger.Cost), int64(s.price().Of(*u))))
	}
	s.Ledger.Own.Usage = s.Ledger.Own.Usage.Add(*u)
	if !estimated {
		s.Model.Prefix, s.Model.Fresh = u.Total(), 0
	}
	return s.release()
}

func (s State) release() State {
	s.Ledger.Held = Reserve{}
	return s
}

// overshoot says which cap the provider crossed by billing more than it was allowed to.
func (s State) overshoot() *LimitHit {
	var room [3]account
	for _, a := range s.accounts(&room) {
		if l := a.limits.Tokens; l != nil && a.counts.Usage.Total() > *l {
			return &LimitHit{LimitTokens, a.whose, a.counts.Usage.Total() - *l}
		}
		if l := a.limits.Cost; l != nil && a.cost > *l {
			return &LimitHit{LimitCost, a.whose, int64(a.cost - *l)}
		}
	}
	return nil
}

// --- rounds -------------------------------------------------------------------------------------------------------------

// --- reached and extended -----------------------------------------------------------------------------------------------
