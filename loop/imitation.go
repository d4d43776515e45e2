package loop

import (
	"encoding/json"
	"strings"
)

// Imitates says whether a response only describes tool calls (or their results) as text, as models do that learnt a textual
// protocol. It is conservative: a false alarm would refuse honest prose. It looks for the forms in which models are known to
// write calls, and only where a declared tool is named:
//
//   - the lines of ReAct: "Action: <tool>…" with an "Observation:" or "Action Input:" line in the same text;
//   - the markup of chat templates: <tool_call>, <function_calls>, [TOOL_CALLS], <|tool_call…, <function=…>;
//   - a text that is nothing but one JSON object (fenced or not) with the tool's name and its arguments.
func Imitates(text string, tools []string) bool {
	if len(tools) == 0 {
		return false
	}
	return reAct(text, tools) || markup(text, tools) || bareCall(text, tools)
}

func reAct(text string, tools []string) bool {
	action, second := false, false
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "Action:"); ok && beginsWithTool(strings.TrimSpace(rest), tools) {
			action = true
		}
		if strings.HasPrefix(line, "Observation:") || strings.HasPrefix(line, "Action Input:") {
			second = second || action
		}
	}
	return action && second
}

func beginsWithTool(s string, tools []string) bool {
	s = strings.TrimLeft(s, "`*[\"'")
	for _, t := range tools {
		if rest, ok := strings.CutPrefix(s, t); ok && (rest == "" || !isNameByte(rest[0])) {
			return true
		}
	}
	return false
}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// markup looks for a tool's name shortly after an opening mark that no prose holds outside of code.
func markup(text string, tools []string) bool {
	if strings.Contains(text, "```") {
		return false // a text about such markup quotes it in a fence
	}
	for _, mark := range []string{"<tool_call>", "<function_calls>", "<function_call>", "[TOOL_CALLS]", "<|tool_call", "<function=", "<tool_use>", "<|python_tag|>"} {
		i := strings.Index(text, mark)
		if i < 0 || i > 0 && text[i-1] == '`' {
			continue
		}
		rest := text[i+len(mark):]
		rest = rest[:min(len(rest), 200)]
		for _, t := range tools {
			if j := strings.Index(rest, t); j >= 0 && (j == 0 || !isNameByte(rest[j-1])) &&
				(j+len(t) == len(rest) || rest[j+len(t)] == '.' || !isNameByte(rest[j+len(t)])) { // <|python_tag|>search.call(…)
				return true
			}
		}
	}
	return false
}

// bareCall looks for a text that is one JSON object and nothing else: {"name": "<tool>", "arguments": {…}}.
func bareCall(text string, tools []string) bool {
	s := strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		body, ok := strings.CutSuffix(rest, "```")
		if !ok || strings.Contains(body, "```") {
			return false
		}
		_, body, _ = strings.Cut(body, "\n")
		s = strings.TrimSpace(body)
	}
	if !strings.HasPrefix(s, "{") || !strings.HasSuffix(s, "}") {
		return false
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &m) != nil {
		return false
	}
	name := ""
	for _, k := range []string{"name", "tool", "function", "tool_name", "action"} {
		var v string
		if raw, ok := m[k]; ok && json.Unmarshal(raw, &v) == nil {
			name = v
			break
		}
	}
	if name == "" {
		return false
	}
	args := false
	for _, k := range []string{"arguments", "parameters", "args", "input", "action_input"} {
		if _, ok := m[k]; ok {
			args = true
		}
	}
	for _, t := range tools {
		if args && t == name {
			return true
		}
	}
	return false
}
