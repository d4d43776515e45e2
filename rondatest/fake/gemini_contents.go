package fake

import (
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

func (c *geminiCheck) contents() *Refusal {
	list := c.body.Get("contents")
	turns := list.Array()
	if isNull(list) || len(turns) == 0 {
		return google("messages", "contents", "* GenerateContentRequest.contents: contents is not specified")
	}
	if list.IsObject() { // protobuf's JSON takes one message for a list of one
		turns = []gjson.Result{list}
	}
	c.seen.Prefix = inner(list)
	for i, t := range turns {
		if ref := c.turn(turns, i, t); ref != nil {
			return ref
		}
	}
	if len(c.open) > 0 {
		return c.count()
	}
	if turns[len(turns)-1].Get("role").Str == "model" {
		return google("final_assistant", "contents", "Please ensure that multiturn requests end with a user role or a function response.")
	}
	return nil
}

func (c *geminiCheck) count() *Refusal {
	return google("missing_result", "contents", "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
}

func (c *geminiCheck) turn(turns []gjson.Result, i int, t gjson.Result) *Refusal {
	at := fmt.Sprintf("contents[%d]", i)
	if !t.IsObject() {
		return google("type", at, "Invalid value at '%s' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), %s", at, t.Raw)
	}
	if k := names("role parts").unknown(t); k != "" {
		return unknownName(k, at)
	}
	role := t.Get("role").Str
	switch role {
	case "user", "model", "function":
	case "":
		if len(turns) > 1 { // the role may be left out in requests of one turn
			return google("role", at, "Please use a valid role: user, model.")
		}
	default: // otel-contrib__instrumentation-genai_vertexai_test_generate_c*
		return google("role", at, "Please use a valid role: user, model.")
	}
	if i == 0 && role == "model" {
		return google("first_user", at, "Please ensure that multiturn requests begin with a user role.")
	}
	parts := t.Get("parts").Array()
	if len(parts) == 0 {
		return google("empty_content", at, "* GenerateContentRequest.%s.parts: contents.parts must not be empty.", at)
	}
	c.seen.begin()
	if role == "model" {
		return c.model(turns, i, parts, at)
	}
	return c.user(parts, at)
}

func (c *geminiCheck) user(parts []gjson.Result, at string) *Refusal {
	var got []gjson.Result
	for j, p := range parts {
		q := fmt.Sprintf("%s.parts[%d]", at, j)
		if ref := c.part(p, q); ref != nil {
			return ref
		}
		if r := either(p, "functionResponse", "function_response"); r.Exists() {
			got = append(got, r)
			continue
		}
		if either(p, "functionCall", "function_call").Exists() {
			return google("block_role", q, "Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		// Results come first, as with the other wires. The provider accepts other parts before them.
		if len(got) < len(c.open) {
			return c.count()
		}
		c.say(loop.User, p)
	}
	if len(got) == 0 && len(c.open) == 0 {
		return nil
	}
	if len(c.open) == 0 {
		return google("result_without_call", at, "Please ensure that function response turn comes immediately after a function call turn.")
	}
	if len(got) != len(c.open) {
		return c.count()
	}
	open := c.open
	c.open = nil
	at0 := len(c.seen.Messages)
	for j, r := range got {
		if ref := c.result(r, open[j], fmt.Sprintf("%s.parts[%d].function_response", at, j)); ref != nil {
			return ref
		}
	}
	c.resultsFirst(at0)
	return nil
}

// resultsFirst moves the results of a turn before the texts that stand in the same turn.
func (c *geminiCheck) resultsFirst(at int) {
	m := c.seen.Messages
	if at > 0 && at < len(m) && m[at-1].Role == loop.User && at == len(m)-1 {
		m[at-1], m[at] = m[at], m[at-1]
	}
}

func (c *geminiCheck) result(r gjson.Result, call geminiCall, at string) *Refusal {
	if k := names("id name response parts willContinue will_continue scheduling").unknown(r); k != "" {
		return unknownName(k, at)
	}
	name, id, v := r.Get("name").Str, r.Get("id").Str, r.Get("response")
	switch {
	case name == "":
		return google("result_name", at, "* GenerateContentRequest.%s.name: Name cannot be empty.", at)
	case name != call.name:
		return google("result_order", at, "Please ensure that function response turn comes immediately after a function call turn: function responses must have the names of the calls in their order: want %s, got %s.", call.name, name)
	case id != call.id && (id != "" && call.id != "" || c.led != nil):
		return google("result_without_call", at, "function response id %q does not match the id %q of its function call.", id, call.id)
	case isNull(v):
		return google("content", at, "* GenerateContentRequest.%s.response: missing field.", at)
	case !v.IsObject():
		return google("content", at, "Invalid value at '%s.response' (type.googleapis.com/google.protobuf.Struct), %s", at, v.Raw)
	}
	b := loop.Block{Kind: loop.BlockResult, ID: call.key, Name: name, Text: v.Raw}
	if v.Get("error").Exists() {
		b.Error = true
	}
	for _, p := range r.Get("parts").Array() {
		b.More = append(b.More, loop.Block{Kind: loop.BlockMedia, Raw: []byte(p.Raw)})
	}
	c.add(loop.Tool, b)
	return nil
}

// part checks one part of a turn: known fields, and one of them with data. Recordings show a part with a signature alone
// accepted (adk-go__llminternal_TestParallelFunctionCalls_*_gemini-3-1-pro-preview).
func (c *geminiCheck) part(p gjson.Result, at string) *Refusal {
	if !p.IsObject() {
		return google("type", at, "Invalid value at '%s'", at)
	}
	if k := geminiPart.unknown(p); k != "" {
		return unknownName(k, at)
	}
	data := 0
	p.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "thought", "videoMetadata", "video_metadata", "mediaResolution", "partMetadata":
		default:
			if v.Type != gjson.Null {
				data++
			}
		}
		return true
	})
	if data == 0 {
		return google("empty_text", at, "* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
	}
	if t := p.Get("text"); t.Exists() && !isString(t) {
		return google("type", at, "Invalid value at '%s.text' (TYPE_STRING), %s", at, t.Raw)
	}
	return nil
}

func (c *geminiCheck) say(role loop.Role, p gjson.Result) {
	switch text := p.Get("text"); {
	case p.Get("thought").Bool() && text.Exists() && role == loop.Assistant:
		c.add(role, loop.Block{Kind: loop.BlockThought, Text: text.Str})
	case text.Exists() && text.Str != "":
		c.add(role, loop.Block{Kind: loop.BlockText, Text: text.Str})
	case !text.Exists():
		c.add(role, loop.Block{Kind: loop.BlockMedia, Raw: []byte(p.Raw)})
	}
}

func (c *geminiCheck) model(turns []gjson.Result, i int, parts []gjson.Result, at string) *Refusal {
	if len(c.open) > 0 {
		return c.count()
	}
	for j, p := range parts {
		q := fmt.Sprintf("%s.parts[%d]", at, j)
		if ref := c.part(p, q); ref != nil {
			return ref
		}
		f := either(p, "functionCall", "function_call")
		sig := either(p, "thoughtSignature", "thought_signature").Str
		switch {
		case either(p, "functionResponse", "function_response").Exists():
			return google("block_role", q, "Please ensure that function response turn comes immediately after a function call turn.")
		case f.Exists():
			if ref := c.call(f, sig, loopGoesOn(turns[i+1:]), q); ref != nil {
				return ref
			}
		default:
			// "Thought signatures": a signature goes back in the part in which it came, never moved or joined with another part.
			if sig != "" && !c.led.signed("text", p.Get("text").Str, sig) {
				return corrupted(q)
			}
			c.say(loop.Assistant, p)
		}
	}
	return nil
}

// loopGoesOn reports whether no words of the user follow, only results and further calls.
func loopGoesOn(turns []gjson.Result) bool {
	for _, t := range turns {
		if t.Get("role").Str == "model" {
			continue
		}
		for _, p := range t.Get("parts").Array() {
			if !either(p, "functionResponse", "function_response").Exists() {
				return false
			}
		}
	}
	return true
}

func corrupted(at string) *Refusal {
	return google("thinking_changed", at, "Corrupted thought signature.")
}

func (c *geminiCheck) call(f gjson.Result, sig string, current bool, at string) *Refusal {
	if k := names("id name args partialArgs partial_args willContinue will_continue").unknown(f); k != "" {
		return unknownName(k, at+".function_call")
	}
	name, id, args := f.Get("name").Str, f.Get("id").Str, f.Get("args")
	raw := args.Raw
	switch {
	case name == "":
		return google("tool_name", at, "* GenerateContentRequest.%s.function_call.name: Name cannot be empty.", at)
	case isNull(args):
		raw = "{}"
	case !args.IsObject():
		return google("call_changed", at, "Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct), %s", at, args.Raw)
	}
	key := id
	if key == "" {
		key = "call_" + strconv.Itoa(c.n)
	}
	for _, o := range c.open {
		if id != "" && o.id == id {
			return google("duplicate_call", at, "Duplicate function call id %q in one turn.", id)
		}
	}
	c.n++
	c.open = append(c.open, geminiCall{id: id, name: name, key: key})
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockCall, ID: key, Name: name, Args: raw})
	made, pr := c.led.call(id, name, raw, false)
	if pr != fine {
		return google("call_"+string(pr), at, "the function call is not as it was received (%s): name %q, args %s", pr, name, raw)
	}
	switch {
	case sig != "" && !c.led.signed("call", name+canonical(raw), sig):
		return corrupted(at)
	// "Thought signatures: function calling" (Gemini 3): within the current turn the first call of each step needs it.
	case sig == "" && current && len(c.open) == 1 && made.turn != nil:
		return google("thinking_dropped", at, "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", name, len(c.open))
	}
	return nil
}
