package agentfile

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
	"github.com/ronda-go/ronda/policy"
	"github.com/ronda-go/ronda/tool"
)

// specTool is a tool that is only its definition.
type specTool struct{ s ToolSpec }

func (t specTool) Def() tool.Def { return t.s.Def }
func (t specTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, nil
}

type refModel struct {
	model.Model
	Ref, BaseURL string
	Options      map[string]any
}

func makesAll() Options {
	one := func(s ToolSpec) (tool.Tool, error) { return specTool{s}, nil }
	many := func(s ServerSpec) ([]tool.Tool, error) {
		name := "from_server"
		if s.Document != "" {
			name = "from_document"
		}
		return []tool.Tool{specTool{ToolSpec{Def: tool.Def{Name: name}}}}, nil
	}
	return Options{
		File: "agent.yaml",
		Tool: one, Command: one, HTTP: one, MCP: many, OpenAPI: many,
		Model: func(ref, baseURL string, options map[string]any) (model.Model, error) {
			return refModel{Ref: ref, BaseURL: baseURL, Options: options}, nil
		},
	}
}

func ptr[T any](v T) *T { return &v }

const full = `
name: support
version: v2
model: openaichat/qwen3
base_url: http://localhost:11434/v1
options: {thinking_budget: 1024, deep: {a: [1.50]}}
instructions: |
  Draft replies.
limits: {rounds: 8, model_calls: 9, tool_calls: 0, tokens: 100000, cost_usd: 0.50, active_time: 2m, deadline: 1h30m}
session: {limits: {tokens: 5, cost_usd: 0}}
on_limit: pause
hint_rounds: 2
nudges: 0
repairs: 2
stall: {repeats: 4}
parallel: read
result_cap: 2048
approval_ttl: 24h
grace: 3s
closing_time: 5s
finish: {type: object, properties: {reply: {type: string}}}
contract: {facts: [draft], called: [read_case], cites: read_case, schema: {type: object}, check: {command: [./check, 1]}}
price: {input: 3, cache_read: 0.3, cache_write: 3.75, output: 15}
allow_unpriced: true
output_cap: 64
context_window: 200000
model_retries: 0
fallbacks: [anthropic/x, {model: openai/y, classes: [transient]}]
compact: {at: 0.5, keep: 2, model: gemini/flash}
timeouts: {connect: 1s, call: 0}
policy:
  default: ask
  rules:
    - {tools: "send_*", effects: [once], args: {amount: 5}, verdict: deny, reason: too much}
tools:
  - name: read_case
    description: Read a case.
    command: [./read_case, --fast]
    env: {LANG: C}
    effect: read
    input: {type: object, properties: {id: {type: integer}}}
    timeout: 5s
    retries: 2
    calls_max: 0
    poll: {calls_max: 20, interval: 1s}
    result_cap: 4096
  - name: send_reply
    http: {post: "http://localhost:9000/replies", headers: {X-Key: "${KEY}"}}
    effect: once
    label: message
    approval: ask
    on_reject: stop
    requires: [read_case, {tool: read_case, same: [id]}]
    grounded: [to]
  - mcp: {command: [npx, -y, server, ./data]}
    tools: {write_file: {approval: ask}}
    only: [write_file]
  - openapi: ./petstore.yaml
  - name: expert
    agent: {instructions: Be brief., limits: {rounds: 0}}
    limits: {tokens: 7}
    handoff: true
`

