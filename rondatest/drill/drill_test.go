package drill_test

import (
	"context"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/rondatest/drill"
	"github.com/ronda-go/ronda/tool"
)

type mail struct {
	To   string `json:"to"`
	Body string `json:"body"`
}

func agent(t *testing.T, change func(*drive.Agent)) *drive.Agent {
	t.Helper()
	s, err := scripted.Parse([]byte("- {text: never asked}\n"))
	if err != nil {
		t.Fatal(err)
	}
	never := func(ctx context.Context, m mail) (string, error) { t.Error("a drill ran a real tool"); return "", nil }
	a := &drive.Agent{Name: "a", Model: scripted.New(s), Tools: []tool.Tool{
		tool.Func("look", "Looks.", never, tool.Read()), tool.Func("send", "Sends.", never, tool.Ask()),
	}}
	change(a)
	return a
}

func TestEveryExitPasses(t *testing.T) {
	for name, change := range map[string]func(*drive.Agent){
		"plain":    func(*drive.Agent) {},
		"finish":   func(a *drive.Agent) { a.Finish = true },
		"contract": func(a *drive.Agent) { a.Contract = &drive.Contract{Facts: []string{"sent"}, Called: []string{"send"}} },
		"cost":     func(a *drive.Agent) { a.Limits.CostUSD, a.Price = 0.5, &drive.Price{Input: 3, Output: 15} },
		"no tools": func(a *drive.Agent) { a.Tools = nil },
		"stop on reject": func(a *drive.Agent) {
			a.Tools[1] = tool.Func("send", "Sends.", func(context.Context, mail) (string, error) { return "", nil }, tool.Ask(), tool.OnReject("stop"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			exits, err := drill.Run(t.Context(), agent(t, change))
			if err != nil {
				t.Fatal(err)
			}
			if len(exits) != 5 {
				t.Fatalf("want five exits, got %d", len(exits))
			}
			for _, x := range exits {
				if !x.Passed {
					t.Errorf("%s: want %s, got %s: %v", x.Name, x.Want, x.Got, x.Faults)
				}
			}
		})
	}
}

func TestExampleFitsItsSchema(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"integer","minimum":10},"b":{"type":"string","enum":["x","y"]},"c":{"type":"array","items":{"type":"string"},"minItems":2}},"required":["a","b","c"]}`,
		`{"type":"object","properties":{"d":{"type":"string","format":"date"},"n":{"type":"number","exclusiveMinimum":0,"maximum":0.5}},"required":["d"]}`,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"required":["p"],"$defs":{"P":{"type":"object","properties":{"k":{"const":7}},"required":["k"]}}}`,
		`{"type":"object","properties":{"v":{"anyOf":[{"type":"null"},{"type":"string","minLength":20}]}},"required":["v"]}`,
	} {
		if _, err := drill.Example([]byte(schema), 1); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
