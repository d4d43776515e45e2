package loop

import (
	"hash/fnv"
	"strconv"
)

// elapse adds the time since the last event to the active time, unless the run only waited or was between drivers.
func (s State) elapse(ev Event) State {
	if s.Phase == PhaseNew {
		return s
	}
	if _, gap := ev.Body.(RunResumed); gap || s.idle() {
		return s
	}
	s.Ledger.Active += ev.Time - s.Time
	return s
}

// idle says whether time that passes now is not active time.
func (s State) idle() bool {
	status, _ := s.Status()
	return status != StatusRunning
}

// active is the active time at now.
func (s State) active(now Micros) Micros {
	if s.idle() || now < s.Time {
		return s.Ledger.Active
	}
	return s.Ledger.Active + now - s.Time
}

// ActiveTime is the run's active time at now: waiting for a person does not count.
func (s State) ActiveTime(now Micros) Micros { return s.active(now) }

// closingTime is what of a time limit is kept for the closing call.
func (s State) closingTime(limit Micros) Micros {
	if !s.keepsClosing() || s.Model.Closing {
		return 0
	}
	keep := s.Config.ClosingTime
	if keep == 0 {
		keep = min(limit/10, 30*Second)
	}
	return min(keep, limit)
}

// timeHit is the time limit that was reached, if it is not on record yet.
func (s State) timeHit(now Micros) *LimitReached {
	if s.Limit != nil || s.Cancel != nil || s.End != nil || s.Phase == PhaseStopped || s.Phase == PhaseNew {
		return nil
	}
	var room [3]account
	for _, a := range s.accounts(&room) {
		if l := a.limits.ActiveTime; l != nil && !s.idle() && a.active-s.Ledger.Active+s.active(now) >= *l-s.closingTime(*l) {
			return &LimitReached{Limit: LimitActiveTime, Whose: a.whose}
		}
		if l := a.limits.Deadline; l != nil && now >= s.Started+*l-s.closingTime(*l) {
			return &LimitReached{Limit: LimitDeadline, Whose: a.whose}
		}
	}
	return nil
}

// outOfTime says whether a time limit is used up, closing time included.
func (s State) outOfTime(now Micros) bool {
	left, _, limited := s.TimeLeft(now)
	return limited && left <= 0
}

// TimeLeft is the time until the nearest time limit and its name. The driver bounds the closing call with it; other work is
// aborted when Ready says so.
func (s State) TimeLeft(now Micros) (left Micros, limit string, limited bool) {
	consider := func(l Micros, name string) {
		if !limited || l < left {
			left, limit, limited = l, name, true
		}
	}
	var room [3]account
	for _, a := range s.accounts(&room) {
		if l := a.limits.ActiveTime; l != nil {
			consider(*l-(a.active-s.Ledger.Active+s.active(now)), LimitActiveTime)
		}
		if l := a.limits.Deadline; l != nil {
			consider(s.Started+*l-now, LimitDeadline)
		}
	}
	return left, limit, limited
}

// NextWake is the next time at which Ready will say something new though no event comes; 0 if there is none.
func (s State) NextWake(now Micros) Micros {
	var at Micros
	consider := func(t Micros) {
		if t > now && (at == 0 || t < at) {
			at = t
		}
	}
	if s.Phase == PhaseStopped || s.Phase == PhaseNew {
		return 0
	}
	if s.Limit == nil && s.Cancel == nil && s.End == nil {
		var room [3]account
		for _, a := range s.accounts(&room) {
			if l := a.limits.ActiveTime; l != nil && !s.idle() {
				consider(now + *l - s.closingTime(*l) - (a.active - s.Ledger.Active + s.active(now)))
			}
			if l := a.limits.Deadline; l != nil {
				consider(s.Started + *l - s.closingTime(*l))
			}
		}
	}
	if s.Phase == PhasePrompt {
		consider(s.Model.After)
	}
	consider(s.Side.After)
	if s.Phase == PhaseTurn || s.Phase == PhasePaused {
		for _, c := range s.Turn.Calls {
			switch c.Status {
			case CallAsking:
				consider(c.Expires)
			case CallReady:
				consider(s.startAfter(c))
			}
		}
	}
	return at
}

func (s State) withWake(cmds []Command, now Micros) []Command {
	if at := s.NextWake(now); at > 0 {
		cmds = append(cmds, Command{ID: id("wake", int64(at)), Kind: Wake, After: at})
	}
	return cmds
}

// backoff is the wait before another attempt: one second, doubled each time, at most a minute, plus up to a quarter by a hash
// of the run so that runs do not move in step; never less than the other side asked for.
func backoff(key string, failed int64, asked Micros) Micros {
	d := Second << min(failed-1, 6)
	d = min(d, Minute)
	h := fnv.New32a()
	h.Write([]byte(key + strconv.FormatInt(failed, 10)))
	d += d * Micros(h.Sum32()%256) / 1024
	return max(d, asked)
}
