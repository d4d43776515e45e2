// Package journal holds the store's contract: what a store of journals promises, as types here and as a conformance suite in
// journaltest. Stores live in packages below.
//
// # Who writes
//
// Only the holder of a run's lease appends to its journal, with the lease's epoch and the expected sequence. Inputs from
// outside go to the run's inbox, where a compare-and-set on Input.Key accepts or refuses each at once; the holder takes them
// in order and turns them into events in the transaction that appends those events.
package journal

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ronda-go/ronda/loop"
)

// Errors of stores. Each is wrapped by an *Error that says what was being done and what to try.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("conflict")          // sequence, compare-and-set
	ErrLease    = errors.New("lease lost")        // the epoch is not the current one
	ErrHeld     = errors.New("held by another")   // Acquire: a living driver has the lease
	ErrStopped  = errors.New("the run has ended") // inbox: nothing is accepted any more
	ErrInbox    = errors.New("inbox has inputs")  // Append with NoInputs: take them first
	ErrNewer    = errors.New("written by a newer version of ronda")
	ErrCorrupt  = errors.New("corrupt")
	ErrReadOnly = errors.New("read-only")
	ErrDiskFull = errors.New("disk full")
	ErrClosed   = errors.New("closed")
)

// Error is an error of a store: what was being done, why it failed, what to try.
type Error struct {
	Op   string // "append run_…"
	Err  error  // wraps one of the errors above, or an error of the system
	Hint string
}

