// Package watch tells those who wait for changes of runs that there may be one. It is the part of Store.Notify that all stores
// share.
package watch

import (
	"sync"
	"sync/atomic"
)

// Hub holds the subscribers. Its zero value has none and is ready. All methods are safe for concurrent use.
type Hub struct {
	n    atomic.Int64 // subscribers, so that a store that nobody watches pays one load
	mu   sync.Mutex
	runs map[string]map[*sub]struct{} // "" holds those who watch every run
}

type sub struct{ ch chan struct{} }

// Subscribe returns a channel that gets a value when run ("" any run) may have changed; one value may stand for many changes.
// stop ends it and closes the channel; it may be called twice.
func (h *Hub) Subscribe(run string) (ch <-chan struct{}, stop func()) {
	s := &sub{make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil {
		h.runs = map[string]map[*sub]struct{}{}
	}
	if h.runs[run] == nil {
		h.runs[run] = map[*sub]struct{}{}
	}
	h.runs[run][s] = struct{}{}
	h.n.Add(1)
	return s.ch, sync.OnceFunc(func() { h.end(run, s) })
}

func (h *Hub) end(run string, s *sub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.runs[run], s)
	if len(h.runs[run]) == 0 {
		delete(h.runs, run)
	}
	h.n.Add(-1)
	close(s.ch) // under the lock: tell sends under it too
}

// Watched reports whether anybody is subscribed.
func (h *Hub) Watched() bool { return h.n.Load() > 0 }

// Changed tells the subscribers of run and those of every run.
func (h *Hub) Changed(run string) {
	if !h.Watched() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	tell(h.runs[run])
	if run != "" {
		tell(h.runs[""])
	}
}

// All tells every subscriber: something changed, and nobody can say what.
func (h *Hub) All() {
	if !h.Watched() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range h.runs {
		tell(subs)
	}
}

func tell(subs map[*sub]struct{}) {
	for s := range subs {
		select {
		case s.ch <- struct{}{}:
		default: // a value waits already
		}
	}
}
