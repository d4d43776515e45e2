package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/anthropic"
	"github.com/ronda-go/ronda/model/gemini"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/model/scripted"
)

// origin says how an agent was asked for, so that another process can make the same one again. It is kept in the store beside the run.
type origin struct {
	Agent    string `json:"agent"` // name, or absolute path of a file
	Model    string `json:"model,omitempty"`
	BaseURL  string `json:"base_url,omitempty"`
	Scripted bool   `json:"scripted,omitempty"`
	Script   string `json:"script,omitempty"` // absolute path of a script file given by hand
	Input    string `json:"input,omitempty"`  // what a built-in example picks its script by

	Pace time.Duration `json:"pace,omitempty"` // what each delta of a scripted response takes
}

const originSpace = "origin"

func (c *command) keepOrigin(ctx context.Context, store journal.Store, run string, o origin) error {
	doc, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return store.PutDoc(ctx, originSpace, run, doc)
}

// agentFor makes the agent of a run again from its origin, or from that of an earlier run of its session.
func (c *command) agentFor(ctx context.Context, run journal.Run) (*drive.Agent, error) {
	o, ok, err := c.originOf(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return c.agentByName(run.Agent)
	}
	return c.make(ctx, o)
}

func (c *command) originOf(ctx context.Context, run string) (o origin, ok bool, err error) {
	doc, err := c.host.Store().Doc(ctx, originSpace, run)
	if errors.Is(err, journal.ErrNotFound) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	return o, true, json.Unmarshal(doc, &o)
}

// agentByName finds one of the program's own agents.
func (c *command) agentByName(name string) (*drive.Agent, error) {
	for _, a := range c.Agents {
		if a.Name == name {
			return (*drive.Agent)(a), nil
		}
	}
	return c.make(context.Background(), origin{Agent: name})
}

// make builds the agent that an origin names: a file, a folder with agent.yaml, one of the program's agents, a built-in example.
func (c *command) make(ctx context.Context, o origin) (*drive.Agent, error) {
	var script *scripted.Script
	if o.Script != "" {
		data, err := os.ReadFile(o.Script)
		if err != nil {
			return nil, usagef("--scripted %s: %w. Name a YAML file with responses", o.Script, err)
		}
		if script, err = scripted.ParseFile(o.Script, data); err != nil {
			return nil, usagef("%w", err)
		}
		o.Scripted = true
	}
	for _, b := range c.Builtins {
		if b.Name == o.Agent {
			return c.builtin(ctx, b, o, script)
		}
	}
	for _, a := range c.Agents {
		if a.Name == o.Agent {
			return c.own((*drive.Agent)(a), o, script)
		}
	}
	if _, err := os.Stat(o.Agent); err != nil {
		return nil, usagef("agent %s: there is no such file, folder or example. Known here: %s", o.Agent, strings.Join(c.known(), ", "))
	}
	opts := agentfile.Options{Scripted: o.Scripted, Script: script, Model: c.model, NoModel: o.Model != "", MCP: c.servers.MCP, Note: c.noted, ScriptModel: func(s *scripted.Script, agent string) (model.Model, error) {
		return scripted.New(s, scripted.Options{Name: agent}), nil
	}}
	a, _, err := agentfile.Load(o.Agent, opts)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if o.Model != "" && !o.Scripted {
		if a.Model, err = c.model(o.Model, o.BaseURL, a.Options); err != nil {
			return nil, err
		}
	}
	if a.Model == nil {
		return nil, usagef("agent %s: it names no model. Add model: provider/model to the file, or use --model or --scripted", o.Agent)
	}
	return a, nil
}

func (c *command) own(a *drive.Agent, o origin, script *scripted.Script) (*drive.Agent, error) {
	switch {
	case script != nil:
		cp := *a
		cp.Model = scripted.New(script, scripted.Options{Name: a.Name})
		return &cp, nil
	case o.Scripted:
		return nil, usagef("agent %s: it has no script of its own. Give one: --scripted FILE", a.Name)
	case o.Model != "":
		m, err := c.model(o.Model, o.BaseURL, a.Options)
		if err != nil {
			return nil, err
		}
		cp := *a
		cp.Model = m
		return &cp, nil
	}
	return a, nil
}

