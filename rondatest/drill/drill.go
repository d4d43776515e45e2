// Package drill runs the five exits that every agent must know how to take (completion, limit, approval pause, denied action, tool
// failure) on any agent, with scripted responses made from its own tools' schemas. No model is called and no tool of the agent runs:
// each is replaced by one with the same definition that only pretends.
package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/tool"
)

// Exit is the outcome of one drill.
type Exit struct {
	Name    string   `json:"name"`
	Want    string   `json:"want"`
	Got     string   `json:"got"`
	Passed  bool     `json:"passed"`
	Skipped string   `json:"skipped,omitempty"` // why it means nothing for this agent
	Faults  []string `json:"faults,omitempty"`
	State   string   `json:"state"` // the run's state in a sentence, as a person would see it
}

// Run runs the five exits on an agent. The agent itself is not changed. The error is a wrong configuration.
func Run(ctx context.Context, a *drive.Agent) ([]Exit, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	d := &drill{agent: a}
	var exits []Exit
	for _, e := range []struct {
		name string
		run  func(context.Context) Exit
	}{
		{"completion", d.completion}, {"limit", d.limit}, {"approval pause", d.approval}, {"denied action", d.denied}, {"tool failure", d.failure},
	} {
		x := e.run(ctx)
		x.Name = e.name
		x.Passed = len(x.Faults) == 0
		exits = append(exits, x)
	}
	return exits, nil
}

type drill struct {
	agent *drive.Agent
}

// pretend is a tool with the definition of a real one that does nothing.
type pretend struct {
	def   tool.Def
	facts map[string]json.RawMessage
	fail  *tool.Error
	mu    *sync.Mutex
	ran   map[string]int
}

func (p *pretend) Def() tool.Def { return p.def }

func (p *pretend) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	p.mu.Lock()
	p.ran[p.def.Name]++
	p.mu.Unlock()
	if p.fail != nil {
		return tool.Result{}, p.fail
	}
	return tool.Result{Text: `{"drill":"this result is made up","id":"DRILL-1"}`, Facts: p.facts}, nil
}

// stage is one drill: a copy of the agent with pretended tools and a script.
type stage struct {
	agent *drive.Agent
	store journal.Store
	host  *drive.Host
	ran   map[string]int
	items []string
}

func (d *drill) stage(script []string, change func(a *drive.Agent, tools []*pretend)) (*stage, error) {
	s, err := scripted.Parse([]byte(strings.Join(script, "\n") + "\n"))
	if err != nil {
		return nil, err
	}
	a := *d.agent
	st := &stage{store: memory.New(), ran: map[string]int{}, items: script}
	var mu sync.Mutex
	var tools []*pretend
	a.Tools, a.Children = nil, nil
	for _, def := range d.defs() {
		def.Check, def.Requires, def.Grounded = false, nil, nil
		def.Poll = nil
		tools = append(tools, &pretend{def: def, mu: &mu, ran: st.ran})
	}
	if a.Contract != nil {
		ct := *a.Contract
		ct.Check, ct.Schema, ct.Cites = nil, nil, ""
		a.Contract = &ct
		if len(tools) > 0 {
			tools[0].facts = map[string]json.RawMessage{}
			for _, f := range ct.Facts {
				tools[0].facts[f] = json.RawMessage(`"DRILL-1"`)
			}
		}
	}
	a.Plan, a.Compact, a.Fallbacks = nil, nil, nil
	info := d.agent.Model.Info()
	if a.Price == nil && info.Price != nil {
		a.Price = &drive.Price{Input: usd(info.Price.Input), CacheRead: usd(info.Price.CacheRead), CacheWrite: usd(info.Price.CacheWrite), Output: usd(info.Price.Output)}
	}
	change(&a, tools)
	for _, t := range tools {
		a.Tools = append(a.Tools, t)
	}
	var m model.Model = scripted.New(s, scripted.Options{Name: "drill"})
	a.Model = m
	st.agent = &a
	return st, st.open()
}

func usd(p loop.Pico) float64 { return float64(p) / 1e6 }

// open begins a new life: another host on the same store, as another process would be.
func (s *stage) open() error {
	h, err := drive.Open(drive.Options{Store: s.store, Owner: "drill"})
	if err != nil {
		return err
	}
	h.Register(s.agent)
	s.host = h
	return nil
}

func (d *drill) defs() []tool.Def {
	var defs []tool.Def
	for _, t := range d.agent.Tools {
		defs = append(defs, t.Def())
	}
	for _, c := range d.agent.Children {
		defs = append(defs, drive.AsTool(c).Def())
	}
	return defs
}

// item is a scripted response that calls a tool with arguments that fit its schema.
func item(def tool.Def, n int) (string, error) {
	args, err := Example(def.Input, n)
	if err != nil {
		return "", fmt.Errorf("tool %s: %w", def.Name, err)
	}
	return fmt.Sprintf("- {calls: [{call: %s, args: %s}]}", def.Name, args), nil
}

func (d *drill) end() string {
	if !d.agent.Finish {
		return "- {text: \"Drill done: DRILL-1.\"}"
	}
	args := `{"response": "Drill done: DRILL-1."}`
	if len(d.agent.FinishSchema) > 0 {
		if a, err := Example(d.agent.FinishSchema, 1); err == nil {
			args = a
		}
	}
	return "- {calls: [{call: finish, args: " + args + "}]}"
}

func fault(x *Exit, format string, a ...any) { x.Faults = append(x.Faults, fmt.Sprintf(format, a...)) }

// clear says whether the state of a run can be told to a person, and tells it.
func clear(x *Exit, r *drive.Run) {
	switch r.Status {
	case loop.StatusStopped:
		x.Got = string(r.Stop)
		if r.Limit != "" {
			x.Got += " (" + r.Limit + ")"
		}
		if r.Stop == "" {
			fault(x, "the run stopped without a reason")
		}
	case loop.StatusWaiting:
		x.Got = "waiting: " + strings.Join(r.Waiting, ", ")
		if len(r.Pending) == 0 {
			fault(x, "the run waits and shows nothing that is pending")
		}
	default:
		x.Got = r.Status
		fault(x, "the run neither stopped nor waits")
	}
	t := r.Total
	x.State = fmt.Sprintf("%s after %d rounds, %d model calls, %d tool calls", x.Got, t.Rounds, t.ModelCalls, t.ToolCalls)
	if len(r.Facts) > 0 {
		names := make([]string, 0, len(r.Facts))
		for n := range r.Facts {
			names = append(names, n)
		}
		x.State += fmt.Sprintf("; %d facts kept", len(names))
	}
}

func (d *drill) start(ctx context.Context, x *Exit, s *stage, err error) *drive.Run {
	if err != nil {
		fault(x, "the drill could not be set up: %v", err)
		return nil
	}
	r, err := s.host.Start(ctx, drive.Start{Agent: s.agent, Input: drive.Text("This is a drill.")})
	if err != nil {
		fault(x, "%v", err)
		return nil
	}
	clear(x, r)
	return r
}

// relaxed lets every tool run without asking.
func relaxed(a *drive.Agent, tools []*pretend) {
	a.Policy = nil
	for _, t := range tools {
		t.def.Approval = loop.Allow
	}
}

func why(r *drive.Run) string {
	if r.Stopped == nil {
		return ""
	}
	s := ""
	if r.Stopped.Message != "" {
		s += ": " + r.Stopped.Message
	}
	if len(r.Stopped.Missing) > 0 {
		s += "; missing " + strings.Join(r.Stopped.Missing, "; ")
	}
	return s
}
