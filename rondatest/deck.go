package rondatest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
)

// deck deals the items of one agent's script. Each attempt of a model call takes one item, and the same attempt always gets the same
// one; an attempt after one whose end was not journaled gets the same again; an attempt after a failure gets the next item. A
// further run goes on after the runs of the agent that have stopped. It outlives drivers, as a provider does.
type deck struct {
	name    string
	script  *scripted.Script
	again   bool // a child's script begins again when it is used up at the start of a run
	stopped func(run string) bool
	lost    func(run string, call, attempt int64) bool // its end died with the process

	mu    sync.Mutex
	runs  map[string]*dealt
	order []string
	sent  []*sent
}

type dealt struct {
	start, end int
	calls      map[int64]*dealtCall
}

type dealtCall struct {
	cursor int
	last   int64 // highest attempt
	items  map[int64]int
}

// sent is one request as the model got it.
type sent struct {
	run           string
	call, attempt int64
	item          int
	seen          atomic.Int64 // number of the request at a fake provider, from 1; 0: none arrived
	system        string
	choice        string
	declared      bool
	messages      []*loop.Message
}

// find says which item an attempt gets. The caller holds the lock.
func (d *deck) find(req *model.Request) (i, cursor int, err error) {
	run := d.runs[req.Run]
	if run == nil {
		cursor = d.begin()
	} else if call := run.calls[req.Call]; call != nil {
		if i, ok := call.items[req.Attempt]; ok {
			return i, call.cursor, nil
		}
		i := call.items[call.last]
		if d.script.Items[i].Fail == nil || d.lost(req.Run, req.Call, call.last) {
			return i, call.cursor, nil
		}
		cursor = d.script.After(i)
	} else {
		cursor = run.end
	}
	i, err = d.script.Select(cursor, scripted.MatchOf(req))
	return i, cursor, err
}

// begin is where a run begins that was not seen before.
func (d *deck) begin() int {
	start := 0
	for _, id := range d.order {
		if r := d.runs[id]; d.stopped(id) {
			start = max(start, r.end)
		}
	}
	if d.again && start >= len(d.script.Items) {
		return 0
	}
	return start
}

func (d *deck) take(req *model.Request) (*scripted.Item, *sent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, cursor, err := d.find(req)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.name, err)
	}
	run := d.runs[req.Run]
	if run == nil {
		run = &dealt{start: cursor, calls: map[int64]*dealtCall{}}
		d.runs[req.Run] = run
		d.order = append(d.order, req.Run)
	}
	call := run.calls[req.Call]
	if call == nil {
		call = &dealtCall{cursor: cursor, items: map[int64]int{}}
		run.calls[req.Call] = call
	}
	call.items[req.Attempt], call.last = i, max(call.last, req.Attempt)
	run.end = d.script.After(i)
	s := &sent{run: req.Run, call: req.Call, attempt: req.Attempt, item: i, system: req.System, choice: string(req.Choice),
		declared: len(req.Tools) > 0, messages: req.Messages}
	if req.Extra != "" {
		s.system += "\n\n" + req.Extra
	}
	d.sent = append(d.sent, s)
	item := d.script.Items[i]
	return &item, s, nil
}

// estimate is the exact input size of the request that would be sent.
func (d *deck) estimate(req *model.Request) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, cursor, err := d.find(req)
	if err != nil {
		if cursor >= len(d.script.Items) {
			return 0, false
		}
		i = cursor
	}
	return d.script.Items[i].Prefix(), true
}

// requests are those that were sent, in order; without those whose end died with the process, which were made again, if all is false.
func (d *deck) requests(all bool) []*sent {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*sent
	for _, s := range d.sent {
		if all || !d.lost(s.run, s.call, s.attempt) {
			out = append(out, s)
		}
	}
	return out
}
