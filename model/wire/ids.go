package wire

import (
	"strconv"

	"github.com/ronda-go/ronda/loop"
)

// IDs gives each call of a request an id that the wire accepts and that no other call of the request has, and each result the
// id of its call. What it answers depends on the messages before alone, so equal transcripts get equal ids, and later messages
// change nothing. The zero value is ready.
type IDs struct {
	// Make turns an id into one that the wire accepts, "" where that cannot be; nil: letters, digits, _ and -, at most 64.
	Make func(id string) string

	used map[string]bool
	of   map[string]string // loop's id of a call: id on the wire
}

// Call is the id for a call. The wire's own id is kept where own says that it came from this wire, it is not empty and no
// earlier call has it; else it is made from the loop's id.
func (m *IDs) Call(b *loop.Block, own bool) string {
	if m.used == nil {
		m.used, m.of = map[string]bool{}, map[string]string{}
	}
	id := b.ID
	if !own || id == "" || m.used[id] {
		id = m.unique(b.Call)
	}
	m.used[id] = true
	if b.Call != "" {
		m.of[b.Call] = id
	} else if b.ID != "" {
		m.of[b.ID] = id
	}
	return id
}

// Result is the id of the call that b answers. A result whose call is not in the request (the loop sends none) keeps its own.
func (m *IDs) Result(b *loop.Block) string {
	if id, ok := m.of[b.Call]; ok && b.Call != "" {
		return id
	}
	if id, ok := m.of[b.ID]; ok {
		return id
	}
	if b.ID != "" {
		return b.ID
	}
	return m.make(b.Call)
}

func (m *IDs) unique(id string) string {
	if made := m.make(id); made != "" && !m.used[made] {
		return made
	}
	for n := len(m.used) + 1; ; n++ {
		if made := m.make("call_" + strconv.Itoa(n)); !m.used[made] {
			return made
		}
	}
}

func (m *IDs) make(id string) string {
	if m.Make != nil {
		return m.Make(id)
	}
	return PlainID(id, 64)
}

// PlainID keeps letters, digits, _ and - of id, turns all else into _, and cuts it at limit bytes.
func PlainID(id string, limit int) string {
	b := []byte(id)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			b[i] = '_'
		}
	}
	if len(b) > limit {
		b = b[len(b)-limit:]
	}
	return string(b)
}
