// Package scripted is a model whose answers are written down beforehand, for tests, scenarios, demonstrations and drills.
// The script says in wire-neutral words what a model answers (Item), so that a fake provider can render the same script as
// the HTTP of its wire.
package scripted

import (
	"fmt"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Script is a list of responses. Nobody changes it after it was made.
type Script struct {
	Items []Item
	Line  int // of the last item's beginning: where the script ends, for messages
}

// Item is one response of a model, or one failed attempt. The zero value is an empty response.
type Item struct {
	Line     int // in the file it was read from
	Thinking string
	Text     string
	Calls    []Call
	// Usage is what the provider reports: 100 in, 10 out where the script says nothing; nil for "usage: none".
	Usage     *loop.Usage
	Finish    loop.Finish // stop, length, filter; "" by content
	Fail      *Fail       // the attempt fails instead; Thinking, Text and Calls are then what a cut stream carries
	Malformed bool        // the provider says that it could not parse the call
	Repeat    bool        // serves for ever: the cursor stays
	When      *When
}

// Call is a tool call as the model writes it.
type Call struct {
	Name string
	Args string // JSON with keys and numbers as spelled in the script; with Raw any text
	ID   string // "" is made up
	Raw  bool   // the arguments are given as raw text, which need not be JSON
}

// Fail is the end of an attempt without a response. Exactly one of Status, Timeout, CutAfter, ErrorEvent and NoEnd is set.
type Fail struct {
	Status     int           // HTTP status instead of a response
	RetryAfter time.Duration // beside Status
	Message    string        // the provider's words; "" made up
	Timeout    bool          // nothing comes until the clock of the model call fires
	CutAfter   *int          // the connection breaks after so many deltas
	ErrorEvent string        // code of an error event in mid-stream
	NoEnd      bool          // the stream ends with neither an end marker nor a finish reason
}

// DefaultUsage is what an item reports that says nothing of usage.
var DefaultUsage = loop.Usage{Input: 100, Output: 10}

// FinishOf is the finish reason, with the default by content filled in.
func (i *Item) FinishOf() loop.Finish {
	switch {
	case i.Malformed:
		return loop.FinishMalformed
	case i.Finish != "":
		return i.Finish
	case len(i.Calls) > 0:
		return loop.FinishCalls
	}
	return loop.FinishStop
}

// Prefix is what the item's request is billed for input: the exact estimate. An item that reports no usage counts as the
// default.
func (i *Item) Prefix() int64 {
	if i.Usage == nil {
		return DefaultUsage.Prefix()
	}
	return i.Usage.Prefix()
}

// Blocks are the content in order: thought, text, calls. id makes up the id of the n-th call (from 0) that has none.
func (i *Item) Blocks(id func(n int) string) []loop.Block {
	var blocks []loop.Block
	if i.Thinking != "" {
		blocks = append(blocks, loop.Block{Kind: loop.BlockThought, Text: i.Thinking})
	}
	if i.Text != "" {
		blocks = append(blocks, loop.Block{Kind: loop.BlockText, Text: i.Text})
	}
	for n, c := range i.Calls {
		if c.ID == "" {
			c.ID = id(n)
		}
		blocks = append(blocks, loop.Block{Kind: loop.BlockCall, ID: c.ID, Name: c.Name, Args: c.Args})
	}
	return blocks
}

// Transient reports whether the failure is worth another attempt.
func (f *Fail) Transient() bool { return f.Status == 0 || transientStatus(f.Status) }

func transientStatus(status int) bool {
	switch status {
	case 408, 409, 425, 429:
		return true
	}
	return status >= 500
}

// dropped reports whether the loop leaves the turn out of later prompts: it was empty, cut, or had a call that nobody could
// parse.
func (i *Item) dropped() bool {
	f := i.FinishOf()
	return f == loop.FinishMalformed || f == loop.FinishLength || f == loop.FinishFilter ||
		len(i.Calls) == 0 && strings.TrimSpace(i.Text) == ""
}

func (i *Item) String() string { return fmt.Sprintf("the item on line %d", i.Line) }
