package loop_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

// declared collects the names of tools in a recorded request, whatever the wire.
func declared(v any, names map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			declared(x, names)
		}
	case map[string]any:
		for _, k := range []string{"function", "functionDeclarations", "function_declarations"} {
			if inner, ok := v[k]; ok {
				declared(inner, names)
			}
		}
		if name, ok := v["name"].(string); ok && name != "" {
			names[name] = true
		}
	}
}

// written is the one recorded answer that really is a call written as text, by a model that was not allowed to call.
const written = "openai-chat/rig__llamacpp_tool_matrix_tool_choice_none"

// TestImitatesNoAnswerOfRealModels measures false alarms: none of the recorded answers in which models ended a task in plain text
// may be taken for a call written as text. Tools are those of the whole conversation, and some with names that are words.
func TestImitatesNoAnswerOfRealModels(t *testing.T) {
	texts, alarms := 0, 0
	for _, wire := range []string{"anthropic", "gemini", "openai-chat", "openai-responses"} {
		for _, f := range traffic.Load(t, wire) {
			names := map[string]bool{"search": true, "weather": true, "answer": true, "final": true}
			for _, e := range f.Exchanges {
				var body struct {
					Tools any `json:"tools"`
				}
				if json.Unmarshal(e.Request.Body, &body) == nil {
					declared(body.Tools, names)
				}
				for _, c := range e.Derived.ToolCalls {
					names[c.Name] = true
				}
			}
			tools := slices.Sorted(maps.Keys(names))
			for i, e := range f.Exchanges {
				if strings.TrimSpace(e.Derived.Text) == "" || len(e.Derived.ToolCalls) > 0 {
					continue
				}
				texts++
				switch seen := loop.Imitates(e.Derived.Text, tools); {
				case f.Name == written && !seen:
					t.Errorf("%s: the call written as text is not seen", f.Name)
				case f.Name != written && seen:
					alarms++
					t.Errorf("%s exchange %d, tools %v:\n%.300s", f.Name, i, tools, e.Derived.Text)
				}
			}
		}
	}
	t.Logf("%d answers, %d false alarms", texts, alarms)
	if texts < 100 {
		t.Errorf("only %d answers were found: the recordings are not what they were", texts)
	}
}
