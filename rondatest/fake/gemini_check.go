package fake

import (
	"fmt"
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
)

// Sources of the rules in this file, where none is named at the rule: the pages "Generate content" (API reference), "Function
// calling" and "Thought signatures" of the Gemini API's documentation, and "GenerateContent" of Vertex AI. Requests are JSON
// forms of protobuf messages: names in camelCase and in snake_case are the same field, unknown names are errors.

var (
	geminiTop = names(`contents tools toolConfig tool_config safetySettings safety_settings systemInstruction system_instruction
		generationConfig generation_config cachedContent cached_content labels modelArmorConfig model_armor_config model serviceTier service_tier store`)
	geminiGeneration = names(`stopSequences stop_sequences responseMimeType response_mime_type responseSchema response_schema
		responseJsonSchema response_json_schema _responseJsonSchema responseModalities response_modalities candidateCount candidate_count
		maxOutputTokens max_output_tokens temperature topP top_p topK top_k seed presencePenalty presence_penalty frequencyPenalty
		frequency_penalty responseLogprobs response_logprobs logprobs enableEnhancedCivicAnswers speechConfig speech_config
		thinkingConfig thinking_config imageConfig image_config mediaResolution media_resolution audioTimestamp routingConfig`)
	geminiToolNames = names(`functionDeclarations function_declarations googleSearch google_search googleSearchRetrieval
		google_search_retrieval codeExecution code_execution urlContext url_context googleMaps google_maps fileSearch file_search
		computerUse computer_use mcpServers retrieval enterpriseWebSearch`)
	geminiFunction = names(`name description parameters parametersJsonSchema parameters_json_schema response responseJsonSchema
		response_json_schema behavior`)
	geminiPart = names(`text inlineData inline_data fileData file_data functionCall function_call functionResponse function_response
		executableCode executable_code codeExecutionResult code_execution_result thought thoughtSignature thought_signature
		videoMetadata video_metadata mediaResolution partMetadata toolCall tool_call toolResponse tool_response`)
	geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)
)

// either reads a field by its two spellings.
func either(v gjson.Result, camel, snake string) gjson.Result {
	if r := v.Get(camel); r.Exists() {
		return r
	}
	return v.Get(snake)
}

type geminiCheck struct {
	body gjson.Result
	seen *Seen
	led  *ledger
	open []geminiCall // calls of the turn before
	n    int          // results so far, for blocks without an id
}

type geminiCall struct{ id, name, key string }

func checkGemini(body gjson.Result, seen *Seen, led *ledger) *Refusal {
	c := &geminiCheck{body: body, seen: seen, led: led}
	for _, f := range []func() *Refusal{c.top, c.system, c.tools, c.config, c.contents} {
		if ref := f(); ref != nil {
			return ref
		}
	}
	return nil
}

func (c *geminiCheck) top() *Refusal {
	if k := geminiTop.unknown(c.body); k != "" {
		return unknownName(k, "")
	}
	g := either(c.body, "generationConfig", "generation_config")
	if g.Exists() && !g.IsObject() && g.Type != gjson.Null {
		return google("type", "generation_config", "Invalid value at 'generation_config' (type.googleapis.com/google.ai.generativelanguage.v1beta.GenerationConfig), %s", g.Raw)
	}
	if k := geminiGeneration.unknown(g); k != "" && g.IsObject() {
		return unknownName(k, "generation_config")
	}
	n := either(g, "maxOutputTokens", "max_output_tokens")
	if !isNull(n) && n.Int() < 1 {
		return google("max_tokens", "generation_config.max_output_tokens", "* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.")
	}
	c.seen.MaxOutput = n.Int()
	// otel-contrib__…vertexai_test_generate_c*
	if t := g.Get("temperature"); !isNull(t) && (t.Num < 0 || t.Num > 2) {
		return google("temperature", "generation_config.temperature", "Unable to submit request because it has a temperature value of %s but the supported range is from 0 (inclusive) to 2.0001 (exclusive). Update the value and try again.", t.Raw)
	}
	if s := either(g, "responseSchema", "response_schema"); !isNull(s) {
		return geminiSchema(s, "generation_config.response_schema")
	}
	return nil
}

func (c *geminiCheck) system() *Refusal {
	s := either(c.body, "systemInstruction", "system_instruction")
	if isNull(s) {
		return nil
	}
	for i, p := range s.Get("parts").Array() {
		if !isString(p.Get("text")) {
			return google("system", "system_instruction", "* GenerateContentRequest.system_instruction.parts[%d].data: required oneof field 'data' must have one initialized field", i)
		}
		c.seen.addSystem(p.Get("text").Str)
	}
	if len(s.Get("parts").Array()) == 0 {
		return google("system", "system_instruction", "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.")
	}
	return nil
}

