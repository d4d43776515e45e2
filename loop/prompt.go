package loop

import "slices"

// This machine readies the next model call: which model, and whether the transcript still fits.

// fallback is the model that takes over after a failure of the class, if one is left.
func (s State) fallback(class Class) (string, bool) {
	next := 0
	for i, f := range s.Config.Fallbacks {
		if f.Model == s.Model.Model {
			next = i + 1
		}
	}
	for _, f := range s.Config.Fallbacks[min(next, len(s.Config.Fallbacks)):] {
		if len(f.Classes) == 0 && (class == ClassTransient || class == ClassFatal) {
			return f.Model, true
		}
		for _, c := range f.Classes {
			if c == class {
				return f.Model, true
			}
		}
	}
	return "", false
}

// takeOver lets another model answer the call after a failure of the class. A model that a plan chose gives way to the one in force, which
// has not failed.
func (s State) takeOver(class Class) (State, bool) {
	next, ok := s.fallback(class)
	if !ok {
		return s, false
	}
	if p := s.Model.Plan; p != nil && p.Model != "" {
		plan := *p
		plan.Model = ""
		s.Model.Plan, next = &plan, s.Model.Model
	}
	s.Model.Model, s.Model.Failed, s.Model.Again = next, 0, true
	return s, true
}

// ModelRef is the model that the call owed or under way goes to; "" is the agent's own.
func (s State) ModelRef() string {
	if p := s.Model.Plan; p != nil && p.Model != "" && !s.Model.Closing {
		return p.Model
	}
	return s.Model.Model
}

// price is that of the model that the call goes to.
func (s State) price() *Price {
	if ref := s.ModelRef(); ref != "" && ref != s.Config.Model {
		for _, list := range [...][]Fallback{s.Config.Fallbacks, s.Config.Models} {
			for _, f := range list {
				if f.Model == ref {
					return f.Price
				}
			}
		}
	}
	return s.Config.Price
}

// planned says whether a tool was declared for the call whose turn is open.
func (s State) planned(tool string) bool {
	p := s.Model.Plan
	return p == nil || p.Tools == nil || slices.Contains(p.Tools, tool)
}

// broken says why a request with the plan does not begin with the one before it, nil if it does.
func (s State) broken(plan *Plan) *Prefix {
	if s.Ledger.Own.ModelCalls == 0 {
		if s.Model.Cut {
			return &Prefix{Broken: "compaction"}
		}
		return nil
	}
	var before, now Plan
	if s.Model.Plan != nil {
		before = *s.Model.Plan
	}
	if plan != nil {
		now = *plan
	}
	then := s.Model.Asked
	s.Model.Plan = plan
	switch {
	case s.Model.Cut:
		return &Prefix{Broken: "compaction"}
	case then != s.ModelRef():
		return &Prefix{Broken: "model"}
	case (before.Tools == nil) != (now.Tools == nil) || !slices.Equal(before.Tools, now.Tools):
		return &Prefix{Broken: "tools"}
	case before.Context != now.Context:
		return &Prefix{Broken: "instructions"}
	}
	return nil
}

// attempts is how often shortening is tried before one model call.
func (r *CompactRule) attempts() int64 {
	if r == nil {
		return 1
	}
	return max(r.Attempts, 1)
}

// owesCompaction says whether the transcript is to be shortened before the next model call.
func (s State) owesCompaction() bool {
	r := s.Config.Compact
	if r == nil || s.Model.Closing || s.Model.Again || s.Compacts >= r.attempts() {
		return false
	}
	return s.Shorten || !s.Model.Cut && r.At > 0 && addSat(s.Model.Prefix, s.Model.Fresh) > r.At
}

// overflows goes on after the provider said that the transcript does not fit its window: with a shorter one, if there is a rule for that.
func (s State) overflows(b ModelFailed) (State, bool) {
	if r := s.Config.Compact; !b.Window || r == nil || s.Model.Closing || s.Overflows >= r.attempts() {
		return s, false
	}
	s.Overflows++
	s.Shorten, s.Compacts = true, 0
	return s, true
}

// compacted adopts a shorter transcript; a failed attempt leaves it as it was and is counted.
func (s State) compacted(b Compacted) (State, string) {
	if s.Phase != PhasePrompt || s.Side.Under {
		return s, "stale: the transcript is only shortened between exchanges"
	}
	s.Side = SideCall{Calls: s.Side.Calls}
	if b.Failed != "" {
		if b.Final {
			s.Compacts = max(s.Config.Compact.attempts()-1, s.Compacts)
		}
		return s.notCompacted(b.Failed), ""
	}
	s.Compacts++
	s.Shorten, s.Model.Cut = false, true
	s.Model.Prefix, s.Model.Fresh = addSat(s.Config.Base, b.Tokens), 0
	return s, ""
}

// notCompacted counts a failed attempt. A transcript that the provider refused and that cannot be shortened ends the run.
func (s State) notCompacted(why string) State {
	s.Compacts++
	if s.Shorten && s.Compacts >= s.Config.Compact.attempts() && s.Cancel == nil && s.Limit == nil {
		return s.end(RunStopped{Stop: StopFailed, Class: ClassInvalid,
			Message: "the transcript does not fit the model's context window and could not be shortened: " + cutText(why, 1000)})
	}
	return s
}
