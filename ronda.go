// Package ronda is a runtime for agents: a loop that calls a model, runs the tools it asks for, hands the results back, and knows when
// to stop, why it stopped, and how to go on tomorrow in another process without doing anything twice.
//
// An Agent is a configuration. Run drives one task to its stop or to the first thing that needs a person; a Host keeps runs in a
// store, so that any process with the same store and agents can go on with them.
package ronda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/journal/sqlite"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// Agent is a configuration: instructions, model, tools, policy, limits, contract. It does not run and nothing changes it while runs use
// it. Name and Model are required; the zero value of every other option is useful.
type Agent drive.Agent

// Names of package drive and tool that users of an agent write.
type (
	Tool     = tool.Tool
	Limits   = drive.Limits
	Price    = drive.Price
	Contract = drive.Contract
	Evidence = drive.Evidence
	Compact  = drive.Compact
	Fallback = drive.Fallback
	Policy   = drive.Policy
	Pending  = drive.Pending
	Item     = drive.Item
	Scope    = drive.Scope
)

// Zero is a limit of zero, ZeroUSD the same for CostUSD; a field that is left out means no limit (for Rounds: 10). Unlimited takes the
// limit off Rounds.
const (
	Zero      = drive.Zero
	ZeroUSD   = drive.ZeroUSD
	Unlimited = drive.Unlimited
)

// Errors that callers tell apart with errors.Is.
var (
	ErrNotFound = drive.ErrNotFound // no such run, or no such call
	ErrConflict = drive.ErrConflict // answered already, stale digest, too late
	ErrInvalid  = drive.ErrInvalid  // it makes no sense
	ErrBusy     = drive.ErrBusy     // the session has a live run
	ErrChanged  = drive.ErrChanged  // a pending call's tool is not what it was
	ErrHeld     = journal.ErrHeld   // another living process drives the run
)

// Decision is a person's answer to an approval. By is required: it is on record.
type Decision struct {
	By      string
	Message string
	Digest  string // where set, the answer only counts for this digest
	Always  *Scope // Approve: a standing approval beside the decision
}

// Run is what can be said of a run at one moment.
type Run struct {
	drive.Run
	host *Host
}

// Host is the host that the run lives on: for an agent without a store one in memory that nothing else refers to.
func (r *Run) Host() *Host { return r.host }

// AnswerAs decodes a JSON answer.
func (r *Run) AnswerAs(v any) error {
	if err := json.Unmarshal([]byte(drive.Unfenced(r.Answer)), v); err != nil {
		return fmt.Errorf("ronda: run %s: the answer is not the value that was asked for: %w", r.ID, err)
	}
	return nil
}

// Option changes one run.
type Option func(*options)

type options struct {
	host  *Host
	start drive.Start
}

// On runs on a host, and so in its store. Without it a run lives in memory.
func On(h *Host) Option { return func(o *options) { o.host = h } }

// InSession makes the run the next one of a session: it sees the messages of the runs before it.
func InSession(id string) Option { return func(o *options) { o.start.Session = id } }

// WithLimits takes the place of those limits of the agent that are set here.
func WithLimits(l Limits) Option { return func(o *options) { o.start.Limits = &l } }

// By says who asks: it is on record.
func By(name string) Option { return func(o *options) { o.start.By = name } }

// WithID gives the run an id of the caller's.
func WithID(id string) Option { return func(o *options) { o.start.ID = id } }

// With sends more than text: images and files beside the input.
func With(blocks ...loop.Block) Option {
	return func(o *options) { o.start.Input = append(o.start.Input, blocks...) }
}

func (a *Agent) options(input string, opts []Option, stream bool) (*options, error) {
	o := &options{start: drive.Start{Agent: (*drive.Agent)(a), Input: drive.Text(input)}}
	for _, opt := range opts {
		opt(o)
	}
	if o.host == nil {
		h, err := newHost(drive.Options{Store: memory.New(), Stream: stream})
		if err != nil {
			return nil, err
		}
		o.host = h
	}
	return o, nil
}

// Run drives one task and blocks until the run stops or waits for a person. How it ended is in the Run, never in the error: an error is a
// wrong configuration, a store that fails, or ctx that ended (then the run can be resumed where it has a store).
func (a *Agent) Run(ctx context.Context, input string, opts ...Option) (*Run, error) {
	o, err := a.options(input, opts, false)
	if err != nil {
		return nil, err
	}
	return o.host.wrap(o.host.Start(ctx, o.start))
}

