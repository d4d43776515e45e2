package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

func validJSON(s string) bool { return json.Valid([]byte(s)) }

func parse(t *testing.T, yaml string) *Script {
	t.Helper()
	s, err := Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func user(text string) *loop.Message {
	return &loop.Message{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: text}}}
}

func result(text string) *loop.Message {
	return &loop.Message{Role: loop.Tool, Blocks: []loop.Block{{Kind: loop.BlockResult, Name: "look", Text: text}}}
}

// said is an answer as a line of a test: the text, or the error.
func said(res *model.Response, err error) string {
	var e *model.Error
	switch {
	case errors.As(err, &e):
		return "error " + string(e.Class) + ": " + e.Message
	case err != nil:
		return "not a model.Error: " + err.Error()
	}
	var parts []string
	for _, b := range res.Blocks {
		if b.Kind == loop.BlockCall {
			parts = append(parts, b.Name+b.Args)
		} else {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, " ")
}

// session plays a driver: it keeps the transcript and asks a model.
type session struct {
	t    *testing.T
	m    *Model
	run  string
	call int64
	msgs []*loop.Message
}

func (s *session) say(run, text string) { s.run, s.call, s.msgs = run, 0, append(s.msgs, user(text)) }

func (s *session) ask(attempt int64, choice model.ToolChoice) (*model.Response, error) {
	req := &model.Request{Run: s.run, Call: s.call, Attempt: attempt, Choice: choice, Messages: s.msgs}
	return s.m.Generate(context.Background(), req, nil)
}

// next makes a model call with as many attempts as it takes and books the turn.
func (s *session) next(choice model.ToolChoice) string {
	s.call++
	for attempt := int64(1); ; attempt++ {
		res, err := s.ask(attempt, choice)
		var e *model.Error
		if errors.As(err, &e) && e.Class == loop.ClassTransient {
			continue
		}
		if err == nil {
			dropped := res.Finish == loop.FinishLength || res.Finish == loop.FinishMalformed ||
				strings.TrimSpace(said(res, nil)) == ""
			if !dropped {
				s.msgs = append(s.msgs, &loop.Message{Role: loop.Assistant, Blocks: res.Blocks})
			}
			switch {
			case dropped:
				s.msgs = append(s.msgs, user("go on"))
			case res.Finish == loop.FinishCalls:
				s.msgs = append(s.msgs, result("seen"))
			}
		}
		return said(res, err)
	}
}

const limitScript = `
- {calls: [{look: {n: 1}}]}
- {calls: [{look: {n: 2}}]}
- {calls: [{look: {n: 3}}]}
- {when: {tools: none}, text: "Go on?"}
- {calls: [{look: {n: 4}}]}
- {text: Yes.}
`

func TestSelection(t *testing.T) {
	type ask struct {
		choice model.ToolChoice
		want   string
	}
	const auto, none = model.ChoiceAuto, model.ChoiceNone
	for name, c := range map[string]struct {
		script string
		runs   [][]ask
	}{
		"in order, then it runs out": {"- text: a\n- text: b", [][]ask{{
			{auto, "a"}, {auto, "b"},
			{auto, "error fatal: the script has run out after its 2 items (the last begins on line 2): the run asks for one response more"},
		}}},
		"a closing call skips to its item, the next run goes on behind it": {limitScript, [][]ask{
			{{auto, `look{"n":1}`}, {auto, `look{"n":2}`}, {none, "Go on?"}}, {{auto, `look{"n":4}`}, {auto, "Yes."}},
		}},
		"a closing call without an item of its own takes the next": {"- {calls: [{look: {}}]}\n- text: no", [][]ask{
			{{auto, "look{}"}, {none, "no"}},
		}},
		"unmatched": {limitScript, [][]ask{{
			{auto, `look{"n":1}`}, {auto, `look{"n":2}`}, {auto, `look{"n":3}`},
			{auto, "error fatal: item 4 of the script (line 5) waits for a request that matches when: {tools: none}, but this one does not (it allows tools)"},
		}}},
		"repeat is for ever, but a closing call gets past it": {
			"- repeat: {calls: [{look: {}}]}\n- {when: {tools: none}, text: end}", [][]ask{
				{{auto, "look{}"}, {auto, "look{}"}, {auto, "look{}"}, {none, "end"}},
			},
		},
		"failures take an attempt each": {
			"- {calls: [{look: {}}]}\n- fail: {status: 529}\n- fail: {timeout: true}\n- text: b", [][]ask{
				{{auto, "look{}"}, {auto, "b"}},
			},
		},
		"empty and cut turns, over runs": {
			"- {calls: [{look: {}}]}\n- text: ' '\n- {text: cut, finish: length}\n- text: b\n- text: c", [][]ask{
				{{auto, "look{}"}, {auto, " "}, {auto, "cut"}}, {{auto, "b"}}, {{auto, "c"}},
			},
		},
		"the same answers again": {
			"- text: a\n- text: a\n- {calls: [{look: {}}]}\n- {calls: [{look: {}}]}\n- text: a\n- text: b", [][]ask{
				{{auto, "a"}}, {{auto, "a"}}, {{auto, "look{}"}, {auto, "look{}"}, {auto, "a"}}, {{auto, "b"}},
			},
		},
		"contains": {"- {when: {contains: hello}, text: a}", [][]ask{{{auto, "a"}}}},
		"a fatal failure ends the run and is passed over by the next": {
			"- fail: {status: 400, message: no}\n- text: a", [][]ask{{{auto, "error fatal: no"}}, {{auto, "a"}}},
		},
	} {
		script := parse(t, c.script)
		for _, fresh := range []bool{false, true} { // the same process throughout, or a new one for each call
			t.Run(name+map[bool]string{true: ", each call in a new process"}[fresh], func(t *testing.T) {
				s := &session{t: t, m: New(script)}
				for i, run := range c.runs {
					s.say(string(rune('A'+i)), "hello")
					for _, a := range run {
						if fresh {
							s.m = New(script)
						}
						if diff := cmp.Diff(a.want, s.next(a.choice)); diff != "" {
							t.Fatalf("run %d call %d: %s", i+1, s.call, diff)
						}
					}
				}
			})
		}
	}
}

func TestServedAgain(t *testing.T) {
	s := &session{t: t, m: New(parse(t, "- fail: {status: 503}\n- text: a\n- text: b"))}
	s.say("A", "hi")
	s.call = 1
	var got []string
	for _, attempt := range []int64{1, 1, 2, 2, 3, 2} { // 3: the response of attempt 2 was lost before it was journaled
		got = append(got, said(s.ask(attempt, model.ChoiceAuto)))
	}
	s.call = 2
	got = append(got, said(s.ask(1, model.ChoiceAuto)))
	want := []string{"error transient: service unavailable", "error transient: service unavailable", "a", "a", "a", "a", "b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// Two sessions at once do not take each other's items.
func TestSessionsAreApart(t *testing.T) {
	m := New(parse(t, "- text: a\n- text: b"))
	one, two := &session{t: t, m: m}, &session{t: t, m: m}
	var got []string
	one.say("A", "hi")
	two.say("B", "hi")
	got = append(got, one.next(""), two.next(""))
	one.say("C", "more")
	two.say("D", "more")
	got = append(got, two.next(""), one.next(""))
	if diff := cmp.Diff([]string{"a", "a", "b", "b"}, got); diff != "" {
		t.Fatal(diff)
	}
}

// Pick and Generate take from the same script.
func TestPick(t *testing.T) {
	s := &session{t: t, m: New(parse(t, "- text: a\n- text: b"))}
	s.say("A", "hi")
	got := s.next("")
	it, err := s.m.Pick(&model.Request{Run: "A", Call: 2, Attempt: 1, Messages: s.msgs})
	if got += it.Text; err != nil || got != "ab" {
		t.Fatal(got, err)
	}
}

// Many runs at once: each gets the script from its beginning.
func TestConcurrent(t *testing.T) {
	m := New(parse(t, "- {calls: [{look: {}}]}\n- fail: {status: 503}\n- text: b"))
	got := make([]string, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			s := &session{t: t, m: m}
			s.say(string(rune('A'+i)), "hi "+string(rune('A'+i)))
			got[i] = s.next("") + s.next("")
		})
	}
	wg.Wait()
	for i, g := range got {
		if g != "look{}b" {
			t.Errorf("run %d: %s", i, g)
		}
	}
}

func TestPositionHook(t *testing.T) {
	s := &session{t: t}
	s.m = New(parse(t, "- text: a\n- text: b\n- text: c"), Options{Position: func(*model.Request) int { return 1 }})
	s.say("A", "hi")
	if got := s.next("") + s.next(""); got != "bc" {
		t.Fatal(got)
	}
}

func TestResponse(t *testing.T) {
	m := New(parse(t, `
- thinking: hm
  text: I pay.
  calls: [{pay: {amount: 5}}, {call: look, id: x}]
  usage: {input: 1, cache_read: 2, cache_write: 3, output: 4, reasoning: 1}`), Options{Name: "demo"})
	req := &model.Request{Run: "R", Call: 1, Attempt: 1, Messages: []*loop.Message{user("hi")}}
	if n, ok := m.Estimate(req); n != 6 || !ok {
		t.Fatalf("estimate %d %v", n, ok)
	}
	got, err := m.Generate(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := got.Blocks[2].ID
	if !strings.HasPrefix(made, "call_") || got.ID == "" {
		t.Fatalf("ids %q %q", made, got.ID)
	}
	want := &model.Response{
		Blocks: []loop.Block{
			{Kind: loop.BlockThought, Text: "hm"},
			{Kind: loop.BlockText, Text: "I pay."},
			{Kind: loop.BlockCall, ID: made, Name: "pay", Args: `{"amount":5}`},
			{Kind: loop.BlockCall, ID: "x", Name: "look", Args: "{}"},
		},
		Finish: loop.FinishCalls,
		Usage:  &loop.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 1},
		Model:  "demo", ID: got.ID,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(model.Info{Wire: "scripted", Name: "demo", Scripted: true}, m.Info()); diff != "" {
		t.Fatal(diff)
	}
}

func TestEstimate(t *testing.T) {
	m := New(parse(t, "- {text: a, usage: {input: 7}}\n- {when: {tools: none}, text: b, usage: {input: 8}}"))
	req := func(call int64, choice model.ToolChoice) *model.Request {
		return &model.Request{Run: "R", Call: call, Attempt: 1, Choice: choice, Messages: []*loop.Message{user("hi")}}
	}
	type est struct {
		N  int64
		OK bool
	}
	var got []est
	ask := func(call int64, choice model.ToolChoice) {
		n, ok := m.Estimate(req(call, choice))
		got = append(got, est{n, ok})
	}
	ask(1, "")
	ask(1, "none")
	if _, err := m.Generate(context.Background(), req(1, ""), nil); err != nil {
		t.Fatal(err)
	}
	ask(2, "") // would be unmatched: what is next stands for it
	if _, err := m.Generate(context.Background(), req(2, "none"), nil); err != nil {
		t.Fatal(err)
	}
	ask(3, "")
	if diff := cmp.Diff([]est{{7, true}, {8, true}, {8, true}, {0, false}}, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestFailures(t *testing.T) {
	for in, want := range map[string]model.Error{
		"{status: 529, retry_after: 2s}": {Class: "transient", Status: 529, RetryAfter: 2 * time.Second, Message: "error 529"},
		"{status: 429}":                  {Class: "transient", Status: 429, Message: "too many requests"},
		"{status: 401, message: no key}": {Class: "fatal", Status: 401, Message: "no key"},
		"{timeout: true}":                {Class: "transient", Lost: true, Clock: "model_call", Message: "no response in time"},
		"{cut_after: 3}":                 {Class: "transient", Lost: true, Message: "the connection was cut in mid-stream"},
		"{error_event: overloaded}":      {Class: "transient", Code: "overloaded", Message: "error event in mid-stream"},
		"{no_end: true}":                 {Class: "transient", Lost: true, Message: "the stream ended with neither an end marker nor a finish reason"},
	} {
		t.Run(in, func(t *testing.T) {
			m := New(parse(t, "- fail: "+in))
			req := &model.Request{Run: "R", Call: 1, Attempt: 1, Stream: true}
			n := 0
			_, err := m.Generate(context.Background(), req, func(model.Delta) { n++ })
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, e); diff != "" {
				t.Fatal(diff)
			}
			if cut := map[bool]int{true: 3}[strings.Contains(in, "cut")]; n != cut {
				t.Fatalf("%d deltas", n)
			}
		})
	}
}

func TestStream(t *testing.T) {
	text := "Año: 日本語のテキスト 🎉🎉 fin"
	m := New(parse(t, "- {thinking: ñandú, text: '"+text+"', calls: [{pay: {who: 'Zoë 🎉', n: 1.0}}, {look: {}}]}"))
	cuts := map[string]bool{}
	for run := range 20 {
		req := &model.Request{Run: string(rune('A' + run)), Call: 1, Attempt: 1, Stream: true}
		got := map[int]string{}
		var names, pieces []string
		res, err := m.Generate(context.Background(), req, func(d model.Delta) {
			if !strings.Contains(text+"ñandú"+`{"who":"Zoë 🎉","n":1.0}{}`, d.Text) || strings.Contains(d.Text, "�") {
				t.Errorf("delta %q", d.Text)
			}
			got[d.Block] += d.Text
			pieces = append(pieces, d.Text)
			if d.Name != "" {
				names = append(names, d.Name+" "+d.ID)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]string{0: "ñandú", 1: text, 2: `{"who":"Zoë 🎉","n":1.0}`, 3: "{}"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff([]string{"pay " + res.Blocks[2].ID, "look " + res.Blocks[3].ID}, names); diff != "" {
			t.Fatal(diff)
		}
		cuts[strings.Join(pieces, "|")] = true
	}
	if len(cuts) < 10 {
		t.Fatalf("the cuts do not change: %d ways in 20 runs", len(cuts))
	}
}

func TestNotAskedToStream(t *testing.T) {
	m := New(parse(t, "- text: a"))
	_, err := m.Generate(context.Background(), &model.Request{Run: "R", Call: 1, Attempt: 1},
		func(d model.Delta) { t.Errorf("delta %v", d) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestPace(t *testing.T) {
	var slept time.Duration
	stop := errors.New("stop")
	sleep := func(_ context.Context, d time.Duration) error {
		if slept += d; slept >= 3*time.Second {
			return stop
		}
		return nil
	}
	m := New(parse(t, "- text: a long text that takes many deltas to send"), Options{Sleep: sleep, Pace: time.Second})
	n := 0
	_, err := m.Generate(context.Background(), &model.Request{Run: "R", Call: 1, Attempt: 1, Stream: true},
		func(model.Delta) { n++ })
	var e *model.Error
	if !errors.As(err, &e) || !e.Lost || !errors.Is(err, stop) || n != 2 {
		t.Fatalf("%v after %d deltas", err, n)
	}
}
