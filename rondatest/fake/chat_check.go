package fake

import (
	"fmt"
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

// Sources of the rules in this file, where none is named at the rule: the pages "Chat Completions: create" (API reference),
// "Function calling" and "Structured outputs" of OpenAI's documentation, and the published OpenAPI document of the API.

var (
	chatTop = names(`model messages tools tool_choice stream stream_options temperature top_p n stop max_tokens max_completion_tokens
		presence_penalty frequency_penalty logit_bias logprobs top_logprobs user seed response_format parallel_tool_calls
		reasoning_effort store metadata service_tier modalities audio prediction web_search_options verbosity prompt_cache_key
		prompt_cache_retention safety_identifier functions function_call`)
	// chatVendor are top-level fields of compatible servers that recordings show accepted: OpenRouter (usage, reasoning, provider,
	// include_reasoning), DeepSeek and z.ai (thinking), Qwen (enable_thinking), Mistral (random_seed, safe_prompt).
	chatVendor  = names(`usage thinking reasoning provider include_reasoning enable_thinking random_seed safe_prompt extra_body top_k min_p repetition_penalty chat_template_kwargs plugins models route transforms`)
	chatAll     = chatTop.plus("").merge(chatVendor)
	openAIName  = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	chatMessage = map[string]known{
		"system":    names("role content name cache_control"),
		"developer": names("role content name cache_control"),
		"user":      names("role content name cache_control"),
		"tool":      names("role content tool_call_id name cache_control"),
		"function":  names("role content name"),
		// The last line of names are reasoning and other fields of compatible servers, recorded as accepted.
		"assistant": names(`role content name refusal audio tool_calls function_call annotations
			reasoning_content reasoning reasoning_details prefix`),
	}
)

func (k known) merge(more known) known {
	for n := range more {
		k[n] = true
	}
	return k
}

type chatCheck struct {
	body gjson.Result
	seen *Seen
	led  *ledger
	open []string // ids of calls without a result, in order
	all  []string // ids of the calls of the last assistant message
	at   int      // index of that message
}

func checkChat(body gjson.Result, seen *Seen, led *ledger) *Refusal {
	c := &chatCheck{body: body, seen: seen, led: led}
	for _, f := range []func() *Refusal{c.top, c.tools, c.choice, c.messages} {
		if ref := f(); ref != nil {
			return ref
		}
	}
	return nil
}

func (c *chatCheck) top() *Refusal {
	if k := chatAll.unknown(c.body); k != "" {
		return openAI("unknown_field", k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	c.seen.Model = c.body.Get("model").Str
	if c.seen.Model == "" {
		return openAI("required", "", "", "you must provide a model parameter")
	}
	if isNull(c.body.Get("messages")) {
		return openAI("required", "messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	c.seen.Stream = c.body.Get("stream").Bool()
	if s := c.body.Get("stream"); !isNull(s) && !s.IsBool() {
		return wrongType("stream", "a boolean", s)
	}
	if o := c.body.Get("stream_options"); !isNull(o) && !c.seen.Stream {
		return openAI("stream_options", "stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	old, now := c.body.Get("max_tokens"), c.body.Get("max_completion_tokens")
	if !isNull(old) && !isNull(now) {
		return openAI("max_tokens", "max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	for k, v := range map[string]gjson.Result{"max_tokens": old, "max_completion_tokens": now} {
		if ref := atLeast(v, k, 1); ref != nil {
			return ref
		}
	}
	c.seen.MaxOutput = old.Int() + now.Int()
	if f := c.body.Get("response_format"); f.Get("type").Str == "json_schema" {
		j := f.Get("json_schema")
		if !openAIName.MatchString(j.Get("name").Str) {
			return openAI("output_schema", "response_format.json_schema.name", "missing_required_parameter", "Missing required parameter: 'response_format.json_schema.name'.")
		}
		if j.Get("schema").Exists() && j.Get("strict").Bool() {
			return openAISchema(j.Get("schema"), fmt.Sprintf("response_format '%s'", j.Get("name").Str), "response_format", "", true)
		}
	}
	return nil
}

func wrongType(param, want string, got gjson.Result) *Refusal {
	return openAI("type", param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, kindOf(got))
}

func kindOf(v gjson.Result) string {
	switch {
	case v.Type == gjson.Null:
		return "null"
	case v.IsArray():
		return "an array"
	case v.IsObject():
		return "an object"
	case v.IsBool():
		return "a boolean"
	case isString(v):
		return "a string"
	}
	return "a number"
}

// atLeast checks an optional integer.
func atLeast(v gjson.Result, param string, least int64) *Refusal {
	switch {
	case isNull(v):
		return nil
	case v.Type != gjson.Number || v.Num != float64(int64(v.Num)):
		return wrongType(param, "an integer", v)
	case v.Int() < least:
		return openAI("max_tokens", param, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", param, least, v.Int())
	}
	return nil
}

func emptyArray(param string) *Refusal { // envoy-ai-gateway__testopenai_chat-no-messages
	return openAI("empty_array", param, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

func missing(param string) *Refusal {
	return openAI("required", param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// functionName checks the name of a function: letters, digits, _ and -, at most 64.
func functionName(v gjson.Result, param string) *Refusal {
	switch {
	case isNull(v):
		return missing(param)
	case !isString(v):
		return wrongType(param, "a string", v)
	case v.Str == "":
		return openAI("tool_name", param, "empty_string", "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	case len(v.Str) > 64:
		return tooLong("tool_name", param, 64, len(v.Str))
	case !openAIName.MatchString(v.Str):
		return openAI("tool_name", param, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	}
	return nil
}

func tooLong(rule, param string, limit, got int) *Refusal {
	return openAI(rule, param, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, limit, got)
}

func (c *chatCheck) tools() *Refusal {
	tools := c.body.Get("tools")
	if isNull(tools) {
		return nil
	}
	if !tools.IsArray() {
		return wrongType("tools", "an array of objects", tools)
	}
	list := tools.Array()
	if len(list) == 0 {
		return emptyArray("tools")
	}
	for i, t := range list {
		at := fmt.Sprintf("tools[%d]", i)
		f := t.Get("function")
		switch {
		case isNull(t.Get("type")):
			return missing(at + ".type")
		case t.Get("type").Str != "function": // custom tools, and server tools of compatible servers
			continue
		case !f.IsObject():
			return missing(at + ".function")
		}
		if ref := c.function(f, at+".function"); ref != nil {
			return ref
		}
	}
	return nil
}

func (c *chatCheck) function(f gjson.Result, at string) *Refusal {
	if k := names("name description parameters strict").unknown(f); k != "" {
		return openAI("unknown_field", at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, k)
	}
	if ref := functionName(f.Get("name"), at+".name"); ref != nil {
		return ref
	}
	name := f.Get("name").Str
	// Stricter than what the page says, which does not speak of equal names; a result could not be told apart.
	if c.seen.tool(name) != nil {
		return openAI("duplicate_tool", "tools", "invalid_value", "Tool names must be unique: '%s' is declared twice.", name)
	}
	p := f.Get("parameters")
	if !isNull(p) {
		if ref := openAISchema(p, fmt.Sprintf("function '%s'", name), at+".parameters", "invalid_function_parameters", f.Get("strict").Bool()); ref != nil {
			return ref
		}
	}
	t := Tool{Name: name, Description: f.Get("description").Str, Strict: f.Get("strict").Bool()}
	if p.Exists() {
		t.Schema = []byte(p.Raw)
	}
	c.seen.Tools = append(c.seen.Tools, t)
	return nil
}

func (c *chatCheck) choice() *Refusal {
	declared := len(c.body.Get("tools").Array()) > 0 && !isNull(c.body.Get("tools"))
	if p := c.body.Get("parallel_tool_calls"); !isNull(p) && !declared {
		return openAI("choice_without_tools", "parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	ch := c.body.Get("tool_choice")
	if isNull(ch) {
		return nil
	}
	if !declared {
		return openAI("choice_without_tools", "tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	switch {
	case ch.Str == "auto":
	case ch.Str == "none":
		c.seen.Choice = "none"
	case ch.Str == "required", ch.Str == "any": // any is Mistral's word
		c.seen.Choice = "required"
	case ch.Get("type").Str == "function" && ch.Get("function.name").Str != "":
		c.seen.Choice = ch.Get("function.name").Str
		if c.seen.tool(c.seen.Choice) == nil {
			return openAI("choice", "tool_choice", "", "Tool choice 'function' '%s' not found in 'tools' parameter.", c.seen.Choice)
		}
	case ch.Get("type").Str == "allowed_tools":
	default:
		return openAI("choice", "tool_choice", "invalid_value", "Invalid value: %s. Supported values are: 'none', 'auto', and 'required'.", ch.Raw)
	}
	return nil
}

func (c *chatCheck) add(role loop.Role, b loop.Block) {
	b.Wire = OpenAIChat
	c.seen.add(role, b)
}
