package fake_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/rondatest/fake"
)

// violation is a request that a provider refuses: a good one with one thing wrong.
type violation struct {
	rule     string
	old, new string // replaced in the good request, once
	says     string // a part of the message
}

const goodAnthropic = `{"model":"claude-sonnet-4-5","max_tokens":2000,"stream":false,"system":[{"type":"text","text":"Be brief."}],` +
	`"tools":[{"name":"look","description":"d","input_schema":{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false},"strict":true},{"name":"pay","input_schema":{"type":"object"}}],` +
	`"tool_choice":{"type":"auto"},"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":[{"type":"text","text":"Hello."}]},` +
	`{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"look","input":{"q":"a"}},{"type":"tool_use","id":"t2","name":"pay","input":{}}]},` +
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"no"}],"is_error":true},{"type":"text","text":"Go on."}]}]}`

var anthropicViolations = []violation{
	{"json", `{"model"`, `{"model`, "valid JSON"},
	{"unknown_field", `"stream":false`, `"streem":false`, "streem: Extra inputs are not permitted"},
	{"required", `"max_tokens":2000,`, ``, "max_tokens: Field required"},
	{"required", `"model":"claude-sonnet-4-5",`, ``, "model: Field required"},
	{"max_tokens", `2000`, `0`, "greater than or equal to 1"},
	{"max_tokens", `2000`, `"2000"`, "valid integer"},
	{"stream", `"stream":false`, `"stream":"no"`, "valid boolean"},
	{"temperature", `"stream":false`, `"temperature":1.5`, "range: 0..1"},
	{"stop_sequences", `"stream":false`, `"stop_sequences":[" "]`, "non-whitespace"},
	{"empty_text", `Be brief.`, ``, "system: text content blocks must be non-empty"},
	{"tool_name", `"name":"look","description"`, `"name":"lo ok","description"`, "tools.0.custom.name"},
	{"tool_name", `"name":"look","description"`, `"name":"","description"`, "tools.0.custom.name"},
	{"duplicate_tool", `"name":"pay","input_schema"`, `"name":"look","input_schema"`, "Tool names must be unique"},
	{"schema", `{"type":"object"}}]`, `{"type":"string"}}]`, "tools.1.custom.input_schema.type: Input should be 'object'"},
	{"schema", `{"type":"object"}}]`, `{}}]`, "input_schema.type: Field required"},
	{"schema", `{"type":"object"}}]`, `true}]`, "does not match the expected shape"},
	{"schema", `{"type":"object"}}]`, `{"type":"object","anyOf":[]}}]`, "anyOf at the top level"},
	{"schema", `{"type":"object"}}]`, `{"type":"object","required":"q"}}]`, "draft 2020-12"},
	{"schema", `,"additionalProperties":false`, ``, "'additionalProperties' must be explicitly set to false"},
	{"unknown_field", `"description":"d"`, `"parameters":{}`, "tools.0.custom.parameters"},
	{"choice", `{"type":"auto"}`, `{"type":"required"}`, "expected tags"},
	{"choice", `{"type":"auto"}`, `{"type":"tool","name":"nope"}`, "'nope' not found"},
	{"thinking", `{"type":"auto"}`, `{"type":"any"}`, "forces tool use"},
	{"thinking", `"budget_tokens":1024`, `"budget_tokens":100`, "1024"},
	{"thinking", `2000`, `1024`, "greater than `thinking.budget_tokens`"},
	{"thinking", `"stream":false`, `"temperature":0.5`, "only be set to 1"},
	{"messages", `"messages":[{"role":"user","content":[{"type":"text","text":"Hello."}]},`, `"messages":[],"x":[`, ""},
	{"first_user", `{"role":"user","content":[{"type":"text","text":"Hello."}]},`, ``, "first message must use"},
	{"role", `{"role":"user","content":[{"type":"text","text":"Hello."}]}`, `{"role":"tool","content":"x"}`, "messages.0.role"},
	{"empty_text", `Hello.`, ``, "must be non-empty"},
	{"empty_text", `Hello.`, ` \n`, "non-whitespace"},
	{"empty_text", `I look.`, ``, "must be non-empty"},
	{"empty_content", `[{"type":"text","text":"Hello."}]`, `[]`, "non-empty content"},
	{"empty_content", `[{"type":"text","text":"Hello."}]`, `""`, "non-empty content"},
	{"block", `{"type":"text","text":"Hello."}`, `{"type":"txt","text":"Hello."}`, "'txt'"},
	{"unknown_field", `"text":"Hello."`, `"text":"Hello.","name":"x"`, "text.name"},
	{"missing_result", `{"type":"tool_result","tool_use_id":"t1","content":"one"},`, ``, ""},
	{"missing_result", `,{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"no"}],"is_error":true}`, ``, "without `tool_result` blocks immediately after: t2"},
	{"missing_result", `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"no"}],"is_error":true},{"type":"text","text":"Go on."}]}`, ``, "t1, t2"},
	{"missing_result", `{"role":"user","content":[{"type":"tool_result"`, `{"role":"user","content":"Wait."},{"role":"user","content":[{"type":"tool_result"`, "t1, t2"},
	{"result_place", `[{"type":"tool_result"`, `[{"type":"text","text":"Here:"},{"type":"tool_result"`, "must come first"},
	{"result_without_call", `"tool_use_id":"t1"`, `"tool_use_id":"t9"`, "unexpected `tool_use_id` found in `tool_result` blocks: t9"},
	{"result_without_call", `"Hello."}]}`, `"Hello."}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`, "unexpected"},
	{"duplicate_result", `"tool_use_id":"t2"`, `"tool_use_id":"t1"`, "multiple `tool_result` blocks with id: t1"},
	{"result_order", `{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"no"}],"is_error":true}`,
		`{"type":"tool_result","tool_use_id":"t2","content":"no"},{"type":"tool_result","tool_use_id":"t1","content":"one"}`, "order"},
	{"empty_text", `[{"type":"text","text":"no"}]`, `""`, "cannot be empty if `is_error`"},
	{"empty_text", `[{"type":"text","text":"no"}]`, `[{"type":"text","text":""}]`, "must be non-empty"},
	{"block_role", `{"type":"text","text":"Hello."}`, `{"type":"tool_use","id":"t0","name":"look","input":{}}`, "only be in `assistant`"},
	{"block_role", `{"type":"text","text":"I look."}`, `{"type":"tool_result","tool_use_id":"t1","content":"x"}`, "only be in `user`"},
	{"duplicate_call", `"id":"t2"`, `"id":"t1"`, "ids must be unique"},
	{"call_id", `"id":"t1"`, `"id":"t:1"`, "should match pattern"},
	{"call_changed", `"input":{"q":"a"}`, `"input":"{}"`, "valid dictionary"},
	{"thinking_dropped", `{"type":"thinking","thinking":"Hm.","signature":"c2ln"},`, ``, "Expected `thinking` or `redacted_thinking`, but found `text`"},
	{"thinking_changed", `,"signature":"c2ln"`, ``, "signature: Field required"},
	{"unknown_field", `"signature":"c2ln"`, `"signature":"c2ln","cache_control":{"type":"ephemeral"}`, "thinking.cache_control"},
	{"tools_undeclared", `"tools":[{"name":"look","description":"d","input_schema":{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false},"strict":true},{"name":"pay","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},`, ``, "must define tools"},
	{"choice_without_tools", `"tools":[{"name":"look","description":"d","input_schema":{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false},"strict":true},{"name":"pay","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},`, `"tool_choice":{"type":"none"},`, "only be specified while providing tools"},
	{"final_assistant", `"Go on."}]}]`, `"Go on."}]},{"role":"assistant","content":"So "}]`, "trailing whitespace"},
	{"cache_control", `"Be brief."`, `"Be brief.","cache_control":{"type":"long"}`, "ephemeral"},
	{"cache_control", `{"type":"text","text":"Be brief."}`, strings.Repeat(`{"type":"text","text":"B","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"B","cache_control":{"type":"ephemeral"}}`, "maximum of 4 blocks"},
}

const goodChat = `{"model":"gpt-5","max_completion_tokens":2000,"stream":true,"stream_options":{"include_usage":true},` +
	`"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false},"strict":true}},{"type":"function","function":{"name":"pay","parameters":{"type":"object","properties":{}}}}],` +
	`"tool_choice":"auto","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hello."}]},` +
	`{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"q\":\"a\"}"}},{"id":"c2","type":"function","function":{"name":"pay","arguments":"{}"}}]},` +
	`{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"no"},{"role":"user","content":"Go on."}]}`

const chatTools = `"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false},"strict":true}},{"type":"function","function":{"name":"pay","parameters":{"type":"object","properties":{}}}}],`

var chatViolations = []violation{
	{"json", `{"model"`, `{"model`, "JSON"},
	{"unknown_field", `"stream":true`, `"streem":true,"stream":true`, "Unknown parameter: 'streem'."},
	{"required", `"model":"gpt-5",`, ``, "model"},
	{"required", `"messages":[`, `"stop":[`, "Missing required parameter: 'messages'."},
	{"stream_options", `"stream":true,`, ``, "only allowed when 'stream' is enabled"},
	{"max_tokens", `"max_completion_tokens":2000`, `"max_completion_tokens":2000,"max_tokens":2000`, "same time"},
	{"max_tokens", `"max_completion_tokens":2000`, `"max_completion_tokens":0`, ">= 1, but got 0"},
	{"type", `"max_completion_tokens":2000`, `"max_completion_tokens":"2000"`, "expected an integer, but got a string"},
	{"empty_array", chatTools, `"tools":[],`, "Invalid 'tools': empty array"},
	{"choice_without_tools", chatTools, ``, "'tool_choice' is only allowed when 'tools' are specified"},
	{"choice_without_tools", chatTools + `"tool_choice":"auto"`, `"tool_choice":"none"`, "only allowed when 'tools' are specified"},
	{"choice_without_tools", chatTools + `"tool_choice":"auto"`, `"parallel_tool_calls":false`, "only allowed when 'tools' are specified"},
	{"choice", `"tool_choice":"auto"`, `"tool_choice":"maybe"`, "Supported values"},
	{"choice", `"tool_choice":"auto"`, `"tool_choice":{"type":"function","function":{"name":"nope"}}`, "not found"},
	{"tool_name", `"name":"look","description"`, `"name":"lo.ok","description"`, "does not match pattern"},
	{"tool_name", `"name":"look","description"`, `"name":"` + strings.Repeat("x", 65) + `","description"`, "maximum length 64"},
	{"required", `"name":"look","description"`, `"description"`, "Missing required parameter: 'tools[0].function.name'."},
	{"duplicate_tool", `{"name":"pay","parameters"`, `{"name":"look","parameters"`, "unique"},
	{"schema", `{"type":"object","properties":{}}`, `{"properties":{}}`, `got 'type: "None"'`},
	{"schema", `{"type":"object","properties":{}}`, `{"type":"object"}`, "object schema missing properties"},
	{"schema", `{"type":"object","properties":{}}`, `{"type":"object","properties":{"a":{"type":"array"}}}`, "In context=('properties', 'a'), array schema missing items."},
	{"schema", `,"additionalProperties":false`, ``, "'additionalProperties' is required to be supplied and to be false."},
	{"schema", `"required":["q"]`, `"required":[]`, "Missing 'q'."},
	{"schema", `"q":{"type":"string"}`, `"q":{"oneOf":[]}`, "'oneOf' is not permitted"},
	{"role", `{"role":"user","content":"Go on."}`, `{"role":"human","content":"x"}`, "Invalid value: 'human'"},
	{"unknown_field", `{"role":"user","content":"Go on."}`, `{"role":"user","text":"x"}`, "messages[5].text"},
	{"content", `{"role":"user","content":"Go on."}`, `{"role":"user","content":null}`, "expected a string, got null"},
	{"content", `{"role":"user","content":"Go on."}`, `{"role":"assistant","content":null}`, "expected a string, got null"},
	{"empty_text", `"text":"Hello."`, `"text":""`, "empty string"},
	{"block", `{"type":"text","text":"Hello."}`, `{"type":"input_text","text":"Hello."}`, "'input_text'"},
	{"empty_array", `[{"type":"text","text":"Hello."}]`, `[]`, "empty array"},
	{"result_without_call", `"tool_call_id":"c1"`, `"tool_call_id":"c9"`, "'tool_call_id' of 'c9' not found"},
	{"result_without_call", `{"role":"assistant","content":"I look.",`, `{"role":"tool","tool_call_id":"c0","content":"x"},{"role":"assistant","content":"I look.",`, "preceeding message with 'tool_calls'"},
	{"missing_result", `{"role":"tool","tool_call_id":"c2","content":"no"},`, ``, "did not have response messages: c2"},
	{"missing_result", `,{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"no"},{"role":"user","content":"Go on."}`, ``, "c1, c2"},
	{"missing_result", `{"role":"tool","tool_call_id":"c1"`, `{"role":"user","content":"Wait."},{"role":"tool","tool_call_id":"c1"`, "c1, c2"},
	{"duplicate_result", `"tool_call_id":"c2"`, `"tool_call_id":"c1"`, "duplicate response"},
	{"result_order", `{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"no"}`, `{"role":"tool","tool_call_id":"c2","content":"no"},{"role":"tool","tool_call_id":"c1","content":"one"}`, "order"},
	{"required", `"tool_call_id":"c1",`, ``, "messages[3].tool_call_id"},
	{"required", `"id":"c1",`, ``, "messages[2].tool_calls[0].id"},
	{"duplicate_call", `"id":"c2"`, `"id":"c1"`, "Duplicate"},
	{"call_id", `"id":"c1"`, `"id":"` + strings.Repeat("c", 41) + `"`, "maximum length 40"},
	{"type", `"arguments":"{\"q\":\"a\"}"`, `"arguments":{"q":"a"}`, "expected a string, but got an object"},
	{"tool_name", `"function":{"name":"look","arguments"`, `"function":{"name":"lo ok","arguments"`, "tool_calls[0].function.name"},
	{"block", `"id":"c1","type":"function"`, `"id":"c1","type":"fn"`, "Invalid value: 'fn'"},
	{"empty_array", `"content":"I look.","tool_calls":[`, `"content":"I look.","tool_calls":[]},{"role":"assistant","tool_calls":[`, "empty array"},
}

const goodResponses = `{"model":"gpt-5","max_output_tokens":2000,"stream":true,"store":false,"include":["reasoning.encrypted_content"],"instructions":"Be brief.",` +
	responsesTools + `"tool_choice":"auto","input":[{"role":"user","content":[{"type":"input_text","text":"Hello."}]},` +
	`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"x"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},` +
	`{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"{\"q\":\"a\"}"},{"type":"function_call","id":"fc_2","call_id":"c2","name":"pay","arguments":"{}"},` +
	`{"type":"function_call_output","call_id":"c1","output":"one"},{"type":"function_call_output","call_id":"c2","output":"no"},{"role":"user","content":"Go on."}]}`

const responsesTools = `"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false},"strict":true},{"type":"function","name":"pay","parameters":{"type":"object","properties":{}},"strict":false}],`

var responsesViolations = []violation{
	{"json", `{"model"`, `{"model`, "JSON"},
	{"unknown_field", `"stream":true`, `"messages":[],"stream":true`, "Unknown parameter: 'messages'."},
	{"required", `"model":"gpt-5",`, ``, "'model'"},
	{"required", `"input":[`, `"metadata":[`, "must be provided"},
	{"max_tokens", `2000`, `4`, ">= 16, but got 4"},
	{"include", `"reasoning.encrypted_content"`, `"everything"`, "'everything'"},
	{"type", `"store":false`, `"store":"no"`, "a boolean"},
	{"choice_without_tools", responsesTools + `"tool_choice":"auto"`, `"tool_choice":"required"`, "must be specified with 'tools'"},
	{"choice_without_tools", responsesTools + `"tool_choice":"auto"`, `"tool_choice":"none"`, "must be specified with 'tools'"},
	{"choice", `"tool_choice":"auto"`, `"tool_choice":"any"`, "Supported values"},
	{"choice", `"tool_choice":"auto"`, `"tool_choice":{"type":"function","name":"nope"}`, "not found in 'tools'"},
	{"tool_name", `"name":"look","parameters"`, `"name":"lo ok","parameters"`, "tools[0].name"},
	{"required", `"name":"look","parameters"`, `"parameters"`, "tools[0].name"},
	{"unknown_field", `"name":"look","parameters"`, `"function":{},"name":"look","parameters"`, "tools[0].function"},
	{"duplicate_tool", `"name":"pay","parameters"`, `"name":"look","parameters"`, "unique"},
	{"schema", `,"additionalProperties":false`, ``, "'additionalProperties'"},
	{"schema", `"required":["q"]`, `"required":[]`, "Missing 'q'."},
	{"schema", `{"type":"object","properties":{}}`, `{"type":"array","items":{}}`, `got 'type: "array"'`},
	{"schema", `"stream":true`, `"stream":true,"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object","properties":{}}}}`, "'additionalProperties'"},
	{"previous", `"store":false`, `"previous_response_id":"abc"`, "begins with 'resp'"},
	{"role", `{"role":"user","content":"Go on."}`, `{"role":"tool","content":"x"}`, "'tool'"},
	{"block", `{"type":"input_text","text":"Hello."}`, `{"type":"output_text","text":"Hello."}`, "'output_text'"},
	{"block", `{"type":"output_text","text":"I look."}`, `{"type":"input_text","text":"I look."}`, "Supported values are: 'output_text', 'refusal'"},
	{"block", `{"role":"user","content":"Go on."}`, `{"type":"tool_call"}`, "'tool_call'"},
	{"empty_text", `"text":"Hello."`, `"text":""`, "empty string"},
	{"unknown_field", `"content":"Go on."`, `"content":"Go on.","name":"x"`, "input[7].name"},
	{"missing_result", `{"type":"function_call_output","call_id":"c2","output":"no"},`, ``, "No tool output found for function call c2."},
	{"missing_result", `,{"type":"function_call_output","call_id":"c1","output":"one"},{"type":"function_call_output","call_id":"c2","output":"no"},{"role":"user","content":"Go on."}`, ``, "No tool output found for function call c1."},
	{"result_without_call", `"call_id":"c1","output"`, `"call_id":"c9","output"`, "No tool call found for function call output with call_id c9."},
	{"duplicate_result", `"call_id":"c2","output"`, `"call_id":"c1","output"`, "Duplicate"},
	{"result_order", `{"type":"function_call_output","call_id":"c1","output":"one"},{"type":"function_call_output","call_id":"c2","output":"no"}`, `{"type":"function_call_output","call_id":"c2","output":"no"},{"type":"function_call_output","call_id":"c1","output":"one"}`, "order"},
	{"required", `"call_id":"c1","name"`, `"name"`, "input[3].call_id"},
	{"required", `,"output":"one"`, ``, "input[5].output"},
	{"required", `"name":"look","arguments":"{\"q\":\"a\"}"`, `"name":"look"`, "input[3].arguments"},
	{"required", `"summary":[{"type":"summary_text","text":"Hm."}],`, ``, "input[1].summary"},
	{"type", `"arguments":"{}"`, `"arguments":{}`, "expected a string"},
	{"call_id", `"call_id":"c1","name"`, `"call_id":"` + strings.Repeat("c", 65) + `","name"`, "maximum length 64"},
	{"duplicate_call", `"call_id":"c2","name"`, `"call_id":"c1","name"`, "Duplicate"},
	{"duplicate_call", `"id":"fc_2"`, `"id":"fc_1"`, "Duplicate item found with id fc_1"},
	{"item", `"id":"fc_1"`, `"id":"c1"`, "begins with 'fc'"},
	{"item", `"id":"rs_1"`, `"id":"fc_9"`, "begins with 'rs'"},
	{"thinking_place", `{"role":"user","content":"Go on."}`, `{"type":"reasoning","summary":[],"encrypted_content":"x"}`, "without its required following item"},
	{"block", `"output":"one"`, `"output":[{"type":"text","text":"x"}]`, "'text'"},
}

const goodGemini = `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"generationConfig":{"maxOutputTokens":2000},` + geminiTools +
	`"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"contents":[{"role":"user","parts":[{"text":"Hello."}]},` +
	`{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"g1","name":"look","args":{"q":"a"}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"g2","name":"pay","args":{}}}]},` +
	`{"role":"user","parts":[{"functionResponse":{"id":"g1","name":"look","response":{"output":"one"}}},{"functionResponse":{"id":"g2","name":"pay","response":{"error":"no"}}}]}]}`

const geminiTools = `"tools":[{"functionDeclarations":[{"name":"look","parametersJsonSchema":{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":false}},{"name":"pay","parameters":{"type":"OBJECT","properties":{"amount":{"type":"NUMBER"}},"required":["amount"]}}]}],`

var geminiViolations = []violation{
	{"json", `{"systemInstruction"`, `{"systemInstruction`, "Invalid JSON payload"},
	{"unknown_field", `"generationConfig"`, `"messages":[],"generationConfig"`, `Unknown name "messages": Cannot find field.`},
	{"unknown_field", `"maxOutputTokens":2000`, `"maxTokens":2000`, `Unknown name "maxTokens" at 'generation_config'`},
	{"unknown_field", `{"text":"Hello."}`, `{"type":"text","text":"Hello."}`, `at 'contents[0].parts[0]'`},
	{"unknown_field", `"role":"user","parts":[{"text"`, `"role":"user","content":"x","parts":[{"text"`, `at 'contents[0]'`},
	{"max_tokens", `2000`, `0`, "must be positive"},
	{"temperature", `"maxOutputTokens":2000`, `"temperature":3`, "supported range"},
	{"system", `[{"text":"Be brief."}]`, `[]`, "must not be empty"},
	{"tool_name", `"name":"look","parametersJsonSchema"`, `"name":"1look","parametersJsonSchema"`, "Invalid function name"},
	{"tool_name", `"name":"look","parametersJsonSchema"`, `"name":"lo ok","parametersJsonSchema"`, "Invalid function name"},
	{"duplicate_tool", `"name":"pay","parameters"`, `"name":"look","parameters"`, "Duplicate function declaration found: look"},
	{"unknown_field", `{"type":"OBJECT",`, `{"type":"OBJECT","additionalProperties":false,`, `Unknown name "additionalProperties"`},
	{"unknown_field", `{"type":"OBJECT",`, `{"$ref":"#/x","type":"OBJECT",`, `Unknown name "$ref"`},
	{"schema", `"type":"NUMBER"`, `"type":["NUMBER","NULL"]`, "not repeating"},
	{"schema", `"type":"NUMBER"`, `"type":"float"`, "v1beta.Type"},
	{"schema", `"type":"NUMBER"`, `"type":"ARRAY"`, "items: missing field"},
	{"schema", `"type":"NUMBER"`, `"type":"NUMBER","enum":["1"]`, "only allowed for STRING"},
	{"schema", `["amount"]`, `["price"]`, "property is not defined"},
	{"schema", `{"name":"pay",`, `{"name":"pay","parametersJsonSchema":{},`, "same time"},
	{"choice", `"mode":"AUTO"`, `"mode":"SOME"`, "Mode"},
	{"choice", `"mode":"AUTO"`, `"mode":"AUTO","allowedFunctionNames":["look"]`, "should only be set when mode is ANY"},
	{"choice", `"mode":"AUTO"`, `"mode":"ANY","allowedFunctionNames":["nope"]`, "not declared"},
	{"choice_without_tools", geminiTools + `"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`, `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`, "without function_declarations"},
	{"messages", `"contents":[`, `"contents":[],"labels":[`, "contents is not specified"},
	{"role", `{"role":"user","parts":[{"text":"Hello."}]}`, `{"role":"assistant","parts":[{"text":"Hello."}]}`, "Please use a valid role: user, model."},
	{"role", `{"role":"user","parts":[{"text":"Hello."}]}`, `{"parts":[{"text":"Hello."}]}`, "valid role"},
	{"first_user", `{"role":"user","parts":[{"text":"Hello."}]},`, ``, "begin with a user role"},
	{"empty_content", `[{"text":"Hello."}]`, `[]`, "must not be empty"},
	{"empty_text", `[{"text":"Hello."}]`, `[{}]`, "required oneof field 'data'"},
	{"missing_result", `,{"functionResponse":{"id":"g2","name":"pay","response":{"error":"no"}}}`, ``, "number of function response parts is equal"},
	{"missing_result", `,{"role":"user","parts":[{"functionResponse":{"id":"g1","name":"look","response":{"output":"one"}}},{"functionResponse":{"id":"g2","name":"pay","response":{"error":"no"}}}]}`, ``, "number of function response parts"},
	{"missing_result", `{"role":"user","parts":[{"functionResponse"`, `{"role":"user","parts":[{"text":"Wait."}]},{"role":"user","parts":[{"functionResponse"`, "number of function response parts"},
	{"result_without_call", `{"role":"model","parts":[{"text":"I look."},`, `{"role":"user","parts":[{"functionResponse":{"name":"look","response":{}}}]},{"role":"model","parts":[{"text":"I look."},`, "immediately after a function call turn"},
	{"result_without_call", `"functionResponse":{"id":"g1"`, `"functionResponse":{"id":"g9"`, `"g9"`},
	{"result_order", `{"functionResponse":{"id":"g1","name":"look","response":{"output":"one"}}},{"functionResponse":{"id":"g2","name":"pay","response":{"error":"no"}}}`, `{"functionResponse":{"id":"g2","name":"pay","response":{"error":"no"}}},{"functionResponse":{"id":"g1","name":"look","response":{"output":"one"}}}`, "order"},
	{"result_name", `"name":"look","response"`, `"response"`, "Name cannot be empty"},
	{"content", `"response":{"output":"one"}`, `"response":"one"`, "Struct"},
	{"content", `,"response":{"output":"one"}`, ``, "missing field"},
	{"call_changed", `"args":{"q":"a"}`, `"args":"{}"`, "Struct"},
	{"duplicate_call", `"id":"g2","name":"pay","args"`, `"id":"g1","name":"pay","args"`, "Duplicate"},
	{"block_role", `{"text":"Hello."}`, `{"functionCall":{"name":"look","args":{}}}`, "function call turn"},
	{"final_assistant", `,{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"g1","name":"look","args":{"q":"a"}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"g2","name":"pay","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"g1","name":"look","response":{"output":"one"}}},{"functionResponse":{"id":"g2","name":"pay","response":{"error":"no"}}}]}`, `,{"role":"model","parts":[{"text":"Hi."}]}`, "end with a user role"},
}

var rules = map[string]struct {
	good       string
	violations []violation
}{
	fake.Anthropic:  {goodAnthropic, anthropicViolations},
	fake.OpenAI:     {goodResponses, responsesViolations},
	fake.OpenAIChat: {goodChat, chatViolations},
	fake.Gemini:     {goodGemini, geminiViolations},
}

func TestCheckRefusesEachViolation(t *testing.T) {
	for wire, r := range rules {
		t.Run(wire, func(t *testing.T) {
			if err := fake.Check(wire, []byte(r.good)); err != nil {
				t.Fatalf("the good request is refused: %v", err)
			}
			for _, v := range r.violations {
				if strings.Count(r.good, v.old) < 1 {
					t.Errorf("%s: the good request does not hold %s", v.rule, v.old)
					continue
				}
				bad := strings.Replace(r.good, v.old, v.new, 1)
				err := fake.Check(wire, []byte(bad))
				var ref *fake.Refusal
				switch {
				case err == nil:
					t.Errorf("%s: accepted: %s", v.rule, bad)
				case !errors.As(err, &ref) || ref.Rule != v.rule && v.says != "" || !strings.Contains(ref.Message, v.says):
					t.Errorf("%s, %q: got %v\n%s → %s", v.rule, v.says, err, v.old, v.new)
				}
			}
		})
	}
}

func TestCheckKnowsItsWires(t *testing.T) {
	if err := fake.Check("carrier pigeon", []byte(`{}`)); err == nil {
		t.Error("accepted")
	}
}

// FuzzCheck: bad input never panics, and what is accepted can be read again.
func FuzzCheck(f *testing.F) {
	for wire, r := range rules {
		f.Add(wire, []byte(r.good))
		for _, v := range r.violations {
			f.Add(wire, []byte(strings.Replace(r.good, v.old, v.new, 1)))
		}
	}
	f.Fuzz(func(t *testing.T, wire string, body []byte) {
		err := fake.Check(wire, body)
		seen, err2 := fake.Read(wire, body)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("Check says %v, Read %v", err, err2)
		}
		if err == nil {
			if e := fake.PrefixStable(seen, seen); e != nil {
				t.Fatal(e)
			}
			seen.Match()
			seen.Results()
		}
	})
}
