package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

func (c *chatCheck) messages() *Refusal {
	list := c.body.Get("messages")
	if !list.IsArray() {
		return wrongType("messages", "an array of objects", list)
	}
	msgs := list.Array()
	if len(msgs) == 0 {
		return emptyArray("messages")
	}
	heads := 0
	for heads < len(msgs) && (msgs[heads].Get("role").Str == "system" || msgs[heads].Get("role").Str == "developer") {
		heads++
	}
	c.seen.Prefix = tail(list, heads)
	for i, m := range msgs {
		if ref := c.message(msgs, i, m); ref != nil {
			return ref
		}
	}
	return c.unanswered()
}

func (c *chatCheck) message(msgs []gjson.Result, i int, m gjson.Result) *Refusal {
	at := fmt.Sprintf("messages[%d]", i)
	if !m.IsObject() {
		return wrongType(at, "an object", m)
	}
	role := m.Get("role").Str
	fields, ok := chatMessage[role]
	if !ok {
		return openAI("role", at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", role)
	}
	if k := fields.unknown(m); k != "" {
		return openAI("unknown_field", at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, k)
	}
	c.seen.begin()
	if role == "tool" {
		return c.result(m, i, at)
	}
	if ref := c.unanswered(); ref != nil {
		return ref
	}
	c.all = nil
	switch role {
	case "assistant":
		return c.assistant(msgs, i, m, at)
	case "system", "developer":
		text, _, ref := c.content(m.Get("content"), at, "text")
		c.seen.addSystem(text)
		return ref
	}
	_, blocks, ref := c.content(m.Get("content"), at, "text image_url input_audio file")
	if ref == nil {
		c.seen.begin()
		for _, b := range blocks {
			c.add(loop.User, b)
		}
	}
	return ref
}

// unanswered refuses what follows an assistant message whose calls have no result yet ("Function calling: handling function
// calls"; the message is the API's).
func (c *chatCheck) unanswered() *Refusal {
	if len(c.open) == 0 {
		return nil
	}
	ids := list(c.open)
	return openAI("missing_result", fmt.Sprintf("messages.[%d].role", c.at+1), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", ids)
}

// content reads a string or an array of parts of the given kinds.
func (c *chatCheck) content(v gjson.Result, at, kinds string) (text string, blocks []loop.Block, ref *Refusal) {
	at += ".content"
	if isString(v) {
		return v.Str, []loop.Block{{Kind: loop.BlockText, Text: v.Str}}, nil
	}
	if !v.IsArray() {
		return "", nil, openAI("content", at, "", "Invalid value for 'content': expected a string, got %s.", kindOf(v))
	}
	list := v.Array()
	if len(list) == 0 {
		return "", nil, emptyArray(at)
	}
	var parts []string
	allowed := names(kinds)
	for i, p := range list {
		typ := p.Get("type").Str
		switch {
		case !allowed[typ]:
			return "", nil, openAI("block", fmt.Sprintf("%s[%d].type", at, i), "invalid_value", "Invalid value: '%s'. Supported values are: %s.", typ, quoted(kinds))
		case typ == "text" || typ == "refusal":
			t := p.Get(typ)
			if !isString(t) {
				return "", nil, missing(fmt.Sprintf("%s[%d].%s", at, i, typ))
			}
			// Stricter than the provider: an empty part says nothing, and compatible servers refuse it.
			if t.Str == "" {
				return "", nil, openAI("empty_text", fmt.Sprintf("%s[%d].text", at, i), "empty_string", "Invalid '%s[%d].text': empty string. Expected a string with minimum length 1, but got an empty string instead.", at, i)
			}
			parts = append(parts, t.Str)
			blocks = append(blocks, loop.Block{Kind: loop.BlockText, Text: t.Str})
		default:
			blocks = append(blocks, loop.Block{Kind: loop.BlockMedia, Raw: []byte(p.Raw)})
		}
	}
	return strings.Join(parts, "\n"), blocks, nil
}

func quoted(list string) string { return "'" + strings.Join(strings.Fields(list), "', '") + "'" }

// result checks a tool message: it stands directly behind the assistant message with its call.
func (c *chatCheck) result(m gjson.Result, i int, at string) *Refusal {
	if len(c.all) == 0 {
		return openAI("result_without_call", fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
	}
	v := m.Get("tool_call_id")
	id := v.Str
	if !isString(v) {
		return missing(at + ".tool_call_id")
	}
	switch {
	case !slices.Contains(c.all, id):
		return openAI("result_without_call", fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
	case !slices.Contains(c.open, id):
		return openAI("duplicate_result", fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Invalid parameter: duplicate response to 'tool_call_id' of '%s'.", id)
	// Stricter than the provider, which takes the results of one message in any order; ronda keeps the order of the calls.
	case c.open[0] != id:
		return openAI("result_order", fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Invalid parameter: tool messages must be in the order of 'tool_calls': want '%s', got '%s'.", c.open[0], id)
	}
	c.open = c.open[1:]
	text, blocks, ref := c.content(m.Get("content"), at, "text image_url")
	if ref != nil {
		return ref
	}
	out := loop.Block{Kind: loop.BlockResult, ID: id, Name: c.seen.callName(id), Text: text}
	for _, b := range blocks {
		if b.Kind == loop.BlockMedia {
			out.More = append(out.More, b)
		}
	}
	c.add(loop.Tool, out)
	return nil
}

func (c *chatCheck) assistant(msgs []gjson.Result, i int, m gjson.Result, at string) *Refusal {
	reasoning := m.Get("reasoning_content").Str
	if reasoning == "" {
		reasoning = m.Get("reasoning").Str
	}
	if reasoning != "" {
		c.add(loop.Assistant, loop.Block{Kind: loop.BlockThought, Text: reasoning})
	}
	calls := m.Get("tool_calls")
	content := m.Get("content")
	if !isNull(content) {
		_, blocks, ref := c.content(content, at, "text refusal thinking image_url")
		if ref != nil {
			return ref
		}
		for _, b := range blocks {
			if b.Text != "" || b.Kind != loop.BlockText {
				c.add(loop.Assistant, b)
			}
		}
	}
	if isNull(calls) {
		if isNull(content) && isNull(m.Get("function_call")) && isNull(m.Get("refusal")) && isNull(m.Get("audio")) {
			return openAI("content", fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
		}
		return nil
	}
	if !calls.IsArray() {
		return wrongType(at+".tool_calls", "an array of objects", calls)
	}
	list := calls.Array()
	if len(list) == 0 {
		return emptyArray(at + ".tool_calls")
	}
	c.at = i
	var made []servedCall
	for j, t := range list {
		call, ref := c.call(t, fmt.Sprintf("%s.tool_calls[%d]", at, j))
		if ref != nil {
			return ref
		}
		made = append(made, call)
	}
	return c.reasoningBack(msgs, i, reasoning, made)
}

func (c *chatCheck) call(t gjson.Result, at string) (servedCall, *Refusal) {
	f := t.Get("function")
	id, args := t.Get("id"), f.Get("arguments")
	switch {
	case isNull(id):
		return servedCall{}, missing(at + ".id")
	case !isString(id):
		return servedCall{}, wrongType(at+".id", "a string", id)
	// Older deployments say 40, newer ones 64: the smaller holds everywhere.
	case len(id.Str) > 40:
		return servedCall{}, tooLong("call_id", at+".id", 40, len(id.Str))
	// Google's compatible endpoint gives and takes empty ids (pydantic-ai__test_openai_test_compatible_api_with_tool_calls_without_id):
	// only a second one cannot be told apart.
	case slices.Contains(c.all, id.Str):
		return servedCall{}, openAI("duplicate_call", at+".id", "", "Duplicate value for 'tool_call_id' of '%s' in message.", id.Str)
	case t.Get("type").Str != "function":
		return servedCall{}, openAI("block", at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", t.Get("type").Str)
	case !f.IsObject():
		return servedCall{}, missing(at + ".function")
	case isNull(args):
		return servedCall{}, missing(at + ".function.arguments")
	case !isString(args):
		return servedCall{}, wrongType(at+".function.arguments", "a string", args)
	}
	if ref := functionName(f.Get("name"), at+".function.name"); ref != nil {
		return servedCall{}, ref
	}
	name := f.Get("name").Str
	c.all = append(c.all, id.Str)
	c.open = append(c.open, id.Str)
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockCall, ID: id.Str, Name: name, Args: args.Str})
	call, pr := c.led.call(id.Str, name, args.Str, true)
	if pr != fine {
		return call, openAI("call_"+string(pr), at, "", "the call %s is not as it was received (%s): name %q, arguments %s", id.Str, pr, name, args.Str)
	}
	return call, nil
}

// reasoningBack: a changed reasoning_content is refused; a missing one only where the server is told to be like DeepSeek, whose
// page "Thinking mode: tool calls" says that it must be passed back within a tool loop.
func (c *chatCheck) reasoningBack(msgs []gjson.Result, i int, reasoning string, made []servedCall) *Refusal {
	want, ok := thoughtsOf(made)
	if !ok || len(want) == 0 {
		return nil
	}
	at := fmt.Sprintf("messages[%d].reasoning_content", i)
	switch {
	case reasoning == "" && c.led != nil && c.led.opts.ReasoningBack && !slices.ContainsFunc(msgs[i+1:], func(m gjson.Result) bool { return m.Get("role").Str == "user" }):
		return openAI("thinking_dropped", at, "invalid_request_error", "Missing `reasoning_content` field in the assistant message at message index %d. For more information, please refer to the documentation on thinking mode.", i)
	case reasoning != "" && reasoning != want[0]:
		return openAI("thinking_changed", at, "", "the reasoning_content is not as it was received")
	}
	return nil
}
