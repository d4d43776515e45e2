// Package policy decides what happens to a call before it runs: allow, ask a person, or deny. Policies are pure: the same
// call gets the same verdict, and nothing outside is read.
package policy

import (
	"encoding/json"

	"github.com/ronda-go/ronda/loop"
)

// Call is what a policy sees of a call: arguments are canonical and fit the tool's schema.
type Call struct {
	Agent       string
	Path        []string // agents and calls above, from the root; empty in a root run
	Tool        string
	Effect      loop.Effect
	Label       string
	Destination string
	Approval    loop.Verdict // what the tool itself declares
	Args        json.RawMessage
}

// Decision is a verdict with the rule that gave it and the reason that a person reads.
type Decision struct {
	Verdict loop.Verdict
	Rule    string
	Reason  string
}