func TestParseFull(t *testing.T) {
	a, f, err := Parse([]byte(full), "/d", makesAll())
	if err != nil {
		t.Fatal(err)
	}
	opts := map[string]any{"thinking_budget": json.Number("1024"), "deep": map[string]any{"a": []any{json.Number("1.50")}}}
	root := refModel{Ref: "openaichat/qwen3", BaseURL: "http://localhost:11434/v1", Options: opts}
	want := &drive.Agent{
		Name: "support", Definition: "v2", Model: root, Options: opts, Instructions: "Draft replies.\n",
		Limits: drive.Limits{
			Rounds: 8, ModelCalls: 9, ToolCalls: drive.Zero, Tokens: 100000, CostUSD: 0.5,
			ActiveTime: 2 * time.Minute, Deadline: 90 * time.Minute,
		},
		Session: drive.Limits{Tokens: 5, CostUSD: drive.ZeroUSD},
		OnLimit: "pause", HintRounds: 2, Nudges: ptr(0), Repairs: ptr(2), Stall: ptr(4), Parallel: "read", ResultCap: 2048,
		ApprovalTTL: 24 * time.Hour, Grace: 3 * time.Second, ClosingTime: 5 * time.Second,
		Finish: true, FinishSchema: []byte(`{"type":"object","properties":{"reply":{"type":"string"}}}`),
		Contract: &drive.Contract{
			Facts: []string{"draft"}, Called: []string{"read_case"}, Cites: "read_case", Schema: []byte(`{"type":"object"}`),
			CheckName: "./check 1",
		},
		Price:         &drive.Price{Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15},
		AllowUnpriced: true, OutputCap: 64, ContextWindow: 200000, ModelRetries: ptr(0),
		Fallbacks: []drive.Fallback{
			{Model: refModel{Ref: "anthropic/x", Options: opts}},
			{Model: refModel{Ref: "openai/y", Options: opts}, Classes: []loop.Class{"transient"}},
		},
		Compact:  &drive.Compact{At: 0.5, Keep: 2, Model: refModel{Ref: "gemini/flash", Options: opts}},
		Timeouts: model.Timeouts{Connect: time.Second, Call: -1},
		Policy: policy.Rules{Default: "ask", Rules: []policy.Rule{{
			Tools: []string{"send_*"}, Effects: []loop.Effect{"once"}, Args: map[string]string{"amount": "5"},
			Verdict: "deny", Reason: "too much",
		}}},
	}
	specs := []ToolSpec{
		{
			Dir: "/d", Line: 36,
			Def: tool.Def{
				Name: "read_case", Description: "Read a case.", Effect: "read", Timeout: 5 * time.Second, Retries: 2,
				Input:    []byte(`{"type":"object","properties":{"id":{"type":"integer"}}}`),
				CallsMax: ptr(0), Poll: &tool.Poll{CallsMax: ptr(20), Interval: time.Second}, ResultCap: 4096,
			},
			Command: &CommandSpec{Args: []string{"./read_case", "--fast"}, Env: map[string]string{"LANG": "C"}},
		},
		{
			Dir: "/d", Line: 47,
			Def: tool.Def{
				Name: "send_reply", Effect: "once", Label: "message", Approval: "ask", OnReject: "stop",
				Requires: []tool.Requirement{{Tool: "read_case"}, {Tool: "read_case", Same: []string{"id"}}}, Grounded: []string{"to"},
			},
			HTTP: &HTTPSpec{
				Method: "POST", URL: "http://localhost:9000/replies", Headers: map[string]string{"X-Key": "${KEY}"},
			},
		},
	}
	for _, s := range specs {
		want.Tools = append(want.Tools, specTool{s})
	}
	srv := specTool{ToolSpec{Def: tool.Def{Name: "from_server"}}}
	want.Tools = append(want.Tools, srv, specTool{ToolSpec{Def: tool.Def{Name: "from_document"}}})
	want.Children = []drive.Child{{
		Name: "expert", Handoff: true, Limits: drive.Limits{Tokens: 7},
		Agent: &drive.Agent{
			Name: "expert", Model: root, Options: opts, Instructions: "Be brief.", Limits: drive.Limits{Rounds: drive.Zero},
		},
	}}
	ignore := cmp.Options{cmpopts.IgnoreFields(drive.Contract{}, "Check"), cmp.AllowUnexported(specTool{})}
	if diff := cmp.Diff(want, a, ignore); diff != "" {
		t.Fatal(diff)
	}
	if a.Contract.Check == nil {
		t.Fatal("no check")
	}
	wantFile := &File{
		Dir: "/d", Raw: []byte(full), Digest: f.Digest, Model: "openaichat/qwen3", BaseURL: "http://localhost:11434/v1",
		Tools: specs, Line: 2,
		Servers: []ServerSpec{
			{
				Command: []string{"npx", "-y", "server", "./data"}, Only: []string{"write_file"}, Dir: "/d", Line: 55,
				Tools: []Override{{Name: "write_file", Def: tool.Def{Name: "write_file", Approval: "ask"}, Set: []string{"approval"}}},
			},
			{Document: "./petstore.yaml", Dir: "/d", Line: 58},
		},
		Children: []*File{{
			Dir: "/d", Digest: f.Children[0].Digest, Line: 60, Model: "openaichat/qwen3", BaseURL: "http://localhost:11434/v1",
		}},
	}
	if diff := cmp.Diff(wantFile, f, cmpopts.IgnoreUnexported(File{})); diff != "" {
		t.Fatal(diff)
	}
}

