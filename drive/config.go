package drive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// compiled is what the driver derives from an agent once.
type compiled struct {
	agent   *Agent
	config  loop.Config
	tools   map[string]*boundTool
	declare []model.Tool
	def     []byte // the definition: canonical JSON
	ref     string // its artifact
	finish  *tool.Schema
	output  *tool.Schema
	schema  *tool.Schema // of the contract
	info    model.Info
	models  map[string]model.Model // beside the agent's own, by reference

	requires bool // a tool requires others
}

// Definition is what the recorded definition of an agent holds beside the loop's config; it is stored once as an artifact and named by
// its digest.
type Definition struct {
	Agent        string           `json:"agent"`
	Model        string           `json:"model"`
	Version      string           `json:"version,omitempty"`
	Instructions string           `json:"instructions,omitempty"`
	Tools        []ToolDefinition `json:"tools,omitempty"`
	Finish       json.RawMessage  `json:"finish,omitempty"`
	Output       json.RawMessage  `json:"output,omitempty"`
	Contract     json.RawMessage  `json:"contract,omitempty"`
	Check        string           `json:"check,omitempty"`
	Judge        string           `json:"judge,omitempty"` // instructions
}

var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

var anyObject = json.RawMessage(`{"type":"object"}`)

// defaultFinish is the output of finish where the agent gives none.
var defaultFinish = json.RawMessage(`{"type":"object","properties":{"response":{"type":"string","description":"The answer."}},"required":["response"]}`)

// Defaults of agents.
const (
	DefaultRounds    = 10
	DefaultNudges    = 1
	DefaultRepairs   = 3
	DefaultStall     = 3
	DefaultRetries   = 3
	DefaultResultCap = 16 << 10
	DefaultOutputCap = 8192

	DefaultJudgeCalls = 3
)

// Validate reports every field of the agent that cannot work, each with the way out.
func (a *Agent) Validate() error {
	_, err := compile(a)
	return err
}

func (h *Host) compile(a *Agent) (*compiled, error) {
	if c, ok := h.compiled.Load(a); ok {
		return c.(*compiled), nil
	}
	c, err := compile(a)
	if err != nil {
		return nil, err
	}
	h.compiled.Store(a, c)
	return c, nil
}

type problems struct {
	agent string
	errs  []error
}

func (p *problems) add(field, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("agent %q: %s: "+format, append([]any{p.agent, field}, args...)...))
}

