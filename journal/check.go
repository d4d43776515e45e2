package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// The values of Run.Status.
const (
	Running = "running"
	Waiting = "waiting"
	Stopped = "stopped"
)

// Check says what is wrong with a batch before a store looks at its data, for Create if create is set, else for Append. A
// store refuses such a batch whole. The error names the field.
func (b *Batch) Check(create bool) error {
	switch {
	case b.Lease.Run == "":
		return errors.New("Lease.Run is empty")
	case b.Lease.Owner == "":
		return errors.New("Lease.Owner is empty")
	case create && b.After != 0:
		return fmt.Errorf("After is %d: a new run begins after 0", b.After)
	case create && b.Run.ID != "" && b.Run.ID != b.Lease.Run:
		return fmt.Errorf("Run.ID is %q, Lease.Run %q", b.Run.ID, b.Lease.Run)
	case create && len(b.Take) > 0:
		return errors.New("Take: a new run has no inputs")
	}
	switch b.Run.Status {
	case Running, Waiting, Stopped:
	default:
		return fmt.Errorf("Run.Status is %q: it must be running, waiting or stopped", b.Run.Status)
	}
	for i := range b.Records {
		if want := b.After + int64(i) + 1; b.Records[i].Seq != want {
			return fmt.Errorf("Records[%d].Seq is %d after %d: it must be %d", i, b.Records[i].Seq, b.After, want)
		}
	}
	for i := range b.Tapes {
		if t := &b.Tapes[i]; t.ID == "" || t.Run != "" && t.Run != b.Lease.Run {
			return fmt.Errorf("Tapes[%d] is %q of run %q: it needs an ID and belongs to run %s", i, t.ID, t.Run, b.Lease.Run)
		}
	}
	return CheckArtifacts(b.Artifacts)
}

// CheckArtifacts says whether each artifact's Ref has the form of a digest. Whether it is the digest of Data, the store finds
// out when it reads.
func CheckArtifacts(as []Artifact) error {
	for i := range as {
		if !IsRef(as[i].Ref) {
			return fmt.Errorf("Artifacts[%d].Ref is %q: it must be sha256: and 64 hex digits", i, as[i].Ref)
		}
	}
	return nil
}

// IsRef reports whether s has the form of an artifact's name: "sha256:" and 64 lower-case hex digits.
func IsRef(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(hex) != 64 {
		return false
	}
	return strings.Trim(hex, "0123456789abcdef") == ""
}

// Check says what is wrong with an input before a store looks at its data. The error names the field.
func (in *Input) Check() error {
	switch {
	case in.ID == "":
		return errors.New("Input.ID is empty")
	case in.Run == "":
		return errors.New("Input.Run is empty")
	case in.Kind == "":
		return errors.New("Input.Kind is empty")
	}
	return nil
}

// Last is the sequence of the last event after the batch.
func (b *Batch) Last() int64 { return b.After + int64(len(b.Records)) }

// Begin is the row of a run after its first batch: what the driver said, with what the store knows better filled in.
func (b *Batch) Begin() Run {
	r := b.Run
	r.ID = b.Lease.Run
	if r.Root == "" && r.Parent == "" {
		r.Root = r.ID
	}
	if r.Updated == 0 {
		r.Updated = r.Created
	}
	b.settle(&r)
	r.Inputs = 0
	return r
}

// Continue is the row of a run after a later batch: old with everything that a batch may change.
func (b *Batch) Continue(old Run) Run {
	r := b.Run
	r.ID, r.Session, r.Parent, r.Root, r.Created = old.ID, old.Session, old.Parent, old.Root, old.Created
	r.Inputs = old.Inputs - len(b.Take)
	b.settle(&r)
	return r
}

func (b *Batch) settle(r *Run) {
	r.Seq = b.Last()
	if len(r.Waiting) == 0 {
		r.Waiting = nil
	}
	if len(r.Summary) == 0 {
		r.Summary = nil
	}
}

// Cursor names a place in a list that is newest first: after the run made at Created as the store's nth. Runs of one moment
// are in the order in which the store got them.
type Cursor struct {
	Created loop.Micros
	N       int64
}

func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.Created, c.N) }

// ParseCursor reads what Cursor.String wrote; ok is false for "", the begin of the list.
func ParseCursor(s string) (c Cursor, ok bool, err error) {
	if s == "" {
		return Cursor{}, false, nil
	}
	var rest string
	if n, _ := fmt.Sscanf(s, "%d.%d%s", &c.Created, &c.N, &rest); n != 2 || c.String() != s {
		return Cursor{}, false, fmt.Errorf("Query.Cursor is %.60q: it must be Page.Next of the page before", s)
	}
	return c, true, nil
}
