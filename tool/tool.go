// Package tool holds tools: what they declare, how they are called, how their errors are classed, and tools made from Go
// functions, commands and HTTP requests.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Tool is something that a model may ask for. It is safe for concurrent use.
type Tool interface {
	// Def says what the tool is. It does no I/O and returns the same value each time.
	Def() Def
	// Run executes one attempt. An error that is not an *Error has class "error"; a panic is "unknown". When ctx ends Run
	// must end soon; if it does not, the driver stops waiting after the grace time.
	Run(ctx context.Context, call Call) (Result, error)
}

// Checker is implemented by tools that can tell whether the effect with a given key happened.
type Checker interface {
	// Check answers for call.Key without changing anything. happened is loop.HappenedYes (with the result, as Run would have
	// returned it), HappenedNo or HappenedUnknown. An error counts as unknown.
	Check(ctx context.Context, call Call) (happened string, res Result, err error)
}

// Def declares a tool. Zero values are the careful ones: effect once, verdict by the policy.
type Def struct {
	Name        string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments; nil: an object with anything in it
	Output      json.RawMessage // JSON Schema of the result, where known
	Effect      loop.Effect
	Label       string       // effect label shared by tools that do the same thing to the world; "" the name
	Approval    loop.Verdict // allow, ask, deny; "" allow
	OnReject    string       // tell (also ""), stop
	Timeout     time.Duration
	Retries     int // further attempts after transient errors
	CallsMax    *int
	Poll        *Poll
	ResultCap   int // bytes of a result that enter the transcript; 0: the agent's default
	Requires    []Requirement
	Grounded    []string
	Check       bool   // the tool is a Checker that works
	Destination string // where calls go: a URL, a server's identity, a path; part of what an approval binds
}

// Poll declares a poller.
type Poll struct {
	CallsMax *int
	Interval time.Duration
}

// Requirement names a tool that must have succeeded earlier in the run, on the same value of the given arguments.
type Requirement struct {
	Tool string
	Same []string
}

// Call is one attempt of a call.
type Call struct {
	Run     string
	ID      string // the loop's id of the call
	Name    string
	Key     string // idempotency key: the same in each attempt
	Attempt int
	Args    json.RawMessage // canonical (RFC 8785); what was approved
}

// Result is what a tool returns.
type Result struct {
	Text  string                     // what the model reads; valid UTF-8
	More  []loop.Block               // further content: text and media
	Facts map[string]json.RawMessage // task state established by the call
}

// Error is an error with a class (design, section 7).
type Error struct {
	Class      loop.Class
	Message    string
	RetryAfter time.Duration // transient: wait at least so long
	Clock      string        // "tool" where the tool's own time ended it
	NotRun     bool          // it is certain that nothing happened
	Facts      map[string]json.RawMessage
	Err        error
}

func (e *Error) Error() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Err != nil:
		return e.Err.Error()
	}
	return string(e.Class)
}

func (e *Error) Unwrap() error { return e.Err }
