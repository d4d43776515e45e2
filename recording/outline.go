package recording

import (
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Round is what one model call asked for and what was handed back for it. The last one of a run, its answer, has no hand-back and N 0.
type Round struct {
	N        int64       `json:"round"` // as the run counts them; 0: nothing was handed back
	Model    int64       `json:"model_call"`
	Started  int64       `json:"started"` // event of the first attempt
	Replied  int64       `json:"replied,omitempty"`
	Reason   string      `json:"reason"` // results, or the reason of the loop's own hand-back, or answer, closing, cut
	Calls    []CallView  `json:"calls,omitempty"`
	Text     string      `json:"-"`
	Attempts int64       `json:"attempts"`
	Failures []int64     `json:"failures,omitempty"` // events of attempts that failed
	Prompt   int64       `json:"prompt_tokens,omitempty"`
	Output   int64       `json:"output_tokens,omitempty"`
	Cost     loop.Pico   `json:"cost,omitempty"` // 10⁻¹² USD, children included
	Begins   loop.Micros `json:"-"`
	Ends     loop.Micros `json:"-"`
	Fact     bool        `json:"new_fact,omitempty"`
	New      bool        `json:"new"` // it brought a fact, a result or a word of the user that was not there before
}

// CallView is one call with what became of it.
type CallView struct {
	ID       string  `json:"call"`
	Tool     string  `json:"tool"`
	Args     string  `json:"args"` // canonical, or as received where they are no JSON
	Result   string  `json:"-"`
	Sum      string  `json:"-"` // fingerprint of the result
	Bytes    int64   `json:"bytes"`
	Failed   bool    `json:"failed,omitempty"`
	Why      string  `json:"why,omitempty"` // why it did not run
	Attempts int64   `json:"attempts,omitempty"`
	Failures []int64 `json:"failures,omitempty"`
	Ended    int64   `json:"ended,omitempty"` // event of its result
	key      string
}

// Key names what the call asks for: tool and canonical arguments.
func (c CallView) Key() string { return c.key }

// rounds cuts a run into its rounds. It needs no fold, so that a masked or cut recording has rounds too.
func rounds(events []loop.Event) []Round { return outline(events).rounds }

// outline folds the events, as far as they fold, and cuts them into rounds.
func outline(events []loop.Event) *outliner {
	o := &outliner{seen: map[string]bool{}}
	for _, ev := range events {
		o.apply(ev)
	}
	o.close()
	return o
}

type outliner struct {
	rounds []Round
	cur    *Round
	st     loop.State
	broken bool
	price  *loop.Price
	seen   map[string]bool // fingerprints of results
	n      int64
}

func (o *outliner) apply(ev loop.Event) {
	switch b := ev.Body.(type) {
	case loop.RunStarted:
		if b.Config != nil {
			o.price = b.Config.Price
		}
	case loop.ModelCallStarted:
		if b.Purpose != "" {
			break // it serves the round that it stands in
		}
		if b.Attempt <= 1 || o.cur == nil {
			o.close()
			o.cur = &Round{Model: b.Call, Started: ev.Seq, Begins: ev.Time}
			if b.Closing {
				o.cur.Reason = "closing"
			}
		}
		o.cur.Attempts++
	}
	o.fold(ev)
	if o.cur == nil {
		return
	}
	o.cur.Ends = ev.Time
	switch b := ev.Body.(type) {
	case loop.ModelReplied:
		if b.Purpose == "" {
			o.replied(ev, b)
		}
	case loop.ModelFailed:
		o.cur.Failures = append(o.cur.Failures, ev.Seq)
	case loop.CallRefused:
		o.settle(ev, b.Call, b.Message, "", true, b.Why)
	case loop.ToolStarted:
		if c := o.call(b.Call); c != nil {
			c.Attempts++
		}
	case loop.ToolReturned:
		o.fact(len(b.Facts) > 0)
		o.settle(ev, b.Call, b.Text, b.Sum, false, "")
		if c := o.call(b.Call); c != nil && b.Bytes > 0 {
			c.Bytes = int64(len(b.Text))
		}
	case loop.ToolFailed:
		o.fact(len(b.Facts) > 0)
		if c := o.call(b.Call); c != nil {
			c.Failures = append(c.Failures, ev.Seq)
		}
		o.settle(ev, b.Call, loop.FailureText(b), "", true, "")
	case loop.EffectChecked:
		o.fact(len(b.Facts) > 0)
		if b.Happened == loop.HappenedYes {
			o.settle(ev, b.Call, b.Text, "", false, "")
		}
	case loop.EffectResolved:
		o.fact(len(b.Facts) > 0)
		o.settle(ev, b.Call, loop.ResolvedText(b), "", !b.Happened, "")
	case loop.ApprovalDecided:
		if b.Decision == loop.Reject || b.Decision == loop.Expired {
			o.settle(ev, b.Call, b.Decision+" "+b.Message, "", true, b.Decision)
		}
	case loop.ContractChecked:
		for i := range o.cur.Calls {
			if c := &o.cur.Calls[i]; c.Tool == loop.FinishTool && c.Ended == 0 {
				o.settle(ev, c.ID, strings.Join(b.Missing, "; "), "", !b.OK, "")
			}
		}
	case loop.ChildStopped:
		o.fact(len(b.Facts) > 0)
		o.settle(ev, b.Call, b.Text, "", b.Error, "")
	case loop.Nudged:
		if b.Reason != loop.NudgeStall {
			o.handedBack(b.Reason)
		}
	case loop.MessageTaken:
		o.cur.New = true
	}
}

// fold keeps the account, as far as the events fold.
func (o *outliner) fold(ev loop.Event) {
	before := o.st.Ledger
	if !o.broken {
		next, err := loop.Next(o.st, ev)
		if o.broken = err != nil; !o.broken {
			o.st = next
		}
	}
	if o.cur == nil {
		return
	}
	if o.broken {
		if b, ok := ev.Body.(loop.ModelReplied); ok && b.Usage != nil {
			o.cur.Cost += o.price.Of(*b.Usage)
		}
		return
	}
	o.cur.Cost += o.st.Ledger.TotalCost() - before.TotalCost()
	if n := o.st.Ledger.Own.Rounds; n > before.Own.Rounds {
		o.n, o.cur.N = n, n
	}
}

func (o *outliner) replied(ev loop.Event, b loop.ModelReplied) {
	o.cur.Replied = ev.Seq
	if b.Usage != nil {
		o.cur.Prompt, o.cur.Output = b.Usage.Prefix(), b.Usage.Output
	}
	for _, bl := range b.Blocks {
		switch bl.Kind {
		case loop.BlockText:
			o.cur.Text += bl.Text
		case loop.BlockCall:
			c := CallView{ID: loop.CallID(b.Call, len(o.cur.Calls)), Tool: bl.Name, Args: canonicalOr(bl.Args)}
			c.key = bl.Name + " " + c.Args
			o.cur.Calls = append(o.cur.Calls, c)
		}
	}
	if o.cur.Reason == "" && len(o.cur.Calls) > 0 {
		o.cur.Reason = "results"
	}
}

func canonicalOr(args string) string {
	if s := strings.TrimSpace(args); s == "" || s == "null" {
		return "{}"
	}
	if c, err := loop.Canonical([]byte(args)); err == nil {
		return string(c)
	}
	return args
}

func (o *outliner) call(id string) *CallView {
	for i := range o.cur.Calls {
		if o.cur.Calls[i].ID == id {
			return &o.cur.Calls[i]
		}
	}
	return nil
}

func (o *outliner) settle(ev loop.Event, id, text, sum string, failed bool, why string) {
	c := o.call(id)
	if c == nil {
		return
	}
	if sum == "" {
		sum = loop.Fingerprint([]byte(text))
	}
	c.Result, c.Sum, c.Bytes, c.Failed, c.Why, c.Ended = text, sum, int64(len(text)), failed, why, ev.Seq
}

func (o *outliner) fact(is bool) {
	if is {
		o.cur.Fact, o.cur.New = true, true
	}
}

func (o *outliner) handedBack(reason string) {
	o.cur.Reason = reason
	if o.broken {
		o.n++
		o.cur.N = o.n
	}
}

// close ends the round under way: it brought something new if a result is one that no call gave before.
func (o *outliner) close() {
	if o.cur == nil {
		return
	}
	r := o.cur
	o.cur = nil
	for _, c := range r.Calls {
		if c.Ended != 0 && !c.Failed && !o.seen[c.key+c.Sum] {
			r.New = true
			o.seen[c.key+c.Sum] = true
		}
	}
	switch {
	case r.Reason != "":
	case r.Replied == 0:
		r.Reason = "cut"
	default:
		r.Reason = "answer"
		r.New = true
	}
	if o.broken && r.Reason == "results" && r.N == 0 {
		o.n++
		r.N = o.n
	}
	o.rounds = append(o.rounds, *r)
}
