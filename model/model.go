// Package model holds what the driver and the adapters of model providers say to each other. One adapter per wire protocol
// lives in a package below; each goes through the vendor's official SDK.
package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Model is one model behind one wire. It is safe for concurrent use.
type Model interface {
	// Info says what is known of the model without asking anyone.
	Info() Info
	// Generate sends one attempt and returns the whole response, streamed or not: both ways yield the same value. While it
	// runs it gives deltas to sink (nil: nobody listens) from one goroutine, in order, where req.Stream asks for a stream.
	// An error is always an *Error. Generate never retries: attempts are the loop's. It returns soon after ctx is done, with
	// an Error whose Lost is true when the request had left.
	Generate(ctx context.Context, req *Request, sink func(Delta)) (*Response, error)
}

// Estimator is implemented by models that know the exact input size of a request before it is sent (scripted ones do).
// Without it the driver reserves the last reported prefix plus a bound for the new bytes.
type Estimator interface {
	// Estimate returns the input tokens that req will be billed; ok is false where it cannot say.
	Estimate(req *Request) (tokens int64, ok bool)
}

// Info describes a model. Zero values mean unknown.
type Info struct {
	Wire          string // scripted, anthropic, openai, openaichat, gemini
	Name          string // the provider's name of the model
	Price         *loop.Price
	ContextWindow int64 // tokens
	OutputCap     int64 // tokens of one response
	Scripted      bool  // answers come from a script: shown wherever a person sees the model's name
	Media         []string
}

// Ref is wire/name, as the agent file writes it.
func (i Info) Ref() string { return i.Wire + "/" + i.Name }

// Tool is a tool as it is declared to a model.
type Tool struct {
	Name        string
	Description string
	Schema      []byte // JSON Schema of the arguments, an object schema; never nil
	Strict      bool
}

// ToolChoice says what the model may do with the tools, which stay declared in each case.
type ToolChoice string

// Tool choices; any other value names the one tool that must be called.
const (
	ChoiceAuto     ToolChoice = ""
	ChoiceNone     ToolChoice = "none"
	ChoiceRequired ToolChoice = "required"
)

// Request is one model call as the driver asks for it. The adapter must not change it, Cache excepted.
type Request struct {
	Run      string
	Call     int64 // counts the model calls of the run
	Attempt  int64
	System   string // instructions; sent with every call
	Extra    string // further instructions of this call alone (closing call, plan); after System, before the messages
	Tools    []Tool // in the agent's order; never sorted, never from a map
	Choice   ToolChoice
	Messages []*loop.Message // the whole transcript of the session; pointers are stable from call to call, messages never change
	// Previous is the provider's id of the response that precedes Messages[PreviousLen:] within this run ("" none). Adapters
	// whose provider keeps conversations may send only what is new.
	Previous    string
	PreviousLen int
	MaxOutput   int64  // cap on the response, in tokens; 0: the model's own
	Output      []byte // JSON Schema of the answer where the agent wants structured output without finish; nil: free text
	Stream      bool
	Cache       *Cache // the same one for all calls of a run with this model; never nil from the driver
	Timeouts    Timeouts
	Options     map[string]any // of the wire, from the agent file (thinking budget, service tier …), passed on by name
}

// Timeouts are the clocks of one attempt (design, section 12). Zero means none. The clock that fires is named in Error.Clock.
type Timeouts struct {
	Connect, FirstByte, BetweenDeltas, Call time.Duration
}

// Cache keeps the messages that were encoded before, so that each is encoded once. Wire says whose encoding it is; an
// adapter that finds another's name empties it. Bytes never change below len(Bytes) except by emptying.
type Cache struct {
	Wire  string
	Bytes []byte // the encoded messages, as they stand in the request's array
	N     int    // how many of Request.Messages they cover
	First *loop.Message
	Last  *loop.Message // of Request.Messages[N-1], where the adapter keeps it
	State any           // whatever else the adapter wants to keep
}

// Reset empties the cache for a wire, if it is another's or does not hold the beginning of the request's messages, which it sees
// from the first and the last of them (the transcript was compacted). It reports whether there was something to lose.
func (c *Cache) Reset(wire string, msgs []*loop.Message) (broken bool) {
	if c.Wire == wire && c.N <= len(msgs) && (c.N == 0 || c.First == msgs[0] && (c.Last == nil || c.Last == msgs[c.N-1])) {
		return false
	}
	broken = c.N > 0
	*c = Cache{Wire: wire}
	return broken
}

// Response is a whole response. Blocks are in the order in which they must go back. Calls have Name, Args exactly as
// received and ID as on the wire (possibly empty); the loop gives its own ids. Usage is nil where the provider reported none.
type Response struct {
	Blocks []loop.Block
	Finish loop.Finish
	Usage  *loop.Usage
	Model  string // as served
	ID     string
	Detail string   // the provider's own words on the finish (a refusal, a malformed call)
	Notes  []string // what the adapter lowered or left out of the request, for the record
}

// Channel of a delta.
type Channel string

// Channels.
const (
	Thought   Channel = "thought"
	Text      Channel = "text"
	Arguments Channel = "arguments"
)

// Delta is a piece of a stream. Text is valid UTF-8: a character cut by the transport is held until it is whole.
type Delta struct {
	Channel Channel
	Block   int    // index of the block in Response.Blocks that it belongs to, as far as the adapter can tell
	Name    string // arguments: the tool, on the first delta of a call
	ID      string // arguments: the wire's id of the call, on the first delta of a call
	Text    string
}

// Error is the end of an attempt without a response.
type Error struct {
	Class      loop.Class // transient, fatal; invalid for a request that is too large for the model's window
	Lost       bool       // nobody knows whether the provider billed the attempt
	Clock      string     // connect, first_byte, between_deltas, model_call, where a clock ended it
	Status     int        // HTTP
	RetryAfter time.Duration
	Code       string // the provider's name of the error
	Message    string
	Window     bool // the transcript does not fit the context window
	Gone       bool // Request.Previous is not known to the provider (any more)
	Usage      *loop.Usage
	Err        error
}

func (e *Error) Error() string {
	s := "model: " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" %d", e.Status)
	}
	if e.Code != "" {
		s += " " + e.Code
	}
	if e.Clock != "" {
		s += " (clock " + e.Clock + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// SplitRef splits wire/name at the first slash.
func SplitRef(ref string) (wire, name string, err error) {
	wire, name, ok := strings.Cut(ref, "/")
	if !ok || wire == "" || name == "" {
		return "", "", fmt.Errorf("model %q: want provider/model, such as anthropic/claude-sonnet-4-5", ref)
	}
	return wire, name, nil
}
