package fake

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

// Sources of the rules in this file, where none is named at the rule: the pages "Messages" (API reference), "Tool use: handle
// tool calls", "Building with extended thinking" and "Prompt caching" of Anthropic's documentation. A message of the form
// "path: text" is how the API reports the violation of a field.

var (
	anthropicTop = names(`model max_tokens messages tools system stream tool_choice thinking temperature output_config stop_sequences
		metadata cache_control mcp_servers context_management container top_k top_p service_tier inference_geo speed`)
	anthropicTool  = names("name description input_schema type cache_control strict eager_input_streaming defer_loading allowed_callers input_examples")
	anthropicName  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicID    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicBlock = map[string]known{
		"text":              names("type text cache_control citations"),
		"image":             names("type source cache_control"),
		"document":          names("type source cache_control citations context title"),
		"search_result":     names("type source title content citations cache_control"),
		"thinking":          names("type thinking signature"),
		"redacted_thinking": names("type data"),
		"tool_use":          names("type id name input cache_control caller"),
		"tool_result":       names("type tool_use_id content is_error cache_control"),
	}
	// anthropicServer are blocks of server tools. ronda sends back only what it received, so their members are not looked at.
	anthropicServer = names(`server_tool_use web_search_tool_result web_fetch_tool_result code_execution_tool_result
		bash_code_execution_tool_result text_editor_code_execution_tool_result tool_search_tool_result mcp_tool_use mcp_tool_result
		container_upload compaction fallback advisor_tool_result tool_reference`)
)

type anthropicCheck struct {
	body     gjson.Result
	seen     *Seen
	led      *ledger
	thinking string // thinking.type
	marks    int    // cache_control blocks
	blocks   bool   // tool_use or tool_result was seen
	ids      map[string]bool
	open     []string // ids of the tool_use blocks of the message before

	assistantTurn bool
}

func checkAnthropic(body gjson.Result, seen *Seen, led *ledger) *Refusal {
	c := &anthropicCheck{body: body, seen: seen, led: led, ids: map[string]bool{}}
	for _, f := range []func() *Refusal{c.top, c.system, c.tools, c.choice, c.thought, c.messages, c.after} {
		if ref := f(); ref != nil {
			return ref
		}
	}
	return nil
}

func (c *anthropicCheck) top() *Refusal {
	if k := anthropicTop.unknown(c.body); k != "" {
		return invalid("unknown_field", k, "Extra inputs are not permitted")
	}
	for _, k := range []string{"model", "max_tokens", "messages"} {
		if isNull(c.body.Get(k)) {
			return invalid("required", k, "Field required")
		}
	}
	c.seen.Model = c.body.Get("model").Str
	if !isString(c.body.Get("model")) || c.seen.Model == "" {
		return invalid("required", "model", "Input should be a valid string")
	}
	n := c.body.Get("max_tokens")
	if n.Type != gjson.Number || n.Num != float64(int64(n.Num)) {
		return invalid("max_tokens", "max_tokens", "Input should be a valid integer")
	}
	if n.Num < 1 {
		return invalid("max_tokens", "max_tokens", "Input should be greater than or equal to 1")
	}
	c.seen.MaxOutput = n.Int()
	if s := c.body.Get("stream"); s.Exists() && !s.IsBool() {
		return invalid("stream", "stream", "Input should be a valid boolean")
	}
	c.seen.Stream = c.body.Get("stream").Bool()
	// rig__anthropic_error_identity_edge_validation_error_*
	if t := c.body.Get("temperature"); t.Exists() && t.Type != gjson.Null && (t.Num < 0 || t.Num > 1) {
		return invalid("temperature", "temperature", "range: 0..1")
	}
	for i, s := range c.body.Get("stop_sequences").Array() {
		if strings.TrimSpace(s.Str) == "" {
			return invalid("stop_sequences", "", "stop_sequences: each stop sequence must contain non-whitespace (%d)", i)
		}
	}
	if m := c.body.Get("cache_control"); m.IsObject() {
		c.marks++ // automatic caching takes one of the four breakpoints ("Prompt caching")
	}
	return nil
}

func (c *anthropicCheck) system() *Refusal {
	s := c.body.Get("system")
	switch {
	case !s.Exists() || isString(s):
		c.seen.System = s.Str
		return nil
	case !s.IsArray():
		return invalid("system", "system", "Input should be a valid list")
	}
	for i, b := range s.Array() {
		if ref := c.text(b, fmt.Sprintf("system.%d", i), "system"); ref != nil {
			return ref
		}
		c.seen.addSystem(b.Get("text").Str)
	}
	return nil
}

// text checks a text block; where names what it stands in for the message about emptiness.
func (c *anthropicCheck) text(b gjson.Result, at, where string) *Refusal {
	if b.Get("type").Str != "text" {
		return invalid("block", at+".type", "Input should be 'text'")
	}
	if k := anthropicBlock["text"].unknown(b); k != "" {
		return invalid("unknown_field", at+".text."+k, "Extra inputs are not permitted")
	}
	t := b.Get("text")
	if !isString(t) {
		return invalid("block", at+".text.text", "Field required")
	}
	if t.Str == "" {
		return invalid("empty_text", where, "text content blocks must be non-empty")
	}
	// In assistant messages white space alone is accepted (llm-anthropic__test_anthropic_test_tools).
	if strings.TrimSpace(t.Str) == "" && !c.assistantTurn {
		return invalid("empty_text", where, "text content blocks must contain non-whitespace text")
	}
	return c.mark(b, at+".text")
}

