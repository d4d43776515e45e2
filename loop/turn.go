package loop

import (
	"strconv"
	"strings"
)

// FinishTool is the name of the built-in tool that ends a run.
const FinishTool = "finish"

// CallID is the loop's own id of a call: providers' ids may be missing or repeated.
func CallID(modelCall int64, index int) string {
	return "c" + strconv.FormatInt(modelCall, 10) + "." + strconv.Itoa(index+1)
}

// contents splits a response: its text, and its calls in order.
func contents(blocks []Block) (text string, calls []Block) {
	var b strings.Builder
	for _, bl := range blocks {
		switch bl.Kind {
		case BlockText:
			b.WriteString(bl.Text)
		case BlockCall:
			calls = append(calls, bl)
		}
	}
	return b.String(), calls
}

// openTurn begins to settle the calls of a response.
func (s State) openTurn(seq int64, calls []Block) State {
	list := make([]Call, len(calls))
	for i, b := range calls {
		list[i] = Call{ID: CallID(s.Model.Call, i), Wire: b.ID, Tool: b.Name, Status: CallNew}
	}
	s.Turn = Turn{N: s.Model.Call, Seq: seq, Calls: list}
	s.Phase = PhaseTurn
	return s
}

// finishIndex is the position of the first finish call of the turn; −1 without one.
func (s State) finishIndex() int {
	if s.Config.Finish {
		for i := range s.Turn.Calls {
			if s.Turn.Calls[i].Tool == FinishTool {
				return i
			}
		}
	}
	return -1
}

// windingDown says that no further call of the turn starts: what is under way ends, the rest is answered.
func (s State) windingDown() bool {
	return s.Cancel != nil || s.End != nil || s.Limit != nil && s.Limit.Limit != LimitToolCalls && s.Phase == PhaseTurn
}

// readyTurn derives what the turn owes, in order: validation and decisions, refusals, then the calls that may start.
func (s State) readyTurn(now Micros) []Command {
	if s.Side.Under {
		return []Command{s.checkCommand()}
	}
	if s.windingDown() {
		return s.readyWindDown()
	}
	if over := s.overshoot(); over != nil && s.Limit == nil {
		return []Command{record(s, LimitReached{Limit: over.Limit, Whose: over.Whose, Overshoot: over.Overshoot, Calls: true})}
	}
	fin := s.finishIndex()
	if fin < 0 && !s.Turn.Judged && s.roundsLeft() <= 0 {
		return []Command{record(s, LimitReached{Limit: LimitRounds, Calls: true})}
	}
	if !s.Turn.Judged {
		return s.readyToJudge(fin)
	}
	if b := s.owedRefusal(); b != nil {
		return []Command{record(s, b)}
	}
	var cmds []Command
	for i, c := range s.Turn.Calls {
		switch {
		case c.Status == CallAsking && c.Asked && c.Expires != 0 && now >= c.Expires:
			cmds = append(cmds, record(s, ApprovalDecided{Call: c.ID, Decision: Expired, By: "clock"}))
		case c.Status == CallRunning:
			cmds = append(cmds, s.toolCommand(i, c.Attempt, true))
		case c.Status == CallUnknown:
			cmds = append(cmds, Command{ID: "effect/" + c.ID + "/" + strconv.FormatInt(c.Attempt, 10), Kind: CheckEffect, Call: c.ID, Index: i, Attempt: c.Attempt})
		case c.Status == CallChild:
			cmds = append(cmds, Command{ID: "child/" + c.ID, Kind: RunChild, Call: c.ID, Index: i, Started: true})
		}
	}
	for _, i := range s.startable() {
		c := s.Turn.Calls[i]
		if at := s.startAfter(c); at > now {
			cmds = append(cmds, Command{ID: id("wake", int64(at)), Kind: Wake, After: at})
			continue
		}
		if i == fin {
			cmds = append(cmds, s.checkCommand())
			continue
		}
		cmds = append(cmds, s.toolCommand(i, c.Attempt+1, false))
	}
	return cmds
}

// toolCommand is the command for one attempt of a call.
func (s State) toolCommand(i int, attempt int64, started bool) Command {
	c := s.Turn.Calls[i]
	cmd := Command{ID: "tool/" + c.ID + "/" + strconv.FormatInt(attempt, 10), Kind: RunTool, Call: c.ID, Index: i,
		Attempt: attempt, Started: started}
	if t := s.Config.tool(c.Tool); t != nil && t.Child {
		cmd.ID, cmd.Kind = "child/"+c.ID, RunChild
	}
	return cmd
}

