package loop

import "strconv"

// Counts are the counters of a run. Children's calls are in the parent's counts where they draw on its ledger; rounds are not.
type Counts struct {
	Rounds        int64 `json:"rounds,omitempty"`
	ModelCalls    int64 `json:"model_calls,omitempty"`
	ModelAttempts int64 `json:"model_attempts,omitempty"`
	ToolCalls     int64 `json:"tool_calls,omitempty"`
	ToolAttempts  int64 `json:"tool_attempts,omitempty"`
	Usage         Usage `json:"usage,omitzero"`
	Estimated     int64 `json:"estimated,omitempty"` // tokens of Usage that were booked at their reserve
}

// Fact is a piece of task state with the event that established it.
type Fact struct {
	Value Value `json:"value"`
	Seq   int64 `json:"seq"`
}

// CommandKind is a kind of command.
type CommandKind string

// Commands. Those above the line are answered at once, without anything leaving the process; the others are on record before
// they begin.
const (
	Record     CommandKind = "record"    // append Body: a fact that the loop itself owes
	Authorize  CommandKind = "authorize" // validate and decide Call: CallAuthorized or CallRefused
	CheckDone  CommandKind = "check"     // check the contract or the output: ContractChecked
	Compaction CommandKind = "compact"   // shorten the transcript: Compacted

	CallModel   CommandKind = "model"  // Admit, then send: ModelReplied or ModelFailed
	RunTool     CommandKind = "tool"   // ToolStarted, then run: ToolReturned or ToolFailed
	CheckEffect CommandKind = "effect" // ask the tool: EffectChecked
	RunChild    CommandKind = "child"  // ChildStarted, then drive: ChildStopped

	Abort CommandKind = "abort" // end the command Target: its own answer follows
	Wake  CommandKind = "wake"  // ask again at After
)

// Command is work that the run owes now. It is derived from the state alone, so a driver that starts finds the same commands as
// the one before it; ID is stable over that. Started commands are on record as begun: a driver that did not begin them itself
// answers that their end was lost.
type Command struct {
	ID      string
	Kind    CommandKind
	Body    Body   // Record
	Call    string // the loop's id of the call
	Index   int    // of the call in its turn
	N       int64  // CallModel: the model call
	Attempt int64  // the attempt to start, or under way
	Closing bool   // CallModel
	Started bool
	After   Micros // not before; Wake: when
	Target  string // Abort: ID of the command
	Cause   string // Abort: cancelled, limit
}

func id(what string, n ...int64) string {
	for _, v := range n {
		what += "/" + strconv.FormatInt(v, 10)
	}
	return what
}

// withAborts ends what is under way when the run is being cancelled or out of time. Children end whenever the turn is wound down: one
// that waits for a person would hold its parent for ever.
func (s State) withAborts(cmds []Command) []Command {
	cause := ""
	switch {
	case s.Cancel != nil:
		cause = CauseCancelled
	case s.Limit != nil && isTime(s.Limit.Limit) && !s.Model.Closing:
		cause = CauseLimit
	case s.Phase == PhaseTurn && s.windingDown():
		for i, c := range s.Turn.Calls {
			if c.Status == CallChild {
				t := s.toolCommand(i, c.Attempt, true)
				cmds = append(cmds, Command{ID: "abort/" + t.ID, Kind: Abort, Target: t.ID, Call: c.ID, Cause: CauseCancelled})
			}
		}
		return cmds
	default:
		return cmds
	}
	if s.Side.Under {
		return append(cmds, Command{ID: "abort/" + s.sideCommand().ID, Kind: Abort, Target: s.sideCommand().ID, Cause: cause})
	}
	switch s.Phase {
	case PhaseModel:
		cmds = append(cmds, Command{ID: "abort/" + s.modelCommand().ID, Kind: Abort, Target: s.modelCommand().ID, Cause: cause})
	case PhaseTurn:
		for i, c := range s.Turn.Calls {
			switch c.Status {
			case CallRunning, CallChild:
				t := s.toolCommand(i, c.Attempt, true)
				cmds = append(cmds, Command{ID: "abort/" + t.ID, Kind: Abort, Target: t.ID, Call: c.ID, Cause: cause})
			}
		}
	}
	return cmds
}

// modelCommand is the model call that is owed or under way.
func (s State) modelCommand() Command {
	n, attempt := s.Model.Call, s.Model.Attempt
	if s.Phase == PhasePrompt {
		if s.Model.Again {
			attempt++
		} else {
			n, attempt = n+1, 1
		}
	}
	return Command{ID: id("model", n, attempt), Kind: CallModel, N: n, Attempt: attempt, Closing: s.Model.Closing}
}

func record(s State, b Body) Command {
	return Command{ID: "record", Kind: Record, Body: b}
}
