package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Rules is a policy as data. The zero value is Tools(): each tool's own word. Rules must not change while runs use them.
//
// All rules are looked at, in no order, and the tightest word wins:
//
//   - The base is what the tool declares (none: allow). Where no rule matches and Default is set, it is the tighter of the two.
//   - A rule with Override that matches takes the place of the base; of several such rules the tightest does.
//   - Every other rule that matches can only tighten that.
//
// So a rule added somewhere never loosens what another one forbids, and loosening a tool is an explicit act.
type Rules struct {
	Rules   []Rule       `json:"rules,omitempty"`
	Default loop.Verdict `json:"default,omitempty"` // calls that no rule matches; "": what the tool declares
}

// Rule gives a verdict on the calls that fit all of its conditions. A list fits when one of its patterns does (loop.Match:
// `*` is any text); an absent condition always fits.
type Rule struct {
	Name         string        `json:"name,omitempty"` // on record with the decision; "": rule and its number, from 1
	Tools        []string      `json:"tools,omitempty"`
	Effects      []loop.Effect `json:"effects,omitempty"` // no patterns
	Labels       []string      `json:"labels,omitempty"`  // of the effect; a tool without one has its name
	Destinations []string      `json:"destinations,omitempty"`
	Agents       []string      `json:"agents,omitempty"` // the agent whose call it is
	// Args: argument to pattern. A key that begins with / is a JSON Pointer into the arguments, any other a top-level
	// argument. A text is compared as it is, any other value in its canonical JSON. An argument that is not there fits nothing.
	Args     map[string]string `json:"args,omitempty"`
	Verdict  loop.Verdict      `json:"verdict"`
	Reason   string            `json:"reason,omitempty"` // for the person who decides and, on deny, for the model
	Override bool              `json:"override,omitempty"`
}

// Tools is the policy that leaves the verdict to each tool's declaration.
func Tools() Rules { return Rules{} }

// Parse reads rules from JSON. Unknown keys are refused by name.
func Parse(b []byte) (Rules, error) {
	var r Rules
	if err := json.Unmarshal(b, &r); err != nil {
		return Rules{}, fmt.Errorf("policy: %w", err)
	}
	return r, nil
}

// UnmarshalJSON is strict and validates, wherever rules are embedded.
func (r *Rules) UnmarshalJSON(b []byte) error {
	type plain Rules // has no UnmarshalJSON
	var p plain
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := Rules(p).Validate(); err != nil {
		return err
	}
	*r = Rules(p)
	return nil
}

// Validate reports the first mistake, with the rule and the field.
func (r Rules) Validate() error {
	if r.Default != "" && rank(r.Default) < 0 {
		return fmt.Errorf("default: %q is no verdict; use allow, ask or deny", r.Default)
	}
	names := map[string]int{}
	for i, rule := range r.Rules {
		where := fmt.Sprintf("rules[%d]", i)
		if rule.Name != "" {
			if j, twice := names[rule.Name]; twice {
				return fmt.Errorf("%s: the name %q is that of rules[%d]", where, rule.Name, j)
			}
			names[rule.Name] = i
			where += " (" + rule.Name + ")"
		}
		if rank(rule.Verdict) < 0 {
			return fmt.Errorf("%s: verdict: %q is none; use allow, ask or deny", where, rule.Verdict)
		}
		for _, e := range rule.Effects {
			if e != loop.Read && e != loop.Idempotent && e != loop.Once {
				return fmt.Errorf("%s: effects: %q is none; use read, idempotent or once", where, e)
			}
		}
		for key := range rule.Args {
			if key == "" {
				return fmt.Errorf("%s: args: an argument has no name", where)
			}
		}
	}
	return nil
}

