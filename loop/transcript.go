package loop

import (
	"encoding/json"
	"strings"
)

// Transcript derives the messages that the model sees from the events of one run. It is a fold like State, kept apart from it
// because it holds bytes: messages are appended, never changed, so whoever encodes one may keep the result. It belongs to one
// goroutine.
type Transcript struct {
	msgs    []*Message
	closing bool         // the model call under way is the closing call
	turn    []turnResult // calls of the turn that is being settled
	queued  []*Message   // taken while a turn was open or a model call under way: its answer did not see them
}

type turnResult struct {
	call   Block
	result *Block
	edited string
	by     string
}

// NewTranscript begins with the messages of the session before this run, which it keeps as they are.
func NewTranscript(before []*Message) *Transcript {
	return &Transcript{msgs: before[:len(before):len(before)]}
}

// Messages are the messages so far. While a turn is open its results are not among them: a prompt is only well formed between
// turns. The slice may be kept; later calls append beyond it.
func (t *Transcript) Messages() []*Message { return t.msgs[:len(t.msgs):len(t.msgs)] }

// CallBlock returns a call of the open turn with its arguments as the model gave them.
func (t *Transcript) CallBlock(id string) (Block, bool) {
	for _, r := range t.turn {
		if r.call.Call == id {
			return r.call, true
		}
	}
	return Block{}, false
}

// Edited returns the canonical arguments that a person put in the place of the model's, "" if none did.
func (t *Transcript) Edited(id string) string {
	for _, r := range t.turn {
		if r.call.Call == id {
			return r.edited
		}
	}
	return ""
}

// Apply folds an event that Next accepted; after is the state that Next returned for it. When that state has left the turn, the turn's
// results become one message, in the order of the calls, and the messages taken meanwhile follow.
func (t *Transcript) Apply(ev Event, after State) {
	t.apply(ev)
	if len(t.turn) > 0 && (after.Phase != PhaseTurn && after.Phase != PhasePaused || after.Turn.open() == 0) {
		t.flush(ev.Seq)
	}
	if len(t.turn) == 0 && !after.asking() {
		t.msgs, t.queued = append(t.msgs, t.queued...), nil
	}
	if after.Model.Closing && after.Phase == PhasePrompt && len(t.msgs) > 0 && t.msgs[len(t.msgs)-1].Role == Assistant {
		t.say(textLimit, ev.Seq)
	}
}

func (t *Transcript) apply(ev Event) {
	switch b := ev.Body.(type) {
	case RunStarted:
		if len(b.Input) > 0 {
			t.add(&Message{Role: User, Blocks: b.Input, Seq: ev.Seq})
		}
	case ModelCallStarted:
		if b.Purpose != "" {
			return
		}
		t.closing = b.Closing
		if b.Attempt <= 1 && b.Hint != "" {
			t.say(b.Hint, ev.Seq)
		}
	case ModelReplied:
		t.replied(ev, b)
	case CallRefused:
		t.settle(b.Call, Block{Text: b.Message, Error: true})
	case ApprovalDecided:
		t.decided(ev, b)
	case ToolReturned:
		t.settle(b.Call, Block{Text: b.Text, More: b.More})
	case ToolFailed:
		t.settle(b.Call, Block{Text: FailureText(b), Error: true}) // in case no better one follows
	case EffectChecked:
		switch b.Happened {
		case HappenedYes:
			t.settle(b.Call, Block{Text: b.Text})
		case HappenedNo:
			t.settle(b.Call, Block{Text: textNotHappened, Error: true})
		}
	case EffectResolved:
		t.settle(b.Call, Block{Text: ResolvedText(b), Error: !b.Happened})
	case ContractChecked:
		if i := t.finishCall(); i >= 0 {
			if b.OK {
				t.settle(t.turn[i].call.Call, Block{Text: FinishText})
			} else {
				t.settle(t.turn[i].call.Call, Block{Text: MissingText(b), Error: true})
			}
		}
	case Nudged:
		if b.Text != "" {
			t.say(b.Text, ev.Seq)
		}
	case MessageTaken:
		m := &Message{Role: User, Blocks: b.Blocks, Seq: ev.Seq}
		t.queued = append(t.queued, m)
		if b.Supersede {
			t.superseded()
		}
	case Compacted:
		t.compact(b)
	case ChildStopped:
		t.settle(b.Call, Block{Text: b.Text, Error: b.Error})
	}
}

func (t *Transcript) add(m *Message) { t.msgs = append(t.msgs, m) }

func (t *Transcript) say(text string, seq int64) {
	t.add(&Message{Role: User, Blocks: []Block{{Kind: BlockText, Text: text}}, Seq: seq})
}

