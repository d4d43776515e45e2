package loop

// State is the fold of a journal: what the loop knows. It is a value: Next returns a new one and leaves its argument, and every
// state that shares memory with it, as they were. It holds references, fingerprints and bounded windows, never the bytes of
// messages and results. Its JSON form is canonical: two states are equal when their JSON is.
type State struct {
	Run     string  `json:"run"`
	Seq     int64   `json:"seq"`
	Started Micros  `json:"started"`
	Time    Micros  `json:"time"` // of the last event
	Key     string  `json:"key,omitempty"`
	Fork    int64   `json:"fork,omitempty"` // events up to here repeat those of the run that Key is from
	Config  *Config `json:"config"`
	Digest  string  `json:"digest,omitempty"` // of the agent's definition in force, where it is not the recorded one

	Phase Phase     `json:"phase"`
	Model ModelCall `json:"model"`
	Turn  Turn      `json:"turn"`

	Ledger   Ledger           `json:"ledger"`
	Facts    map[string]Fact  `json:"facts,omitempty"`
	Tools    map[string]Tally `json:"tools,omitempty"`
	Refused  []Refusal        `json:"refused,omitempty"`
	Standing []Standing       `json:"standing,omitempty"`
	Progress Progress         `json:"progress"`

	Nudges    int64       `json:"nudges,omitempty"`  // used
	Repairs   int64       `json:"repairs,omitempty"` // used
	Imitated  bool        `json:"imitated,omitempty"`
	Queued    int64       `json:"queued,omitempty"` // messages taken and not yet in a prompt
	Compacts  int64       `json:"compacts,omitempty"`
	Shorten   bool        `json:"shorten,omitempty"`   // the provider refused the transcript: it is to be shortened whatever its estimate
	Overflows int64       `json:"overflows,omitempty"` // refusals of that kind since the last response
	Judged    int64       `json:"judged,omitempty"`    // calls of the judge
	Side      SideCall    `json:"side,omitzero"`
	Limit     *LimitHit   `json:"limit,omitempty"`
	Cancel    *Cancelled  `json:"cancel,omitempty"`
	End       *RunStopped `json:"end,omitempty"`    // decided, not yet recorded
	Stop      *RunStopped `json:"stop,omitempty"`   // recorded
	Answer    int64       `json:"answer,omitempty"` // event of the last response that may be an answer
}

// Phase says what the run is at. The order of a round is: PhasePrompt, PhaseModel, PhaseTurn (calls) or PhaseCheck (contract),
// PhasePrompt again; then PhaseEnding and PhaseStopped.
type Phase string

// Phases.
const (
	PhaseNew     Phase = ""
	PhasePrompt  Phase = "prompt"  // a model call is owed
	PhaseModel   Phase = "model"   // an attempt is under way
	PhaseTurn    Phase = "turn"    // calls are being settled
	PhaseCheck   Phase = "check"   // the contract or the output is being checked
	PhaseNudge   Phase = "nudge"   // a hand-back of the loop's own is owed
	PhasePaused  Phase = "paused"  // a limit was reached and a person may extend it
	PhaseEnding  Phase = "ending"  // End is owed
	PhaseStopped Phase = "stopped" // nothing follows
)

