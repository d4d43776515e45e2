package recording

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ronda-go/ronda/loop"
)

// Version is the newest format that this package writes and reads.
const Version = 1

// Errors of readers.
var (
	// ErrFormat: the input is no recording, or a line of it makes no sense.
	ErrFormat = errors.New("not a recording")
	// ErrNewer: a newer version of ronda wrote it and says that this one cannot read it.
	ErrNewer = errors.New("written by a newer version of ronda")
	// ErrMissing: an artifact that a line names is not in the file.
	ErrMissing = errors.New("missing artifact")
	// ErrTooLarge: a line or an artifact is beyond what a reader takes.
	ErrTooLarge = errors.New("too large")
)

// FormatError says which line was wrong and how.
type FormatError struct {
	Err  error // one of the errors above
	Line int64 // from 0; −1 where no line is meant
	Why  string
}

func (e *FormatError) Error() string {
	if e.Line < 0 {
		return fmt.Sprintf("recording: %v: %s", e.Err, e.Why)
	}
	return fmt.Sprintf("recording: line %d: %v: %s", e.Line, e.Err, e.Why)
}

func (e *FormatError) Unwrap() error { return e.Err }

// Capture says how much of a run a recording holds.
type Capture string

// The capture modes.
const (
	Full     Capture = "full"      // everything
	NoDeltas Capture = "no_deltas" // no pieces of streams and no times of them
	Metadata Capture = "metadata"  // kinds, times, counters, names; texts are replaced by as many characters that say nothing
)

// Pace says where the times of a recording come from.
type Pace string

// Paces.
const (
	PaceReal      Pace = "real"      // each piece has the time at which it came
	PaceBlock     Pace = "block"     // whole messages have times, their pieces do not
	PaceSynthetic Pace = "synthetic" // the source knows no times: they were made up
)

// Header is the first line: all that a list of recordings needs.
type Header struct {
	Run       string      `json:"run"`
	Session   string      `json:"session,omitempty"`
	Parent    string      `json:"parent,omitempty"`
	Agent     string      `json:"agent"`
	Models    []string    `json:"models,omitempty"`
	Title     string      `json:"title,omitempty"`
	Started   loop.Micros `json:"started"` // wall time of t = 0, microseconds since the Unix epoch
	Limits    loop.Limits `json:"limits"`
	Capture   Capture     `json:"capture"`
	Redaction string      `json:"redaction,omitempty"` // names the policy of redaction; "" none
	Source    Source      `json:"source"`
	Pace      Pace        `json:"pace"`
}

// Source says which program recorded the run, and for an import what it was read from.
type Source struct {
	Name    string   `json:"name"` // ronda, claude-code, codex, inspect, ag-ui, otlp
	Version string   `json:"version,omitempty"`
	Notes   []string `json:"notes,omitempty"` // what an import had to leave out or make up
}

// RunInfo introduces a child run.
type RunInfo struct {
	Run    string `json:"run"`
	Parent string `json:"parent,omitempty"`
	Call   string `json:"call,omitempty"` // of the parent
	Agent  string `json:"agent,omitempty"`
}

// Footer is the last line.
type Footer struct {
	Lines  int64       `json:"lines"` // before it
	Events int64       `json:"events"`
	Deltas int64       `json:"deltas"`
	Runs   int         `json:"runs"`
	Status string      `json:"status,omitempty"` // of the first run: running, waiting, stopped
	Stop   loop.Reason `json:"stop,omitempty"`
	Limit  string      `json:"limit,omitempty"`
	Counts loop.Counts `json:"counts,omitzero"` // of the first run and its children
	Cost   loop.Pico   `json:"cost,omitempty"`
	Chain  string      `json:"chain"` // digest of the lines before it, 64 hex digits
}

// Artifact is content-addressed bytes. Ref is "sha256:" and 64 hex digits.
type Artifact struct {
	Ref  string
	MIME string
	Data []byte
}

// Piece is one delta: a piece of one block of a streamed response.
type Piece struct {
	At   loop.Micros // since the event that began the attempt
	Text string
	raw  []byte // in the place of Text: the JSON string, within a reader's line
}

// Deltas are pieces of one block and channel that follow one another.
type Deltas struct {
	Seq     int64 // event that began the attempt
	Offset  int64 // of the first piece in the attempt, from 1
	Block   int   // of the response
	Channel string
	Pieces  []Piece
}

// Channels of deltas.
const (
	Thought   = "thought"
	Text      = "text"
	Arguments = "arguments"
)

// Extra is a line of a kind that this version does not know: kept, and passed on after the line it followed.
type Extra struct {
	T     loop.Micros
	Kind  string
	Run   int
	After int64             // events (of all runs) before it
	Rest  []json.RawMessage // members as they stood: key, value, key, value …
}
