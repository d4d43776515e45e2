package rondatest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// direct is the quickest cell.
var direct = Options{Wire: []string{Direct}, Stream: []string{"off"}}

const head = `scenario: x
agent: {tools: [{name: look, effect: read}, {name: pay, effect: once, approval: ask}]}
`

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"unknown key", head + "acts: [{say: hi}]\nexpct: {}\n", `f.yaml:4:1: expct: unknown key "expct"; did you mean expect?`},
		{"unknown key inside", head + "acts: [{say: hi}]\nexpect: {statsu: stopped}\n", `f.yaml:4:10: expect.statsu: unknown key "statsu"; did you mean status?`},
		{"unknown key of the agent", "scenario: x\nagent: {limit: {}}\nscript: [{text: a}]\nacts: [{say: hi}]\n", `f.yaml:2:9: agent.limit: unknown key "limit"; did you mean limits?`},
		{"unknown key of the script", head + "script: [{txt: a}]\nacts: [{say: hi}]\n", `unknown key "txt"`},
		{"no script", head + "acts: [{say: hi}]\n", `script is missing`},
		{"no acts", head + "script: [{text: a}]\n", `f.yaml:1:1: acts is missing`},
		{"two acts in one", head + "script: [{text: a}]\nacts: [{say: hi, wait: 2s}]\n", `f.yaml:4:8: acts[0]: want exactly one act`},
		{"act before the run", head + "script: [{text: a}]\nacts: [{wait: 2s}]\n", `wait comes before the first say`},
		{"no call named", head + "script: [{text: a}]\nacts: [{say: hi}, {approve: {by: ana}}]\n", `names no call`},
		{"unknown tool", head + "script: [{text: a}]\ntools: {lok: [{return: x}]}\nacts: [{say: hi}]\n", `f.yaml:4:9: tools.lok: the agent has no tool "lok" that could do this; its tools are look, pay`},
		{"two ways to end", head + "script: [{text: a}]\ntools: {look: [{error: error, return: x}]}\nacts: [{say: hi}]\n", `cannot stand beside`},
		{"negative limit", "scenario: x\nagent: {limits: {rounds: -1}}\nscript: [{text: a}]\nacts: [{say: hi}]\n", `-1 is negative`},
		{"unknown cell", head + "only: {wire: [telnet]}\nscript: [{text: a}]\nacts: [{say: hi}]\n", `"telnet" is not a value of wire`},
		{"unknown count", head + "script: [{text: a}]\nacts: [{say: hi}]\nexpect: {counts: {turns: 2}}\n", `unknown key "turns"`},
		{"twice", head + "script: [{text: a}]\nacts: [{say: hi}]\n---\n" + head + "script: [{text: a}]\nacts: [{say: hi}]\n", `f.yaml:6:1: the scenario "x" is there twice`},
		{"nothing", "", `there is no scenario`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.yaml))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with\n%s\ngot\n%v", c.want, err)
			}
		})
	}
}

// run performs the scenarios of a text.
func run(t *testing.T, yaml string, o Options) Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := RunFile(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestFailuresSayWhatAndWhere(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		line       int
		what, got  string
	}{
		{"another answer", head + "script: [{text: a}]\nacts: [{say: hi}]\nexpect: {answer: {contains: [b]}}\n", 5, "answer.contains", `"a"`},
		{"another stop", head + "script: [{text: ' '}, {text: ' '}]\nacts: [{say: hi}]\nexpect: {stop: completed}\n", 5, "stop", "no_action"},
		{"the script runs out", head + "script: [{calls: [{look: {}}]}]\nacts: [{say: hi}]\n", 1, "script and tools", "the script has run out after its one item (the last begins on line 3)"},
		{"an unmatched request", head + "script: [{when: {tools: none}, text: a}]\nacts: [{say: hi}]\n", 1, "script and tools", "item 1 of the script (line 3) waits for a request"},
		{"nothing to approve", head + "script: [{text: a}]\nacts:\n  - {say: hi}\n  - {approve: {call: pay, by: ana}}\n", 6, "act approve", "not found"},
		{"accepted though it must fail", head + "script: [{calls: [{pay: {}}]}, {text: a}]\nacts:\n  - {say: hi}\n  - {fails: {approve: {call: pay, by: ana}, with: conflict}}\n", 6, "act fails", "was accepted"},
		{"refused in another way", head + "script: [{calls: [{pay: {}}]}, {text: a}]\nacts:\n  - {say: hi}\n  - {fails: {approve: {id: zzz, by: ana}, with: conflict}}\n", 6, "act fails", "not_found, not conflict"},
		{"executions", head + "script: [{calls: [{look: {}}]}, {text: a}]\nacts: [{say: hi}]\nexpect:\n  executions: {look: 2}\n", 6, "executions.look", "1"},
		{"results out of order", head + "script: [{calls: [{look: {n: 1}}, {look: {n: 2}}]}, {text: a}]\ntools: {look: [{echo: true}]}\nacts: [{say: hi}]\nexpect:\n  requests: [{n: last, results: [{call: look, contains: '2'}, {call: look, contains: '1'}]}]\n", 7, "request 2: results", "no further result"},
		{"events", head + "script: [{text: a}]\nacts: [{say: hi}]\nexpect:\n  events: [RunStopped, ModelReplied]\n", 6, "events", ""},
		{"pending", head + "script: [{calls: [{pay: {n: 1}}]}]\nacts: [{say: hi}]\nexpect: {pending: []}\n", 5, "pending", `1: pay {"n":1} (approval)`},
		{"stuck", "scenario: x\nagent: {tools: [{name: look, effect: read, timeout: 1s}], grace: 1s}\nscript: [{text: a}]\nacts: [{say: hi}]\nexpect: {usage: {cost_usd: 1}}\n", 5, "usage.cost_usd", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := run(t, c.yaml, direct)
			if rep.OK() || len(rep.Results) != 1 {
				t.Fatalf("want one failure, got %s", rep.Summary())
			}
			f := rep.Results[0].Failures[0]
			if f.Line != c.line || f.What != c.what || !strings.Contains(f.Got, c.got) {
				t.Errorf("want line %d %s, got …%s…; got\n%s", c.line, c.what, c.got, f)
			}
			if !strings.Contains(rep.Results[0].String(), "RunStarted") {
				t.Errorf("the journal is missing:\n%s", rep.Results[0])
			}
		})
	}
}

