package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

func (c *responsesCheck) item(list []gjson.Result, i int, it gjson.Result) *Refusal {
	at := fmt.Sprintf("input[%d]", i)
	typ := it.Get("type").Str
	if typ == "" && it.Get("role").Exists() {
		typ = "message"
	}
	if typ == "" && it.IsObject() && isString(it.Get("id")) {
		typ = "item_reference" // type is optional there
	}
	fields, ok := responsesItem[typ]
	switch {
	case responsesServer[typ]:
		c.add(loop.Assistant, loop.Block{Kind: loop.BlockOpaque, Raw: []byte(it.Raw)})
		return nil
	case !ok:
		return openAI("block", at, "invalid_value", "Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning', 'item_reference', ...", typ)
	}
	if k := fields.unknown(it); k != "" {
		return openAI("unknown_field", at+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", at, k)
	}
	if ref := c.itemID(it, typ, at); ref != nil {
		return ref
	}
	switch typ {
	case "message":
		return c.message(it, at)
	case "function_call":
		return c.call(list, i, it, at)
	case "function_call_output":
		return c.output(it, at)
	case "reasoning":
		return c.reasoning(list, i, it, at)
	}
	call, ok := c.led.item(it.Get("id").Str)
	switch {
	case !ok:
		return notStored(it.Get("id").Str)
	case call != nil:
		c.all[call.id] = true
		c.open = append(c.open, call.id)
		c.add(loop.Assistant, loop.Block{Kind: loop.BlockCall, ID: call.id, Name: call.name, Args: call.args})
		return nil
	}
	c.references = true
	c.rs = append(c.rs, it.Get("id").Str)
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockOpaque, Raw: []byte(it.Raw)})
	return nil
}

// itemID: ids begin with the letters of their kind, and no item comes twice.
func (c *responsesCheck) itemID(it gjson.Result, typ, at string) *Refusal {
	id := it.Get("id")
	if isNull(id) {
		return nil
	}
	prefix := map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs"}[typ]
	if !strings.HasPrefix(id.Str, prefix) {
		return openAI("item", at+".id", "invalid_value", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", at, id.Str, prefix)
	}
	if c.ids[id.Str] {
		return openAI("duplicate_call", "input", "", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id.Str)
	}
	c.ids[id.Str] = true
	return nil
}

func (c *responsesCheck) message(it gjson.Result, at string) *Refusal {
	role := it.Get("role").Str
	kinds := "input_text input_image input_file input_audio"
	to := loop.User
	switch role {
	case "user", "system", "developer":
		c.rs = nil
	case "assistant":
		kinds, to = "output_text refusal", loop.Assistant
	default:
		return openAI("role", at, "invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", role)
	}
	if ref := c.place(at); ref != nil {
		return ref
	}
	content := it.Get("content")
	c.seen.begin()
	if isString(content) {
		c.say(role, to, loop.Block{Kind: loop.BlockText, Text: content.Str})
		return nil
	}
	if !content.IsArray() {
		return missing(at + ".content")
	}
	for j, p := range content.Array() {
		typ := p.Get("type").Str
		q := fmt.Sprintf("%s.content[%d]", at, j)
		switch {
		case !names(kinds)[typ]:
			return openAI("block", q, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", typ, quoted(kinds))
		case typ == "input_text" || typ == "output_text" || typ == "refusal":
			t := p.Get(strings.TrimPrefix(strings.TrimPrefix(typ, "input_"), "output_"))
			if !isString(t) {
				return missing(q + ".text")
			}
			// Stricter than the provider: an empty part says nothing.
			if t.Str == "" {
				return openAI("empty_text", q+".text", "empty_string", "Invalid '%s.text': empty string. Expected a string with minimum length 1, but got an empty string instead.", q)
			}
			c.say(role, to, loop.Block{Kind: loop.BlockText, Text: t.Str})
		default:
			c.say(role, to, loop.Block{Kind: loop.BlockMedia, Raw: []byte(p.Raw)})
		}
	}
	return nil
}

func (c *responsesCheck) say(role string, to loop.Role, b loop.Block) {
	if role == "system" || role == "developer" {
		c.seen.addSystem(b.Text)
		return
	}
	c.add(to, b)
}

// place refuses an item that stands between a call and its output. Stricter than the provider, which looks for outputs in the
// whole input; ronda puts them directly behind the calls.
func (c *responsesCheck) place(at string) *Refusal {
	if len(c.open) > 0 && (c.led != nil || c.seen.Previous == "") {
		return openAI("missing_result", "input", "", "No tool output found for function call %s.", c.open[0])
	}
	return nil
}

// callID reads a call_id: at most 64 characters (the API's "string too long").
func callID(it gjson.Result, at string) (string, *Refusal) {
	id := it.Get("call_id")
	switch {
	case isNull(id):
		return "", missing(at + ".call_id")
	case !isString(id):
		return "", wrongType(at+".call_id", "a string", id)
	case id.Str == "":
		return "", openAI("call_id", at+".call_id", "empty_string", "Invalid '%s.call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.", at)
	case len(id.Str) > 64:
		return "", tooLong("call_id", at+".call_id", 64, len(id.Str))
	}
	return id.Str, nil
}

func (c *responsesCheck) call(list []gjson.Result, i int, it gjson.Result, at string) *Refusal {
	id, ref := callID(it, at)
	if ref != nil {
		return ref
	}
	if ref := functionName(it.Get("name"), at+".name"); ref != nil {
		return ref
	}
	args := it.Get("arguments")
	if !isString(args) {
		if isNull(args) {
			return missing(at + ".arguments")
		}
		return wrongType(at+".arguments", "a string", args)
	}
	// Stricter than the provider: with two calls of one id nobody can say which one an output answers.
	if c.all[id] {
		return openAI("duplicate_call", at+".call_id", "", "Duplicate function call with call_id %s.", id)
	}
	c.all[id] = true
	c.open = append(c.open, id)
	name := it.Get("name").Str
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockCall, ID: id, Name: name, Args: args.Str})
	made, pr := c.led.call(id, name, args.Str, true)
	if pr != fine {
		return openAI("call_"+string(pr), "input", "", "the call %s is not as it was received (%s): name %q, arguments %s", id, pr, name, args.Str)
	}
	// "Reasoning models: keeping reasoning items in context"; the message is the API's. Only the loop since the user's last words.
	want, ok := thoughtsOf([]servedCall{made})
	if !ok || slices.ContainsFunc(list[i+1:], func(v gjson.Result) bool { return v.Get("role").Str == "user" }) {
		return nil
	}
	for _, rs := range want {
		if !slices.Contains(c.rs, rs) {
			return openAI("thinking_dropped", "input", "", "Item '%s' of type 'function_call' was provided without its required 'reasoning' item: '%s'.", it.Get("id").Str, rs)
		}
	}
	return nil
}