func TestErrorsNameThePlaceAndTheWayOut(t *testing.T) {
	in := `name: support
model: gpt
limits: {rounds: -1, runs: 5, active_time: 90}
session: {limits: {rounds: 3}}
tools:
  - name: look
    efect: read
    effect: reed
    command: ./look
  - {name: look, command: ["./look"]}
  - {name: "a b", http: {post: "localhost:9000"}}
  - {name: pay, command: [./pay], requires: [fetch], input: {type: array}}
  - {name: both, command: [./a], http: {get: "http://x/"}}
  - {name: no_way}
  - mcp: {url: "http://x/"}
contract: {called: [look, nothing], schema: {type: objet}}
instructions: ./missing.md
output_cap: 0
`
	_, _, err := Parse([]byte(in), "/nowhere", Options{File: "agent.yaml", Command: makesAll().Command})
	if err == nil {
		t.Fatal("accepted")
	}
	want := strings.Split(strings.TrimSpace(`
agent.yaml:2:8: model: "gpt" is no model; write provider/model, such as anthropic/claude-sonnet-4-5
agent.yaml:3:18: limits.rounds: -1 is negative; 0 means none at all; leave the key out where there is no limit
agent.yaml:3:22: limits.runs: unknown key "runs"; did you mean rounds?
agent.yaml:3:44: limits.active_time: 90 has no unit; write 90s or 90m
agent.yaml:4:20: session.limits.rounds: unknown key "rounds"; known keys: active_time, cost_usd, model_calls, tokens, tool_calls
agent.yaml:7:5: tools[0].efect: unknown key "efect"; did you mean effect?
agent.yaml:8:13: tools[0].effect: "reed" is not an effect; use read, idempotent or once
agent.yaml:9:14: tools[0].command: want a list: program, arguments; write ["./look", "--fast"]
agent.yaml:10:12: tools[1].name: "look" is there twice; the first is on line 6
agent.yaml:11:12: tools[2].name: "a b" is no name of a tool; begin with a letter or _, then letters, digits, _ and -, at most 64
agent.yaml:11:32: tools[2].http.post: "localhost:9000" is no address; write it with its scheme, such as http://localhost:9000/replies
agent.yaml:12:68: tools[3].input.type: arguments are an object; write type: object
agent.yaml:13:40: tools[4].http: a tool cannot be both command and http; use two tools
agent.yaml:14:5: tools[5]: no_way is a tool without a way to run; write command: ["./no_way"], http: {post: …} or agent: {…}
agent.yaml:15:10: tools[6].mcp: this program starts no MCP servers; set Options.MCP to the method MCP of an agentfile.Servers, which closes them
agent.yaml:17:15: instructions: cannot read /nowhere/missing.md: no such file or directory; relative paths begin at the folder of the agent file
agent.yaml:18:13: output_cap: must be at least 1; leave the key out for the default`), "\n")
	var got []string
	for l := range strings.SplitSeq(err.Error(), "\n") {
		if strings.Contains(l, "is no JSON Schema") {
			continue // the words are the library's
		}
		got = append(got, l)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if !strings.Contains(err.Error(), "agent.yaml:16:45: contract.schema: is no JSON Schema") {
		t.Fatal(err)
	}
}

// Without hooks the tools are real ones.
func TestToolsAreMade(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "echo"), []byte("#!/bin/sh\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	in := "name: a\nscript: [{text: b}]\ntools:\n" +
		"  - {name: echo, command: [./echo], effect: read, env: {A: 1}}\n" +
		"  - {name: send, http: {post: \"http://localhost:1/x\"}}\n"
	a, _, err := Parse([]byte(in), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Tools[0].Run(t.Context(), tool.Call{Name: "echo", Key: "k", Args: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{res.Text, a.Tools[0].Def().Destination, a.Tools[1].Def().Destination}
	if diff := cmp.Diff([]string{`{"a":1}`, "./echo", "POST http://localhost:1/x"}, got); diff != "" {
		t.Fatal(diff)
	}
	_, _, err = Parse([]byte("name: a\nscript: [{text: b}]\ntools: [{name: t, command: [./none]}]"), dir, Options{File: "f"})
	if err == nil || !strings.HasPrefix(err.Error(), `f:3:9: tools[0]: tool "t": command: `) {
		t.Fatalf("got %v", err)
	}
}

// A check sees the answer, and says what is missing.
func TestRunCheck(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nread l\ncase \"$l\" in\n*good*) exit 0;;\n*bad*) echo the receipt; echo the date; exit 1;;\nesac\necho broken >&2; exit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "check"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	check, err := RunCheck(CheckSpec{Args: []string{"./check"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		Missing   []string
		Undecided bool
		Err       string
	}
	var got []end
	for _, answer := range []string{"good", "bad", "else"} {
		missing, undecided, err := check(t.Context(), drive.Evidence{Run: "r", Answer: answer})
		e := end{Missing: missing, Undecided: undecided}
		if err != nil {
			e.Err = err.Error()
		}
		got = append(got, e)
	}
	want := []end{
		{}, {Missing: []string{"the receipt", "the date"}},
		{Undecided: true, Err: "check of the contract: ./check: exit status 3: broken"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestUnknownTool(t *testing.T) {
	_, _, err := Parse([]byte("name: a\nmodel: a/b\ntools: [{name: look}]\ncontract: {called: [luck]}\n"), "", makesAll())
	want := `agent.yaml:4:21: contract.called[0]: the agent has no tool "luck"; it has look`
	if err == nil || err.Error() != want {
		t.Fatalf("got %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("desk/agent.yaml", "instructions: ./i.md\nscript: ./s.yaml\ntools: [{agent: ../expert.yaml}]\n")
	write("desk/i.md", "Be kind.")
	write("desk/s.yaml", "- text: Hello.\n")
	write("expert.yaml", "script: [{text: I know.}]\n")
	load := func() (*drive.Agent, *File) {
		t.Helper()
		a, f, err := Load(filepath.Join(dir, "desk"))
		if err != nil {
			t.Fatal(err)
		}
		return a, f
	}
	a, f := load()
	got := []string{a.Name, a.Instructions, a.Model.Info().Ref(), a.Children[0].Name, a.Children[0].Agent.Model.Info().Ref(), f.Path}
	want := []string{"desk", "Be kind.", "scripted/desk", "expert", "scripted/expert", filepath.Join(dir, "desk", "agent.yaml")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}

	digest := f.Digest
	write("desk/s.yaml", "- text: Other.\n")
	if _, f := load(); f.Digest != digest {
		t.Error("the script is not the agent")
	}
	write("desk/i.md", "Be strict.")
	if _, f := load(); f.Digest == digest {
		t.Error("the digest does not see the instructions")
	}

	write("desk/s.yaml", "- txt: Other.\n")
	_, _, err := Load(filepath.Join(dir, "desk"))
	if err == nil || !strings.Contains(err.Error(), `./s.yaml:1:3: [0].txt: unknown key "txt"`) {
		t.Errorf("got %v", err)
	}
	write("loop.yaml", "model: a/b\ntools: [{name: me, agent: ./loop.yaml}]\n")
	if _, _, err := Load(filepath.Join(dir, "loop.yaml")); err == nil || !strings.Contains(err.Error(), "the agent calls itself") {
		t.Errorf("got %v", err)
	}
	if _, _, err := Load(filepath.Join(dir, "none.yaml")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

func TestWhichModel(t *testing.T) {
	script := func(text string) *scripted.Script { return &scripted.Script{Items: []scripted.Item{{Text: text}}} }
	const both = "name: a\nmodel: x/y\nscript: [{text: own}]\n"
	for name, c := range map[string]struct {
		in   string
		o    func(*Options)
		want string // the model's ref, "nil", or the error
	}{
		"the reference":             {both, func(*Options) {}, "x/y"},
		"the script when asked":     {both, func(o *Options) { o.Scripted = true }, "script: own"},
		"another script":            {both, func(o *Options) { o.Scripted, o.Script = true, script("other") }, "script: other"},
		"a script alone":            {"name: a\nscript: [{text: own}]", func(*Options) {}, "script: own"},
		"nobody makes models":       {both, func(o *Options) { o.Model = nil }, "nil"},
		"none":                      {"name: a", func(*Options) {}, "agent.yaml:1:1: model is missing; write model: anthropic/claude-sonnet-4-5, or a script:"},
		"none in a scenario":        {"instructions: a", func(o *Options) { o.NoModel = true }, "nil"},
		"scripted without":          {"name: a\nmodel: x/y", func(o *Options) { o.Scripted = true }, "agent.yaml:1:1: script is missing, and the answers are to be scripted; write script: ./script.yaml or name one on the command line"},
		"scripted, child without":   {both + "tools: [{agent: {name: c, model: x/y}}]", func(o *Options) { o.Scripted = true }, "agent.yaml:4:17: tools[0].agent: has no script, and its parent's answers are scripted; write a script: for this agent too"},
		"model scripted, no script": {"name: a\nmodel: scripted", func(*Options) {}, "agent.yaml:1:1: script is missing, and the answers are to be scripted; write script: ./script.yaml or name one on the command line"},
	} {
		t.Run(name, func(t *testing.T) {
			o := makesAll()
			c.o(&o)
			a, _, err := Parse([]byte(c.in), "", o)
			got := "nil"
			switch {
			case err != nil:
				got = err.Error()
			case a.Model != nil:
				if m, ok := a.Model.(*scripted.Model); ok {
					got = "script: " + m.Script().Items[0].Text
				} else {
					got = a.Model.(refModel).Ref
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// An agent that is a tool without a name of its own has the agent's, also for those who require it.
func TestChildIsATool(t *testing.T) {
	in := "name: a\nmodel: x/y\ntools: [{agent: {name: b}}, {name: t, requires: [b]}]\n"
	a, _, err := Parse([]byte(in), "", makesAll())
	if err != nil || a.Children[0].Name != "b" {
		t.Fatal(a, err)
	}
}

// Each agent of the shared scenarios is an agent.
func TestSharedScenarios(t *testing.T) {
	dir := os.Getenv("RONDA_SCENARIOS")
	if dir == "" {
		dir = "../../shared/scenarios"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if len(files) == 0 {
		t.Skip("no scenarios found; set RONDA_SCENARIOS to their folder")
	}
	o := makesAll()
	o.NoModel = true
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := yamldoc.Parse(path, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			p := &yamldoc.Problems{File: path}
			Read(p, d.Get("agent"), dir, o)
			if err := p.Err(); err != nil {
				t.Error(err)
			}
		}
	}
}
