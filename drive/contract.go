package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// beginCheckDone looks for the evidence that the contract asks for. What the state shows is answered at once; a check of the agent's
// own runs as work.
func (d *driver) beginCheckDone(ctx context.Context, c loop.Command) (again bool, err error) {
	answerText, finish := d.candidate(c)
	body := loop.ContractChecked{}
	declined := false
	if finish != nil {
		call, _ := d.state.Call(c.Call)
		declined = call.Finish != loop.FinishDone
	}
	switch ct := d.c.agent.Contract; {
	case declined || ct == nil && d.c.output == nil:
	default:
		if d.c.output != nil {
			if err := d.validOutput(answerText); err != nil {
				body.Output, body.Missing = true, []string{err.Error()}
				return true, d.step(body)
			}
		}
		if ct == nil {
			break
		}
		body.Missing = append(body.Missing, d.state.MissingEvidence()...)
		if d.c.schema != nil {
			doc := []byte(answerText)
			if finish != nil {
				doc = withoutStatus(finish)
			}
			if err := d.c.schema.Validate(doc); err != nil {
				body.Missing = append(body.Missing, "an output that fits the contract's schema ("+err.Error()+")")
			}
		}
		if ct.Cites != "" {
			body.Missing = append(body.Missing, d.uncited(answerText, ct.Cites)...)
		}
		if len(body.Missing) == 0 && ct.Check != nil && d.passed != c.ID {
			ev := Evidence{Run: d.lease.Run, Answer: answerText, Facts: d.state.Facts, Messages: d.talk.Messages()}
			judged := d.state.Config.Contract != nil && d.state.Config.Contract.Judge != nil
			d.under(ctx, c, func(ctx context.Context, w *work) {
				verdict := runCheck(ctx, ct, ev)
				d.post(answer{id: w.cmd.ID, body: verdict, passed: verdict.OK && judged})
			})
			return false, nil
		}
		if len(body.Missing) == 0 && d.state.Config.Contract != nil && d.state.Config.Contract.Judge != nil {
			return d.beginJudge(ctx, c, answerText)
		}
	}
	body.OK = len(body.Missing) == 0
	return true, d.step(body)
}

func runCheck(ctx context.Context, ct *Contract, ev Evidence) (body loop.ContractChecked) {
	defer func() {
		if r := recover(); r != nil {
			body = loop.ContractChecked{Undone: true, Missing: []string{fmt.Sprintf("the check panicked: %v", r)}}
		}
	}()
	missing, undecided, err := ct.Check(ctx, ev)
	if err != nil {
		return loop.ContractChecked{Undone: true, Missing: []string{"the check failed: " + err.Error()}}
	}
	if undecided {
		return loop.ContractChecked{Undone: true, Missing: append(missing, "the check could not decide")}
	}
	return loop.ContractChecked{OK: len(missing) == 0, Missing: missing}
}

// candidate is the answer that is being checked: its text, and the arguments of the finish call where it came through one.
func (d *driver) candidate(c loop.Command) (text string, finish []byte) {
	if c.Call != "" {
		b, _ := d.talk.CallBlock(c.Call)
		return loop.FinishAnswer(b.Args), []byte(b.Args)
	}
	msgs := d.talk.Messages()
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == loop.Assistant { // a message of the user may have come after it
			return loop.AnswerOf(msgs[i].Blocks), nil
		}
	}
	return "", nil
}

// validOutput checks a text answer against the agent's output schema. A fence around the JSON is forgiven.
func (d *driver) validOutput(text string) error {
	return d.c.output.Validate([]byte(Unfenced(text)))
}

// Unfenced takes a Markdown fence off a JSON answer.
func Unfenced(text string) string {
	s := strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		if body, ok := strings.CutSuffix(rest, "```"); ok {
			if _, after, ok := strings.Cut(body, "\n"); ok {
				return strings.TrimSpace(after)
			}
		}
	}
	return s
}

func withoutStatus(args []byte) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil {
		return args
	}
	delete(m, "status")
	out, err := json.Marshal(m)
	if err != nil {
		return args
	}
	return out
}

// cited finds what looks like an id in an answer: a word of letters and digits with at least one digit, four characters or more, as
// in 4812, R-17 or YwG4F-16Tno.
var cited = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_-]{2,}[A-Za-z0-9]`)

// uncited names ids of the answer that occur in no result of the tool; without any id from there something is missing too.
func (d *driver) uncited(answer, toolName string) []string {
	var results []string
	msgs := d.talk.Messages()
	if d.memory.left > 0 || d.session() != nil {
		if all, err := d.whole(); err == nil {
			msgs = all
		}
	}
	for _, m := range msgs {
		for _, b := range m.Blocks {
			if b.Kind == loop.BlockResult && b.Name == toolName && !b.Error {
				results = append(results, b.Text)
			}
		}
	}
	in := func(id string) bool {
		for _, r := range results {
			if containsWord(r, id) {
				return true
			}
		}
		return false
	}
	found := false
	var missing []string
	for _, id := range cited.FindAllString(answer, -1) {
		if !strings.ContainsAny(id, "0123456789") {
			continue
		}
		if in(id) {
			found = true
		} else if !occursIn(msgs, id) {
			missing = append(missing, fmt.Sprintf("a source for %q: it is in no result of %s", id, toolName))
		}
	}
	if !found && len(missing) == 0 {
		missing = append(missing, "a citation: the answer names no id from a result of "+toolName)
	}
	return missing
}
