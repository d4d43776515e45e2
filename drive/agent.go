package drive

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/policy"
	"github.com/ronda-go/ronda/tool"
)

// Agent is a configuration: it does not run, and nothing changes it while runs use it. The zero value of every option is
// useful; Name and Model are required.
type Agent struct {
	Name         string
	Model        model.Model
	Instructions string
	Tools        []tool.Tool
	Children     []Child // agents as tools

	Policy     Policy // nil: what each tool declares
	Limits     Limits // Rounds absent: 10
	Session    Limits // of the whole session; Rounds and Deadline do not exist there
	OnLimit    string // close (also ""), stop, pause
	HintRounds int    // the last n hand-backs say how many rounds are left
	Nudges     *int   // for empty and cut answers; nil: 1
	Repairs    *int   // invalid arguments and output, unknown tools, malformed calls, calls written as text; nil: 3
	Stall      *int   // repetitions of a cycle before the nudge; nil: 3, 0: never
	Parallel   string // none (also ""), read

	Finish       bool            // declare the finish tool
	FinishSchema json.RawMessage // its output; nil: {"response": string}
	Output       json.RawMessage // without finish: JSON Schema of the answer
	Contract     *Contract

	Price         *Price // overrides the catalogue's
	AllowUnpriced bool   // a cost limit with an unpriced model is refused at the start unless this is set
	OutputCap     int64  // tokens a response may have; 0: the model's
	ContextWindow int64  // tokens; 0: the model's
	ModelRetries  *int   // nil: 3
	Fallbacks     []Fallback
	Models        []model.Model // that Plan may choose beside Model and the fallbacks
	Compact       *Compact
	ReadArtifacts *bool                                                     // declare read_artifact, with which the model reads parts of results that were cut; nil: where the agent has tools
	ResultCap     int                                                       // bytes of a result that enter the transcript; 0: 16 KiB
	ApprovalTTL   time.Duration                                             // 0: approvals do not expire
	Grace         time.Duration                                             // what cancelled work gets to end; 0: 2 s
	ClosingTime   time.Duration                                             // of active time and deadline, kept for the closing call; 0: a tenth, at most 30 s
	Timeouts      model.Timeouts                                            // zero values: connect 10 s, first byte 2 min, between deltas 1 min, call 10 min; negative: none
	Options       map[string]any                                            // passed to the model's adapter
	Plan          func(ctx context.Context, p PlanInput) (loop.Plan, error) // hook before each model call; see PlanInput
	Definition    string                                                    // a word that makes two otherwise equal agents differ (a version)
}

// PlanInput is what the hook before a model call sees. The plan goes on record before the call is sent and is read from there at
// replay, resumption and further attempts, so the hook is called once for each model call; the closing call has none. Messages and
// their blocks must not be changed. An error, a panic, no answer within 10 s or a plan for what the agent does not have ends the run: failed.
type PlanInput struct {
	Run      string
	Call     int64
	Messages []*loop.Message
	Counts   loop.Counts
	Facts    map[string]loop.Fact
}

// Child is an agent offered as a tool. Its input is {"task": string} unless Input says otherwise.
type Child struct {
	Agent       *Agent
	Name        string // of the tool; "" the agent's
	Description string
	Input       json.RawMessage
	Handoff     bool // the child takes the run over: its answer is the run's
	Approval    loop.Verdict
	Limits      Limits // on top of the agent's own
}

// Fallback is a model that takes over after failures of the given classes (none: transient and fatal).
type Fallback struct {
	Model   model.Model
	Classes []loop.Class
}

// Compact says how a transcript near the window is shortened.
type Compact struct {
	At    float64     // share of the context window at which it happens; 0: 0.8
	Keep  int         // exchanges at the end that stay word for word; 0: 4
	Model model.Model // writes the summary; nil: the oldest exchanges are left out
	Price *Price      // of Model; nil: the catalogue's
}

// Contract is what "done" means, checked by evidence.
type Contract struct {
	Facts  []string        // that must exist
	Called []string        // tools that must have succeeded
	Cites  string          // ids cited in the answer must occur in results of this tool
	Schema json.RawMessage // of the finish output
	// Check looks at the answer with its own eyes; missing says what is not there. undecided ends the run incomplete.
	Check     func(ctx context.Context, e Evidence) (missing []string, undecided bool, err error)
	CheckName string // names Check in the definition
	Judge     *Judge // asked last, when all else holds
}

// Judge is a model that looks at an answer with its task, facts and results. Its calls are calls of the run: reserved, limited and
// booked. One that cannot be asked or cannot decide ends the run incomplete.
type Judge struct {
	Model        model.Model
	Instructions string // what counts
	Calls        int    // in a run; 0: 3
	Price        *Price // of Model; nil: the catalogue's
}

// Evidence is what a check of a contract sees.
type Evidence struct {
	Run      string
	Answer   string
	Facts    map[string]loop.Fact
	Messages []*loop.Message
}

// Limits of a run in Go. The zero value of a field means "no limit" (for Rounds: 10); say Zero or ZeroUSD for a limit of zero.
// Other negative values are refused.
type Limits struct {
	Rounds, ModelCalls, ToolCalls int
	Tokens                        int64
	CostUSD                       float64
	ActiveTime, Deadline          time.Duration
}

// Zero is a limit of zero; ZeroUSD the same for CostUSD.
const (
	Zero      = math.MinInt32
	ZeroUSD   = -math.MaxFloat64
	Unlimited = math.MaxInt32 // for Rounds, whose absence means 10
)

// Price in USD per million tokens.
type Price struct{ Input, CacheRead, CacheWrite, Output float64 }

// Policy decides calls. An error, a panic, a time-out or no verdict means that the call does not run.
type Policy interface {
	Decide(ctx context.Context, c policy.Call) (policy.Decision, error)
}

// childTool lets a child stand in the list of tools.
type childTool struct{ child Child }

// AsTool offers an agent as a tool to another one.
func AsTool(c Child) tool.Tool { return childTool{c} }

// Child is the child that the tool stands for.
func (t childTool) Child() Child { return t.child }

// Def declares the child to the model.
func (t childTool) Def() tool.Def { return childDef(t.child) }

// Run is never called: the driver drives the child as a run of its own.
func (t childTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Class: loop.ClassFatal, Message: "an agent as a tool only runs inside a run"}
}

func childDef(c Child) tool.Def {
	d := tool.Def{Name: c.Name, Description: c.Description, Input: c.Input, Effect: loop.Idempotent, Approval: c.Approval}
	if d.Name == "" {
		d.Name = c.Agent.Name
	}
	if d.Description == "" {
		d.Description = "Hands a task to the agent " + c.Agent.Name + " and returns its answer."
	}
	if len(d.Input) == 0 {
		d.Input = json.RawMessage(`{"type":"object","properties":{"task":{"type":"string","description":"What the agent is to do, with all that it needs to know."}},"required":["task"]}`)
	}
	return d
}

// children are the agents that an agent offers as tools, in either list.
func (a *Agent) children() []Child {
	list := a.Children
	for _, t := range a.Tools {
		if c, ok := t.(interface{ Child() Child }); ok {
			list = append(list[:len(list):len(list)], c.Child())
		}
	}
	return list
}
