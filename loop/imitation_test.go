package loop

import "testing"

func TestImitates(t *testing.T) {
	tools := []string{"search", "get_weather", "pay"}
	for _, text := range []string{
		"Action: search\nAction Input: {\"q\": \"bench\"}",
		"Thought: I look.\nAction: search[bench]\nObservation: 80 kg",
		"I will.\n\n  Action: `pay`\n  Action Input: 5\n",
		"Action: \"search\"\nObservation: nothing",
		"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Lima\"}}\n</tool_call>",
		"Let me look. <function_calls><invoke name=\"search\">",
		"[TOOL_CALLS] [{\"name\": \"pay\"}]",
		"<|tool_call_begin|>search",
		"<function=get_weather>{\"city\": \"Lima\"}</function>",
		"<|python_tag|>pay.call(amount=5)",
		`{"name": "search", "arguments": {"q": "x"}}`,
		"  {\"tool\": \"pay\", \"input\": {\"amount\": 5}}\n",
		"```json\n{\"function\": \"get_weather\", \"parameters\": {\"city\": \"Lima\"}}\n```",
		`{"action": "search", "action_input": "x"}`,
	} {
		if !Imitates(text, tools) {
			t.Errorf("not seen: %q", text)
		}
	}
	for _, text := range []string{
		"",
		"The weather in Lima is fine. I used get_weather for it.",
		"You can call search with a query, and then pay.",
		"Action: go for a walk.\nObservation: it rains.",
		"Action: search\nis what I would do next.",
		"Observation: 80 kg\nAction: search",
		"Action: searching the archive\nAction Input: none",
		"Action: research\nAction Input: none",
		"The template writes <tool_call> before a call, in any model.",
		"Write `<tool_call>{\"name\": \"search\"}</tool_call>` yourself.",
		"A call looks like this:\n```\n<tool_call>{\"name\": \"search\"}</tool_call>\n```\nDo not copy it.",
		"```\nAction: search\nAction Input: x\n```\nis the form that ReAct uses.",
		`{"name": "Ana", "arguments": ["for", "against"]}`,
		`{"name": "search"}`,
		`{"answer": "search", "arguments": 3}`,
		`[{"name": "search", "arguments": {}}]`,
		`{"name": "search", "arguments": {}} is how it looks.`,
		"```json\n{\"name\": \"search\", \"arguments\": {}}\n```\nand\n```json\n{}\n```",
		"```json\n{\"name\": \"search\", \"arguments\": {}}",
		"{not json}",
		"<tool_call> without any name",
		"<tool_call>researching",
	} {
		if Imitates(text, tools) {
			t.Errorf("a false alarm: %q", text)
		}
	}
	if Imitates("Action: search\nObservation: x", nil) {
		t.Error("without tools there is nothing to imitate")
	}
}
