package loop

// Event is a durable fact in the past tense, the only input of the loop. Seq is gapless from 1 within a run. Time is when
// the driver saw it; it never goes back within a run.
type Event struct {
	Seq  int64
	Time Micros
	Body Body

	raw []byte // as read from the journal: an event is written back exactly as it was read
}

// Kind names the kind of the event.
func (e Event) Kind() string {
	if e.Body == nil {
		return ""
	}
	return e.Body.Kind()
}

// Body is what an event says. The bodies are the types of this file and Unknown; they are values, never changed after they
// were made.
type Body interface{ Kind() string }

// RunStarted is the first event of every run: all that the loop needs as data.
type RunStarted struct {
	Run    string  `json:"run"`
	Config *Config `json:"config"`
	Input  []Block `json:"input,omitempty"` // the first message of the user
	By     string  `json:"by,omitempty"`
	Format int     `json:"format,omitempty"` // lowest format of the journal that a reader must know; 0 means 1
	Fork   *RunRef `json:"fork,omitempty"`   // the prefix this run repeats
	Key    string  `json:"key,omitempty"`    // seed of idempotency keys; "": the run's id
}

// RunResumed says that another driver took a running run over. The time since the event before is not active time.
type RunResumed struct {
	Epoch int64  `json:"epoch,omitempty"`
	By    string `json:"by,omitempty"`
	// Digest is set where the agent's definition differs from the recorded one in a way that the pending calls allow.
	Digest string `json:"digest,omitempty"`
}

// Reserve is the worst case of one attempt of a model call, held until the attempt is settled.
type Reserve struct {
	Input  int64 `json:"input,omitempty"`
	Output int64 `json:"output,omitempty"`
	Cost   Pico  `json:"cost,omitempty"`
}

// ModelCallStarted says that an attempt of a model call is about to be sent. Call counts model calls of the run from 1. The
// first attempt of a call closes the hand-back before it: Hint, where present, is its last line.
type ModelCallStarted struct {
	Call    int64    `json:"call"`
	Attempt int64    `json:"attempt,omitempty"` // from 1; 0 in JSON means 1
	Closing bool     `json:"closing,omitempty"`
	GivenUp bool     `json:"closing_given_up,omitempty"` // call and closing call do not fit together: no closing reserve from here on
	Reserve Reserve  `json:"reserve,omitzero"`
	Hint    string   `json:"hint,omitempty"`
	Model   string   `json:"model,omitempty"` // where it is not the agent's
	Plan    *Plan    `json:"plan,omitempty"`  // what the hook before this call chose
	Prefix  *Prefix  `json:"prefix,omitempty"`
	Purpose string   `json:"purpose,omitempty"` // "" the run itself; compaction, judge
	Notes   []string `json:"notes,omitempty"`   // what the adapter lowered
}

// Plan is what a hook chose for one model call alone.
type Plan struct {
	Model      string   `json:"model,omitempty"`
	Tools      []string `json:"tools,omitempty"` // declared for this call; nil: all
	ToolChoice string   `json:"tool_choice,omitempty"`
	Context    string   `json:"context,omitempty"` // added to the system instructions of this call
}

// Prefix says that the request does not begin with the one before it, and why.
type Prefix struct {
	Broken string `json:"broken"` // compaction, model, tools, instructions
}

// ModelReplied is a whole response, streamed or not.
type ModelReplied struct {
	Call    int64   `json:"call"`
	Blocks  []Block `json:"blocks,omitempty"`
	Finish  Finish  `json:"finish"`
	Usage   *Usage  `json:"usage,omitempty"` // nil: not reported; the reserve is booked, marked estimated
	Model   string  `json:"model,omitempty"` // as served, where it is not the one asked for
	ID      string  `json:"id,omitempty"`    // of the response at the provider
	Detail  string  `json:"detail,omitempty"`
	Tape    string  `json:"tape,omitempty"` // id of the tape in the store
	Purpose string  `json:"purpose,omitempty"`
}

// ModelFailed is the end of an attempt without a response. Lost means that nobody knows whether the provider billed it: the
// reserve is booked, marked estimated.
type ModelFailed struct {
	Call       int64  `json:"call"`
	Attempt    int64  `json:"attempt,omitempty"`
	Class      Class  `json:"class"`
	Lost       bool   `json:"lost,omitempty"`
	Clock      string `json:"clock,omitempty"` // which clock fired: connect, first_byte, between_deltas, model_call, active_time, deadline
	Cause      string `json:"cause,omitempty"` // crash, cancelled, limit; else ""
	Status     int    `json:"status,omitempty"`
	RetryAfter Micros `json:"retry_after,omitempty"`
	Message    string `json:"message,omitempty"`
	Window     bool   `json:"window,omitempty"` // the transcript does not fit the model's context window
	Gone       bool   `json:"gone,omitempty"`   // the provider does not keep the conversation any more: sent whole from here on
	Usage      *Usage `json:"usage,omitempty"`
	Purpose    string `json:"purpose,omitempty"`
}

