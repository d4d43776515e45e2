package loop

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSumsDoNotWrap(t *testing.T) {
	const most = math.MaxInt64
	if got := (Usage{Input: most, Output: 1}).Add(Usage{Input: most, Output: 2}); got != (Usage{Input: most, Output: 3}) {
		t.Errorf("got %+v", got)
	}
	if got := (Usage{Input: most, CacheRead: most, Output: 5}).Total(); got != most {
		t.Errorf("got %d", got)
	}
	p := &Price{Input: most, Output: 2, CacheWrite: 3, CacheRead: 1}
	if got := p.Of(Usage{Input: 2}); got != most {
		t.Errorf("got %d", got)
	}
	if got := p.Worst(most, most); got != most {
		t.Errorf("got %d", got)
	}
	if got := (*Price)(nil).Of(Usage{Input: 2}) + (*Price)(nil).Worst(2, 2); got != 0 {
		t.Errorf("without a price: %d", got)
	}
}

func TestReasonsAreTheStops(t *testing.T) {
	want := []Reason{"completed", "incomplete", "blocked", "limit", "denied", "no_action", "stalled", "failed", "cancelled"}
	if diff := cmp.Diff(want, Reasons()); diff != "" {
		t.Error(diff)
	}
}

// The texts say which limit it was, and the closing instruction stays within what is reserved for it.
func TestTextsOfLimits(t *testing.T) {
	seen := map[string]string{}
	for _, l := range []string{LimitRounds, LimitModelCalls, LimitToolCalls, LimitTokens, LimitCost, LimitActiveTime, LimitDeadline} {
		text := ClosingText(l)
		if len(text) > closingText {
			t.Errorf("%s: %d bytes are said, %d tokens reserved", l, len(text), closingText)
		}
		if !strings.HasPrefix(RefusalText(l), "Not executed: ") || !strings.Contains(text, "limit of this answer has been reached") && !strings.Contains(text, "calls of this answer has been reached") {
			t.Errorf("%s: %q, %q", l, RefusalText(l), text)
		}
		if other := seen[RefusalText(l)]; other != "" && !(isTime(other) && isTime(l)) {
			t.Errorf("%s and %s are told alike", l, other)
		}
		seen[RefusalText(l)] = l
	}
	want := []string{"No rounds are left", "1 round is left", "2 rounds are left"}
	for n, w := range want {
		if got := HintText(int64(n)); !strings.HasPrefix(got, w) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"añb", 2, "a…"}, {"añb", 3, "añ…"}, {"漢字", 0, "…"}} {
		if got := cutText(c.in, c.n); got != c.want {
			t.Errorf("%q at %d: got %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestFailureTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{failure(ModelFailed{Message: "busy", Status: 529}), "status 529: busy"},
		{failure(ModelFailed{Message: "silence", Clock: "first_byte"}), "clock first_byte: silence"},
		{FailureText(ToolFailed{}), "Error: the tool failed"},
		{FailureText(ToolFailed{Class: ClassUnknown, Message: "cut off"}), "Outcome unknown: cut off"},
		{FailureText(ToolFailed{Class: ClassError, Cause: CauseCancelled, Message: "told to end"}), "Interrupted: told to end"},
		{repairCause(NudgeImitation), "calls were written as text"},
		{repairCause(NudgePlain), "the answer did not come through the finish tool"},
		{repairCause(NudgeOutput), "the output does not fit its schema"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		ev   Body
		want string
	}{
		{ModelReplied{Blocks: []Block{{Kind: BlockThought, Text: "hm"}, {Kind: BlockText, Text: "So"}, {Kind: BlockText, Text: "."}}}, "So."},
		{ModelReplied{Blocks: []Block{{Kind: BlockText, Text: "Ending."}, {Kind: BlockCall, Name: FinishTool, Args: `{"response":"Seven.","status":"done"}`}}}, "Seven."},
		{ModelReplied{Blocks: []Block{{Kind: BlockCall, Name: FinishTool, Args: `{"status":"done","n":7,"a":[1]}`}}}, `{"a":[1],"n":7}`},
		{ModelReplied{Blocks: []Block{{Kind: BlockCall, Name: FinishTool, Args: `{"response":7}`}}}, `{"response":7}`},
		{ModelReplied{Blocks: []Block{{Kind: BlockCall, Name: FinishTool, Args: `{"resp`}}}, `{"resp`},
		{ChildStopped{Text: "The child's."}, "The child's."},
		{RunStopped{}, ""},
	} {
		if got := AnswerText(Event{Body: c.ev}); got != c.want {
			t.Errorf("%s: got %q, want %q", mustJSON(c.ev), got, c.want)
		}
	}
}

func TestIdempotencyKeys(t *testing.T) {
	s := State{Key: "r", Turn: Turn{Calls: []Call{{ID: "c1.1", Tool: "pay", Args: "a"}, {ID: "c1.2", Tool: "pay", Args: "a"}, {ID: "c1.1", Tool: "pay", Args: "b"}}}}
	keys := map[string]int{}
	for i := range s.Turn.Calls {
		keys[s.IdempotencyKey(i)]++
	}
	retried := s.setCall(0, Call{ID: "c1.1", Tool: "pay", Args: "a", Attempt: 3, Failed: 2})
	other := s
	other.Key = "q"
	if len(keys) != 3 || retried.IdempotencyKey(0) != s.IdempotencyKey(0) || other.IdempotencyKey(0) == s.IdempotencyKey(0) {
		t.Errorf("keys %v", keys)
	}
}

func TestStandingFor(t *testing.T) {
	s := State{Config: &Config{Tools: []ToolSpec{{Name: "write", Label: "files"}, {Name: "move", Label: "files"}}},
		Standing: []Standing{{ID: "s1", Tool: "write", Digest: "d", Args: map[string]string{"path": "/tmp/*"}, Until: 100}, {ID: "s2", Tool: "move", Digest: "d"}}}
	for _, c := range []struct {
		name, tool, digest, path string
		now                      Micros
		want                     string
	}{
		{"fits", "write", "d", "/tmp/a", 1, "s1"},
		{"another path", "write", "d", "/etc/a", 1, ""},
		{"no such argument", "write", "d", "", 1, ""},
		{"another definition", "write", "e", "/tmp/a", 1, ""},
		{"over", "write", "d", "/tmp/a", 100, ""},
		{"any arguments", "move", "d", "/x", 1000, "s2"},
		{"unknown tool", "burn", "d", "/x", 1, ""},
	} {
		args := map[string]string{"path": c.path}
		if c.path == "" {
			args = nil
		}
		got, ok := s.StandingFor(c.tool, c.digest, args, c.now)
		if got.ID != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q", c.name, got.ID)
		}
	}
	s.Refused = []Refusal{{Label: "files"}}
	if _, ok := s.StandingFor("write", "d", map[string]string{"path": "/tmp/a"}, 1); ok {
		t.Error("a refusal in the run does not beat a standing approval")
	}
}

func TestMissingEvidence(t *testing.T) {
	s := State{Config: &Config{}, Facts: map[string]Fact{"a": {}}, Tools: map[string]Tally{"find": {Calls: 2}, "pay": {Calls: 1, Succeeded: 1}}}
	if got := s.MissingEvidence(); got != nil {
		t.Errorf("without a contract: %v", got)
	}
	s.Config.Contract = &Contract{Facts: []string{"a", "b"}, Called: []string{"find", "pay"}}
	want := []string{"the fact b", "a successful call of find"}
	if diff := cmp.Diff(want, s.MissingEvidence()); diff != "" {
		t.Error(diff)
	}
}

func TestTranscriptLooksUp(t *testing.T) {
	s := &script{t: t}
	for _, line := range []string{`start {"tools":[{"name":"pay"}]}`, "model", `reply pay{"n":5}`, "ask c1.1", "go",
		`ApprovalDecided {"call":"c1.1","decision":"edit","by":"ana","args":"{\"n\":4}","args_digest":"s","digest":"d"}`} {
		s.line(line)
	}
	b, ok := s.talk.CallBlock("c1.1")
	_, none := s.talk.CallBlock("c9.9")
	if !ok || none || b.Args != `{"n":5}` || s.talk.Edited("c1.1") != `{"n":4}` || s.talk.Edited("c9.9") != "" {
		t.Errorf("%+v %t %t %q", b, ok, none, s.talk.Edited("c1.1"))
	}
	if got := s.state.ActiveTime(5 * Second); got != 5*Second {
		t.Errorf("active %v", got)
	}
	if s.state.Config.ToolSpec("pay") == nil || s.state.Config.ToolSpec("nope") != nil || s.state.Config.ToolSpec("pay").LabelOf() != "pay" {
		t.Error("tools are not found by name")
	}
	m := &Message{Blocks: []Block{{Kind: BlockText, Text: "four"}, {Kind: BlockMedia, Media: &Media{Data: make([]byte, 5000)}}, {Kind: BlockResult, More: []Block{{Text: "xy"}}}}}
	if got, want := m.Bound(), int64(4+16+16+5000+16+2+16); got != want {
		t.Errorf("bound %d, want %d", got, want)
	}
}

func TestAssemble(t *testing.T) {
	for _, line := range []string{`{"s":2,"t":5,"k":"ToolStarted","b":{"call":"c1.1"}}`, `{"s":2,"t":5,"k":"Novelty","o":true,"b":{"x":1}}`} {
		ev, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(strings.TrimSuffix(line, "}"), `"b":`)
		_, optional := ev.Body.(Unknown)
		got, err := Assemble(2, 5, ev.Kind(), optional, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := Encode(got)
		if err != nil || string(raw) != line {
			t.Errorf("got %s (%v), want %s", raw, err, line)
		}
	}
	for _, c := range []struct{ kind, body string }{{"", "{}"}, {"Novelty", "{"}, {"ToolStarted", `{"call":1}`}} {
		if _, err := Assemble(1, 0, c.kind, false, []byte(c.body)); err == nil {
			t.Errorf("%q %q was taken", c.kind, c.body)
		}
	}
}