// Decide gives the verdict with the rule that is responsible: of several with the same word the first, a rule before the
// tool's own word, which is the rule "tool", and "default" for the default. An error means that the call must not run.
func (r Rules) Decide(_ context.Context, c Call) (Decision, error) {
	base := Decision{Verdict: c.Approval, Rule: "tool"}
	if base.Verdict == "" {
		base.Verdict = loop.Allow
	}
	if rank(base.Verdict) < 0 {
		return Decision{}, fmt.Errorf("policy: tool %s declares %q, which is no verdict", c.Tool, c.Approval)
	}
	if base.Verdict != loop.Allow {
		base.Reason = "the tool asks for it"
		if base.Verdict == loop.Deny {
			base.Reason = "the tool is not to be used here"
		}
	}
	var args any
	var override, tighten *Decision
	matched := false
	for i, rule := range r.Rules {
		if rank(rule.Verdict) < 0 {
			return Decision{}, fmt.Errorf("policy: rule %d has the verdict %q", i+1, rule.Verdict)
		}
		if len(rule.Args) > 0 && args == nil {
			var err error
			if args, err = decode(c.Args); err != nil {
				return Decision{}, fmt.Errorf("policy: the arguments of %s cannot be read: %w", c.Tool, err)
			}
		}
		if !rule.matches(c, args) {
			continue
		}
		matched = true
		name := rule.Name
		if name == "" {
			name = "rule " + strconv.Itoa(i+1)
		}
		into := &tighten
		if rule.Override {
			into = &override
		}
		if *into == nil || rank((*into).Verdict) < rank(rule.Verdict) {
			*into = &Decision{Verdict: rule.Verdict, Rule: name, Reason: rule.Reason}
		}
	}
	switch {
	case override != nil:
		base = *override
	case !matched && r.Default != "" && rank(r.Default) > rank(base.Verdict):
		base = Decision{Verdict: r.Default, Rule: "default", Reason: "no rule speaks of this call"}
	}
	if tighten != nil && rank(tighten.Verdict) >= rank(base.Verdict) && (override == nil || rank(tighten.Verdict) > rank(base.Verdict)) {
		base = *tighten
	}
	return base, nil
}

// matches reports whether all conditions fit; args are the decoded arguments where the rule speaks of them.
func (r *Rule) matches(c Call, args any) bool {
	label, effect := c.Label, c.Effect
	if label == "" {
		label = c.Tool
	}
	if effect == "" {
		effect = loop.Once
	}
	fits := func(patterns []string, s string) bool { return len(patterns) == 0 || loop.MatchAny(patterns, s) }
	if !fits(r.Tools, c.Tool) || !fits(r.Labels, label) || !fits(r.Destinations, c.Destination) || !fits(r.Agents, c.Agent) {
		return false
	}
	hit := len(r.Effects) == 0
	for _, e := range r.Effects {
		hit = hit || e == effect
	}
	if !hit {
		return false
	}
	for key, pattern := range r.Args {
		v, ok := lookup(args, key)
		if !ok || !loop.Match(pattern, v) {
			return false
		}
	}
	return true
}

// rank orders verdicts from the loosest; -1 is none.
func rank(v loop.Verdict) int {
	switch v {
	case loop.Allow:
		return 0
	case loop.Ask:
		return 1
	case loop.Deny:
		return 2
	}
	return -1
}

func decode(args json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		return map[string]any{}, nil
	}
	canonical, err := loop.Canonical(args)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var v any
	err = dec.Decode(&v)
	return v, err
}

// lookup finds an argument and spells it for a pattern.
func lookup(args any, key string) (string, bool) {
	path := []string{key}
	if strings.HasPrefix(key, "/") {
		path = strings.Split(key[1:], "/")
		for i, p := range path {
			path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
		}
	}
	at := args
	for _, p := range path {
		switch v := at.(type) {
		case map[string]any:
			w, ok := v[p]
			if !ok {
				return "", false
			}
			at = w
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != p {
				return "", false
			}
			at = v[i]
		default:
			return "", false
		}
	}
	if s, ok := at.(string); ok {
		return s, true
	}
	b, err := json.Marshal(at)
	if err == nil {
		b, err = loop.Canonical(b)
	}
	return string(b), err == nil
}
