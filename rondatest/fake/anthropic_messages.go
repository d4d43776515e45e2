package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

func (c *anthropicCheck) messages() *Refusal {
	list := c.body.Get("messages")
	if !list.IsArray() {
		return invalid("messages", "messages", "Input should be a valid list")
	}
	c.seen.Prefix = inner(list)
	msgs := list.Array()
	if len(msgs) == 0 {
		return invalid("messages", "messages", "at least one message is required")
	}
	for i, m := range msgs {
		if ref := c.message(msgs, i, m); ref != nil {
			return ref
		}
	}
	return c.last(msgs)
}

func (c *anthropicCheck) message(msgs []gjson.Result, i int, m gjson.Result) *Refusal {
	at := fmt.Sprintf("messages.%d", i)
	if k := names("role content").unknown(m); k != "" {
		return invalid("unknown_field", at+"."+k, "Extra inputs are not permitted")
	}
	c.seen.begin()
	role := m.Get("role").Str
	switch {
	case role != "user" && role != "assistant" && role != "system":
		return invalid("role", at+".role", "Input should be 'user' or 'assistant'")
	// Stricter than the provider, which accepts an assistant message at the beginning
	// (rig__anthropic_opus_4_8_messages_preserve_system_role_after_server_tool_result).
	case i == 0 && role != "user":
		return invalid("first_user", "messages", `first message must use the "user" role`)
	}
	c.assistantTurn = role == "assistant"
	content := m.Get("content")
	blocks := content.Array()
	if isString(content) {
		blocks = []gjson.Result{gjson.ParseBytes(object("type", "text", "text", content.Str))}
		if content.Str == "" {
			blocks = nil
		}
	} else if !content.IsArray() {
		return invalid("content", at+".content", "Field required")
	}
	if len(blocks) == 0 && !(role == "assistant" && i == len(msgs)-1) {
		return invalid("empty_content", at, "all messages must have non-empty content except for the optional final assistant message")
	}
	switch role {
	case "system": // in mid-conversation: rig__anthropic_opus_4_8_messages_preserve_mid_conversation_system_role
		for j, b := range blocks {
			if ref := c.text(b, fmt.Sprintf("%s.content.%d", at, j), at); ref != nil {
				return ref
			}
			c.seen.addSystem(b.Get("text").Str)
		}
		return c.unanswered(at, nil)
	case "user":
		return c.user(at, blocks)
	}
	return c.assistant(msgs, i, blocks)
}

// unanswered refuses a message that does not answer what is open. got are the results at its beginning.
func (c *anthropicCheck) unanswered(at string, got []string) *Refusal {
	var missing []string
	for _, id := range c.open {
		if !slices.Contains(got, id) {
			missing = append(missing, id)
		}
	}
	c.open = nil
	if len(missing) == 0 {
		return nil
	}
	return invalid("missing_result", at, "`tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
		list(missing))
}

// user checks a user message: results first, one for each call of the message before ("Handle tool calls").
func (c *anthropicCheck) user(at string, blocks []gjson.Result) *Refusal {
	var got []string
	other := false
	for j, b := range blocks {
		p := fmt.Sprintf("%s.content.%d", at, j)
		if b.Get("type").Str != "tool_result" {
			other = true
			if ref := c.content(b, p, at, loop.User); ref != nil {
				return ref
			}
			continue
		}
		id := b.Get("tool_use_id").Str
		switch {
		case other:
			return invalid("result_place", p, "`tool_result` blocks must come first in the content of the message that follows their `tool_use` blocks")
		case !slices.Contains(c.open, id):
			return invalid("result_without_call", p, "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", id)
		case slices.Contains(got, id):
			return invalid("duplicate_result", p, "each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", id)
		// Stricter than the provider, which takes the results of one message in any order; ronda keeps the order of the calls.
		case len(got) < len(c.open) && c.open[len(got)] != id:
			return invalid("result_order", p, "`tool_result` blocks must be in the order of their `tool_use` blocks: want %s, got %s", c.open[len(got)], id)
		}
		got = append(got, id)
		if ref := c.result(b, p, at); ref != nil {
			return ref
		}
	}
	return c.unanswered(at, got)
}