func (c *geminiCheck) tools() *Refusal {
	for i, t := range c.body.Get("tools").Array() {
		at := fmt.Sprintf("tools[%d]", i)
		if k := geminiToolNames.unknown(t); k != "" {
			return unknownName(k, at)
		}
		for j, f := range either(t, "functionDeclarations", "function_declarations").Array() {
			if ref := c.function(f, fmt.Sprintf("%s.function_declarations[%d]", at, j)); ref != nil {
				return ref
			}
		}
	}
	return nil
}

func (c *geminiCheck) function(f gjson.Result, at string) *Refusal {
	if k := geminiFunction.unknown(f); k != "" {
		return unknownName(k, at)
	}
	name := f.Get("name").Str
	switch {
	case !geminiName.MatchString(name):
		return google("tool_name", at+".name", "* GenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.", at)
	case c.seen.tool(name) != nil:
		return google("duplicate_tool", at+".name", "Duplicate function declaration found: %s", name)
	}
	p, j := f.Get("parameters"), either(f, "parametersJsonSchema", "parameters_json_schema")
	tool := Tool{Name: name, Description: f.Get("description").Str}
	switch {
	case !isNull(p) && !isNull(j):
		return google("schema", at, "* GenerateContentRequest.%s: parameters and parameters_json_schema must not be set at the same time.", at)
	case !isNull(p):
		tool.Schema = []byte(p.Raw)
		if ref := geminiSchema(p, at+".parameters"); ref != nil {
			return ref
		}
	case !isNull(j):
		tool.Schema = []byte(j.Raw)
		// parametersJsonSchema takes JSON Schema ("Function calling"); the schema of arguments is an object's.
		if t := j.Get("type"); !j.IsObject() || t.Exists() && t.Str != "object" {
			return google("schema", at, "* GenerateContentRequest.%s.parameters_json_schema: the schema must describe an object.", at)
		}
	}
	c.seen.Tools = append(c.seen.Tools, tool)
	return nil
}

func (c *geminiCheck) config() *Refusal {
	cfg := either(c.body, "toolConfig", "tool_config")
	if k := names("functionCallingConfig function_calling_config retrievalConfig retrieval_config includeServerSideToolInvocations include_server_side_tool_invocations").unknown(cfg); k != "" && cfg.IsObject() {
		return unknownName(k, "tool_config")
	}
	f := either(cfg, "functionCallingConfig", "function_calling_config")
	if isNull(f) {
		return nil
	}
	const at = "tool_config.function_calling_config"
	if k := names("mode allowedFunctionNames allowed_function_names streamFunctionCallArguments").unknown(f); k != "" {
		return unknownName(k, at)
	}
	allowed := either(f, "allowedFunctionNames", "allowed_function_names").Array()
	mode := f.Get("mode").Str
	switch mode {
	case "", "AUTO", "auto", "MODE_UNSPECIFIED", "VALIDATED", "validated":
	case "NONE", "none":
		c.seen.Choice = "none"
	case "ANY", "any":
		c.seen.Choice = "required"
		if len(allowed) == 1 {
			c.seen.Choice = allowed[0].Str
		}
	default:
		return google("choice", at+".mode", "Invalid value at '%s.mode' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), %q", at, mode)
	}
	// Stricter than the provider for NONE; ANY without declarations it refuses in these words.
	if len(c.seen.Tools) == 0 && mode != "" && mode != "AUTO" {
		return google("choice_without_tools", at, "Function calling config is set without function_declarations.")
	}
	if len(allowed) > 0 && c.seen.Choice != "none" && c.seen.Choice != "" || len(allowed) > 0 && (mode == "VALIDATED" || mode == "validated") {
		for _, a := range allowed {
			if c.seen.tool(a.Str) == nil {
				return google("choice", at, "* GenerateContentRequest.%s.allowed_function_names: %s is not declared.", at, a.Str)
			}
		}
	} else if len(allowed) > 0 {
		return google("choice", at, "* GenerateContentRequest.%s.allowed_function_names: should only be set when mode is ANY or VALIDATED.", at)
	}
	return nil
}

func (c *geminiCheck) add(role loop.Role, b loop.Block) {
	b.Wire = Gemini
	c.seen.add(role, b)
}