// replied adds the model's turn exactly as received. Empty and cut turns, and calls that the closing call was not allowed to
// make, are left out.
func (t *Transcript) replied(ev Event, b ModelReplied) {
	if b.Purpose != "" {
		return
	}
	text, calls := contents(b.Blocks)
	blocks := b.Blocks
	switch {
	case t.closing && (len(calls) > 0 || b.Finish != FinishStop):
		if strings.TrimSpace(text) != "" {
			t.add(&Message{Role: Assistant, Blocks: []Block{{Kind: BlockText, Text: text}}, Seq: ev.Seq})
		}
		return
	case b.Finish == FinishLength || b.Finish == FinishFilter || b.Finish == FinishMalformed:
		return
	case len(calls) == 0 && strings.TrimSpace(text) == "" && b.Finish != FinishPause:
		return
	}
	if len(calls) == 0 {
		t.add(&Message{Role: Assistant, Blocks: blocks, Seq: ev.Seq})
		return
	}
	own := make([]Block, len(blocks))
	copy(own, blocks)
	t.turn = make([]turnResult, 0, len(calls))
	for i := range own {
		if own[i].Kind == BlockCall {
			own[i].Call = CallID(b.Call, len(t.turn))
			t.turn = append(t.turn, turnResult{call: own[i]})
		}
	}
	t.add(&Message{Role: Assistant, Blocks: own, Seq: ev.Seq})
}

func (t *Transcript) decided(ev Event, b ApprovalDecided) {
	switch b.Decision {
	case Edit:
		for i := range t.turn {
			if t.turn[i].call.Call == b.Call {
				t.turn[i].edited, t.turn[i].by = b.Args, b.By
			}
		}
	case Reject:
		t.settle(b.Call, Block{Text: refusedText(b.By, b.Message), Error: true})
	case Expired:
		t.settle(b.Call, Block{Text: textExpired, Error: true})
	}
}

// settle sets the result of a call of the open turn; a later one takes its place.
func (t *Transcript) settle(call string, res Block) {
	for i := range t.turn {
		r := &t.turn[i]
		if r.call.Call != call {
			continue
		}
		res.Kind, res.Call, res.ID, res.Name = BlockResult, r.call.Call, r.call.ID, r.call.Name
		if r.edited != "" && !strings.HasPrefix(res.Text, "Not executed") {
			res.Text = "(" + r.by + " changed the arguments of this call before it ran: " + r.edited + ")\n" + res.Text
		}
		r.result = &res
	}
}

func (t *Transcript) superseded() {
	for i := range t.turn {
		if t.turn[i].result == nil {
			t.settle(t.turn[i].call.Call, Block{Text: textSuperseded, Error: true})
		}
	}
}

func (t *Transcript) finishCall() int {
	for i := range t.turn {
		if t.turn[i].call.Name == FinishTool && t.turn[i].result == nil {
			return i
		}
	}
	return -1
}

// flush closes the open turn.
func (t *Transcript) flush(seq int64) {
	if len(t.turn) > 0 {
		blocks := make([]Block, len(t.turn))
		for i, r := range t.turn {
			if r.result == nil {
				r.result = &Block{Kind: BlockResult, Call: r.call.Call, ID: r.call.ID, Name: r.call.Name, Text: textNotRun, Error: true}
			}
			blocks[i] = *r.result
		}
		t.turn = nil
		t.add(&Message{Role: Tool, Blocks: blocks, Seq: seq})
	}
}

// compact replaces everything up to a message by a shorter text, keeping the messages it names.
func (t *Transcript) compact(b Compacted) {
	if b.Failed != "" {
		return
	}
	keep := map[int64]bool{}
	for _, s := range b.Keep {
		keep[s] = true
	}
	var msgs []*Message
	placed := false
	place := func() {
		for i := range b.Messages {
			msgs = append(msgs, &b.Messages[i])
		}
		placed = true
	}
	for _, m := range t.msgs {
		switch {
		case m.Seq > b.Upto:
			if !placed {
				place()
			}
			msgs = append(msgs, m)
		case keep[m.Seq]:
			msgs = append(msgs, m)
		}
	}
	if !placed {
		place()
	}
	t.msgs = msgs
}

// AnswerText is the text of the answer that an event holds: a response's text, the response of its finish call (or the output as JSON
// where the agent has a schema of its own), a child's answer after a hand-off.
func AnswerText(ev Event) string {
	switch b := ev.Body.(type) {
	case ModelReplied:
		return AnswerOf(b.Blocks)
	case ChildStopped:
		return b.Text
	}
	return ""
}

// AnswerOf is the answer in the blocks of a response.
func AnswerOf(blocks []Block) string {
	text, calls := contents(blocks)
	for _, c := range calls {
		if c.Name == FinishTool {
			return FinishAnswer(c.Args)
		}
	}
	return text
}

// FinishAnswer reads the answer from the arguments of a finish call.
func FinishAnswer(args string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &m) != nil {
		return args
	}
	delete(m, "status")
	var text string
	if raw, ok := m["response"]; ok && len(m) == 1 && json.Unmarshal(raw, &text) == nil {
		return text
	}
	out, err := marshal(m)
	if err != nil {
		return args
	}
	if c, err := Canonical(out); err == nil {
		return string(c)
	}
	return string(out)
}
