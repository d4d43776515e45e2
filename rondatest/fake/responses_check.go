package fake

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

// Sources of the rules in this file, where none is named at the rule: the pages "Responses: create" (API reference),
// "Conversation state", "Reasoning models" and "Function calling" of OpenAI's documentation.

var (
	responsesTop = names(`model input instructions tools tool_choice stream stream_options store include max_output_tokens temperature
		top_p reasoning service_tier parallel_tool_calls text prompt_cache_key prompt_cache_retention max_tool_calls
		previous_response_id background conversation metadata prompt safety_identifier top_logprobs truncation user
		context_management moderation`)
	responsesInclude = names(`reasoning.encrypted_content file_search_call.results message.input_image.image_url
		computer_call_output.output.image_url code_interpreter_call.outputs message.output_text.logprobs web_search_call.results
		web_search_call.action.sources`)
	responsesItem = map[string]known{
		"message":              names("type role content id status phase"),
		"function_call":        names("type id call_id name arguments status namespace caller"),
		"function_call_output": names("type id call_id output status caller"),
		"reasoning":            names("type id summary content encrypted_content status"),
		"item_reference":       names("type id"),
	}
	// responsesServer are items of server tools and others that ronda only sends back as it received them.
	responsesServer = names(`file_search_call web_search_call computer_call computer_call_output image_generation_call
		code_interpreter_call local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call
		apply_patch_call_output mcp_list_tools mcp_approval_request mcp_approval_response mcp_call custom_tool_call
		custom_tool_call_output tool_search_call tool_search_output compaction program additional_tools`)
)

type responsesCheck struct {
	body gjson.Result
	seen *Seen
	led  *ledger
	open []string // call ids without an output, in order
	all  map[string]bool
	ids  map[string]bool // ids of items of this input
	rs   []string        // reasoning items since the user's last words

	references bool // items that only the provider knows stand in the input
}

func checkResponses(body gjson.Result, seen *Seen, led *ledger) *Refusal {
	c := &responsesCheck{body: body, seen: seen, led: led, all: map[string]bool{}, ids: map[string]bool{}}
	for _, f := range []func() *Refusal{c.top, c.tools, c.choice, c.previous, c.input} {
		if ref := f(); ref != nil {
			return ref
		}
	}
	return nil
}