func (c *anthropicCheck) result(b gjson.Result, p, at string) *Refusal {
	c.blocks = true
	p += ".tool_result"
	if k := anthropicBlock["tool_result"].unknown(b); k != "" {
		return invalid("unknown_field", p+"."+k, "Extra inputs are not permitted")
	}
	content := b.Get("content")
	isError := b.Get("is_error").Bool()
	if e := b.Get("is_error"); !isNull(e) && !e.IsBool() {
		return invalid("block", p+".is_error", "Input should be a valid boolean")
	}
	if isError && (isNull(content) || content.Str == "" && len(content.Array()) == 0 || content.Raw == `""`) {
		return invalid("empty_text", p, "content cannot be empty if `is_error` is true")
	}
	out := loop.Block{Kind: loop.BlockResult, ID: b.Get("tool_use_id").Str, Name: c.seen.callName(b.Get("tool_use_id").Str), Error: isError}
	switch {
	case isNull(content):
	case isString(content):
		out.Text = content.Str
	case !content.IsArray():
		return invalid("block", p+".content", "Input should be a valid list")
	default:
		var parts []string
		for k, e := range content.Array() {
			q := fmt.Sprintf("%s.content.%d", p, k)
			switch typ := e.Get("type").Str; typ {
			case "text":
				if ref := c.text(e, q, at); ref != nil {
					return ref
				}
				parts = append(parts, e.Get("text").Str)
			case "image", "document", "search_result", "tool_reference":
				out.More = append(out.More, loop.Block{Kind: loop.BlockMedia, Wire: Anthropic, Raw: []byte(e.Raw)})
			default:
				return invalid("block", q, "Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'", typ)
			}
		}
		out.Text = strings.Join(parts, "\n")
	}
	c.add(loop.Tool, out)
	return c.mark(b, p)
}

// content checks a block of a user message that is no result.
func (c *anthropicCheck) content(b gjson.Result, p, at string, role loop.Role) *Refusal {
	typ := b.Get("type").Str
	switch typ {
	case "text":
		c.add(role, loop.Block{Kind: loop.BlockText, Text: b.Get("text").Str})
		return c.text(b, p, at)
	case "image", "document", "search_result":
		if k := anthropicBlock[typ].unknown(b); k != "" {
			return invalid("unknown_field", p+"."+typ+"."+k, "Extra inputs are not permitted")
		}
		c.add(role, loop.Block{Kind: loop.BlockMedia, Raw: []byte(b.Raw)})
		return c.mark(b, p+"."+typ)
	case "thinking", "redacted_thinking", "tool_use":
		return invalid("block_role", p, "`%s` blocks can only be in `assistant` messages", typ)
	}
	if anthropicServer[typ] {
		c.add(role, loop.Block{Kind: loop.BlockOpaque, Raw: []byte(b.Raw)})
		return nil
	}
	return invalid("block", p, "Input tag '%s' found using 'type' does not match any of the expected tags", typ)
}

// assistant checks the model's own turn: thinking first and unchanged, calls as they were made.
func (c *anthropicCheck) assistant(msgs []gjson.Result, i int, blocks []gjson.Result) *Refusal {
	at := fmt.Sprintf("messages.%d", i)
	if ref := c.unanswered(at, nil); ref != nil {
		return ref
	}
	var thoughts []string
	var made []servedCall
	first := -1
	for j, b := range blocks {
		p := fmt.Sprintf("%s.content.%d", at, j)
		var ref *Refusal
		switch b.Get("type").Str {
		case "thinking", "redacted_thinking":
			ref = c.thinkingBlock(b, p)
			thoughts = append(thoughts, b.Get("signature").Str+b.Get("data").Str)
		case "tool_use":
			if first < 0 {
				first = j
			}
			var call servedCall
			call, ref = c.call(b, p)
			made = append(made, call)
		case "tool_result":
			ref = invalid("block_role", p, "`tool_result` blocks can only be in `user` messages")
		default:
			ref = c.content(b, p, at, loop.Assistant)
		}
		if ref != nil {
			return ref
		}
	}
	if first < 0 {
		return nil
	}
	return c.thoughtsBack(msgs, i, blocks, thoughts, made)
}

