package loop

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of Next. Each is wrapped by an *EventError, and each leaves the state as it was.
var (
	// ErrStale: the event answers nothing (late, duplicate). It is not journaled, and nothing is wrong.
	ErrStale = errors.New("stale event")
	// ErrIllegal: the event makes no sense in this state.
	ErrIllegal = errors.New("illegal event")
)

// EventError says which event did not fit which state.
type EventError struct {
	Err   error // ErrStale, ErrIllegal or ErrNewer
	Kind  string
	Seq   int64
	Why   string
	State string
}

func (e *EventError) Error() string {
	return fmt.Sprintf("loop: %v %s (%d): %s; state: %s", e.Err, e.Kind, e.Seq, e.Why, e.State)
}

func (e *EventError) Unwrap() error { return e.Err }

// String describes the state in one line.
func (s State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s seq %d phase %s model call %d.%d", s.Run, s.Seq, s.Phase, s.Model.Call, s.Model.Attempt)
	for _, c := range s.Turn.Calls {
		fmt.Fprintf(&b, " [%s %s %s]", c.ID, c.Tool, c.Status)
	}
	if s.Limit != nil {
		fmt.Fprintf(&b, " limit %s", s.Limit.Limit)
	}
	if s.End != nil {
		fmt.Fprintf(&b, " end %s", s.End.Stop)
	}
	return b.String()
}
