package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// Run is what can be said of a run at one moment. It is a value; nothing changes it.
type Run struct {
	ID      string
	Session string
	Agent   string
	Model   string
	Status  string   // running, waiting, stopped
	Waiting []string // what it waits for
	Stop    loop.Reason
	Stopped *loop.RunStopped // the whole stop
	Limit   string
	Answer  string
	Counts  loop.Counts // of the run itself
	Total   loop.Counts // with its children
	Cost    loop.Pico   // with its children
	Active  loop.Micros
	Facts   map[string]loop.Fact
	Pending []Pending
	Row     journal.Run
	State   loop.State
}

// Pending is something that waits for a person.
type Pending struct {
	Run      string // that owns the call: a child's where Call is a path
	Call     string // what approve, reject, edit and resolve take
	Kind     string // approval, resolution, extension
	Tool     string
	Args     json.RawMessage // exactly what would run
	Digest   string
	Reason   string
	Expires  loop.Micros
	Wire     string   // the id of the call on the wire
	Path     []string // agents from the root
	Dest     string   // destination
	Thought  string   // the model's last words and thoughts before it
	Attempts int64
}

// folded is a journal read to its end, with its transcript.
type folded struct {
	row    journal.Run
	state  loop.State
	talk   *loop.Transcript
	answer string
	last   string            // the last words and thoughts of the model
	kids   map[string]string // every child that was ever started, by call
}

func (h *Host) folded(ctx context.Context, run string) (*folded, error) {
	row, err := h.store.Get(ctx, run)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, inputError("run "+run, ErrNotFound, "there is no such run; ronda runs lists them")
	}
	if err != nil {
		return nil, err
	}
	f := &folded{row: row, talk: loop.NewTranscript(nil), kids: map[string]string{}}
	texts := map[int64]string{}
	err = h.read(ctx, run, func(ev loop.Event) error {
		next, err := loop.Next(f.state, ev)
		if err != nil {
			return fmt.Errorf("drive: run %s: its journal does not fold: %w", run, err)
		}
		f.state = next
		f.talk.Apply(ev, next)
		switch b := ev.Body.(type) {
		case loop.ModelReplied:
			f.last = words(b.Blocks)
			texts[ev.Seq] = loop.AnswerText(ev)
		case loop.ChildStarted:
			f.kids[b.Call] = b.Run
		case loop.ChildStopped:
			texts[ev.Seq] = b.Text
		case loop.RunStopped:
			f.answer = texts[b.Answer]
		}
		return nil
	})
	return f, err
}

func words(blocks []loop.Block) string {
	var b strings.Builder
	for _, bl := range blocks {
		if (bl.Kind == loop.BlockThought || bl.Kind == loop.BlockText) && bl.Text != "" {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(bl.Text)
		}
	}
	return cut(b.String(), 2000)
}

// callID accepts the loop's id of a call, or the wire's where it names one call of the turn.
func (f *folded) callID(call string) string {
	if _, ok := f.state.Call(call); ok {
		return call
	}
	match := ""
	for _, c := range f.state.Turn.Calls {
		if c.Wire == call {
			if match != "" {
				return call
			}
			match = c.ID
		}
	}
	if match != "" {
		return match
	}
	return call
}

// knows says whether an id belongs to a call of an earlier turn.
func (f *folded) knows(call string) bool {
	turn, _, ok := strings.Cut(strings.TrimPrefix(call, "c"), ".")
	if !ok || !strings.HasPrefix(call, "c") {
		return false
	}
	n, err := strconv.ParseInt(turn, 10, 64)
	return err == nil && n >= 1 && n <= f.state.Model.Call
}

// Show says what there is to say of a run, its children's pending calls included.
func (h *Host) Show(ctx context.Context, run string) (*Run, error) {
	f, err := h.folded(ctx, run)
	if err != nil {
		return nil, err
	}
	r := f.view(h)
	r.Pending, err = h.pending(ctx, f, "", nil)
	return r, err
}