func (c *responsesCheck) output(it gjson.Result, at string) *Refusal {
	id, ref := callID(it, at)
	if ref != nil {
		return ref
	}
	known := c.led != nil || c.seen.Previous == "" && isNull(c.body.Get("conversation")) && !c.references
	switch {
	case known && !c.all[id]:
		return openAI("result_without_call", "input", "", "No tool call found for function call output with call_id %s.", id)
	case known && !slices.Contains(c.open, id):
		return openAI("duplicate_result", "input", "", "Duplicate function call output with call_id %s.", id)
	// Stricter than the provider, which takes outputs in any order; ronda keeps the order of the calls.
	case known && c.open[0] != id:
		return openAI("result_order", "input", "", "Function call outputs must be in the order of the calls: want %s, got %s.", c.open[0], id)
	}
	if i := slices.Index(c.open, id); i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
	out := it.Get("output")
	b := loop.Block{Kind: loop.BlockResult, ID: id, Name: c.seen.callName(id), Text: out.Str}
	switch {
	case isNull(out):
		return missing(at + ".output")
	case out.IsArray():
		var parts []string
		for j, p := range out.Array() {
			switch typ := p.Get("type").Str; typ {
			case "input_text":
				parts = append(parts, p.Get("text").Str)
			case "input_image", "input_file":
				b.More = append(b.More, loop.Block{Kind: loop.BlockMedia, Raw: []byte(p.Raw)})
			default:
				return openAI("block", fmt.Sprintf("%s.output[%d]", at, j), "invalid_value", "Invalid value: '%s'. Supported values are: 'input_text', 'input_image', and 'input_file'.", typ)
			}
		}
		b.Text = strings.Join(parts, "\n")
	case !isString(out):
		return wrongType(at+".output", "a string or an array of objects", out)
	}
	c.add(loop.Tool, b)
	return nil
}

// reasoning checks a reasoning item: with encrypted content it must be what was served, else it must be stored.
func (c *responsesCheck) reasoning(list []gjson.Result, i int, it gjson.Result, at string) *Refusal {
	id := it.Get("id").Str
	if !it.Get("summary").IsArray() {
		return missing(at + ".summary")
	}
	if ref := c.place(at); ref != nil {
		return ref
	}
	var parts []string
	for _, s := range it.Get("summary").Array() {
		parts = append(parts, s.Get("text").Str)
	}
	text := strings.Join(parts, "\n\n")
	c.add(loop.Assistant, loop.Block{Kind: loop.BlockThought, Text: text, Raw: []byte(it.Raw)})
	if sealed := it.Get("encrypted_content"); !isNull(sealed) {
		opened, ok := c.led.open("reasoning", sealed.Str)
		own, rest, _ := strings.Cut(opened, "\n")
		if !ok || c.led != nil && (rest != text || id != "" && own != id) {
			return openAI("thinking_changed", "", "invalid_encrypted_content", "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", id)
		}
		if id == "" {
			id = own
		}
	} else if _, ok := c.led.item(id); !ok {
		return notStored(id)
	}
	c.rs = append(c.rs, id)
	// The message is the API's: reasoning stands before the item that it led to.
	if i == len(list)-1 || list[i+1].Get("role").Str == "user" || list[i+1].Get("type").Str == "function_call_output" {
		return openAI("thinking_place", "input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", id)
	}
	return nil
}