// ModelCall is the model call that is owed or under way.
type ModelCall struct {
	Call    int64   `json:"call,omitempty"`    // of the run, from 1; the last one started
	Attempt int64   `json:"attempt,omitempty"` // of that call
	Failed  int64   `json:"failed,omitempty"`  // attempts of that call that count against the retries
	Lost    int64   `json:"lost,omitempty"`    // attempts of that call that died with their process
	After   Micros  `json:"after,omitempty"`   // not before this time
	Again   bool    `json:"again,omitempty"`   // the next attempt is one more of the same call
	Closing bool    `json:"closing,omitempty"` // the call is the closing call
	Reserve Reserve `json:"reserve,omitzero"`
	Model   string  `json:"model,omitempty"`  // the fallback in force
	Prefix  int64   `json:"prefix,omitempty"` // tokens by the last report
	Fresh   int64   `json:"fresh,omitempty"`  // bound of the tokens added since
	Late    int64   `json:"late,omitempty"`   // the same of messages that arrived during the call: the call after it has them
	Nudge   *Nudged `json:"nudge,omitempty"`  // owed in PhaseNudge
	Ended   string  `json:"ended,omitempty"`  // cause of the last failure: limit, cancelled
	Plan    *Plan   `json:"plan,omitempty"`   // of that call
	Asked   string  `json:"asked,omitempty"`  // the model that got the run's last request; "" the agent's
	Cut     bool    `json:"cut,omitempty"`    // the transcript was shortened since that request
}

// Turn is the model's last response that asks for calls, while they are being settled.
type Turn struct {
	N      int64  `json:"n,omitempty"`   // model call
	Seq    int64  `json:"seq,omitempty"` // event that holds it
	Calls  []Call `json:"calls,omitempty"`
	Fact   bool   `json:"fact,omitempty"`   // a fact changed
	Judged bool   `json:"judged,omitempty"` // every call was validated and decided
}

// CallStatus is where a call stands.
type CallStatus string

// Statuses of calls.
const (
	CallNew     CallStatus = "new"     // to be validated and decided
	CallReady   CallStatus = "ready"   // may run
	CallAsking  CallStatus = "asking"  // waits for a person
	CallRunning CallStatus = "running" // an attempt is under way
	CallUnknown CallStatus = "unknown" // the tool is to be asked whether it happened
	CallResolve CallStatus = "resolve" // a person is to be asked whether it happened
	CallChild   CallStatus = "child"   // runs as a child
	CallSettled CallStatus = "settled" // has its result
)