// Stream is Run that yields events and deltas as they happen, until the run stops or waits. The first item is RunStarted, with the id.
// A consumer that breaks off does not end the run: it goes on, and can be followed again on the host.
func (a *Agent) Stream(ctx context.Context, input string, opts ...Option) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		o, err := a.options(input, opts, true)
		if err != nil {
			yield(Item{}, err)
			return
		}
		run, work, err := o.host.Begin(ctx, o.start)
		if err != nil {
			yield(Item{}, err)
			return
		}
		o.host.follow(ctx, run, work, yield)
	}
}

// follow yields what happens in a run until its driver has let go.
func (h *Host) follow(ctx context.Context, run string, work *drive.Background, yield func(Item, error) bool) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		<-work.Done()
		stop(errDone)
	}()
	var last int64
	for it, err := range h.Events(ctx, run, 0, true) {
		if err != nil && errors.Is(context.Cause(ctx), errDone) {
			break
		}
		if it.Delta == nil {
			last = max(last, it.Seq)
		}
		if !yield(it, err) || err != nil {
			return
		}
	}
	for it, err := range h.Events(context.WithoutCancel(ctx), run, last, false) {
		if !yield(it, err) {
			return
		}
	}
	if err := work.Err(); err != nil {
		yield(Item{}, err)
	}
}

var errDone = errors.New("the driver has let go")

// RunAs runs an agent whose answer is a T: the JSON Schema of T is the output's, enforced with bounded corrections. A run that does not
// complete is an error that holds the Run: see NotCompleted.
func RunAs[T any](ctx context.Context, a *Agent, input string, opts ...Option) (T, *Run, error) {
	var out T
	schema, err := jsonschema.ForType(reflect.TypeFor[T](), &jsonschema.ForOptions{})
	if err != nil {
		return out, nil, fmt.Errorf("ronda: the output type %T has no JSON Schema: %w", out, err)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return out, nil, err
	}
	typed := *a
	if typed.Finish {
		typed.FinishSchema = raw
	} else {
		typed.Output = raw
	}
	run, err := typed.Run(ctx, input, opts...)
	if err != nil {
		return out, run, err
	}
	if run.Status != loop.StatusStopped || run.Stop != loop.StopCompleted {
		return out, run, &NotCompleted{run}
	}
	return out, run, run.AnswerAs(&out)
}

// NotCompleted is the error of a typed run that has no value: it waits, or it stopped for another reason than being done.
type NotCompleted struct{ Run *Run }

func (e *NotCompleted) Error() string {
	if e.Run.Status == loop.StatusWaiting {
		return "ronda: run " + e.Run.ID + " waits for " + strings.Join(e.Run.Waiting, ", ")
	}
	return "ronda: run " + e.Run.ID + " stopped: " + string(e.Run.Stop)
}

// AsTool offers an agent as a tool to another one. Its run is a child: it has a journal of its own and draws on the parent's limits.
func AsTool[A Agent | *Agent](child A, opts ...func(*drive.Child)) Tool {
	var a *Agent
	switch c := any(child).(type) {
	case Agent:
		a = &c
	case *Agent:
		a = c
	}
	ch := drive.Child{Agent: (*drive.Agent)(a)}
	for _, o := range opts {
		o(&ch)
	}
	return drive.AsTool(ch)
}

// Host runs agents on a store. See the methods of drive.Host, which are its own.
type Host struct {
	*drive.Host
	store journal.Store
}

func newHost(o drive.Options) (*Host, error) {
	h, err := drive.Open(o)
	if err != nil {
		return nil, err
	}
	return &Host{h, o.Store}, nil
}

// Open opens a host on a store: a path of an SQLite file, or a URL as OpenStore takes it. Register agents whose runs it is to go on with.
func Open(store string, agents ...*Agent) (*Host, error) {
	s, err := OpenStore(store)
	if err != nil {
		return nil, err
	}
	h, err := newHost(drive.Options{Store: s, Stream: true, Tapes: true})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	h.RegisterAgents(agents...)
	return h, nil
}

// OpenHost opens a host with all of the driver's options.
func OpenHost(o drive.Options) (*Host, error) { return newHost(o) }

