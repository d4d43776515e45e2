package loop

import (
	"encoding/json"
	"strconv"
)

// Micros is a point in time, in microseconds since the Unix epoch, or a length of time in microseconds. The loop has no
// clock of its own: each event carries the time at which the driver saw it, and Ready is told the time.
type Micros int64

// Lengths of time, for the reader's sake.
const (
	Microsecond Micros = 1
	Millisecond        = 1000 * Microsecond
	Second             = 1000 * Millisecond
	Minute             = 60 * Second
)

// Pico is money in 10⁻¹² USD. The largest amount is about 9.2 million USD; sums saturate instead of wrapping.
type Pico int64

// USD is one dollar.
const USD Pico = 1_000_000_000_000

// Effect says what a tool may do to the world.
type Effect string

// The three effects. The zero value means Once: what is not declared is treated as the worst.
const (
	Read       Effect = "read"       // changes nothing
	Idempotent Effect = "idempotent" // safe to repeat with the same key
	Once       Effect = "once"       // must not happen twice
)

// Verdict is what the policy says of a call.
type Verdict string

// The verdicts, from the loosest to the tightest.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Class is the class of an error. Class, not text, decides what the loop does with it (design, section 7).
type Class string

// Classes of errors of tools and models.
const (
	ClassError     Class = "error"     // an ordinary failure: the model is told
	ClassInvalid   Class = "invalid"   // the model can mend it
	ClassDenied    Class = "denied"    // refused by the other side
	ClassTransient Class = "transient" // it did not happen; worth another attempt
	ClassFatal     Class = "fatal"     // stops the run
	ClassUnknown   Class = "unknown"   // it may have happened
)

// Finish is what the provider said of one model response, in the loop's words.
type Finish string

// Finish reasons. FinishMalformed is a response whose call the provider itself could not parse; FinishPause is a turn that
// the provider wants to go on with (Anthropic's pause_turn).
const (
	FinishStop      Finish = "stop"
	FinishCalls     Finish = "calls"
	FinishLength    Finish = "length"
	FinishFilter    Finish = "filter"
	FinishMalformed Finish = "malformed"
	FinishPause     Finish = "pause"
)

// Usage counts tokens in disjoint parts: Input is the uncached input only. Reasoning is a part of Output.
type Usage struct {
	Input      int64 `json:"input,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// Prefix is the number of tokens of the request: all input parts.
func (u Usage) Prefix() int64 { return addSat(addSat(u.Input, u.CacheRead), u.CacheWrite) }

// Total counts each token once.
func (u Usage) Total() int64 { return addSat(u.Prefix(), u.Output) }

// Add returns the sum of two usages, part by part.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		addSat(u.Input, v.Input), addSat(u.CacheRead, v.CacheRead), addSat(u.CacheWrite, v.CacheWrite),
		addSat(u.Output, v.Output), addSat(u.Reasoning, v.Reasoning),
	}
}

func addSat(a, b int64) int64 {
	c := a + b
	if a > 0 && b > 0 && c < 0 {
		return 1<<63 - 1
	}
	return c
}

func mulSat(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > (1<<63-1)/b {
		return 1<<63 - 1
	}
	return a * b
}

// Role says who speaks in a message.
type Role string

// Roles. System instructions are no message: they are sent beside the transcript.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// BlockKind is the kind of one block of a message.
type BlockKind string

// Kinds of blocks.
const (
	BlockText    BlockKind = "text"
	BlockThought BlockKind = "thought" // Text may be empty where only a signature came
	BlockCall    BlockKind = "call"
	BlockResult  BlockKind = "result"
	BlockOpaque  BlockKind = "opaque" // only Raw: goes back unchanged, once, in its place, to the same wire
	BlockMedia   BlockKind = "media"  // image or file
)

// Block is a part of a message. Blocks are values that nobody changes after they were made.
//
// Raw holds what the wire named by Wire sent beside the fields that the loop understands: the whole block for BlockOpaque,
// else only the members that have no field here (a signature, an item id). An adapter of another wire leaves Raw out.
type Block struct {
	Kind  BlockKind       `json:"k"`
	Text  string          `json:"text,omitempty"`  // text, thought; the content of a result
	ID    string          `json:"id,omitempty"`    // call, result: the id on the wire; may be empty or repeated, never trusted
	Call  string          `json:"call,omitempty"`  // call, result: the loop's own id of the call
	Name  string          `json:"name,omitempty"`  // call, result: the tool
	Args  string          `json:"args,omitempty"`  // call: arguments exactly as received, also where they are no JSON
	Error bool            `json:"error,omitempty"` // result: the call failed or was not run
	Wire  string          `json:"wire,omitempty"`  // anthropic, openai, openaichat, gemini
	Raw   json.RawMessage `json:"raw,omitempty"`
	Media *Media          `json:"media,omitempty"` // media; also on a result that carries images or files
	More  []Block         `json:"more,omitempty"`  // result: further content (text and media) after Text
}

// Media is an image or a file: inline bytes, an artifact, or an address that the provider fetches.
type Media struct {
	MIME string `json:"mime"`
	Name string `json:"name,omitempty"`
	Ref  string `json:"ref,omitempty"` // "sha256:…": the artifact that holds the bytes
	URL  string `json:"url,omitempty"`
	Data []byte `json:"data,omitempty"` // inline; the driver moves it to an artifact before it is journaled
}

// Message is one entry of the transcript. Seq is the event that made it; a message never changes, so whoever encodes it
// may keep the bytes.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
	Seq    int64   `json:"seq,omitempty"`
}

// Value is a JSON value kept as bytes.
type Value = json.RawMessage

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