func (c *anthropicCheck) thinkingBlock(b gjson.Result, p string) *Refusal {
	typ := b.Get("type").Str
	if k := anthropicBlock[typ].unknown(b); k != "" {
		return invalid("unknown_field", p+"."+typ+"."+k, "Extra inputs are not permitted")
	}
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockThought, Text: b.Get("thinking").Str, Raw: []byte(b.Raw)})
	if typ == "redacted_thinking" {
		if _, ok := c.led.open("redacted", b.Get("data").Str); !ok || b.Get("data").Str == "" {
			return invalid("thinking_changed", p, "Invalid `data` in `redacted_thinking` block")
		}
		return nil
	}
	for _, k := range []string{"signature", "thinking"} {
		if !isString(b.Get(k)) {
			return invalid("thinking_changed", p+".thinking."+k, "Field required")
		}
	}
	if !c.led.signed("thinking", b.Get("thinking").Str, b.Get("signature").Str) {
		return invalid("thinking_changed", p, "Invalid `signature` in `thinking` block")
	}
	return nil
}

func (c *anthropicCheck) call(b gjson.Result, p string) (servedCall, *Refusal) {
	c.blocks = true
	q := p + ".tool_use"
	if k := anthropicBlock["tool_use"].unknown(b); k != "" {
		return servedCall{}, invalid("unknown_field", q+"."+k, "Extra inputs are not permitted")
	}
	id, name, input := b.Get("id").Str, b.Get("name").Str, b.Get("input")
	switch {
	case !anthropicID.MatchString(id):
		return servedCall{}, invalid("call_id", q+".id", "String should match pattern '^[a-zA-Z0-9_-]+$'")
	case !isString(b.Get("name")) || name == "" || len(name) > 200:
		return servedCall{}, invalid("tool_name", q+".name", "String should have at least 1 character and at most 200 characters")
	case !input.IsObject():
		return servedCall{}, invalid("call_changed", q+".input", "Input should be a valid dictionary")
	case c.ids[id]:
		return servedCall{}, invalid("duplicate_call", "messages", "`tool_use` ids must be unique")
	}
	c.ids[id] = true
	c.open = append(c.open, id)
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockCall, ID: id, Name: name, Args: input.Raw})
	call, pr := c.led.call(id, name, input.Raw, false)
	if pr != fine {
		return call, invalid("call_"+string(pr), q, "the call %s is not as it was received (%s): name %q, input %s", id, pr, name, input.Raw)
	}
	return call, c.mark(b, q)
}

// thoughtsBack checks that the thinking of a turn comes back whole when the results of its calls do ("Extended thinking:
// preserving thinking blocks"). Only the loop since the user's last words is looked at: older thinking may be left out.
func (c *anthropicCheck) thoughtsBack(msgs []gjson.Result, i int, blocks []gjson.Result, thoughts []string, made []servedCall) *Refusal {
	if slices.ContainsFunc(msgs[i+1:], plainUser) {
		return nil
	}
	at := fmt.Sprintf("messages.%d", i)
	if want, ok := thoughtsOf(made); ok {
		if !slices.Equal(want, thoughts) {
			return invalid("thinking_changed", at+".content.0", "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.")
		}
		return nil
	}
	if typ := blocks[0].Get("type").Str; c.led == nil && c.thinking == "enabled" && typ != "thinking" && typ != "redacted_thinking" && i == c.firstOfLoop(msgs) {
		return invalid("thinking_dropped", at+".content.0.type", "Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", typ)
	}
	return nil
}

// firstOfLoop is the first assistant message after the user's last words.
func (c *anthropicCheck) firstOfLoop(msgs []gjson.Result) int {
	at := -1
	for i := len(msgs) - 1; i >= 0 && !plainUser(msgs[i]); i-- {
		if msgs[i].Get("role").Str == "assistant" {
			at = i
		}
	}
	return at
}

// last are the rules for the end of the conversation: open calls, and white space at the end of a prefilled answer.
func (c *anthropicCheck) last(msgs []gjson.Result) *Refusal {
	i := len(msgs) - 1
	if ref := c.unanswered(fmt.Sprintf("messages.%d", i), nil); ref != nil {
		return ref
	}
	m := msgs[i]
	if m.Get("role").Str != "assistant" {
		return nil
	}
	text := m.Get("content").Str
	if blocks := m.Get("content").Array(); m.Get("content").IsArray() && len(blocks) > 0 {
		text = blocks[len(blocks)-1].Get("text").Str
	}
	if text != "" && strings.TrimRight(text, " \t\r\n") != text {
		return invalid("final_assistant", "messages", "final assistant content cannot end with trailing whitespace")
	}
	return nil
}
