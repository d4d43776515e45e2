package loop

import "strconv"

// Progress is a bounded window of the fingerprints of the last rounds.
type Progress struct {
	Window []string `json:"window,omitempty"`
	Rounds int64    `json:"rounds,omitempty"` // rounds fingerprinted since the window began
	Nudged int64    `json:"nudged,omitempty"` // value of Rounds at the last nudge; 0: none
	Period int64    `json:"period,omitempty"` // of the cycle found last
}

// maxRepeats bounds the window, whatever a journal says.
const maxRepeats = 1000

// maxPeriod is the longest cycle that counts as repetition, in rounds.
const maxPeriod = 4

type progressVerdict int

const (
	moves progressVerdict = iota
	repeats
	stalls
)

// progressed adds the turn to the window and says whether the run repeats itself: a cycle of up to four rounds of the same calls with
// the same results and no new fact, as often as the agent's stall rule says, is worth a nudge; once more stalls it.
func (s State) progressed() (State, progressVerdict) {
	k := min(s.Config.Stall.Repeats, maxRepeats)
	if k <= 0 {
		return s, moves
	}
	print, counts := s.turnPrint()
	if !counts {
		return s, moves
	}
	p := s.Progress
	size := int(maxPeriod * (k + 1))
	from := max(0, len(p.Window)-size+1)
	p.Window = append(append(make([]string, 0, size), p.Window[from:]...), print)
	p.Rounds++
	verdict := moves
	for period := int64(1); period <= maxPeriod; period++ {
		if cycles(p.Window, period, k+1) && p.Nudged > 0 {
			p.Period, verdict = period, stalls
			break
		}
		if cycles(p.Window, period, k) && (p.Nudged == 0 || p.Rounds-p.Nudged >= period) {
			p.Nudged, p.Period, verdict = p.Rounds, period, repeats
			break
		}
		if cycles(p.Window, period, k) {
			break
		}
	}
	if verdict == moves && p.Nudged > 0 && p.Rounds-p.Nudged >= p.Period {
		p.Nudged = 0 // the run went on to something else
	}
	s.Progress = p
	return s, verdict
}

// cycles says whether the window ends with n repetitions of a cycle of the given period.
func cycles(w []string, period, n int64) bool {
	if int64(len(w)) < period*n {
		return false
	}
	tail := w[int64(len(w))-period*n:]
	for i := int(period); i < len(tail); i++ {
		if tail[i] != tail[i-int(period)] {
			return false
		}
	}
	return true
}

// turnPrint is the fingerprint of the turn: its calls with their results, in order. A turn of pollers alone does not count. A turn that
// changed a fact is like no other.
func (s State) turnPrint() (print string, counts bool) {
	parts := make([][]byte, 0, 3*len(s.Turn.Calls)+1)
	for _, c := range s.Turn.Calls {
		if t := s.Config.tool(c.Tool); t == nil || t.Poll == nil {
			counts = true
		}
		parts = append(parts, []byte(c.Tool), []byte(c.Args), []byte(c.Result))
	}
	if s.Turn.Fact {
		parts = append(parts, []byte(strconv.FormatInt(s.Turn.Seq, 10)))
	}
	return Fingerprint(parts...)[:16], counts
}

func (s State) stallText() string {
	what := "the same call"
	if len(s.Turn.Calls) > 0 {
		what = s.Turn.Calls[0].Tool
	}
	p := s.Progress.Period
	text := "The last rounds repeat: " + what + " was called with the same arguments and gave the same results"
	if p > 1 {
		text = "The last rounds repeat a cycle of " + strconv.FormatInt(p, 10) + " rounds with the same calls and the same results"
	}
	return text + ". Calling again brings nothing new: do something else, or answer with what you know."
}