// RegisterAgents makes agents known, so that their runs can be resumed here.
func (h *Host) RegisterAgents(agents ...*Agent) {
	for _, a := range agents {
		h.Register((*drive.Agent)(a))
	}
}

// Close lets go of what runs and closes the store.
func (h *Host) Close(ctx context.Context) error {
	return errors.Join(h.Shutdown(ctx), h.store.Close())
}

func (h *Host) wrap(r *drive.Run, err error) (*Run, error) {
	if r == nil {
		return nil, err
	}
	return &Run{*r, h}, err
}

// Run starts a run of an agent on the host.
func (h *Host) Run(ctx context.Context, a *Agent, input string, opts ...Option) (*Run, error) {
	return a.Run(ctx, input, append(opts, On(h))...)
}

// Resume goes on with a run: after a crash, or after a decision. Any process with the same store and agents can.
func (h *Host) Resume(ctx context.Context, run string) (*Run, error) {
	return h.wrap(h.Host.Resume(ctx, run))
}

// Get says what there is to say of a run now.
func (h *Host) Get(ctx context.Context, run string) (*Run, error) { return h.wrap(h.Show(ctx, run)) }

// Approve lets a pending call run, exactly as it was shown. It puts the answer on record; Resume goes on with the run.
func (h *Host) Approve(ctx context.Context, run, call string, d Decision) error {
	return h.Decide(ctx, run, call, drive.Decision{Decision: loop.Approve, By: d.By, Message: d.Message, Digest: d.Digest, Always: d.Always})
}

// Reject refuses a pending call; the refusal holds for its effect label and the run.
func (h *Host) Reject(ctx context.Context, run, call string, d Decision) error {
	return h.Decide(ctx, run, call, drive.Decision{Decision: loop.Reject, By: d.By, Message: d.Message, Digest: d.Digest})
}

// Edit lets a pending call run with other arguments; they must fit the tool's schema, and the model is told.
func (h *Host) Edit(ctx context.Context, run, call string, args json.RawMessage, d Decision) error {
	return h.Decide(ctx, run, call, drive.Decision{Decision: loop.Edit, By: d.By, Message: d.Message, Digest: d.Digest, Args: args})
}

// Say speaks to a session: to its live run at the next safe point, else in a new run of the session, which it returns.
func (h *Host) Say(ctx context.Context, a *Agent, session, text string, opts ...Option) (*Run, error) {
	page, err := h.store.List(ctx, journal.Query{Session: session, Roots: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Runs) > 0 && page.Runs[0].Status != loop.StatusStopped {
		live := page.Runs[0].ID
		if err := h.Message(ctx, live, drive.Text(text), "user", false); err == nil || !errors.Is(err, drive.ErrConflict) {
			if err != nil {
				return nil, err
			}
			return h.Get(ctx, live)
		}
	}
	return h.Run(ctx, a, text, append(opts, InSession(session))...)
}

// OpenStore opens a store by its URL: a plain path or sqlite:///absolute/path.db, sqlite://relative.db, memory:.
func OpenStore(u string) (journal.Store, error) {
	switch {
	case u == "memory:" || u == "memory":
		return memory.New(), nil
	case strings.HasPrefix(u, "sqlite:"):
		path := strings.TrimPrefix(strings.TrimPrefix(u, "sqlite:"), "//")
		if un, err := url.PathUnescape(path); err == nil {
			path = un
		}
		if path == "" {
			return nil, fmt.Errorf("ronda: store %q: the path is missing. Write sqlite:///absolute/path.db or sqlite://relative.db", u)
		}
		return sqlite.Open(path, sqlite.Options{})
	case strings.HasPrefix(u, "postgres:"), strings.HasPrefix(u, "postgresql:"):
		return nil, fmt.Errorf("ronda: store %q: Postgres is not offered yet. Use sqlite:///path.db", redactURL(u))
	case strings.Contains(u, "://"):
		return nil, fmt.Errorf("ronda: store %q: unknown kind. Use sqlite:///path.db, memory: or a path", redactURL(u))
	case u == "":
		return nil, errors.New("ronda: the store's path is empty. Use sqlite:///path.db, memory: or a path")
	}
	return sqlite.Open(u, sqlite.Options{})
}

func redactURL(u string) string {
	p, err := url.Parse(u)
	if err != nil {
		return "(unreadable)"
	}
	return p.Redacted()
}