func (f *folded) view(h *Host) *Run {
	s := f.state
	r := &Run{ID: f.row.ID, Session: f.row.Session, Agent: s.Config.Agent, Model: s.Config.Model, Answer: f.answer, Counts: s.Ledger.Own,
		Total: s.Ledger.Total(), Cost: s.Ledger.TotalCost(), Active: s.ActiveTime(s.Time), Facts: s.Facts, Row: f.row, State: s}
	r.Status, r.Waiting = s.Status()
	if s.Stop != nil {
		r.Stop, r.Limit, r.Stopped = s.Stop.Stop, s.Stop.Limit, s.Stop
	}
	return r
}

// view says where the run stands once its driver has let go. It is what the journal says: the driver adopted only what it appended.
func (d *driver) view() *Run {
	f := &folded{row: d.row, state: d.state, talk: d.talk}
	answer, found := "", d.state.Stop == nil || d.state.Stop.Answer == 0
	msgs := d.talk.Messages()
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == loop.Assistant {
			f.last = words(msgs[i].Blocks)
			if d.state.Stop != nil && msgs[i].Seq == d.state.Stop.Answer && msgs[i].Seq > 0 {
				answer, found = loop.AnswerOf(msgs[i].Blocks), true
			}
			break
		}
	}
	ctx := context.Background()
	if len(d.batch) > 0 || !found { // something was given up, or the answer is no message: the journal knows
		r, err := d.h.Show(ctx, d.lease.Run)
		if err != nil {
			d.h.log.Error("reading a run back failed", "run", d.lease.Run, "error", err)
			return &Run{ID: d.lease.Run, Row: d.row, State: d.state}
		}
		return r
	}
	f.answer = answer
	r := f.view(d.h)
	var err error
	if r.Pending, err = d.h.pending(ctx, f, "", nil); err != nil {
		d.h.log.Error("listing what is pending failed", "run", d.lease.Run, "error", err)
	}
	return r
}

// pending lists what waits for a person in a run and in the children that it waits for.
func (h *Host) pending(ctx context.Context, f *folded, prefix string, path []string) ([]Pending, error) {
	var out []Pending
	path = append(path[:len(path):len(path)], f.state.Config.Agent)
	for _, c := range f.state.Turn.Calls {
		p := Pending{Run: f.row.ID, Call: prefix + c.ID, Tool: c.Tool, Digest: c.Digest, Reason: c.Reason, Expires: c.Expires, Wire: c.Wire,
			Path: path, Thought: f.last, Attempts: c.Attempt}
		if b, ok := f.talk.CallBlock(c.ID); ok {
			if args, err := canonicalArgs(b.Args); err == nil {
				p.Args = args
			}
			if e := f.talk.Edited(c.ID); e != "" {
				p.Args = json.RawMessage(e)
			}
		}
		if a, err := h.agentOf(ctx, f.row); err == nil {
			if comp, err := h.compile(a); err == nil && comp.tools[c.Tool] != nil {
				p.Dest = comp.tools[c.Tool].def.Destination
			}
		}
		switch {
		case f.state.Phase == loop.PhaseStopped:
			continue
		case c.Status == loop.CallAsking && c.Asked:
			p.Kind = loop.WaitApproval
		case c.Status == loop.CallResolve:
			p.Kind = loop.WaitResolution
		case c.Status == loop.CallChild:
			child, err := h.folded(ctx, c.Child)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			below, err := h.pending(ctx, child, prefix+c.ID+"/", path)
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
			continue
		default:
			continue
		}
		out = append(out, p)
	}
	if _, waiting := f.state.Status(); f.state.Limit != nil && slices.Contains(waiting, loop.WaitExtension) {
		out = append(out, Pending{Run: f.row.ID, Kind: loop.WaitExtension, Reason: "the limit of " + f.state.Limit.Limit + " was reached", Path: path})
	}
	return out, nil
}
