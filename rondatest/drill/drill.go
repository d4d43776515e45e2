// Package drill runs the five exits that every agent must know how to take (completion, limit, approval pause, denied action, tool
// failure) on any agent, with scripted responses made from its own tools' schemas. No model is called and no tool of the agent runs:
// each is replaced by one with the same definition that only pretends.
package drill

import (
	"context"
	"encoding/json"
	"errors"
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

func (d *drill) completion(ctx context.Context) Exit {
	x := Exit{Want: "completed"}
	var script []string
	for i, def := range d.defs() {
		if i > 0 && !d.needed(def.Name) {
			continue
		}
		it, err := item(def, i)
		if err != nil {
			fault(&x, "%v", err)
			return x
		}
		script = append(script, it)
	}
	s, err := d.stage(append(script, d.end()), func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.Limits = drive.Limits{Rounds: len(script) + 2}
	})
	r := d.start(ctx, &x, s, err)
	if r != nil && r.Stop != loop.StopCompleted {
		fault(&x, "want completed, got %s%s", x.Got, why(r))
	}
	return x
}

// needed says whether the contract wants a tool to have been called.
func (d *drill) needed(name string) bool {
	if d.agent.Contract == nil {
		return false
	}
	for _, c := range d.agent.Contract.Called {
		if c == name {
			return true
		}
	}
	return false
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

func (d *drill) limit(ctx context.Context) Exit {
	x := Exit{Want: "limit (rounds), with an answer from the closing call"}
	defs := d.defs()
	if len(defs) == 0 {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	var script []string
	for i := range 3 {
		it, err := item(defs[0], i)
		if err != nil {
			fault(&x, "%v", err)
			return x
		}
		script = append(script, it)
	}
	s, err := d.stage(append(script, "- {when: {tools: none}, text: \"Drill: the limit was reached.\"}"), func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.Limits, a.OnLimit = drive.Limits{Rounds: 2}, ""
		tools[0].def.CallsMax = nil
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if r.Stop != loop.StopLimit || r.Limit != loop.LimitRounds {
		fault(&x, "want the stop limit (rounds), got %s%s", x.Got, why(r))
	}
	if r.Answer == "" {
		fault(&x, "the closing call's answer was lost")
	}
	if n := s.ran[defs[0].Name]; n != 2 {
		fault(&x, "%s ran %d times within 2 rounds", defs[0].Name, n)
	}
	return x
}

// asked is the tool that a drill of decisions uses: one that asks, else the first that writes, else the first.
func (d *drill) asked() (tool.Def, bool) {
	defs := d.defs()
	for _, def := range defs {
		if def.Approval == loop.Ask {
			return def, true
		}
	}
	for _, def := range defs {
		if def.Effect != loop.Read {
			return def, true
		}
	}
	if len(defs) > 0 {
		return defs[0], true
	}
	return tool.Def{}, false
}

// asking makes one tool ask and the others run.
func asking(name string) func(a *drive.Agent, tools []*pretend) {
	return func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.ApprovalTTL = 0
		for _, t := range tools {
			if t.def.Name == name {
				t.def.Approval, t.facts = loop.Ask, tools[0].facts
			}
		}
	}
}

func (d *drill) approval(ctx context.Context) Exit {
	x := Exit{Want: "waiting: approval, then completed once, in another process"}
	def, ok := d.asked()
	if !ok {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	it, err := item(def, 1)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	s, err := d.stage([]string{it, d.end()}, func(a *drive.Agent, tools []*pretend) {
		asking(def.Name)(a, tools)
		if a.Contract != nil {
			a.Contract.Called = nil
		}
		a.Limits = drive.Limits{Rounds: 3}
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if r.Status != loop.StatusWaiting || len(r.Pending) != 1 {
		fault(&x, "want one pending approval, got %s%s", x.Got, why(r))
		return x
	}
	if s.ran[def.Name] != 0 {
		fault(&x, "%s ran before it was approved", def.Name)
	}
	paused := x.State
	before := r.Total
	if err := s.open(); err != nil { // another process
		fault(&x, "%v", err)
		return x
	}
	call := r.Pending[0]
	if err := s.host.Decide(ctx, r.ID, call.Call, drive.Decision{Decision: loop.Approve, By: "drill", Digest: call.Digest}); err != nil {
		fault(&x, "the approval was refused: %v", err)
		return x
	}
	if err := s.host.Decide(ctx, r.ID, call.Call, drive.Decision{Decision: loop.Reject, By: "someone else"}); !errors.Is(err, drive.ErrConflict) {
		fault(&x, "a second answer was not a conflict: %v", err)
	}
	r, err = s.host.Resume(ctx, r.ID)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	clear(&x, r)
	x.State = paused + "; then " + x.State
	if r.Stop != loop.StopCompleted {
		fault(&x, "want completed after the approval, got %s%s", x.Got, why(r))
	}
	if s.ran[def.Name] != 1 {
		fault(&x, "%s ran %d times", def.Name, s.ran[def.Name])
	}
	if r.Total.ModelCalls != before.ModelCalls+1 || r.Total.Usage.Total() <= before.Usage.Total() {
		fault(&x, "the pause changed the account: %+v, then %+v", before, r.Total)
	}
	if left := r.State.Limits().Rounds; left == nil || *left != 3 {
		fault(&x, "the pause changed the limits")
	}
	return x
}

func (d *drill) denied(ctx context.Context) Exit {
	x := Exit{Want: "the call does not run, the refusal is told and on record"}
	def, ok := d.asked()
	if !ok {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	it, err := item(def, 1)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	s, err := d.stage([]string{it, "- repeat: {text: \"Drill: it was refused.\"}"}, func(a *drive.Agent, tools []*pretend) {
		asking(def.Name)(a, tools)
		a.Contract, a.Finish = nil, false
		a.Limits = drive.Limits{Rounds: 3}
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if len(r.Pending) != 1 {
		fault(&x, "want one pending approval, got %s", x.Got)
		return x
	}
	if err := s.open(); err != nil {
		fault(&x, "%v", err)
		return x
	}
	if err := s.host.Decide(ctx, r.ID, r.Pending[0].Call, drive.Decision{Decision: loop.Reject, By: "drill", Message: "not in a drill"}); err != nil {
		fault(&x, "the refusal was refused: %v", err)
		return x
	}
	r, err = s.host.Resume(ctx, r.ID)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	clear(&x, r)
	want := loop.StopCompleted
	if def.OnReject == "stop" {
		want = loop.StopDenied
	}
	if r.Stop != want {
		fault(&x, "want %s, got %s%s", want, x.Got, why(r))
	}
	if s.ran[def.Name] != 0 {
		fault(&x, "%s ran although it was refused", def.Name)
	}
	if len(r.State.Refused) != 1 || r.State.Refused[0].By != "drill" {
		fault(&x, "the refusal is not on record")
	}
	return x
}

func (d *drill) failure(ctx context.Context) Exit {
	x := Exit{Want: "the failure is told; a write whose outcome is unknown waits for a person"}
	defs := d.defs()
	if len(defs) == 0 {
		x.Skipped, x.Got = "the agent has no tools", "skipped"
		return x
	}
	def, _ := d.asked()
	it, err := item(def, 1)
	if err != nil {
		fault(&x, "%v", err)
		return x
	}
	s, err := d.stage([]string{it, "- repeat: {text: \"Drill: the tool failed.\"}"}, func(a *drive.Agent, tools []*pretend) {
		relaxed(a, tools)
		a.Contract, a.Finish = nil, false
		a.Limits = drive.Limits{Rounds: 3}
		for _, t := range tools {
			t.fail = &tool.Error{Class: loop.ClassUnknown, Message: "the drill cut the connection"}
			t.def.Retries = 0
			if t.def.Effect == "" {
				t.def.Effect = loop.Once
			}
		}
	})
	r := d.start(ctx, &x, s, err)
	if r == nil {
		return x
	}
	if def.Effect != loop.Read && def.Effect != loop.Idempotent {
		if r.Status != loop.StatusWaiting || len(r.Pending) != 1 || r.Pending[0].Kind != loop.WaitResolution {
			fault(&x, "want waiting: resolution, got %s%s", x.Got, why(r))
			return x
		}
		paused := x.State
		if err := s.open(); err != nil {
			fault(&x, "%v", err)
			return x
		}
		if err := s.host.Resolve(ctx, r.ID, r.Pending[0].Call, false, "drill", "", nil); err != nil {
			fault(&x, "the resolution was refused: %v", err)
			return x
		}
		if r, err = s.host.Resume(ctx, r.ID); err != nil {
			fault(&x, "%v", err)
			return x
		}
		clear(&x, r)
		x.State = paused + "; then " + x.State
		if s.ran[def.Name] != 1 {
			fault(&x, "%s ran %d times", def.Name, s.ran[def.Name])
		}
	}
	if r.Stop != loop.StopCompleted {
		fault(&x, "want the failure told to the model and an honest end, got %s%s", x.Got, why(r))
	}
	return x
}
