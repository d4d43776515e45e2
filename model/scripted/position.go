package scripted

import (
	"slices"
	"sync"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// memory is what a Model knows of the runs that it served.
type memory struct {
	mu    sync.Mutex
	runs  map[string]*served
	order []string // oldest first
}

// maxRuns bounds the memory of a long-lived process; a forgotten run goes on by the rule for unknown ones.
const maxRuns = 4096

type served struct {
	calls    map[int64]*attempts
	messages []*loop.Message // of the last request
}

type attempts struct {
	cursor int           // before the first
	items  map[int64]int // attempt → index of the item
}

// last is the item of the highest attempt below limit.
func (a *attempts) last(limit int64) (item int, ok bool) {
	best := int64(-1)
	for n, i := range a.items {
		if n < limit && n > best {
			best, item = n, i
		}
	}
	return item, best >= 0
}

// peek finds the item for a request and changes nothing. On an error i is the cursor.
func (m *Model) peek(req *model.Request) (i int, err error) {
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	i, _, err = m.find(req)
	return i, err
}

// take finds the item for a request and remembers it.
func (m *Model) take(req *model.Request) (int, error) {
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	i, cursor, err := m.find(req)
	if err != nil {
		return 0, err
	}
	run := m.memory.run(req.Run)
	run.messages = req.Messages
	call := run.calls[req.Call]
	if call == nil {
		call = &attempts{cursor: cursor, items: map[int64]int{}}
		run.calls[req.Call] = call
	}
	call.items[req.Attempt] = i
	return i, nil
}

func (mem *memory) run(id string) *served {
	if r := mem.runs[id]; r != nil {
		return r
	}
	if mem.runs == nil {
		mem.runs = map[string]*served{}
	}
	if len(mem.order) >= maxRuns {
		delete(mem.runs, mem.order[0])
		mem.order = slices.Clone(mem.order[1:])
	}
	r := &served{calls: map[int64]*attempts{}}
	mem.runs[id] = r
	mem.order = append(mem.order, id)
	return r
}

// find is the rule on Model.
func (m *Model) find(req *model.Request) (i, cursor int, err error) {
	match := MatchOf(req)
	run := m.memory.runs[req.Run]
	if run != nil && run.calls[req.Call] != nil {
		call := run.calls[req.Call]
		if i, ok := call.items[req.Attempt]; ok {
			return i, call.cursor, nil
		}
		cursor = call.cursor
		if i, ok := call.last(req.Attempt); ok {
			if m.script.Items[i].Fail == nil {
				return i, call.cursor, nil
			}
			cursor = m.script.After(i)
		}
	} else if known, ok := m.remembered(run, req); ok {
		cursor = known
	} else {
		cursor = m.afterFailures(m.derive(req), req.Attempt, match)
	}
	i, err = m.script.Select(cursor, match)
	if err != nil {
		i = cursor
	}
	return i, cursor, err
}

// remembered is the cursor of a new call, from the calls of the same run before it, or from the run that it continues.
func (m *Model) remembered(run *served, req *model.Request) (cursor int, ok bool) {
	if run != nil {
		best := int64(-1)
		for n := range run.calls {
			if n < req.Call && n > best {
				best = n
			}
		}
		if best < 0 {
			return 0, false
		}
		cursor, _ := m.replay(m.end(run.calls[best]), req.Call-1-best)
		return cursor, true
	}
	if req.Call > 1 || m.opts.Position != nil {
		return 0, false
	}
	longest := 0
	for _, id := range m.memory.order {
		r := m.memory.runs[id]
		if len(r.messages) >= longest && len(r.messages) > 0 && properPrefix(r.messages, req.Messages) {
			longest, ok = len(r.messages), true
			cursor = m.endOf(r)
		}
	}
	return cursor, ok
}

func (m *Model) end(a *attempts) int {
	i, ok := a.last(1<<63 - 1)
	if !ok {
		return a.cursor
	}
	return m.script.After(i)
}

func (m *Model) endOf(r *served) int {
	best := int64(-1)
	for n := range r.calls {
		best = max(best, n)
	}
	return m.end(r.calls[best])
}

func properPrefix(a, b []*loop.Message) bool {
	return len(a) < len(b) && slices.EqualFunc(a, b[:len(a)], sameMessage)
}

func sameMessage(a, b *loop.Message) bool {
	return a == b || a.Role == b.Role && slices.EqualFunc(a.Blocks, b.Blocks, func(a, b loop.Block) bool {
		return a.Kind == b.Kind && a.Text == b.Text && a.Name == b.Name && a.Args == b.Args && a.Call == b.Call
	})
}

// afterFailures passes over the transient failures that earlier attempts of the same call took.
func (m *Model) afterFailures(cursor int, attempt int64, match Match) int {
	for ; attempt > 1; attempt-- {
		i, err := m.script.Select(cursor, match)
		if err != nil || m.script.Items[i].Fail == nil || !m.script.Items[i].Fail.Transient() {
			break
		}
		if next := m.script.After(i); next != cursor {
			cursor = next
			continue
		}
		break
	}
	return cursor
}

// derive is the cursor of a call of a run that nobody here has seen.
func (m *Model) derive(req *model.Request) int {
	if m.opts.Position != nil {
		return min(max(m.opts.Position(req), 0), len(m.script.Items))
	}
	calls := max(req.Call-1, 0)
	turns := turnsOf(req.Messages)
	for own := min(int(calls), len(turns)); own >= 0; own-- { // how many of the turns in the transcript are this run's
		first := len(req.Messages)
		if own > 0 {
			first = turns[len(turns)-own]
		}
		// The messages between the last turn before and the first turn of this run belong to either.
		for end, least := first, firstOfGroup(req.Messages, first); end >= least; end-- {
			base, ok := m.align(req.Messages[:end])
			if !ok {
				continue
			}
			if cursor, ok := m.replayed(base, calls, req.Messages, turns[len(turns)-own:]); ok {
				return cursor
			}
		}
	}
	cursor, _ := m.replay(0, calls)
	return cursor
}

// turnsOf are the places of the model's turns.
func turnsOf(msgs []*loop.Message) []int {
	var at []int
	for i, msg := range msgs {
		if msg.Role == loop.Assistant {
			at = append(at, i)
		}
	}
	return at
}

// firstOfGroup is the end of the first message after the last turn before end: where a further message of the same run may
// stand for a turn that was left out.
func firstOfGroup(msgs []*loop.Message, end int) int {
	start := end
	for start > 0 && msgs[start-1].Role != loop.Assistant {
		start--
	}
	for start < end && msgs[start].Role == loop.Tool {
		start++
	}
	return min(start+1, end)
}

// align walks through the transcript of earlier runs and finds each turn in the script. A user's message that follows no turn
// of the model stands for a turn that was left out, or for a run that failed: such items are passed over if they are next.
func (m *Model) align(msgs []*loop.Message) (cursor int, ok bool) {
	for i, msg := range msgs {
		switch {
		case msg.Role == loop.Assistant:
			for cursor < len(m.script.Items) && !m.script.Items[cursor].renders(msg) {
				cursor++
			}
			if cursor == len(m.script.Items) {
				return 0, false
			}
			cursor = m.script.After(cursor)
		case msg.Role == loop.User && i > 0 && msgs[i-1].Role != loop.Assistant:
			cursor = m.passDropped(cursor)
		}
	}
	return cursor, true
}

func (m *Model) passDropped(cursor int) int {
	for ; cursor < len(m.script.Items); cursor++ {
		it := &m.script.Items[cursor]
		switch {
		case it.Repeat:
			return cursor
		case it.Fail != nil && it.Fail.Transient():
			continue
		case it.Fail != nil || it.dropped():
			return cursor + 1
		}
		return cursor
	}
	return cursor
}

// replay passes over what a number of answered calls took: one item each that is no failure, and the failures before it.
func (m *Model) replay(cursor int, calls int64) (end int, ok bool) {
	for ; calls > 0; calls-- {
		i, ok := m.answer(cursor)
		if !ok {
			return len(m.script.Items), false
		}
		next := m.script.After(i)
		if next == i { // repeats: all further calls take it too
			return i, true
		}
		cursor = next
	}
	return cursor, true
}

// answer is the first item at or after the cursor that is no failure.
func (m *Model) answer(cursor int) (i int, ok bool) {
	for ; cursor < len(m.script.Items); cursor++ {
		if m.script.Items[cursor].Fail == nil {
			return cursor, true
		}
	}
	return cursor, false
}

// replayed is replay, if what the calls took agrees with the turns in the transcript: each turn in its order, and no answer
// without its turn but those that are left out of prompts.
func (m *Model) replayed(cursor int, calls int64, msgs []*loop.Message, turns []int) (end int, ok bool) {
	for ; calls > 0; calls-- {
		i, ok := m.answer(cursor)
		if !ok {
			return 0, false
		}
		it := &m.script.Items[i]
		switch {
		case len(turns) > 0 && it.renders(msgs[turns[0]]):
			turns = turns[1:]
		case !it.dropped():
			return 0, false
		}
		cursor = m.script.After(i)
	}
	return cursor, len(turns) == 0
}

// renders reports whether a turn of the transcript is this item's.
func (i *Item) renders(msg *loop.Message) bool {
	if i.Fail != nil {
		return false
	}
	text, n := "", 0
	for _, b := range msg.Blocks {
		switch b.Kind {
		case loop.BlockText:
			text += b.Text
		case loop.BlockCall:
			if n >= len(i.Calls) || i.Calls[n].Name != b.Name || i.Calls[n].Args != b.Args {
				return false
			}
			n++
		}
	}
	return text == i.Text && n == len(i.Calls)
}
