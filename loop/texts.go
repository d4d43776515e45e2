package loop

import "strconv"

// What the loop itself says to the model. A text that entered a journal is read from there, so these may be improved without
// changing any replay.
const (
	textCut       = "Your last response was cut off before its end and was not used. Answer again, in a shorter form."
	textEmpty     = "Your last response held neither text nor a tool call. Answer, or call a tool."
	textMalformed = "Your last tool call could not be parsed and was not run. Make the call again with valid arguments."
	textImitation = "Your last response only describes tool calls or their results as text: nothing was run, and results written that way are not real. " +
		"Make a real tool call, or answer without inventing results."
	textPlain   = "An answer in plain text does not end this task. Call the finish tool with your answer, or call another tool."
	textExpired = "Not executed: the approval expired before a person answered."
	textLimit   = "(The limit for this answer was reached before you could be asked to go on.)" // where a prompt would end with the model's own words

	textSuperseded = "Not executed: the user sent a new message instead of answering."
	textCancelled  = "Not executed: the run was cancelled."
	textNotRun     = "Not executed: the run ended before this call's turn came."
	textUnsure     = "Outcome unknown: the call was started, and nobody knows whether its effect happened."
)

// RefusalText is what the model is told of a call that a limit kept from running.
func RefusalText(limit string) string {
	switch limit {
	case LimitRounds:
		return "Not executed: the step limit for this answer was reached."
	case LimitToolCalls:
		return "Not executed: the limit of tool calls for this answer was reached."
	case LimitTokens:
		return "Not executed: the token limit for this answer was reached."
	case LimitCost:
		return "Not executed: the cost limit for this answer was reached."
	case LimitModelCalls:
		return "Not executed: the limit of model calls for this answer was reached."
	}
	return "Not executed: the time limit for this answer was reached."
}

// ClosingText is the instruction of the closing call. It is sent in the system instructions of that call alone.
func ClosingText(limit string) string {
	what := map[string]string{
		LimitRounds: "step limit", LimitModelCalls: "limit of model calls", LimitToolCalls: "limit of tool calls",
		LimitTokens: "token limit", LimitCost: "cost limit", LimitActiveTime: "time limit", LimitDeadline: "time limit",
	}[limit]
	return "The " + what + " of this answer has been reached, and no tool can be called any more. Answer now in plain text, from what is known: " +
		"say what you found, say that the limit was reached, name what was asked for and left undone (calls answered with \"Not executed\" did not happen; " +
		"claim nothing that no result shows), and ask whether to continue."
}

// HintText is the last line of a hand-back near the end of the rounds.
func HintText(left int64) string {
	switch left {
	case 0:
		return "No rounds are left: answer now with what you know; tools will not run any more."
	case 1:
		return "1 round is left: make the one call that matters most, or answer."
	}
	return strconv.FormatInt(left, 10) + " rounds are left: come to an end within them."
}

func repairCause(reason string) string {
	switch reason {
	case NudgeMalformed:
		return "a tool call could not be parsed"
	case NudgeImitation:
		return "calls were written as text"
	case NudgePlain:
		return "the answer did not come through the finish tool"
	case NudgeOutput:
		return "the output does not fit its schema"
	}
	return "unknown tools or invalid arguments"
}

func detail(d string) string {
	if d == "" {
		return ""
	}
	return " (" + cutText(d, 300) + ")"
}

func failure(b ModelFailed) string {
	s := cutText(b.Message, 2000)
	if b.Clock != "" {
		s = "clock " + b.Clock + ": " + s
	}
	if b.Status != 0 {
		s = "status " + strconv.Itoa(b.Status) + ": " + s
	}
	return s
}

// cutText cuts at n bytes, at the border of a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
