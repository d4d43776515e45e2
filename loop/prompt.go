package loop

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

// owesCompaction says whether the transcript is to be shortened before the next model call.
func (s State) owesCompaction() bool {
	r := s.Config.Compact
	if r == nil || r.At <= 0 || s.Model.Closing || s.Model.Again {
		return false
	}
	return addSat(s.Model.Prefix, s.Model.Fresh) > r.At && s.Compacts < max(r.Attempts, 1)
}

// compacted adopts a shorter transcript; a failed attempt leaves it as it was and is counted.
func (s State) compacted(b Compacted) (State, string) {
	if s.Phase != PhasePrompt {
		return s, "stale: the transcript is only shortened between exchanges"
	}
	s.Compacts++
	if b.Failed != "" {
		return s, ""
	}
	s.Model.Prefix, s.Model.Fresh = addSat(s.Config.Base, b.Tokens), 0
	return s, ""
}
