package loop

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawConfig draws a configuration in which all machines have something to do.
func drawConfig(t *rapid.T) *Config {
	limit := func(name string) *int64 {
		if rapid.IntRange(0, 2).Draw(t, name+"?") > 0 {
			return nil
		}
		n := rapid.Int64Range(0, 6).Draw(t, name)
		return &n
	}
	c := &Config{
		Agent: "a", Model: "w/m", OutputCap: 10, Nudges: 1, Repairs: 2, ModelRetries: 1, Base: 5,
		OnLimit:  rapid.SampledFrom([]string{"", "close", "stop", "pause"}).Draw(t, "on_limit"),
		Parallel: rapid.SampledFrom([]string{"", "read"}).Draw(t, "parallel"),
		Finish:   rapid.Bool().Draw(t, "finish"), Stall: Stall{rapid.Int64Range(0, 2).Draw(t, "stall") * 2},
		HintRounds: rapid.Int64Range(0, 2).Draw(t, "hint"),
		Limits:     Limits{Rounds: limit("rounds"), ModelCalls: limit("model_calls"), ToolCalls: limit("tool_calls")},
		Tools: []ToolSpec{{Name: "find", Effect: Read, Retries: 1}, {Name: "pay", OnReject: "stop"}, {Name: "put", Effect: Idempotent, Label: "money"},
			{Name: "send", Check: true, Label: "money"}, {Name: "kid", Effect: Idempotent, Child: true}},
	}
	if rapid.Bool().Draw(t, "contract") {
		c.Contract = &Contract{Facts: []string{"f"}}
	}
	if n := limit("tokens"); n != nil {
		*n *= 40
		c.Limits.Tokens = n
	}
	if n := limit("active"); n != nil {
		m := Micros(*n) * Second
		c.Limits.ActiveTime = &m
	}
	if rapid.Bool().Draw(t, "compact") {
		c.Compact = &CompactRule{At: 60, Attempts: 1}
	}
	if rapid.IntRange(0, 3).Draw(t, "ttl") == 0 {
		c.ApprovalTTL = 3 * Second
	}
	return c
}

// answer draws what the world may say to a command.
func answer(t *rapid.T, s State, now Micros, c Command) Body {
	switch c.Kind {
	case Record:
		return c.Body
	case Authorize:
		verdict := rapid.SampledFrom([]Body{
			CallAuthorized{Call: c.Call, Verdict: Allow, Args: "a1", Digest: "d1"}, CallAuthorized{Call: c.Call, Verdict: Ask, Args: "a1", Digest: "d1"},
			CallRefused{Call: c.Call, Why: WhyInvalid, Message: "Error"}, CallRefused{Call: c.Call, Why: WhyDenied, Message: "no"},
		}).Draw(t, "verdict")
		if a, ok := verdict.(CallAuthorized); ok && c.Index == s.finishIndex() {
			a.Verdict, a.Finish = Allow, rapid.SampledFrom([]string{FinishDone, FinishBlocked, FinishDeclined}).Draw(t, "status")
			return a
		}
		return verdict
	case CheckDone:
		return ContractChecked{OK: rapid.Bool().Draw(t, "ok"), Missing: []string{"x"}, Output: s.Config.Output}
	case Compaction:
		return rapid.SampledFrom([]Body{Compacted{Failed: "no"}, Compacted{Upto: 1, Tokens: 20}}).Draw(t, "compacted")
	case CallModel:
		if c.Started {
			return modelAnswer(t, c)
		}
		return s.Admit(now, rapid.SampledFrom([]int64{-1, 5, 30}).Draw(t, "input"))
	case RunTool:
		if c.Started {
			return rapid.SampledFrom([]Body{ToolReturned{Call: c.Call, Attempt: c.Attempt, Text: "same"},
				ToolReturned{Call: c.Call, Attempt: c.Attempt, Text: "new", Facts: map[string]Value{"f": Value("1")}},
				ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: ClassTransient}, ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: ClassUnknown, Cause: CauseCrash},
				ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: ClassError}, ToolFailed{Call: c.Call, Attempt: c.Attempt, Class: ClassFatal}}).Draw(t, "result")
		}
		return ToolStarted{Call: c.Call, Attempt: c.Attempt}
	case CheckEffect:
		return EffectChecked{Call: c.Call, Happened: rapid.SampledFrom([]string{HappenedYes, HappenedNo, HappenedUnknown}).Draw(t, "happened")}
	case RunChild:
		if call, _ := s.Call(c.Call); c.Started {
			return ChildStopped{Call: c.Call, Run: call.Child, Stop: StopCompleted, Text: "kid", Counts: Counts{ModelCalls: 1}}
		}
		return ChildStarted{Call: c.Call, Run: "k", Grant: s.GrantFor(c.Index, now)}
	}
	return nil
}

