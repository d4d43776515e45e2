package recording_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/recording"
	"github.com/ronda-go/ronda/tool"
)

// start is when the recordings happen that nobody drives.
var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// made makes a recording in a bubble whose time passes by itself.
func made(t *testing.T, f func(w *world) *recording.Recording) (rec *recording.Recording) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { rec = f(newWorld(t)) })
	return rec
}

type query struct {
	Q string `json:"q"`
}

// world runs agents and hands their recordings over.
type world struct {
	t    *testing.T
	host *drive.Host
	n    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	h, err := drive.Open(drive.Options{Store: memory.New(), Stream: true, Tapes: true, NewID: func() string {
		w.n++
		return fmt.Sprintf("run_%02d", w.n)
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.host = h
	return w
}

func (w *world) model(script string) *scripted.Model {
	w.t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		w.t.Fatal(err)
	}
	return scripted.New(s, scripted.Options{Sleep: drive.SystemClock{}.Sleep, Pace: 12 * time.Millisecond, Price: &loop.Price{Input: 3_000_000, Output: 15_000_000}})
}

// answers is a tool that returns one text after the other; the last one repeats.
func (w *world) answers(name string, texts ...string) tool.Tool {
	n := 0
	return tool.Func(name, "Find something.", func(ctx context.Context, q query) (string, error) {
		if err := (drive.SystemClock{}).Sleep(ctx, 300*time.Millisecond); err != nil {
			return "", err
		}
		text := texts[min(n, len(texts)-1)]
		n++
		if strings.HasPrefix(text, "busy") {
			return "", &tool.Error{Class: loop.ClassTransient, Message: text}
		}
		return text, nil
	}, tool.Read(), tool.Retries(3))
}

func (w *world) run(a *drive.Agent, input string) *drive.Run {
	w.t.Helper()
	r, err := w.host.Start(context.Background(), drive.Start{Agent: a, Input: drive.Text(input)})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) record(run string) *recording.Recording {
	w.t.Helper()
	rec, err := w.host.Recording(context.Background(), run)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// repeats runs an agent that asks the same thing again and again.
func (w *world) repeats(stall int) *recording.Recording {
	a := &drive.Agent{Name: "looper", Model: w.model("- repeat: {thinking: Let me look again., calls: [{search: {q: bench}}]}\n"), Tools: []tool.Tool{w.answers("search", "nothing found")},
		Stall: &stall, Limits: drive.Limits{Rounds: 20}}
	return w.record(w.run(a, "How much did I lift?").ID)
}

// works runs an agent that finds something new in each round.
func (w *world) works() *recording.Recording {
	script := "- {thinking: \"The history first, then the plan.\", calls: [{search: {q: march}}]}\n- {text: \"Looking further.\", calls: [{search: {q: april}}]}\n" +
		"- {calls: [{search: {q: may}}]}\n- {thinking: \"Three months are enough.\", text: \"You lifted 80 kg in March, 85 kg in April and 90 kg in May.\"}\n"
	a := &drive.Agent{Name: "worker", Model: w.model(script), Tools: []tool.Tool{w.answers("search", "March: 80 kg", "April: 85 kg", "May: 90 kg")}}
	return w.record(w.run(a, "How much did I lift?").ID)
}

// grows runs an agent whose results are large.
func (w *world) grows() *recording.Recording {
	script := ""
	var texts []string
	for i := range 5 {
		script += fmt.Sprintf("- {calls: [{fetch: {q: page%d}}], usage: {input: %d, output: 20}}\n", i, 200+i*3000)
		texts = append(texts, fmt.Sprintf("page %d: %s", i, strings.Repeat("words of a long page ", 500)))
	}
	script += "- {text: Done., usage: {input: 15200, output: 5}}\n"
	a := &drive.Agent{Name: "reader", Model: w.model(script), Tools: []tool.Tool{w.answers("fetch", texts...)}}
	return w.record(w.run(a, "Read the pages.").ID)
}

// retries runs an agent whose tool and model fail for a while.
func (w *world) retries() *recording.Recording {
	script := "- fail: {status: 529, retry_after: 20s}\n- fail: {status: 529}\n- {calls: [{search: {q: x}}]}\n- {text: Found.}\n"
	a := &drive.Agent{Name: "patient", Model: w.model(script), Tools: []tool.Tool{w.answers("search", "busy: try later", "busy: try later", "x is here")}}
	return w.record(w.run(a, "Find x.").ID)
}

// asks runs an agent whose call waits for a person for an hour; the person approves it if it ends.
func (w *world) asks(end bool) *recording.Recording {
	pay := tool.Func("pay", "Pay.", func(ctx context.Context, q query) (string, error) { return "receipt R-1", nil }, tool.Ask())
	a := &drive.Agent{Name: "payer", Model: w.model("- {text: \"I will pay.\", calls: [{pay: {q: \"5\"}}]}\n- {text: \"Paid, receipt R-1.\"}\n"), Tools: []tool.Tool{pay}}
	ctx := context.Background()
	r := w.run(a, "Pay 5.")
	if end {
		time.Sleep(time.Hour)
		if err := w.host.Decide(ctx, r.ID, r.Pending[0].Call, drive.Decision{Decision: loop.Approve, By: "ana"}); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.host.Resume(ctx, r.ID); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.record(r.ID)
}

// delegates runs an agent with a child.
func (w *world) delegates() *recording.Recording {
	child := &drive.Agent{Name: "expert", Model: w.model("- {calls: [{search: {q: depth}}]}\n- {text: \"It is 12 m deep.\"}\n"), Tools: []tool.Tool{w.answers("search", "depth: 12 m")}}
	a := &drive.Agent{Name: "boss", Model: w.model("- {calls: [{expert: {task: \"How deep is it?\"}}]}\n- {text: \"12 m.\"}\n"), Children: []drive.Child{{Agent: child}}}
	return w.record(w.run(a, "How deep is the well?").ID)
}

// worksOtherwise is works with a round more and another result.
func (w *world) worksOtherwise() *recording.Recording {
	script := "- {calls: [{search: {q: march}}]}\n- {calls: [{search: {q: april}}]}\n- {calls: [{search: {q: june}}]}\n- {calls: [{search: {q: may}}]}\n- {text: \"80 kg in March.\"}\n"
	a := &drive.Agent{Name: "worker", Model: w.model(script), Tools: []tool.Tool{w.answers("search", "March: 80 kg", "April: nothing", "June: nothing", "May: 90 kg")}}
	return w.record(w.run(a, "How much did I lift?").ID)
}