func compile(a *Agent) (*compiled, error) {
	p := &problems{agent: a.Name}
	c := &compiled{agent: a, tools: map[string]*boundTool{}, models: map[string]model.Model{}}
	if a.Name == "" {
		p.add("Name", "is empty. Give the agent a name; runs are found by it")
	}
	if a.Model == nil {
		p.add("Model", "is missing. Give it a model, for example scripted, anthropic, openai, openaichat or gemini")
		return nil, errors.Join(p.errs...)
	}
	c.info = a.Model.Info()
	specs := c.bindTools(p)
	c.config = loop.Config{
		Tools: specs, Agent: a.Name, Model: c.info.Ref(), OnLimit: a.OnLimit, HintRounds: int64(a.HintRounds), Parallel: a.Parallel,
		Limits: a.Limits.build(p, "Limits", true), Finish: a.Finish, Output: len(a.Output) > 0 && !a.Finish,
		Nudges: orDefault(p, "Nudges", a.Nudges, DefaultNudges), Repairs: orDefault(p, "Repairs", a.Repairs, DefaultRepairs),
		Stall:        loop.Stall{Repeats: orDefault(p, "Stall", a.Stall, DefaultStall)},
		ModelRetries: orDefault(p, "ModelRetries", a.ModelRetries, DefaultRetries),
		ApprovalTTL:  toMicros(a.ApprovalTTL), Grace: toMicros(a.Grace), ClosingTime: toMicros(a.ClosingTime),
		ContextWindow: first(a.ContextWindow, c.info.ContextWindow),
	}
	c.outputCap(p)
	c.price(p)
	c.check(p)
	c.schemas(p)
	c.definition()
	if c.config.Stall.Repeats == 1 {
		p.add("Stall", "1 would call every round a repetition. Use 0 (never) or 2 and more")
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return c, nil
}

func first(a, b int64) int64 {
	if a != 0 {
		return a
	}
	return b
}

func orDefault(p *problems, field string, v *int, def int64) int64 {
	switch {
	case v == nil:
		return def
	case *v < 0:
		p.add(field, "%d is negative. Use 0 for none", *v)
	}
	return int64(*v)
}

// outputCap settles how many tokens a response may have: a cap has to be known where tokens or money are limited.
func (c *compiled) outputCap(p *problems) {
	a := c.agent
	if a.OutputCap < 0 || a.ContextWindow < 0 {
		p.add("OutputCap", "OutputCap and ContextWindow are numbers of tokens: not negative")
	}
	c.config.OutputCap = a.OutputCap
	if a.OutputCap == 0 {
		c.config.OutputCap = DefaultOutputCap
		if c.info.OutputCap > 0 && c.info.OutputCap < DefaultOutputCap {
			c.config.OutputCap = c.info.OutputCap
		}
	}
}

func (c *compiled) price(p *problems) {
	a := c.agent
	c.config.Price = c.info.Price
	if a.Price != nil {
		c.config.Price = a.Price.build()
	}
	limited := c.config.Limits.Cost != nil || a.Session.CostUSD != 0
	unpriced := func(pr *loop.Price) bool { return pr == nil && limited && !a.AllowUnpriced }
	if unpriced(c.config.Price) {
		p.add("Limits.CostUSD", "the price of %s is not known, so a cost limit would not hold. Set Price, or AllowUnpriced to run without the limit's protection", c.info.Ref())
	}
	for _, f := range a.Fallbacks {
		if f.Model == nil {
			p.add("Fallbacks", "a fallback has no model")
			continue
		}
		info := f.Model.Info()
		if unpriced(info.Price) {
			p.add("Fallbacks", "the price of %s is not known, so a cost limit would not hold", info.Ref())
		}
		c.models[info.Ref()] = f.Model
		c.config.Fallbacks = append(c.config.Fallbacks, loop.Fallback{Model: info.Ref(), Classes: f.Classes, Price: info.Price})
	}
	for _, m := range a.Models {
		if m == nil {
			p.add("Models", "one of the models is nil")
			continue
		}
		info := m.Info()
		if unpriced(info.Price) {
			p.add("Models", "the price of %s is not known, so a cost limit would not hold", info.Ref())
		}
		c.models[info.Ref()] = m
		c.config.Models = append(c.config.Models, loop.Fallback{Model: info.Ref(), Price: info.Price})
	}
}

// check looks at the words that options may be.
func (c *compiled) check(p *problems) {
	a := c.agent
	oneOf := func(field, v string, words ...string) {
		for _, w := range append(words, "") {
			if v == w {
				return
			}
		}
		p.add(field, "%q is unknown. Use one of %v", v, words)
	}
	oneOf("OnLimit", a.OnLimit, "close", "stop", "pause")
	oneOf("Parallel", a.Parallel, "none", "read")
	if a.HintRounds < 0 {
		p.add("HintRounds", "%d is negative", a.HintRounds)
	}
	if a.Compact != nil {
		at := a.Compact.At
		if at == 0 {
			at = 0.8
		}
		if c.config.ContextWindow == 0 {
			p.add("Compact", "the context window of %s is not known. Set ContextWindow", c.info.Ref())
		}
		c.config.Compact = &loop.CompactRule{At: int64(at * float64(c.config.ContextWindow)), Attempts: 2}
		if a.Compact.Model != nil {
			writer := c.sideModel(p, "Compact.Model", a.Compact.Model, a.Compact.Price)
			c.config.Compact.Writer = &writer
		}
	}
}

func (c *compiled) schemas(p *problems) {
	a := c.agent
	comp := func(field string, raw json.RawMessage) *tool.Schema {
		if len(raw) == 0 {
			return nil
		}
		s, err := tool.Compile(raw)
		if err != nil {
			p.add(field, "%v", err)
		}
		return s
	}
	if a.Finish {
		decl := finishSchema(a.FinishSchema)
		c.finish = comp("FinishSchema", decl)
		c.declare = append(c.declare, model.Tool{Name: loop.FinishTool, Schema: decl,
			Description: "Ends the task with its answer. status: done, declined (the request is refused or out of scope) or blocked (you cannot go on)."})
	}
	if c.config.Output {
		c.output = comp("Output", a.Output)
	}
	if ct := a.Contract; ct != nil {
		c.schema = comp("Contract.Schema", ct.Schema)
		c.config.Contract = &loop.Contract{Facts: ct.Facts, Called: ct.Called, Cites: ct.Cites, Schema: len(ct.Schema) > 0, Check: ct.Check != nil}
		c.judge(p)
		for _, name := range append(append([]string{}, ct.Called...), ct.Cites) {
			if name != "" && c.tools[name] == nil {
				p.add("Contract", "there is no tool %q", name)
			}
		}
	}
}

// judge settles how often the contract's judge may be asked.
func (c *compiled) judge(p *problems) {
	j := c.agent.Contract.Judge
	switch {
	case j == nil:
		return
	case j.Model == nil:
		p.add("Contract.Judge", "has no model")
		return
	case j.Calls < 0:
		p.add("Contract.Judge.Calls", "%d is negative", j.Calls)
	}
	c.config.Contract.Judge = &loop.Judge{SideModel: c.sideModel(p, "Contract.Judge", j.Model, j.Price), Calls: int64(j.Calls)}
	if j.Calls == 0 {
		c.config.Contract.Judge.Calls = DefaultJudgeCalls
	}
}

// finishSchema declares the finish tool: the agent's output with the status beside it.
func finishSchema(output json.RawMessage) json.RawMessage {
	if len(output) == 0 {
		output = defaultFinish
	}
	var m map[string]json.RawMessage
	var typ string
	if json.Unmarshal(output, &m) != nil || json.Unmarshal(m["type"], &typ) != nil || typ != "object" {
		wrapped, _ := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"response": output}, "required": []string{"response"}})
		_ = json.Unmarshal(wrapped, &m)
	}
	var props map[string]json.RawMessage
	_ = json.Unmarshal(m["properties"], &props)
	if props == nil {
		props = map[string]json.RawMessage{}
	}
	if props["status"] == nil {
		props["status"] = json.RawMessage(`{"type":"string","enum":["done","declined","blocked"],"description":"done unless said otherwise"}`)
	}
	m["properties"], _ = json.Marshal(props)
	out, _ := json.Marshal(m)
	return out
}