func modelAnswer(t *rapid.T, c Command) Body {
	text := Block{Kind: BlockText, Text: "So."}
	call := func(name string) Block { return Block{Kind: BlockCall, Name: name, Args: "{}"} }
	u := &Usage{Input: 4, Output: 3}
	return rapid.SampledFrom([]Body{
		ModelReplied{Call: c.N, Blocks: []Block{text}, Finish: FinishStop, Usage: u},
		ModelReplied{Call: c.N, Finish: FinishStop},
		ModelReplied{Call: c.N, Blocks: []Block{text}, Finish: FinishLength, Usage: u},
		ModelReplied{Call: c.N, Blocks: []Block{text}, Finish: FinishPause, Usage: u},
		ModelReplied{Call: c.N, Finish: FinishMalformed, Usage: u},
		ModelReplied{Call: c.N, Blocks: []Block{call("find"), call("find"), call("pay"), call("put")}, Finish: FinishCalls, Usage: u},
		ModelReplied{Call: c.N, Blocks: []Block{call("put"), call("send"), call("nothing")}, Finish: FinishCalls, Usage: &Usage{Input: 4, Output: 90}},
		ModelReplied{Call: c.N, Blocks: []Block{call("kid"), call("kid"), call(FinishTool), call("find")}, Finish: FinishCalls, Usage: u},
		ModelFailed{Call: c.N, Attempt: c.Attempt, Class: ClassTransient}, ModelFailed{Call: c.N, Attempt: c.Attempt, Class: ClassTransient, Lost: true, Cause: CauseCrash},
	}).Draw(t, "reply")
}

// outside draws what people do, whether it makes sense or not.
func outside(t *rapid.T, s State) Body {
	call := "c1.1"
	if n := len(s.Turn.Calls); n > 0 {
		call = s.Turn.Calls[rapid.IntRange(0, n-1).Draw(t, "call")].ID
	}
	two := int64(2)
	return rapid.SampledFrom([]Body{
		ApprovalDecided{Call: call, Decision: Approve, By: "ana"}, ApprovalDecided{Call: call, Decision: Reject, By: "ana"},
		ApprovalDecided{Call: call, Decision: Edit, By: "ana", Args: "{}", ArgsSum: "a2", Digest: "d2"}, ApprovalDecided{Call: call, Decision: Expired},
		ApprovalDecided{Call: call, Decision: Approve, By: "ana", Standing: &Standing{ID: "s", Tool: "pay"}}, StandingRevoked{ID: "s"},
		EffectResolved{Call: call, Happened: true}, EffectResolved{Call: call}, MessageTaken{Blocks: []Block{{Kind: BlockText, Text: "m"}}},
		MessageTaken{Blocks: []Block{{Kind: BlockText, Text: "m"}}, Supersede: true}, CancelRequested{By: "ana"},
		LimitsExtended{Add: Limits{Rounds: &two, ModelCalls: &two, ToolCalls: &two}, By: "ana"}, RunResumed{Epoch: 2}, LimitReached{Limit: LimitRounds},
		ToolReturned{Call: call, Text: "odd"}, ToolFailed{Call: call, Class: ClassUnknown, Cause: CauseLimit}, ToolStarted{Call: call}, CallRefused{Call: call, Why: WhyLimit},
		ModelReplied{Call: 1, Finish: FinishStop}, ModelFailed{Call: s.Model.Call, Attempt: s.Model.Attempt, Class: ClassTransient, Cause: CauseLimit},
		ModelCallStarted{Call: s.Model.Call + 1}, RunStopped{Stop: StopCompleted}, ContractChecked{OK: true}, Nudged{Reason: NudgeEmpty}, Compacted{Failed: "x"},
		ChildStarted{Call: call, Run: "k"}, ChildStopped{Call: call, Run: "k"}, EffectChecked{Call: call, Happened: HappenedYes}, ApprovalAsked{Call: call},
	}).Draw(t, "outside")
}