func (e *Error) Error() string {
	s := "journal: " + e.Op + ": " + e.Err.Error()
	if e.Hint != "" {
		s += ". " + e.Hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Run is the row of a run in lists: a cache of what its journal says, written in the transactions that append.
type Run struct {
	ID      string
	Session string
	Parent  string // run id; "" for a root
	Root    string // run id of the root; its own id for a root
	Agent   string
	Model   string
	Status  string      // running, waiting, stopped
	Waiting []string    // approval, resolution, input, extension, child, timer
	Stop    loop.Reason // where stopped
	Limit   string
	Created loop.Micros
	Updated loop.Micros
	Wake    loop.Micros     // when a driver should look again though nobody spoke; 0: never
	Seq     int64           // of the last event
	Digest  string          // rolling digest of the journal up to Seq (driver's)
	Inputs  int             // inputs accepted and not yet taken
	Title   string          // the first line of the input, cut
	Summary json.RawMessage // counters for lists, as the driver wrote them
}

// Lease is the right to append to a run's journal.
type Lease struct {
	Run   string
	Owner string
	Epoch int64 // grows by one with each Acquire of the run
}

// Record is one encoded event.
type Record struct {
	Seq  int64
	Data []byte // loop.Encode; not changed by anyone
}

// Batch is what one moment appends, in one transaction: all or nothing.
type Batch struct {
	Lease     Lease
	After     int64 // sequence of the last event before it: compare-and-set
	Records   []Record
	Run       Run        // the row after it (ID, Session, Parent, Root, Created and Inputs are ignored: they do not change here)
	Take      []string   // ids of inputs that these events take from the inbox
	NoInputs  bool       // fail with ErrInbox if, after Take, inputs remain: for events that end or expire something
	Artifacts []Artifact // stored with it
	Tapes     []Tape     // stored with it
}

// Artifact is content-addressed bytes. Storing the same bytes twice keeps one copy.
type Artifact struct {
	Ref  string // "sha256:" + 64 hex digits
	MIME string
	Data []byte
}

// Tape holds the times of the deltas of one model call (see package recording for its inside).
type Tape struct {
	Run  string
	ID   string // unique within the run
	Data []byte
}

// Input is something from outside for a run: a decision, a message, an extension, a cancellation, a resolution, a revocation.
type Input struct {
	ID   string // unique; made by the sender
	Run  string
	Key  string // compare-and-set: one input of a key is accepted for a run, ever; "" accepts any number
	Kind string // decide, message, extend, cancel, resolve, revoke
	By   string
	At   loop.Micros
	Body json.RawMessage
}

// Query filters and pages Runs. Zero values do not filter.
type Query struct {
	Status, Agent, Session, Root, Parent string
	Stop                                 loop.Reason
	Waiting                              string      // runs that wait for this (also)
	WakeBy                               loop.Micros // runs with 0 < Wake <= WakeBy
	Inputs                               bool        // only runs with untaken inputs
	Roots                                bool        // only runs without a parent
	IDs                                  string      // runs whose id begins or ends with this
	Limit                                int         // 0: 100
	Cursor                               string      // from Page.Next
}

// Page is a part of a list, newest first.
type Page struct {
	Runs []Run
	Next string // "" at the end
}

// Store is the contract. All methods are safe for concurrent use, by several processes where the store is shared. A method
// that returns nil has made its change durable (as the store's durability option says); after an error nothing of the
// change is there, ErrClosed and a cancelled ctx included, unless the error wraps context errors or is of the system: then the
// caller reads to find out.
type Store interface {
	// Owner is a name for this opened store to hold leases by: another one each time a store is opened, in every process. A store
	// takes any other string as an owner too.
	Owner() string
	// Create makes a run with its first events (Batch.Run whole, After 0) and gives the caller its lease with epoch 1.
	// Batch.Lease.Run and Owner must be set. ErrExists if the id is taken, or if session already has a live run and b.Run.Parent is "".
	Create(ctx context.Context, b Batch) (Lease, error)
	// Acquire takes the lease of a run. While a living owner other than the caller's holds it: ErrHeld, with the owner in the
	// message. A dead process is noticed at once on one machine; elsewhere after the lease's time to live.
	Acquire(ctx context.Context, run, owner string) (Lease, error)
	// Release gives the lease up; a lost lease is no error.
	Release(ctx context.Context, l Lease) error
	// Append appends a batch and returns how many inputs wait after it. ErrLease, ErrConflict, ErrInbox, ErrStopped.
	Append(ctx context.Context, b Batch) (inputs int, err error)

	// Put offers an input. accepted is the input that holds the key now: in itself if it won, else the one that won before (so
	// that the caller can compare). A run that has stopped refuses with ErrStopped, an unknown one with ErrNotFound.
	Put(ctx context.Context, in Input) (accepted Input, won bool, err error)
	// Inputs lists inputs that were accepted and not yet taken, in order of acceptance.
	Inputs(ctx context.Context, run string) ([]Input, error)
	// Accepted returns the input that holds a key, taken or not. ErrNotFound.
	Accepted(ctx context.Context, run, key string) (Input, error)

	// Read yields the records of a run with Seq > after, in order.
	// fn may keep Data: each record has bytes of its own.
	Read(ctx context.Context, run string, after int64, fn func(Record) error) error
	Get(ctx context.Context, run string) (Run, error)
	List(ctx context.Context, q Query) (Page, error)

	Artifact(ctx context.Context, ref string) (Artifact, error)
	// PutArtifacts stores artifacts outside a batch (definitions before Create).
	PutArtifacts(ctx context.Context, as []Artifact) error
	Tapes(ctx context.Context, run string) ([]Tape, error)

	// Notify returns a channel that gets a value (without blocking the sender) when something may have changed for run
	// ("" any run): events appended or inputs accepted, by this process at once, by others as soon as the store can tell
	// (polling inside). Close it with stop.
	Notify(run string) (ch <-chan struct{}, stop func())
	// Idempotent remembers what a client's creation key made: the first call with a key stores value and returns it, later
	// ones return the stored one.
	Idempotent(ctx context.Context, key, value string) (stored string, err error)
	// PutDoc, Doc, Docs and DeleteDoc keep small documents by name (tokens of the server).
	PutDoc(ctx context.Context, space, name string, doc []byte) error
	Doc(ctx context.Context, space, name string) ([]byte, error)
	Docs(ctx context.Context, space string) (map[string][]byte, error)
	DeleteDoc(ctx context.Context, space, name string) error

	Close() error
}