// definition makes the recorded definition and the digests that name it.
func (c *compiled) definition() {
	a := c.agent
	d := Definition{Agent: a.Name, Model: c.info.Ref(), Version: a.Definition, Instructions: a.Instructions, Finish: a.FinishSchema, Output: a.Output}
	for _, spec := range c.config.Tools {
		b := c.tools[spec.Name]
		d.Tools = append(d.Tools, ToolDefinition{Name: b.def.Name, Description: b.def.Description, Input: b.def.Input, Effect: spec.EffectOf(),
			Label: b.def.Label, Approval: b.def.Approval, Destination: b.def.Destination, Requires: b.def.Requires, Grounded: b.def.Grounded, Digest: b.digest})
	}
	if a.Contract != nil {
		d.Contract, _ = json.Marshal(c.config.Contract)
		d.Check = a.Contract.CheckName
		if a.Contract.Judge != nil {
			d.Judge = a.Contract.Judge.Instructions
		}
	}
	c.def, _ = json.Marshal(d)
	sum := sha256.Sum256(c.def)
	c.ref = "sha256:" + hex.EncodeToString(sum[:])
	c.config.Digest = c.ref
	c.config.Base = int64(len(a.Instructions)) + 64
	for _, t := range c.declare {
		c.config.Base += int64(len(t.Name)+len(t.Description)+len(t.Schema)) + 32
	}
}
