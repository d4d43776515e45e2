package loop

// Config is all that the loop needs to know of an agent. It is recorded in the first event of the run and never read from
// anywhere else, so a journal replays under any later code or configuration. Names in JSON are those of the agent file
// where both have them.
type Config struct {
	Agent   string `json:"agent"`
	Model   string `json:"model"` // wire/model, as in the agent file
	Digest  string `json:"digest,omitempty"`
	Limits  Limits `json:"limits"`
	OnLimit string `json:"on_limit,omitempty"` // close (also ""), stop, pause

	HintRounds int64  `json:"hint_rounds,omitempty"`
	Nudges     int64  `json:"nudges"`  // for empty and cut answers, in the whole run
	Repairs    int64  `json:"repairs"` // hand-backs that ask for mending, in the whole run
	Stall      Stall  `json:"stall"`
	Parallel   string `json:"parallel,omitempty"` // none (also ""), read

	Tools    []ToolSpec `json:"tools,omitempty"`
	Finish   bool       `json:"finish,omitempty"` // the finish tool is declared
	Output   bool       `json:"output,omitempty"` // the answer (without finish) must satisfy the output schema of the definition
	Contract *Contract  `json:"contract,omitempty"`

	Price         *Price `json:"price,omitempty"`
	OutputCap     int64  `json:"output_cap,omitempty"`
	ContextWindow int64  `json:"context_window,omitempty"`

	Base         int64         `json:"base,omitempty"`         // bound of the tokens of instructions and tool definitions
	ModelRetries int64         `json:"model_retries"`          // further attempts of a model call after transient failures
	CallTimeout  Micros        `json:"call_timeout,omitempty"` // one attempt of a model call; 0: none
	ApprovalTTL  Micros        `json:"approval_ttl,omitempty"` // how long an approval may be outstanding; 0: for ever
	Grace        Micros        `json:"grace,omitempty"`        // what cancelled work gets to end
	ClosingTime  Micros        `json:"closing_time,omitempty"` // kept of active_time and deadline for the closing call; 0: a tenth, at most 30 s
	Fallbacks    []Fallback    `json:"fallbacks,omitempty"`
	Models       []Fallback    `json:"models,omitempty"` // that a plan may choose beside the agent's own and the fallbacks
	Compact      *CompactRule  `json:"compact,omitempty"`
	Session      *SessionStart `json:"session,omitempty"`
	Parent       *ParentStart  `json:"parent,omitempty"`
}

// Limits say what a run, a session or a grant may use. Nil means no limit, zero means nothing.
type Limits struct {
	Rounds     *int64  `json:"rounds,omitempty"`
	ModelCalls *int64  `json:"model_calls,omitempty"` // the closing call included
	ToolCalls  *int64  `json:"tool_calls,omitempty"`
	Tokens     *int64  `json:"tokens,omitempty"`
	Cost       *Pico   `json:"cost,omitempty"`
	ActiveTime *Micros `json:"active_time,omitempty"`
	Deadline   *Micros `json:"deadline,omitempty"` // a length of time from the start of the run
}

// Stall says when repetition ends a run: after Repeats repetitions of a cycle a nudge, after one more the stop. 0: never.
type Stall struct {
	Repeats int64 `json:"repeats"`
}

// ToolSpec is what the loop knows of one tool.
type ToolSpec struct {
	Name     string  `json:"name"`
	Digest   string  `json:"digest,omitempty"` // of the definition: description, schema, destination
	Effect   Effect  `json:"effect,omitempty"` // "" is once
	Label    string  `json:"label,omitempty"`  // "" is the name
	OnReject string  `json:"on_reject,omitempty"`
	Timeout  Micros  `json:"timeout,omitempty"`
	Retries  int64   `json:"retries,omitempty"`
	CallsMax *int64  `json:"calls_max,omitempty"`
	Poll     *Poll   `json:"poll,omitempty"`
	Cap      int64   `json:"cap,omitempty"` // bytes of a result that enter the transcript
	Check    bool    `json:"check,omitempty"`
	Child    bool    `json:"child,omitempty"`   // an agent as a tool
	Handoff  bool    `json:"handoff,omitempty"` // the child takes the run over: its answer is the run's
	Limits   *Limits `json:"limits,omitempty"`  // child: its own limits; the grant may only be smaller
}

// Poll declares a poller: exempt from stall detection, with a cap and an interval of its own.
type Poll struct {
	CallsMax *int64 `json:"calls_max,omitempty"`
	Interval Micros `json:"interval,omitempty"` // between the starts of two calls
}