// readyToJudge asks for the validation and decision of each new call, in order.
func (s State) readyToJudge(fin int) []Command {
	var cmds []Command
	planned := map[string]int64{}
	for i, c := range s.Turn.Calls {
		t := s.Config.tool(c.Tool)
		if c.Status != CallNew {
			if c.Status != CallSettled {
				planned[c.Tool]++
			}
			continue
		}
		switch limit := callsMax(t); {
		case fin >= 0 && i > fin:
			cmds = append(cmds, record(s, CallRefused{Call: c.ID, Why: WhyNotRun, Message: textNotRun}))
		case i == fin:
			cmds = append(cmds, Command{ID: "authorize/" + c.ID, Kind: Authorize, Call: c.ID, Index: i})
		case t == nil:
			cmds = append(cmds, record(s, CallRefused{Call: c.ID, Why: WhyUnknownTool, Message: s.unknownTool(c.Tool)}))
		case !s.planned(c.Tool):
			cmds = append(cmds, record(s, CallRefused{Call: c.ID, Why: WhyUnknownTool, Message: c.Tool + " was not offered for this response. Go on with the tools that are."}))
		case limit != nil && s.Tools[c.Tool].Calls+planned[c.Tool] >= *limit:
			cmds = append(cmds, record(s, CallRefused{Call: c.ID, Why: WhyCap, Message: "Not executed: " + c.Tool + " may be called " +
				strconv.FormatInt(*limit, 10) + " times in a run, and it was. Go on without it."}))
		default:
			cmds = append(cmds, Command{ID: "authorize/" + c.ID, Kind: Authorize, Call: c.ID, Index: i})
		}
		return cmds // one at a time: each answer may change what the next one gets
	}
	return cmds
}

func callsMax(t *ToolSpec) *int64 {
	switch {
	case t == nil:
		return nil
	case t.CallsMax != nil:
		return t.CallsMax
	case t.Poll != nil:
		return t.Poll.CallsMax
	}
	return nil
}

func (s State) unknownTool(name string) string {
	names := s.Config.toolNames()
	if len(names) == 0 {
		return "There is no tool " + strconv.Quote(cutText(name, 100)) + ": this agent has no tools. Answer without."
	}
	return "There is no tool " + strconv.Quote(cutText(name, 100)) + ". The tools are: " + strings.Join(names, ", ") + "."
}

func (c *Config) toolNames() []string {
	names := make([]string, 0, len(c.Tools)+1)
	for i := range c.Tools {
		names = append(names, c.Tools[i].Name)
	}
	if c.Finish {
		names = append(names, FinishTool)
	}
	return names
}

// judge closes the validation of the turn once no call is new: a turn with calls to be mended takes one repair, and when none
// is left nothing of it runs.
func (s State) judge() State {
	bad, output := false, false
	for i, c := range s.Turn.Calls {
		switch {
		case c.Status == CallNew:
			return s
		case c.Why == WhyUnknownTool, c.Why == WhyInvalid, c.Why == WhyUngrounded, c.Why == WhyRequires:
			bad = true
			output = output || i == s.finishIndex()
		}
	}
	s.Turn.Judged = true
	if !bad {
		return s
	}
	if s.Repairs >= s.Config.Repairs {
		if output {
			return s.end(RunStopped{Stop: StopIncomplete, Missing: []string{"an output that fits its schema"}, Message: "the repairs are used up", Answer: s.Turn.Seq})
		}
		return s.end(RunStopped{Stop: StopFailed, Class: ClassInvalid, Message: "the repairs are used up: " + repairCause("")})
	}
	s.Repairs++
	return s
}

// owesRefusal says whether a decided call is to be refused or asked for after all.
func (s State) owesRefusal() bool { return s.owedRefusal() != nil }

// owedRefusal is the record that a judged turn owes before calls start: questions not asked yet, refusals that hold for a
// label, calls beyond the tool-call limit.
func (s State) owedRefusal() Body {
	planned := int64(0)
	for _, c := range s.Turn.Calls {
		t := s.Config.tool(c.Tool)
		if t == nil || c.Status == CallSettled || c.Status == CallNew {
			continue
		}
		if (c.Status == CallReady || c.Status == CallAsking) && c.Attempt == 0 {
			planned++
			hit := s.fits(need{tools: planned})
			switch {
			case hit == nil:
			case s.Limit == nil:
				return LimitReached{Limit: hit.Limit, Whose: hit.Whose}
			case s.Config.OnLimit != "pause":
				return CallRefused{Call: c.ID, Why: WhyLimit, Message: RefusalText(hit.Limit)}
			default:
				continue
			}
		}
		if c.Attempt == 0 && c.By == "" && (c.Status == CallReady || !c.Asked) {
			if r := s.refusedBefore(c); r != nil {
				return CallRefused{Call: c.ID, Why: WhyRefusedOnce, Message: refusedText(r.By, r.Message) + " (answered from the record; it was not asked again)"}
			}
		}
		switch {
		case c.Status == CallAsking && !c.Asked:
			return s.ask(c, c.Reason)
		case c.Status == CallReady && c.By == "" && c.Attempt == 0 && s.refusedLabel(t.LabelOf()):
			return s.ask(c, "a person refused "+t.LabelOf()+" earlier in this run")
		}
	}
	return nil
}