func (c *responsesCheck) top() *Refusal {
	if k := responsesTop.unknown(c.body); k != "" {
		return openAI("unknown_field", k, "unknown_parameter", "Unknown parameter: '%s'.", k)
	}
	c.seen.Model = c.body.Get("model").Str
	c.seen.Stream = c.body.Get("stream").Bool()
	c.seen.System = c.body.Get("instructions").Str // never those of the previous response: they do not carry over
	if c.seen.Model == "" {
		return missing("model")
	}
	for _, k := range []string{"stream", "store", "parallel_tool_calls", "background"} {
		if v := c.body.Get(k); !isNull(v) && !v.IsBool() {
			return wrongType(k, "a boolean", v)
		}
	}
	if o := c.body.Get("stream_options"); !isNull(o) && !c.seen.Stream {
		return openAI("stream_options", "stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	// The least value is the API's; recordings show 16 accepted and none below.
	if ref := atLeast(c.body.Get("max_output_tokens"), "max_output_tokens", 16); ref != nil {
		return ref
	}
	c.seen.MaxOutput = c.body.Get("max_output_tokens").Int()
	for i, v := range c.body.Get("include").Array() {
		if !responsesInclude[v.Str] && !isNull(c.body.Get("include")) {
			return openAI("include", fmt.Sprintf("include[%d]", i), "invalid_value", "Invalid value: '%s'. Supported values are: ...", v.Str)
		}
	}
	if f := c.body.Get("text.format"); f.Get("type").Str == "json_schema" {
		if ref := functionName(f.Get("name"), "text.format.name"); ref != nil {
			return ref
		}
		// dd-trace-js__dd-trace_openai_openai_responses_post_c4a90328
		return openAISchema(f.Get("schema"), fmt.Sprintf("response_format '%s'", f.Get("name").Str), "text.format.schema", "invalid_json_schema", f.Get("strict").Raw != "false")
	}
	return nil
}

func (c *responsesCheck) tools() *Refusal {
	tools := c.body.Get("tools")
	if isNull(tools) {
		return nil
	}
	if !tools.IsArray() {
		return wrongType("tools", "an array of objects", tools)
	}
	for i, t := range tools.Array() {
		at := fmt.Sprintf("tools[%d]", i)
		if isNull(t.Get("type")) {
			return missing(at + ".type")
		}
		if t.Get("type").Str != "function" {
			continue
		}
		if k := names("type name description parameters strict defer_loading output_schema allowed_callers").unknown(t); k != "" {
			return openAI("unknown_field", at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, k)
		}
		if ref := functionName(t.Get("name"), at+".name"); ref != nil {
			return ref
		}
		name, p := t.Get("name").Str, t.Get("parameters")
		if c.seen.tool(name) != nil { // stricter than the page, as with chat
			return openAI("duplicate_tool", "tools", "invalid_value", "Tool names must be unique: '%s' is declared twice.", name)
		}
		// Without strict the API makes the schema strict by itself where it can (rig__openai_responses_sessions_*: the response
		// shows additionalProperties added), so only an explicit true is held against the schema.
		if !isNull(p) {
			if ref := openAISchema(p, fmt.Sprintf("function '%s'", name), at+".parameters", "invalid_function_parameters", t.Get("strict").Raw == "true"); ref != nil {
				return ref
			}
		}
		tool := Tool{Name: name, Description: t.Get("description").Str, Strict: t.Get("strict").Bool()}
		if p.Exists() {
			tool.Schema = []byte(p.Raw)
		}
		c.seen.Tools = append(c.seen.Tools, tool)
	}
	return nil
}

func (c *responsesCheck) choice() *Refusal {
	ch := c.body.Get("tool_choice")
	if isNull(ch) || ch.Str == "auto" {
		return nil
	}
	// Stricter than the provider for none; required and named tools it refuses in these words.
	if len(c.body.Get("tools").Array()) == 0 || isNull(c.body.Get("tools")) {
		return openAI("choice_without_tools", "tool_choice", "", "Tool choice '%s' must be specified with 'tools' parameter.", ch.Str+ch.Get("type").Str)
	}
	switch {
	case ch.Str == "none", ch.Str == "required":
		c.seen.Choice = ch.Str
	case ch.Get("type").Str == "function":
		c.seen.Choice = ch.Get("name").Str
		if c.seen.tool(c.seen.Choice) == nil {
			return openAI("choice", "tool_choice", "", "Tool choice 'function' not found in 'tools' parameter.")
		}
	case ch.IsObject():
		c.seen.Choice = ch.Get("mode").Str
	default:
		return openAI("choice", "tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", ch.Str)
	}
	return nil
}

// previous looks the previous response up and takes its conversation over.
func (c *responsesCheck) previous() *Refusal {
	id := c.body.Get("previous_response_id")
	if isNull(id) {
		return nil
	}
	if !strings.HasPrefix(id.Str, "resp") {
		return openAI("previous", "previous_response_id", "invalid_value", "Invalid 'previous_response_id': '%s'. Expected an ID that begins with 'resp'.", id.Str)
	}
	if !isNull(c.body.Get("conversation")) {
		return openAI("previous", "previous_response_id", "mutually_exclusive_parameters", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of them.")
	}
	c.seen.Previous = id.Str
	if c.led == nil {
		return nil
	}
	st := c.led.response(id.Str)
	if st == nil { // rig__openai_error_identity_edge_nonexistent_previous_respons*; also where store was false
		return openAI("previous", "previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.", id.Str)
	}
	c.seen.Messages = slices.Clone(st.messages)
	c.seen.Stored = len(st.messages)
	c.open = slices.Clone(st.open)
	for _, call := range st.open {
		c.all[call] = true
	}
	return nil
}

func (c *responsesCheck) input() *Refusal {
	in := c.body.Get("input")
	switch {
	case isNull(in):
		if c.seen.Previous == "" && isNull(c.body.Get("prompt")) && isNull(c.body.Get("conversation")) {
			return openAI("required", "", "missing_required_parameter", "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation' must be provided.")
		}
	case isString(in):
		c.seen.Prefix = object("role", "user", "content", in.Str)
		c.seen.add(loop.User, loop.Block{Kind: loop.BlockText, Text: in.Str})
	case !in.IsArray():
		return wrongType("input", "a string or an array of objects", in)
	default:
		return c.items(in)
	}
	return c.unanswered()
}

func (c *responsesCheck) items(in gjson.Result) *Refusal {
	list := in.Array()
	heads := 0
	for heads < len(list) && (list[heads].Get("role").Str == "system" || list[heads].Get("role").Str == "developer") {
		heads++
	}
	c.seen.Prefix = tail(in, heads)
	for i, it := range list {
		if ref := c.item(list, i, it); ref != nil {
			return ref
		}
	}
	return c.unanswered()
}

// unanswered: each function_call needs its output in the same input ("Function calling"; the message is the API's).
func (c *responsesCheck) unanswered() *Refusal {
	if len(c.open) == 0 || c.led == nil && c.seen.Previous != "" {
		return nil
	}
	return openAI("missing_result", "input", "", "No tool output found for function call %s.", c.open[0])
}

func notStored(id string) *Refusal {
	return &Refusal{Rule: "item", Status: http.StatusNotFound, Type: "invalid_request_error", Param: "input",
		Message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)}
}

func (c *responsesCheck) add(role loop.Role, b loop.Block) {
	b.Wire = OpenAI
	c.seen.add(role, b)
}