// Contract is the evidence that must hold at completed. The driver checks Schema, Cites and Check.
type Contract struct {
	Facts  []string `json:"facts,omitempty"`
	Called []string `json:"called,omitempty"`
	Schema bool     `json:"schema,omitempty"`
	Cites  string   `json:"cites,omitempty"`
	Check  bool     `json:"check,omitempty"` // the definition has a check (a command, a Go function)
	Judge  *Judge   `json:"judge,omitempty"` // a model that looks at the answer when all else holds
}

// Needs reports whether there is anything to check.
func (c *Contract) Needs() bool {
	return c != nil && (len(c.Facts) > 0 || len(c.Called) > 0 || c.Schema || c.Cites != "" || c.Check || c.Judge != nil)
}

// Price is money for one token of each part.
type Price struct {
	Input      Pico `json:"input,omitempty"`
	CacheRead  Pico `json:"cache_read,omitempty"`
	CacheWrite Pico `json:"cache_write,omitempty"`
	Output     Pico `json:"output,omitempty"`
}

// Of is the cost of a usage.
func (p *Price) Of(u Usage) Pico {
	if p == nil {
		return 0
	}
	sum := mulSat(int64(p.Input), u.Input)
	sum = addSat(sum, mulSat(int64(p.CacheRead), u.CacheRead))
	sum = addSat(sum, mulSat(int64(p.CacheWrite), u.CacheWrite))
	return Pico(addSat(sum, mulSat(int64(p.Output), u.Output)))
}

// Worst is the most that a call can cost: all input at the dearest input price, the whole output cap.
func (p *Price) Worst(input, output int64) Pico {
	if p == nil {
		return 0
	}
	dearest := max(int64(p.Input), int64(p.CacheWrite), int64(p.CacheRead))
	return Pico(addSat(mulSat(dearest, input), mulSat(int64(p.Output), output)))
}

// Fallback names a model that takes over after failures of the given classes (none: transient and fatal).
type Fallback struct {
	Model   string  `json:"model"`
	Classes []Class `json:"classes,omitempty"`
	Price   *Price  `json:"price,omitempty"`
}

// CompactRule says when the transcript is compacted: once a request would take more than At tokens.
type CompactRule struct {
	At       int64      `json:"at"`
	Attempts int64      `json:"attempts,omitempty"` // before one model call; 0: 1
	Writer   *SideModel `json:"writer,omitempty"`   // writes the summary; nil: the oldest exchanges are left out
}

// SessionStart is what a run takes over from its session.
type SessionStart struct {
	ID       string     `json:"id"`
	Limits   Limits     `json:"limits,omitzero"` // of the session; rounds do not exist there
	Counts   Counts     `json:"counts,omitzero"` // used before this run
	Cost     Pico       `json:"cost,omitempty"`
	Active   Micros     `json:"active,omitempty"`
	Standing []Standing `json:"standing,omitempty"`
	Prefix   int64      `json:"prefix,omitempty"` // tokens of the transcript so far, by the last report and the bound
	Prev     *RunRef    `json:"prev,omitempty"`
}

// ParentStart is what a child knows of its parent.
type ParentStart struct {
	Run   string   `json:"run"`
	Root  string   `json:"root"`
	Call  string   `json:"call"`
	Path  []string `json:"path"` // root call, …, this call; each "agent/call"
	Grant Limits   `json:"grant"`
}

// RunRef names a prefix of a journal.
type RunRef struct {
	Run    string `json:"run"`
	Seq    int64  `json:"seq"`
	Digest string `json:"digest,omitempty"`
}

// tool finds the spec of a tool.
func (c *Config) tool(name string) *ToolSpec {
	for i := range c.Tools {
		if c.Tools[i].Name == name {
			return &c.Tools[i]
		}
	}
	return nil
}

// ToolSpec finds the spec of a tool; nil where the agent has none of that name.
func (c *Config) ToolSpec(name string) *ToolSpec { return c.tool(name) }

// EffectOf is the effect, with the default filled in.
func (t *ToolSpec) EffectOf() Effect {
	if t == nil || t.Effect == "" {
		return Once
	}
	return t.Effect
}

// LabelOf is the effect label, with the default filled in.
func (t *ToolSpec) LabelOf() string {
	if t.Label != "" {
		return t.Label
	}
	return t.Name
}