// startable lists the calls that may start now: in order, one at a time unless reads may run in parallel; a call that waits for a
// person holds up the writes behind it, not the reads.
func (s State) startable() []int {
	var list []int
	busy, busyWrite, heldWrite := false, false, false
	planned := int64(0)
	for i, c := range s.Turn.Calls {
		t := s.Config.tool(c.Tool)
		write := t.EffectOf() != Read
		if i == s.finishIndex() {
			if c.Status == CallReady && s.Turn.openBefore(i) == 0 {
				list = append(list, i)
			}
			break
		}
		switch c.Status {
		case CallSettled:
			continue
		case CallAsking, CallResolve:
			heldWrite = heldWrite || write
			continue
		case CallRunning, CallUnknown:
			busy, busyWrite = true, busyWrite || write
			continue
		case CallChild:
			if s.Config.Parallel != "read" {
				busy, busyWrite = true, true
			}
			continue
		}
		if t == nil || write && heldWrite {
			heldWrite = heldWrite || write
			continue
		}
		if c.Attempt == 0 {
			planned++
			if s.fits(need{tools: planned}) != nil {
				heldWrite = heldWrite || write
				continue
			}
		}
		together := s.Config.Parallel == "read" && (!write || t.Child)
		if busy && (!together || busyWrite) {
			break
		}
		list = append(list, i)
		busy, busyWrite = true, busyWrite || write && !t.Child
	}
	return list
}

func (t Turn) openBefore(n int) int {
	open := 0
	for i := range t.Calls[:n] {
		if t.Calls[i].Status != CallSettled {
			open++
		}
	}
	return open
}

// startAfter is the time before which a call must not start: its back-off, a poller's interval.
func (s State) startAfter(c Call) Micros {
	at := c.After
	if t := s.Config.tool(c.Tool); t != nil && t.Poll != nil && t.Poll.Interval > 0 && c.Attempt == 0 && s.Tools[c.Tool].Calls > 0 {
		at = max(at, s.Tools[c.Tool].Last+t.Poll.Interval)
	}
	return at
}

// readyWindDown answers what will not run any more, and lets what is under way end.
func (s State) readyWindDown() []Command {
	var cmds []Command
	for i, c := range s.Turn.Calls {
		why, text := s.windDownReason()
		switch c.Status {
		case CallSettled:
			continue
		case CallRunning:
			cmds = append(cmds, s.toolCommand(i, c.Attempt, true))
			continue
		case CallChild:
			cmds = append(cmds, Command{ID: "child/" + c.ID, Kind: RunChild, Call: c.ID, Index: i, Started: true})
			continue
		case CallUnknown, CallResolve:
			why, text = WhyUnknown, textUnsure
		case CallReady:
			if c.Attempt > 0 { // between attempts: the last one is known not to have happened
				text = strings.TrimSuffix(text, ".") + " again."
			}
		}
		return append([]Command{record(s, CallRefused{Call: c.ID, Why: why, Message: text})}, cmds...)
	}
	return cmds
}

func (s State) windDownReason() (why, text string) {
	switch {
	case s.Cancel != nil:
		return WhyCancelled, textCancelled
	case s.End != nil:
		return WhyNotRun, textNotRun
	}
	return WhyLimit, RefusalText(s.Limit.Limit)
}

// windDown ends the run as told, after its open calls were answered.
func (s State) windDown(r RunStopped) State {
	if s.Phase == PhasePaused && s.Turn.open() > 0 {
		s.Phase = PhaseTurn
		return s
	}
	return s.end(r)
}

// closeTurn goes on once every call of the turn has its result.
func (s State) closeTurn() State {
	if s.Turn.open() > 0 || s.Phase != PhaseTurn {
		return s
	}
	refusedOnly := true
	for _, c := range s.Turn.Calls {
		if c.Why != WhyLimit && c.Why != WhyCancelled {
			refusedOnly = false
		}
	}
	switch {
	case s.Cancel != nil:
		return s.end(RunStopped{Stop: StopCancelled})
	case s.End != nil:
		return s.end(*s.End)
	}
	spent := s.finishIndex() >= 0 && s.roundsLeft() <= 0 // a finish that failed: what it would be told is no hand-back any more
	if !refusedOnly && !spent {
		s.Ledger.Own.Rounds++
	}
	s, verdict := s.progressed()
	switch {
	case s.Limit != nil:
		return s.limitMode()
	case spent:
		return s.end(RunStopped{Stop: StopIncomplete, Missing: []string{"a valid finish"}})
	case verdict == stalls:
		return s.end(RunStopped{Stop: StopStalled, Message: s.stallText()})
	case verdict == repeats:
		return s.nudge(NudgeStall, s.stallText())
	}
	s.Phase = PhasePrompt
	return s
}
