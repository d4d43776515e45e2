package agentfile

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

type node = yamldoc.Node

var (
	agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	toolName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) // what all providers accept
)

// reader reads one agent.
type reader struct {
	p     *yamldoc.Problems
	o     Options
	a     *drive.Agent
	f     *File
	root  *node
	above []string // absolute paths of the files that this agent stands in
	names map[string]*node
	refs  []*node // names of tools that must exist
	open  bool    // tools come from servers too, so that not all names are known
	// childNodes are the agents that are tools; they are read last, because they may take over the model.
	childNodes []childNode
	sides      []sideNode // models that work beside the agent's own; they are made when the agent is complete
}

func read(p *yamldoc.Problems, n *node, dir string, o Options, above []string) (*drive.Agent, *File) {
	r := &reader{
		p: p, o: o, root: n, above: above, names: map[string]*node{},
		a: &drive.Agent{Name: o.Name}, f: &File{Dir: dir, Line: n.Line},
	}
	r.o.Script = nil // the root's alone; children have their own
	r.o.Name = ""
	if !p.Object(n, r.keys()) {
		return r.a, r.f
	}
	if r.a.Name == "" {
		if !o.NoModel && n.Get("name") == nil {
			p.Add(n, "name is missing", "write name: support")
		}
		r.a.Name = "agent"
	}
	if o.Script != nil {
		r.f.Script = o.Script
	}
	r.model(o.NoModel)
	r.makeSides()
	r.children()
	r.across()
	r.f.Digest = r.f.digest(n)
	return r.a, r.f
}

func (r *reader) keys() yamldoc.Keys {
	keys := yamldoc.Keys{
		"name": func(n *node) {
			if r.a.Name = r.p.String(n); n.Kind == yamldoc.String && !agentName.MatchString(r.a.Name) {
				r.p.Add(n, strconv.Quote(r.a.Name)+" is no name of an agent", "use letters, digits, _ . and -, at most 64")
			}
		},
		"version":      func(n *node) { r.a.Definition = r.p.Name(n) },
		"instructions": r.instructions,
		"model":        func(n *node) { r.f.Model = r.modelRef(n) },
		"base_url":     func(n *node) { r.f.BaseURL = r.baseURL(n) },
		"options":      func(n *node) { r.a.Options = r.anyMap(n) },
		"limits":       func(n *node) { r.a.Limits = r.limits(n, runLimits) },
		"session": func(n *node) {
			r.p.Object(n, yamldoc.Keys{"limits": func(n *node) { r.a.Session = r.limits(n, sessionLimits) }})
		},
		"tools":  func(n *node) { r.p.List(n, r.tool) },
		"policy": r.policy,
		"script": r.script,
	}
	for _, more := range []yamldoc.Keys{r.loopKeys(), r.answerKeys(), r.modelKeys()} {
		for k, f := range more {
			keys[k] = f
		}
	}
	return keys
}

// loopKeys say how the loop goes round.
func (r *reader) loopKeys() yamldoc.Keys {
	return yamldoc.Keys{
		"on_limit":    func(n *node) { r.a.OnLimit = r.p.OneOf(n, "what a limit can do", "close", "stop", "pause") },
		"hint_rounds": func(n *node) { r.a.HintRounds = r.count(n) },
		"nudges":      func(n *node) { c := r.count(n); r.a.Nudges = &c },
		"repairs":     func(n *node) { c := r.count(n); r.a.Repairs = &c },
		"stall": func(n *node) {
			r.p.Object(n, yamldoc.Keys{"repeats": func(n *node) { c := r.count(n); r.a.Stall = &c }})
			r.needs(n, "repeats")
		},
		"parallel":      func(n *node) { r.a.Parallel = r.p.OneOf(n, "what can run in parallel", "none", "read") },
		"result_cap":    func(n *node) { r.a.ResultCap = int(r.positive(n)) },
		"read_artifact": func(n *node) { on := r.p.Bool(n); r.a.ReadArtifacts = &on },
		"approval_ttl":  func(n *node) { r.a.ApprovalTTL = r.length(n) },
		"grace":         func(n *node) { r.a.Grace = r.length(n) },
		"closing_time":  func(n *node) { r.a.ClosingTime = r.length(n) },
	}
}

// answerKeys say what an answer is.
func (r *reader) answerKeys() yamldoc.Keys {
	return yamldoc.Keys{
		"finish": func(n *node) {
			if n.Kind != yamldoc.Map {
				r.a.Finish = r.p.Bool(n)
				return
			}
			r.a.Finish, r.a.FinishSchema = true, r.schema(n, anySchema)
		},
		"output":   func(n *node) { r.a.Output = r.schema(n, anySchema) },
		"contract": r.contract,
	}
}