func (c *anthropicCheck) mark(b gjson.Result, at string) *Refusal {
	m := b.Get("cache_control")
	if isNull(m) {
		return nil
	}
	if m.Get("type").Str != "ephemeral" {
		return invalid("cache_control", at+".cache_control.type", "Input should be 'ephemeral'")
	}
	c.marks++
	return nil
}

func (c *anthropicCheck) tools() *Refusal {
	tools := c.body.Get("tools")
	if tools.Exists() && !tools.IsArray() {
		return invalid("tools", "tools", "Input should be a valid list")
	}
	strict := 0
	seen := map[string]bool{}
	for i, t := range tools.Array() {
		at := fmt.Sprintf("tools.%d", i)
		name := t.Get("name").Str
		if typ := t.Get("type").Str; typ == "" || typ == "custom" {
			if ref := c.custom(t, at+".custom"); ref != nil {
				return ref
			}
		}
		if seen[name] {
			return invalid("duplicate_tool", "tools", "Tool names must be unique.")
		}
		seen[name] = true
		if t.Get("strict").Bool() {
			strict++
		}
	}
	// rig__anthropic_strict_schema_limits_twenty_one_strict_tools_*
	if strict > 20 {
		return invalid("schema", "", "Too many strict tools (%d). The maximum number of strict tools supported is 20. Try reducing the number of tools marked as strict.", strict)
	}
	return nil
}

func (c *anthropicCheck) custom(t gjson.Result, at string) *Refusal {
	if k := anthropicTool.unknown(t); k != "" {
		return invalid("unknown_field", at+"."+k, "Extra inputs are not permitted")
	}
	name := t.Get("name").Str
	if !anthropicName.MatchString(name) {
		return invalid("tool_name", at+".name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
	}
	schema := t.Get("input_schema")
	if ref := anthropicSchema(schema, at, t.Get("strict").Bool()); ref != nil {
		return ref
	}
	c.seen.Tools = append(c.seen.Tools, Tool{Name: name, Description: t.Get("description").Str, Schema: []byte(schema.Raw), Strict: t.Get("strict").Bool()})
	return c.mark(t, at)
}

func (c *anthropicCheck) choice() *Refusal {
	ch := c.body.Get("tool_choice")
	if isNull(ch) {
		return nil
	}
	if len(c.body.Get("tools").Array()) == 0 && len(c.body.Get("mcp_servers").Array()) == 0 {
		return invalid("choice_without_tools", "tool_choice", "tool_choice may only be specified while providing tools")
	}
	switch typ := ch.Get("type").Str; typ {
	case "auto":
	case "none":
		c.seen.Choice = "none"
	case "any":
		c.seen.Choice = "required"
	case "tool":
		c.seen.Choice = ch.Get("name").Str
		found := false
		for _, t := range c.body.Get("tools").Array() {
			found = found || t.Get("name").Str == c.seen.Choice
		}
		if !found {
			return invalid("choice", "tool_choice", "Tool '%s' not found in provided tools", c.seen.Choice)
		}
	default:
		return invalid("choice", "tool_choice", "Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", typ)
	}
	return nil
}

func (c *anthropicCheck) thought() *Refusal {
	t := c.body.Get("thinking")
	c.thinking = t.Get("type").Str
	if c.thinking == "enabled" {
		budget := t.Get("budget_tokens")
		if budget.Int() < 1024 {
			return invalid("thinking", "thinking.enabled.budget_tokens", "Input should be greater than or equal to 1024")
		}
		if c.seen.MaxOutput <= budget.Int() {
			return invalid("thinking", "", "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
		}
	}
	if c.thinking == "enabled" || c.thinking == "adaptive" {
		if c.seen.Choice != "" && c.seen.Choice != "none" {
			return invalid("thinking", "", "Thinking may not be enabled when tool_choice forces tool use.")
		}
		if temp := c.body.Get("temperature"); c.thinking == "enabled" && temp.Exists() && temp.Num != 1 {
			return invalid("thinking", "", "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
		}
	}
	return nil
}

// after are rules that need the whole request.
func (c *anthropicCheck) after() *Refusal {
	// Stricter than the provider today (rig__anthropic_empty_end_turn_raw_followup_* was accepted): declared tools are what the
	// calls of the history are read with, and ronda always declares them.
	if c.blocks && len(c.body.Get("tools").Array()) == 0 {
		return invalid("tools_undeclared", "", "Requests which have `tool_use` or `tool_result` blocks in their messages must define tools.")
	}
	if c.marks > 4 {
		return invalid("cache_control", "", "A maximum of 4 blocks with cache_control may be provided. Found %d.", c.marks)
	}
	return nil
}

// plainUser reports whether the message is a user's words: the end of the tool loop before it.
func plainUser(m gjson.Result) bool {
	if m.Get("role").Str != "user" {
		return false
	}
	for _, b := range m.Get("content").Array() {
		if b.Get("type").Str == "tool_result" {
			return false
		}
	}
	return true
}

func (c *anthropicCheck) add(role loop.Role, b loop.Block) {
	b.Wire = Anthropic
	c.seen.add(role, b)
}