// CallAuthorized is what validation and policy said of a call that makes sense. Asked once for each call.
type CallAuthorized struct {
	Call     string  `json:"call"`
	Verdict  Verdict `json:"verdict"`
	Args     string  `json:"args,omitempty"`   // digest of the canonical arguments
	Digest   string  `json:"digest,omitempty"` // what an approval binds: tool, definition, canonical arguments, destination
	Rule     string  `json:"rule,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	Standing string  `json:"standing,omitempty"` // the standing approval that turned ask into allow
	Finish   string  `json:"finish,omitempty"`   // the finish tool: done, declined, blocked
}

// CallRefused is a call that gets an error result and does not run.
type CallRefused struct {
	Call    string `json:"call"`
	Why     string `json:"why"`
	Args    string `json:"args,omitempty"` // digest of the arguments, for progress
	Message string `json:"message"`        // what the model is told
}

// Reasons of CallRefused.
const (
	WhyUnknownTool = "unknown_tool" // consumes a repair
	WhyInvalid     = "invalid"      // arguments do not fit; consumes a repair
	WhyUngrounded  = "ungrounded"   // consumes a repair
	WhyRequires    = "requires"     // consumes a repair
	WhyDenied      = "denied"       // by policy
	WhyRefusedOnce = "refused"      // a person refused the same thing earlier in the run
	WhyCap         = "cap"          // the tool's own cap
	WhyLimit       = "limit"        // a limit of the run
	WhyCancelled   = "cancelled"
	WhySuperseded  = "superseded" // by a message of the user
	WhyNotRun      = "not_run"    // the run ended before its turn came
	WhyContract    = "contract"   // finish: the contract does not hold
	WhyChanged     = "changed"    // the call's tool is not what it was
	WhyUnknown     = "unknown"    // the run ends and nobody knows whether the effect happened
)

// ApprovalAsked says that a call waits for a person. Ask counts how often this call was asked for, from 1.
type ApprovalAsked struct {
	Call    string `json:"call"`
	Ask     int64  `json:"ask,omitempty"` // 0 in JSON means 1
	Digest  string `json:"digest,omitempty"`
	Expires Micros `json:"expires,omitempty"` // 0: never
	Reason  string `json:"reason,omitempty"`
}

// Decisions of a person; Expired is the clock's.
const (
	Approve = "approve"
	Edit    = "edit"
	Reject  = "reject"
	Expired = "expired"
)

// ApprovalDecided is the one answer to an approval.
type ApprovalDecided struct {
	Call     string    `json:"call"`
	Decision string    `json:"decision"`
	By       string    `json:"by,omitempty"`
	Message  string    `json:"message,omitempty"`
	Digest   string    `json:"digest,omitempty"` // edit: of the new arguments
	Args     string    `json:"args,omitempty"`   // edit: the canonical arguments themselves
	ArgsSum  string    `json:"args_digest,omitempty"`
	Standing *Standing `json:"standing,omitempty"` // a standing approval granted with it
	Input    string    `json:"input,omitempty"`    // id of the inbox entry
}

// Standing is a scoped approval that holds for later calls too.
type Standing struct {
	ID      string            `json:"id"`
	Tool    string            `json:"tool"`
	Digest  string            `json:"digest,omitempty"` // of the tool's definition, its destination included
	Args    map[string]string `json:"args,omitempty"`   // argument: pattern with *; an argument without one must not differ if All is false
	By      string            `json:"by,omitempty"`
	Until   Micros            `json:"until,omitempty"` // 0: the end of its scope
	Session bool              `json:"session,omitempty"`
}

// StandingRevoked ends a standing approval.
type StandingRevoked struct {
	ID    string `json:"id"`
	By    string `json:"by,omitempty"`
	Input string `json:"input,omitempty"`
}

// ToolStarted says that an attempt of a call is about to run.
type ToolStarted struct {
	Call    string `json:"call"`
	Attempt int64  `json:"attempt,omitempty"` // 0 in JSON means 1
}

// ToolReturned is the result of a call. Its content enters the transcript as it stands: caps were applied before.
type ToolReturned struct {
	Call    string           `json:"call"`
	Attempt int64            `json:"attempt,omitempty"`
	Text    string           `json:"text,omitempty"`
	More    []Block          `json:"more,omitempty"`
	Facts   map[string]Value `json:"facts,omitempty"`
	Ref     string           `json:"ref,omitempty"`   // artifact with the whole result, where Text is a preview
	Refs    []string         `json:"refs,omitempty"`  // the same of texts of More
	Bytes   int64            `json:"bytes,omitempty"` // size of the whole result, where Text is a preview
	Sum     string           `json:"sum,omitempty"`   // fingerprint of the whole result, where Text is a preview
}

// ToolFailed is the end of an attempt without a result. Clock names the clock that fired, Cause is crash, cancelled or
// limit where that ended it.
type ToolFailed struct {
	Call       string           `json:"call"`
	Attempt    int64            `json:"attempt,omitempty"`
	Class      Class            `json:"class"`
	Message    string           `json:"message,omitempty"`
	RetryAfter Micros           `json:"retry_after,omitempty"`
	Clock      string           `json:"clock,omitempty"` // tool, active_time, deadline
	Cause      string           `json:"cause,omitempty"`
	NotRun     bool             `json:"not_run,omitempty"` // it is certain that nothing happened
	Facts      map[string]Value `json:"facts,omitempty"`
}

// EffectChecked is what the tool itself could tell of an unknown outcome: yes (with the result), no, unknown.
type EffectChecked struct {
	Call     string           `json:"call"`
	Happened string           `json:"happened"`
	Text     string           `json:"text,omitempty"`
	Facts    map[string]Value `json:"facts,omitempty"`
	Message  string           `json:"message,omitempty"`
	Ref      string           `json:"ref,omitempty"` // artifact with the whole result, where Text is a preview
}

// Answers of EffectChecked.
const (
	HappenedYes     = "yes"
	HappenedNo      = "no"
	HappenedUnknown = "unknown"
)

// EffectResolved is a person's word on an unknown outcome.
type EffectResolved struct {
	Call     string           `json:"call"`
	Happened bool             `json:"happened"`
	By       string           `json:"by,omitempty"`
	Message  string           `json:"message,omitempty"`
	Facts    map[string]Value `json:"facts,omitempty"`
	Input    string           `json:"input,omitempty"`
}

// Words of the finish tool's status.
const (
	FinishDone     = "done"
	FinishDeclined = "declined"
	FinishBlocked  = "blocked"
)

// ContractChecked is the answer to a check of the contract or of the output's schema.
type ContractChecked struct {
	OK      bool     `json:"ok,omitempty"`
	Missing []string `json:"missing,omitempty"` // what is missing, for the model and the person
	Output  bool     `json:"output,omitempty"`  // the output schema does not hold: consumes a repair
	Undone  bool     `json:"undecided,omitempty"`
}

// LimitReached says that a limit stands in the way of what the run wants next.
type LimitReached struct {
	Limit     string `json:"limit"`
	Whose     string `json:"whose,omitempty"` // "" run; parent, session
	Overshoot int64  `json:"overshoot,omitempty"`
	Calls     bool   `json:"calls,omitempty"` // the calls of the turn are refused
}

// Names of limits.
const (
	LimitRounds     = "rounds"
	LimitModelCalls = "model_calls"
	LimitToolCalls  = "tool_calls"
	LimitTokens     = "tokens"
	LimitCost       = "cost"
	LimitActiveTime = "active_time"
	LimitDeadline   = "deadline"
)

// LimitsExtended raises limits of the run by the given amounts.
type LimitsExtended struct {
	By    string `json:"by,omitempty"`
	Add   Limits `json:"add"`
	Input string `json:"input,omitempty"`
}

// Nudged is a hand-back that no tool made: a correction or an encouragement.
type Nudged struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// Reasons of Nudged.
const (
	NudgeEmpty     = "empty"
	NudgeCut       = "cut"
	NudgeStall     = "stall"     // beside a turn's results: no round of its own
	NudgeContract  = "contract"  // limited by the run's own limits
	NudgeOutput    = "output"    // consumes a repair
	NudgeMalformed = "malformed" // consumes a repair
	NudgeImitation = "imitation" // a call written as text; consumes a repair
	NudgePlain     = "plain"     // text instead of finish; consumes a repair
	NudgeContinue  = "continue"  // the provider paused the turn; nothing is said to the model
)

// MessageTaken is a message from outside that was taken into the run.
type MessageTaken struct {
	Input     string  `json:"input,omitempty"`
	Blocks    []Block `json:"blocks"`
	By        string  `json:"by,omitempty"`
	Supersede bool    `json:"supersede,omitempty"`
}

// CancelRequested asks the run to end.
type CancelRequested struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Input  string `json:"input,omitempty"`
}

// Compacted replaces the transcript before (and with) message event Upto by Messages. Kept messages follow unchanged.
type Compacted struct {
	Upto     int64     `json:"upto"`
	Messages []Message `json:"messages"`
	Keep     []int64   `json:"keep,omitempty"` // events at or before Upto whose messages stay word for word, before Messages
	Failed   string    `json:"failed,omitempty"`
	Final    bool      `json:"final,omitempty"`  // failed: a further attempt before this model call would fail too
	Tokens   int64     `json:"tokens,omitempty"` // estimate of the transcript after it
	Call     int64     `json:"call,omitempty"`   // the model call that wrote the summary, whose blocks are here and not in its reply
}

// ChildStarted says that a call runs as a child with a journal of its own, within a grant from this run's ledger.
type ChildStarted struct {
	Call  string `json:"call"`
	Run   string `json:"run"`
	Agent string `json:"agent,omitempty"`
	Grant Limits `json:"grant"`
}

// ChildStopped is the end of a child as the parent sees it.
type ChildStopped struct {
	Call   string           `json:"call"`
	Run    string           `json:"run"`
	Stop   Reason           `json:"stop"`
	Limit  string           `json:"limit,omitempty"`
	Text   string           `json:"text,omitempty"` // what the parent's model is told
	Error  bool             `json:"error,omitempty"`
	Counts Counts           `json:"counts,omitzero"` // of the child and everything below it
	Cost   Pico             `json:"cost,omitempty"`
	Active Micros           `json:"active,omitempty"`
	Facts  map[string]Value `json:"facts,omitempty"`
	Ref    string           `json:"ref,omitempty"`
}

// Reason is why a run ended: the closed list of the design, section 5.
type Reason string

// The stops.
const (
	StopCompleted  Reason = "completed"
	StopIncomplete Reason = "incomplete"
	StopBlocked    Reason = "blocked"
	StopLimit      Reason = "limit"
	StopDenied     Reason = "denied"
	StopNoAction   Reason = "no_action"
	StopStalled    Reason = "stalled"
	StopFailed     Reason = "failed"
	StopCancelled  Reason = "cancelled"
)

// Reasons lists the stops in the order of the design.
func Reasons() []Reason {
	return []Reason{StopCompleted, StopIncomplete, StopBlocked, StopLimit, StopDenied, StopNoAction, StopStalled, StopFailed, StopCancelled}
}

// RunStopped is the last event of every run that ended.
type RunStopped struct {
	Stop     Reason   `json:"stop"`
	Limit    string   `json:"limit,omitempty"`
	Whose    string   `json:"whose,omitempty"`
	Answer   int64    `json:"answer,omitempty"` // the event that holds the answer; 0: none
	Declined bool     `json:"declined,omitempty"`
	Class    Class    `json:"class,omitempty"`
	Message  string   `json:"message,omitempty"`
	Missing  []string `json:"missing,omitempty"`
	Unknown  []string `json:"unknown,omitempty"` // calls whose outcome nobody knows
	NotRun   []string `json:"not_run,omitempty"` // calls that a limit kept from running
	By       string   `json:"by,omitempty"`
}

// Unknown is an event of a kind that this version does not know. It is kept and passed on unchanged. The loop skips it where
// its writer said that it may be skipped, and refuses the journal else.
type Unknown struct {
	Name     string
	Optional bool
	Raw      Value
}

func (RunStarted) Kind() string       { return "RunStarted" }
func (RunResumed) Kind() string       { return "RunResumed" }
func (ModelCallStarted) Kind() string { return "ModelCallStarted" }
func (ModelReplied) Kind() string     { return "ModelReplied" }
func (ModelFailed) Kind() string      { return "ModelFailed" }
func (CallAuthorized) Kind() string   { return "CallAuthorized" }
func (CallRefused) Kind() string      { return "CallRefused" }
func (ApprovalAsked) Kind() string    { return "ApprovalAsked" }
func (ApprovalDecided) Kind() string  { return "ApprovalDecided" }
func (StandingRevoked) Kind() string  { return "StandingRevoked" }
func (ToolStarted) Kind() string      { return "ToolStarted" }
func (ToolReturned) Kind() string     { return "ToolReturned" }
func (ToolFailed) Kind() string       { return "ToolFailed" }
func (EffectChecked) Kind() string    { return "EffectChecked" }
func (EffectResolved) Kind() string   { return "EffectResolved" }
func (ContractChecked) Kind() string  { return "ContractChecked" }
func (LimitReached) Kind() string     { return "LimitReached" }
func (LimitsExtended) Kind() string   { return "LimitsExtended" }
func (Nudged) Kind() string           { return "Nudged" }
func (MessageTaken) Kind() string     { return "MessageTaken" }
func (CancelRequested) Kind() string  { return "CancelRequested" }
func (Compacted) Kind() string        { return "Compacted" }
func (ChildStarted) Kind() string     { return "ChildStarted" }
func (ChildStopped) Kind() string     { return "ChildStopped" }
func (RunStopped) Kind() string       { return "RunStopped" }
func (u Unknown) Kind() string        { return u.Name }