// modelKeys say what the model costs and can take.
func (r *reader) modelKeys() yamldoc.Keys {
	return yamldoc.Keys{
		"price":          func(n *node) { r.a.Price = r.price(n) },
		"allow_unpriced": func(n *node) { r.a.AllowUnpriced = r.p.Bool(n) },
		"output_cap":     func(n *node) { r.a.OutputCap = r.positive(n) },
		"context_window": func(n *node) { r.a.ContextWindow = r.positive(n) },
		"model_retries":  func(n *node) { c := r.count(n); r.a.ModelRetries = &c },
		"fallbacks":      func(n *node) { r.p.List(n, r.fallback) },
		"compact":        r.compact,
		"timeouts":       r.timeouts,
	}
}

func (r *reader) instructions(n *node) { r.a.Instructions = r.text(n) }

// text reads a text, or the file that it is the path of.
func (r *reader) text(n *node) string {
	s := r.p.String(n)
	if n.Kind == yamldoc.String && isPath(s) {
		data := r.file(n, s)
		r.f.sources = append(r.f.sources, source{s, data})
		s = string(data)
	}
	return s
}

func (r *reader) script(n *node) { r.f.Script = r.readScript(n) }

func (r *reader) readScript(n *node) *scripted.Script {
	if n.Kind != yamldoc.String {
		return scripted.Read(r.p, n)
	}
	data := r.file(n, n.Text)
	if data == nil {
		return nil
	}
	s, err := scripted.ParseFile(n.Text, data)
	r.p.Join(n, err)
	return s
}

func (r *reader) anyMap(n *node) map[string]any {
	if n.Kind != yamldoc.Map {
		r.p.Add(n, "want a map, not "+n.Kind.String(), "")
		return nil
	}
	return n.Any().(map[string]any)
}

func (r *reader) contract(n *node) {
	c := &drive.Contract{}
	r.p.Object(n, yamldoc.Keys{
		"facts":  func(n *node) { c.Facts = r.nameList(n) },
		"called": func(n *node) { c.Called = r.toolNames(n) },
		"cites":  func(n *node) { c.Cites = r.p.Name(n); r.refs = append(r.refs, n) },
		"schema": func(n *node) { c.Schema = r.schema(n, anySchema) },
		"check":  func(n *node) { r.check(n, c) },
		"judge":  func(n *node) { c.Judge = r.judge(n) },
	})
	r.a.Contract = c
}

// nameList reads a list of names that are not empty.
func (r *reader) nameList(n *node) (out []string) {
	r.p.List(n, func(n *node) { out = append(out, r.p.Name(n)) })
	return out
}

// toolNames reads names of tools of this agent.
func (r *reader) toolNames(n *node) (out []string) {
	r.p.List(n, func(n *node) {
		out = append(out, r.p.Name(n))
		r.refs = append(r.refs, n)
	})
	return out
}

func (r *reader) price(n *node) *drive.Price {
	pr := &drive.Price{}
	r.p.Object(n, yamldoc.Keys{
		"input":       func(n *node) { pr.Input = r.dollars(n) },
		"cache_read":  func(n *node) { pr.CacheRead = r.dollars(n) },
		"cache_write": func(n *node) { pr.CacheWrite = r.dollars(n) },
		"output":      func(n *node) { pr.Output = r.dollars(n) },
	})
	r.needs(n, "input", "output")
	return pr
}

// dollars are bounded by what an integer of 10⁻¹² USD can hold.
func (r *reader) dollars(n *node) float64 {
	f := r.p.Float(n)
	if f > 9_000_000 {
		r.p.Add(n, n.Text+" is more than the 9000000 USD that can be counted", "")
		return 0
	}
	return f
}

func (r *reader) compact(n *node) {
	c := &drive.Compact{}
	s := sideNode{n: n, purpose: loop.PurposeCompaction, set: func(m model.Model) { c.Model = m }}
	r.p.Object(n, yamldoc.Keys{
		"at": func(n *node) {
			if c.At = r.p.Float(n); n.Kind == yamldoc.Number && (c.At <= 0 || c.At > 1) {
				r.p.Add(n, n.Text+" is no share of the context window", "use more than 0 and at most 1, such as 0.8")
			}
		},
		"keep":   func(n *node) { c.Keep = int(r.positive(n)) },
		"model":  func(n *node) { s.ref = r.modelRef(n) },
		"script": func(n *node) { s.script = r.readScript(n) },
		"price":  func(n *node) { c.Price = r.price(n) },
	})
	r.a.Compact = c
	r.sides = append(r.sides, s)
}

