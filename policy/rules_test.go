package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ronda-go/ronda/loop"
)

func decide(t *testing.T, rules string, c Call) Decision {
	t.Helper()
	r, err := Parse([]byte(rules))
	if err != nil {
		t.Fatalf("Parse(%s): %v", rules, err)
	}
	d, err := r.Decide(context.Background(), c)
	if err != nil {
		t.Fatalf("Decide: %v", err)
	}
	return d
}

func TestDecide(t *testing.T) {
	pay := Call{Agent: "support", Tool: "pay", Approval: loop.Ask, Destination: "https://bank.example/pay",
		Args: json.RawMessage(`{"to":"ana","amount":5,"card":{"no":"4"},"tags":["x","y"]}`)}
	read := Call{Agent: "support", Tool: "read_case", Effect: loop.Read, Label: "cases"}
	for _, c := range []struct {
		name  string
		rules string
		call  Call
		want  Decision
	}{
		{"no rules: the tool's word", `{}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"no rules, nothing declared", `{}`, read, Decision{loop.Allow, "tool", ""}},
		{"a rule cannot loosen", `{"rules":[{"verdict":"allow"}]}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"with override it can", `{"rules":[{"name":"trust","verdict":"allow","override":true,"reason":"ok"}]}`, pay, Decision{loop.Allow, "trust", "ok"}},
		{"a rule tightens", `{"rules":[{"verdict":"deny","tools":["p*"],"reason":"no"}]}`, pay, Decision{loop.Deny, "rule 1", "no"}},
		{"a rule with the tool's word is named", `{"rules":[{"verdict":"ask","reason":"money"}]}`, pay, Decision{loop.Ask, "rule 1", "money"}},
		{"the tightest of all, in any order", `{"rules":[{"verdict":"deny","tools":["pay"]},{"verdict":"allow","override":true},{"verdict":"ask"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"of overrides the tightest", `{"rules":[{"verdict":"allow","override":true},{"verdict":"ask","override":true,"reason":"r"}]}`, pay, Decision{loop.Ask, "rule 2", "r"}},
		{"the first of equals", `{"rules":[{"verdict":"deny","name":"a"},{"verdict":"deny","name":"b"}]}`, pay, Decision{loop.Deny, "a", ""}},
		{"the default tightens", `{"default":"ask"}`, read, Decision{loop.Ask, "default", "no rule speaks of this call"}},
		{"the default does not loosen", `{"default":"allow"}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"a match takes the default's place", `{"default":"deny","rules":[{"effects":["read"],"verdict":"allow"}]}`, read, Decision{loop.Allow, "rule 1", ""}},
		{"a match that does not fit leaves the default", `{"default":"deny","rules":[{"effects":["read"],"verdict":"allow"}]}`, pay, Decision{loop.Deny, "default", "no rule speaks of this call"}},
		{"no effect is once", `{"rules":[{"effects":["once"],"verdict":"deny"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"label", `{"rules":[{"labels":["cas*"],"verdict":"deny"}]}`, read, Decision{loop.Deny, "rule 1", ""}},
		{"no label is the name", `{"rules":[{"labels":["pay"],"verdict":"deny"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"destination", `{"rules":[{"destinations":["https://*.example/*","x"],"verdict":"deny"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"agent", `{"rules":[{"agents":["coach"],"verdict":"deny"}]}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"all conditions must fit", `{"rules":[{"tools":["pay"],"agents":["coach"],"verdict":"deny"}]}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"arguments", `{"rules":[{"args":{"to":"a*","amount":"5"},"verdict":"deny"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"an argument that differs", `{"rules":[{"args":{"to":"a*","amount":"6"},"verdict":"deny"}]}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"an argument that is not there", `{"rules":[{"args":{"from":"*"},"verdict":"deny"}]}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"a pointer", `{"rules":[{"args":{"/card/no":"4","/tags/1":"y"},"verdict":"deny"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"a pointer to nothing", `{"rules":[{"args":{"/tags/2":"*"},"verdict":"deny"},{"args":{"/to/x":"*"},"verdict":"deny"}]}`, pay, Decision{loop.Ask, "tool", "the tool asks for it"}},
		{"a list is its JSON", `{"rules":[{"args":{"tags":"*\"y\"*"},"verdict":"deny"}]}`, pay, Decision{loop.Deny, "rule 1", ""}},
		{"arguments of a call without any", `{"rules":[{"args":{"a":"*"},"verdict":"deny"}]}`, read, Decision{loop.Allow, "tool", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, decide(t, c.rules, c.call)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDecideRefuses(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rules Rules
		call  Call
		want  string
	}{
		{Rules{}, Call{Tool: "t", Approval: "maybe"}, `policy: tool t declares "maybe", which is no verdict`},
		{Rules{Rules: []Rule{{}}}, Call{Tool: "t"}, `policy: rule 1 has the verdict ""`},
		{Rules{Rules: []Rule{{Verdict: loop.Allow, Args: map[string]string{"a": "*"}}}}, Call{Tool: "t", Args: json.RawMessage(`{`)},
			`policy: the arguments of t cannot be read: canonical JSON: at the top level, byte 1: the input ends where a key in double quotes should be`},
	} {
		d, err := c.rules.Decide(ctx, c.call)
		if fmt.Sprint(err) != c.want || d != (Decision{}) {
			t.Errorf("got %v, %v\nwant %s", d, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"rules":[{"verdict":"deny","tool":["x"]}]}`, `policy: unknown field "tool"`},
		{`{"defaults":"ask"}`, `policy: unknown field "defaults"`},
		{`{"default":"no"}`, `policy: default: "no" is no verdict; use allow, ask or deny`},
		{`{"rules":[{}]}`, `policy: rules[0]: verdict: "" is none; use allow, ask or deny`},
		{`{"rules":[{"name":"a","verdict":"x"}]}`, `policy: rules[0] (a): verdict: "x" is none; use allow, ask or deny`},
		{`{"rules":[{"verdict":"ask","effects":["write"]}]}`, `policy: rules[0]: effects: "write" is none; use read, idempotent or once`},
		{`{"rules":[{"verdict":"ask","args":{"":"*"}}]}`, `policy: rules[0]: args: an argument has no name`},
		{`{"rules":[{"verdict":"ask","name":"a"},{"verdict":"ask","name":"a"}]}`, `policy: rules[1]: the name "a" is that of rules[0]`},
		{`[`, `policy: unexpected end of JSON input`},
	} {
		if _, err := Parse([]byte(c.in)); fmt.Sprint(err) != c.want {
			t.Errorf("Parse(%s)\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

// Adding a rule without override never loosens a decision once one rule matches, and order never matters for the verdict.
func TestRulesOnlyTighten(t *testing.T) {
	verdicts := rapid.SampledFrom([]loop.Verdict{loop.Allow, loop.Ask, loop.Deny})
	rule := rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{Verdict: verdicts.Draw(t, "verdict"), Override: rapid.Bool().Draw(t, "override")}
		if rapid.Bool().Draw(t, "other tool") {
			r.Tools = []string{"b"}
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{Rules: rapid.SliceOfN(rule, 0, 6).Draw(t, "rules")}
		call := Call{Tool: "a", Approval: verdicts.Draw(t, "approval")}
		verdict := func(r Rules) loop.Verdict {
			d, err := r.Decide(context.Background(), call)
			if err != nil {
				t.Fatal(err)
			}
			return d.Verdict
		}
		before := verdict(rules)
		shuffled := Rules{Rules: rapid.Permutation(rules.Rules).Draw(t, "order")}
		if got := verdict(shuffled); got != before {
			t.Fatalf("the order changed %s to %s", before, got)
		}
		more := Rules{Rules: append(shuffled.Rules, Rule{Verdict: verdicts.Draw(t, "more")})}
		if got := verdict(more); rank(got) < rank(before) {
			t.Fatalf("one more rule loosened %s to %s", before, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"rules":[{"tools":["a*"],"args":{"/x/0":"*"},"verdict":"deny"}],"default":"ask"}`), []byte(`{"x":["a"]}`))
	f.Fuzz(func(t *testing.T, rules, args []byte) {
		r, err := Parse(rules)
		if err != nil {
			return
		}
		d, err := r.Decide(context.Background(), Call{Tool: "abc", Args: args})
		if err == nil && rank(d.Verdict) < 0 {
			t.Fatalf("verdict %q", d.Verdict)
		}
	})
}
