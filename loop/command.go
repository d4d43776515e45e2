package loop

// Counts are the counters of a run. Children's calls are in the parent's counts where they draw on its ledger; rounds are not.
type Counts struct {
	Rounds        int64 `json:"rounds,omitempty"`
	ModelCalls    int64 `json:"model_calls,omitempty"`
	ModelAttempts int64 `json:"model_attempts,omitempty"`
	ToolCalls     int64 `json:"tool_calls,omitempty"`
	ToolAttempts  int64 `json:"tool_attempts,omitempty"`
	Usage         Usage `json:"usage,omitzero"`
	Estimated     int64 `json:"estimated,omitempty"` // tokens of Usage that were booked at their reserve
}

// Fact is a piece of task state with the event that established it.
type Fact struct {
	Value Value `json:"value"`
	Seq   int64 `json:"seq"`
}