func (r *reader) timeouts(n *node) {
	t := &r.a.Timeouts
	clock := func(d *time.Duration) func(*node) {
		return func(n *node) {
			before := r.p.Len()
			if *d = r.p.Duration(n); *d == 0 && r.p.Len() == before {
				*d = -1 // none; the agent's zero means its default
			}
		}
	}
	r.p.Object(n, yamldoc.Keys{
		"connect": clock(&t.Connect), "first_byte": clock(&t.FirstByte),
		"between_deltas": clock(&t.BetweenDeltas), "call": clock(&t.Call),
	})
}

// Which limits exist where.
var (
	runLimits     = []string{"rounds", "model_calls", "tool_calls", "tokens", "cost_usd", "active_time", "deadline"}
	sessionLimits = []string{"model_calls", "tool_calls", "tokens", "cost_usd", "active_time"}
)

func (r *reader) limits(n *node, which []string) drive.Limits {
	l := drive.Limits{}
	keys := yamldoc.Keys{
		"rounds": func(n *node) {
			if n.Kind == yamldoc.String && n.Text == "unlimited" {
				l.Rounds = drive.Unlimited
				return
			}
			l.Rounds = r.limit(n)
		},
		"model_calls": func(n *node) { l.ModelCalls = r.limit(n) },
		"tool_calls":  func(n *node) { l.ToolCalls = r.limit(n) },
		"tokens": func(n *node) {
			r.zero(n, func() bool { l.Tokens = r.p.Int(n); return l.Tokens == 0 }, func() { l.Tokens = drive.Zero })
		},
		"cost_usd": func(n *node) {
			r.zero(n, func() bool { l.CostUSD = r.dollars(n); return l.CostUSD == 0 }, func() { l.CostUSD = drive.ZeroUSD })
		},
		"active_time": func(n *node) { l.ActiveTime = r.timeLimit(n) },
		"deadline":    func(n *node) { l.Deadline = r.timeLimit(n) },
	}
	for k := range keys {
		if !slices.Contains(which, k) {
			delete(keys, k)
		}
	}
	r.p.Object(n, keys)
	return l
}

// zero reads a limit and says that it is zero, where nothing was wrong with it.
func (r *reader) zero(_ *node, read func() bool, set func()) {
	before := r.p.Len()
	if read() && r.p.Len() == before {
		set()
	}
}

func (r *reader) limit(n *node) (v int) {
	r.zero(n, func() bool { v = r.count(n); return v == 0 }, func() { v = drive.Zero })
	return v
}

func (r *reader) timeLimit(n *node) (d time.Duration) {
	r.zero(n, func() bool { d = r.p.Duration(n); return d == 0 }, func() { d = drive.Zero })
	return d
}

// count is a whole number that fits an int32 and is not negative.
func (r *reader) count(n *node) int {
	i := r.p.Int(n)
	if i >= math.MaxInt32 {
		r.p.Add(n, n.Text+" is out of range", "leave the key out where there is no limit")
		return 0
	}
	return int(i)
}

// positive is a whole number from 1 on, for sizes where zero has no meaning.
func (r *reader) positive(n *node) int64 {
	before := r.p.Len()
	i := r.p.Int(n)
	if i == 0 && r.p.Len() == before {
		r.p.Add(n, "must be at least 1", "leave the key out for the default")
	}
	if i > math.MaxInt32 {
		r.p.Add(n, n.Text+" is out of range", "leave the key out for the default")
	}
	return i
}

// length is a length of time above zero.
func (r *reader) length(n *node) time.Duration {
	before := r.p.Len()
	d := r.p.Duration(n)
	if d == 0 && r.p.Len() == before {
		r.p.Add(n, "must be more than 0", "leave the key out for the default")
	}
	return d
}

// needs notes keys that are missing in a map.
func (r *reader) needs(n *node, keys ...string) {
	for _, k := range keys {
		if n.Kind == yamldoc.Map && n.Get(k) == nil {
			r.p.Add(n, k+" is missing", "")
		}
	}
}

// across checks what only the whole agent shows.
func (r *reader) across() {
	for _, n := range r.refs {
		if _, ok := r.names[n.Text]; !ok && !r.open && n.Text != "" {
			r.p.Add(n, "the agent has no tool "+strconv.Quote(n.Text), r.known())
		}
	}
	if n, ok := r.names["finish"]; ok && r.a.Finish {
		r.p.Add(n, "the name finish is taken by the finish tool", "give the tool another name, or write finish: false")
	}
	if r.a.Finish && r.a.Output != nil {
		r.p.Add(r.root.Get("output"), "cannot stand beside finish", "write the schema as finish: {…}")
	}
}

func (r *reader) known() string {
	names := make([]string, 0, len(r.names))
	for n := range r.names {
		names = append(names, n)
	}
	if len(names) == 0 {
		return "it has none at all"
	}
	slices.Sort(names)
	s := "it has " + names[0]
	for _, n := range names[1:] {
		s += ", " + n
	}
	return s
}