func TestReports(t *testing.T) {
	rep := run(t, head+"script: [{text: a}]\nacts: [{say: hi}]\n---\nscenario: y\nagent: {}\nscript: [{text: <a>}]\nacts: [{say: hi}]\nexpect: {answer: b}\n", direct)
	var text, js, ju bytes.Buffer
	for _, err := range []error{rep.Text(&text), rep.JSON(&js), rep.JUnit(&ju)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasSuffix(text.String(), "\n1 passed, 1 failed\n") || !strings.Contains(text.String(), "FAIL y [direct stream=off]") {
		t.Errorf("text:\n%s", &text)
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rep, back); diff != "" {
		t.Errorf("JSON (-was +read):\n%s", diff)
	}
	var suites junitSuites
	if err := xml.Unmarshal(ju.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	if suites.Tests != 2 || suites.Failures != 1 || len(suites.Suites) != 1 || suites.Suites[0].Cases[1].Failure == nil {
		t.Errorf("JUnit:\n%s", &ju)
	}
}

func TestOptions(t *testing.T) {
	if _, err := Run(context.Background(), nil, Options{Wire: []string{"telnet"}}); err == nil {
		t.Error("an unknown wire was accepted")
	}
	rep := run(t, head+"script: [{text: a}]\nacts: [{say: hi}]\n", Options{Wire: []string{Direct}, Engine: "elsewhere"})
	if rep.OK() || rep.Summary() != "left out: engine elsewhere does not exist in this build\n0 passed, 0 failed" {
		t.Errorf("got %s", rep.Summary())
	}
}

func TestOnlySelectsCells(t *testing.T) {
	rep := run(t, "scenario: x\nonly: {stream: [on], crash: [none]}\nagent: {}\nscript: [{text: a}]\nacts: [{say: hi}]\n", Options{Wire: []string{Direct}})
	if len(rep.Results) != 1 || rep.Results[0].Cell.Stream != "on" {
		t.Errorf("got %s", rep.Summary())
	}
	rep = run(t, "scenario: x\nonly: {crash: [none]}\nagent: {}\nscript: [{text: a}]\nacts: [{say: hi}]\n", Options{Wire: []string{Direct}, Crash: "everywhere"})
	if len(rep.Results) != 0 {
		t.Errorf("got %s", rep.Summary())
	}
}

// A scenario in which a crash makes a difference must fail: here the answer depends on how often a request was made.
func TestCrashesAreCompared(t *testing.T) {
	const yaml = `scenario: x
agent: {tools: [{name: put, effect: idempotent}]}
script: [{calls: [{put: {}}]}, {text: a}]
tools: {put: [{return: ok}]}
acts: [{say: hi}]
expect: {status: stopped, executions: {put: 1}}
`
	list, err := Parse("f.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	cell := Cell{Wire: Direct, Stream: "off", Crash: "everywhere", Store: "memory", Engine: "local"}
	r := perform(context.Background(), list[0], cell)
	if !r.Passed || r.Kills < 12 {
		t.Fatalf("want a pass with a dozen kills, got %s", r)
	}
	base := performance(context.Background(), list[0], cell, 0, nil)
	base.end.Answer = "b"
	if killed := performance(context.Background(), list[0], cell, 3, &base); len(killed.fails) == 0 || killed.fails[0].What != "answer without a crash" {
		t.Errorf("another answer was not noticed: %v", killed.fails)
	}
	list[0].tools["put"] = []toolItem{{text: "ok"}}
	base = performance(context.Background(), list[0], cell, 0, nil)
	base.end.Once = map[string]int64{"put": 0}
	ch := &checker{w: &world{s: list[0], cell: cell, once: map[string]bool{"put": true}, sim: newSimulation(nil)}}
	ch.w.sim.effects = []effect{{tool: "put"}}
	ch.sameAs(base.end)
	if len(ch.fails) == 0 {
		t.Error("an effect that happened twice was not noticed")
	}
}

func TestDivergenceIsNamed(t *testing.T) {
	const yaml = `scenario: x
agent: {tools: [{name: pay, effect: once}]}
script: [{calls: [{pay: {}}]}, {text: a}]
tools: {pay: [{return: ok}]}
acts: [{say: hi}]
expect: {status: stopped, executions: {pay: 1}}
`
	rep := run(t, yaml, Options{Wire: []string{Direct}, Stream: []string{"off"}, Crash: "everywhere"})
	if !rep.OK() {
		t.Error(rep.Results[0])
	}
}