// TestNextIsAValue walks at random: events that are owed, and events that may make no sense. Next leaves its argument and every state
// that shares memory with it alone, a refused event changes nothing, Ready and the JSON of a state say the same each time, and what is
// owed is never refused.
func TestNextIsAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var states []State
		var prints []string
		keep := func(s State) {
			states = append(states, s)
			prints = append(prints, mustJSON(s))
		}
		now := Micros(0)
		s, err := Next(State{}, Event{Seq: 1, Body: RunStarted{Run: "r", Config: drawConfig(t), Input: []Block{{Kind: BlockText, Text: "go"}}}})
		if err != nil {
			t.Fatal(err)
		}
		keep(s)
		talk := NewTranscript(nil)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += Micros(rapid.Int64Range(0, 3).Draw(t, "pass")) * Second
			cmds := Ready(s, now)
			if !reflect.DeepEqual(cmds, Ready(s, now)) {
				t.Fatalf("Ready is not the same twice: %s", s)
			}
			body, owed := Body(nil), false
			if len(cmds) > 0 && rapid.IntRange(0, 4).Draw(t, "who") > 0 {
				c := cmds[rapid.IntRange(0, len(cmds)-1).Draw(t, "which")]
				if c.After <= now {
					body = answer(t, s, now, c)
					owed = body != nil
				}
			}
			if body == nil {
				body = outside(t, s)
			}
			next, err := Next(s, Event{Seq: s.Seq + 1, Time: now, Body: body})
			if err != nil {
				if owed {
					t.Fatalf("what was owed is refused: %s %s: %v", body.Kind(), mustJSON(body), err)
				}
				if mustJSON(next) != prints[len(prints)-1] {
					t.Fatalf("a refused event changed the state: %v", err)
				}
				continue
			}
			talk.Apply(Event{Seq: s.Seq + 1, Time: now, Body: body}, next)
			s = next
			keep(s)
		}
		for i, st := range states {
			if now := mustJSON(st); now != prints[i] {
				t.Fatalf("a later event changed an earlier state (%d of %d):\n%s\n%s", i, len(states), prints[i], now)
			}
		}
		var back State
		if err := json.Unmarshal([]byte(prints[len(prints)-1]), &back); err != nil {
			t.Fatal(err)
		}
		if again := mustJSON(back); again != prints[len(prints)-1] {
			t.Fatalf("a state does not come back from its JSON:\n%s\n%s", prints[len(prints)-1], again)
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", kinds(Ready(s, now))), fmt.Sprintf("%+v", kinds(Ready(back, now)))); diff != "" {
			t.Fatalf("a state from its JSON owes something else:\n%s", diff)
		}
		checkTalk(t, talk, s)
	})
}

func kinds(cmds []Command) (ids []string) {
	for _, c := range cmds {
		ids = append(ids, c.ID)
	}
	return ids
}

// checkTalk: between turns each call has exactly one result, right after it.
func checkTalk(t *rapid.T, talk *Transcript, s State) {
	msgs := talk.Messages()
	for i, m := range msgs {
		var calls []string
		for _, b := range m.Blocks {
			if b.Kind == BlockCall {
				calls = append(calls, b.Call)
			}
		}
		if len(calls) == 0 || i == len(msgs)-1 && s.Turn.open() > 0 {
			continue
		}
		var results []string
		if i+1 < len(msgs) {
			for _, b := range msgs[i+1].Blocks {
				results = append(results, b.Call)
			}
		}
		if !reflect.DeepEqual(calls, results) {
			t.Fatalf("calls %v are answered by %v: %s", calls, results, s)
		}
	}
}