// closersMu guards command.closers: a server makes agents in several requests at once.
var closersMu sync.Mutex

func (c *command) builtin(ctx context.Context, b Builtin, o origin, script *scripted.Script) (*drive.Agent, error) {
	var m model.Model
	switch {
	case script != nil:
		m = scripted.New(script, scripted.Options{Name: b.Name})
	case o.Scripted:
		s, name, err := b.Script(o.Input)
		if err != nil {
			return nil, usagef("%w", err)
		}
		m = scripted.New(s, scripted.Options{Name: name, Pace: o.Pace, Sleep: sleep})
	default:
		ref := o.Model
		if ref == "" {
			ref = b.Model
		}
		var err error
		if m, err = c.model(ref, o.BaseURL, nil); err != nil {
			return nil, err
		}
	}
	a, closer, err := b.Make(ctx, m)
	if err != nil {
		return nil, err
	}
	if closer != nil {
		closersMu.Lock()
		c.closers = append(c.closers, closer)
		closersMu.Unlock()
	}
	return a, nil
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *command) known() []string {
	var names []string
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	for _, b := range c.Builtins {
		names = append(names, b.Name)
	}
	if len(names) == 0 {
		return []string{"nothing but files"}
	}
	return names
}

// model makes a model from its reference. A missing key is said here, before anything is stored.
func (c *command) model(ref, baseURL string, options map[string]any) (model.Model, error) {
	wire, name, err := model.SplitRef(ref)
	if err != nil {
		return nil, usagef("%w", err)
	}
	need := func(vars ...string) error {
		if baseURL != "" && wire == "openaichat" {
			return nil
		}
		for _, v := range vars {
			if os.Getenv(v) != "" {
				return nil
			}
		}
		return &exitError{ExitUsage, fmt.Errorf("model %s: no key: %s is not set. Set it, or use --scripted to run with scripted responses", ref, strings.Join(vars, " or "))}
	}
	switch wire {
	case "anthropic":
		if err := need("ANTHROPIC_API_KEY"); err != nil {
			return nil, err
		}
		return anthropic.Model(name, withBase(baseURL, anthropic.BaseURL)...), nil
	case "openai":
		if err := need("OPENAI_API_KEY"); err != nil {
			return nil, err
		}
		return openai.Model(name, withBase(baseURL, openai.BaseURL)...), nil
	case "openaichat":
		if err := need("OPENAI_API_KEY"); err != nil {
			return nil, err
		}
		return openaichat.Model(name, withBase(baseURL, openaichat.BaseURL)...), nil
	case "gemini":
		if err := need("GEMINI_API_KEY", "GOOGLE_API_KEY"); err != nil {
			return nil, err
		}
		return gemini.Model(name, withBase(baseURL, gemini.BaseURL)...), nil
	case "scripted":
		return nil, usagef("model %s: a scripted model needs its script: use --scripted [FILE]", ref)
	}
	return nil, usagef("model %s: the provider %q is unknown. Use anthropic, openai, openaichat or gemini", ref, wire)
}

// withBase is the option for a base URL, where there is one.
func withBase[O any](url string, option func(string) O) []O {
	if url == "" {
		return nil
	}
	return []O{option(url)}
}

// absolute makes the path of an agent file independent of the folder that a later command is run in.
func (c *command) absolute(name string) string {
	for _, n := range c.known() {
		if n == name {
			return name
		}
	}
	if _, err := os.Stat(name); err != nil {
		return name
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func (c *command) logger() *slog.Logger {
	if os.Getenv("RONDA_LOG") == "" {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (c *command) agentsCommand() *cobra.Command {
	return &cobra.Command{Use: "agents", Short: "List the agents that this program knows", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, args []string) error {
		for _, a := range c.Agents {
			fmt.Fprintf(c.Out, "%-12s %s\n", a.Name, a.Model.Info().Ref())
		}
		for _, b := range c.Builtins {
			fmt.Fprintf(c.Out, "%-12s %s (example; %s)\n", b.Name, b.About, b.Model)
		}
		return nil
	}}
}