// Call is one call of the turn.
type Call struct {
	ID      string     `json:"id"` // "c3.1": model call 3, second call
	Wire    string     `json:"wire,omitempty"`
	Tool    string     `json:"tool"`
	Status  CallStatus `json:"status"`
	Args    string     `json:"args,omitempty"`   // digest of the canonical arguments
	Digest  string     `json:"digest,omitempty"` // what an approval binds
	Finish  string     `json:"finish,omitempty"` // status of the finish tool
	Ask     int64      `json:"ask,omitempty"`    // how often it was asked for
	Asked   bool       `json:"asked,omitempty"`  // the question is on record (CallAsking without it owes ApprovalAsked)
	Expires Micros     `json:"expires,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	By      string     `json:"by,omitempty"` // who approved it
	Edited  bool       `json:"edited,omitempty"`
	Attempt int64      `json:"attempt,omitempty"` // started so far
	Failed  int64      `json:"failed,omitempty"`  // attempts that count against the retries
	Lost    int64      `json:"lost,omitempty"`    // attempts whose outcome was unknown, or that did not happen after all
	After   Micros     `json:"after,omitempty"`   // not before
	Child   string     `json:"child,omitempty"`   // run of the child
	Why     string     `json:"why,omitempty"`     // settled: why it did not run
	Failure bool       `json:"failure,omitempty"` // settled: with an error result
	Result  string     `json:"result,omitempty"`  // settled: fingerprint
	Unsure  bool       `json:"unsure,omitempty"`  // settled: nobody knows whether it happened
}

// Tally counts calls of one tool in the run.
type Tally struct {
	Calls     int64  `json:"calls,omitempty"` // started
	Succeeded int64  `json:"ok,omitempty"`
	Last      Micros `json:"last,omitempty"` // start of the last one
}

// Refusal is a person's no: it holds for the effect label and the run.
type Refusal struct {
	Label   string `json:"label"`
	Tool    string `json:"tool"`
	Args    string `json:"args,omitempty"`
	Message string `json:"message,omitempty"`
	By      string `json:"by,omitempty"`
}

// LimitHit is a limit that was reached.
type LimitHit struct {
	Limit     string `json:"limit"`
	Whose     string `json:"whose,omitempty"`
	Overshoot int64  `json:"overshoot,omitempty"`
}

// Cancelled says who asked for the end.
type Cancelled struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Statuses of runs.
const (
	StatusRunning = "running"
	StatusWaiting = "waiting"
	StatusStopped = "stopped"
)

// What a run can wait for.
const (
	WaitApproval   = "approval"
	WaitResolution = "resolution"
	WaitInput      = "input"
	WaitExtension  = "extension"
	WaitChild      = "child"
	WaitTimer      = "timer"
)

// Status says whether the run is running, waiting (and for what) or stopped. A run that only waits for a person or a child holds
// nothing: its driver lets go of it.
func (s State) Status() (status string, waiting []string) {
	switch s.Phase {
	case PhaseStopped:
		return StatusStopped, nil
	case PhasePaused:
		return StatusWaiting, []string{WaitExtension}
	case PhaseTurn:
		if w := s.turnWaits(); len(w) > 0 {
			return StatusWaiting, w
		}
	}
	return StatusRunning, nil
}

// turnWaits says what the turn waits for; nil while something of it can still be done without a person.
func (s State) turnWaits() []string {
	if s.windingDown() || !s.Turn.Judged {
		return nil
	}
	var w []string
	add := func(what string) {
		for _, have := range w {
			if have == what {
				return
			}
		}
		w = append(w, what)
	}
	for _, c := range s.Turn.Calls {
		switch c.Status {
		case CallAsking:
			if c.Asked { // else it is owed (owesRefusal), or a limit that may be extended stands before it
				add(WaitApproval)
			}
		case CallResolve:
			add(WaitResolution)
		case CallChild:
			add(WaitChild)
		case CallRunning, CallUnknown, CallNew:
			return nil
		}
	}
	if len(s.startable()) > 0 || s.Turn.open() == 0 || s.owesRefusal() {
		return nil
	}
	if s.Limit != nil && s.Config.OnLimit == "pause" {
		add(WaitExtension)
	}
	return w
}

// open counts the calls that have no result yet.
func (t Turn) open() int {
	n := 0
	for i := range t.Calls {
		if t.Calls[i].Status != CallSettled {
			n++
		}
	}
	return n
}

// find returns the index of a call of the turn by the loop's id, −1 if there is none.
func (t Turn) find(id string) int {
	for i := range t.Calls {
		if t.Calls[i].ID == id {
			return i
		}
	}
	return -1
}

// Call returns the call of the current turn with the loop's id.
func (s State) Call(id string) (Call, bool) {
	if i := s.Turn.find(id); i >= 0 {
		return s.Turn.Calls[i], true
	}
	return Call{}, false
}

// setCall returns the state with one call replaced; the old state keeps its own calls.
func (s State) setCall(i int, c Call) State {
	calls := make([]Call, len(s.Turn.Calls))
	copy(calls, s.Turn.Calls)
	calls[i] = c
	s.Turn.Calls = calls
	return s
}

// tally returns the state with the tool's tally changed.
func (s State) tally(tool string, change func(*Tally)) State {
	m := make(map[string]Tally, len(s.Tools)+1)
	for k, v := range s.Tools {
		m[k] = v
	}
	t := m[tool]
	change(&t)
	m[tool] = t
	s.Tools = m
	return s
}

// adopt returns the state with facts set; it reports whether any of them is new or has changed.
func (s State) adopt(facts map[string]Value, seq int64) State {
	if len(facts) == 0 {
		return s
	}
	m := make(map[string]Fact, len(s.Facts)+len(facts))
	for k, v := range s.Facts {
		m[k] = v
	}
	for k, v := range facts {
		if old, ok := m[k]; !ok || string(old.Value) != string(v) {
			s.Turn.Fact = true
			m[k] = Fact{Value: v, Seq: seq}
		}
	}
	s.Facts = m
	return s
}
