package agentfile_test

import (
	"fmt"

	"github.com/ronda-go/ronda/agentfile"
)

// What is wrong with a file comes all at once, with the place and the way out.
func ExampleParse_errors() {
	_, _, err := agentfile.Parse([]byte(`name: support
script: [{text: Hello.}]
limits: {rounds: 8, cost: 0.5}
tools:
  - name: read_case
    command: ["./read_case"]
    effect: reed
`), ".", agentfile.Options{File: "agent.yaml"})
	fmt.Println(err)
	// Output:
	// agent.yaml:3:21: limits.cost: unknown key "cost"; known keys: active_time, cost_usd, deadline, model_calls, rounds, tokens, tool_calls
	// agent.yaml:7:13: tools[0].effect: "reed" is not an effect; use read, idempotent or once
}
