package drive

import (
	"context"
	"iter"
	"sync"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// Item is one thing on a live stream: an event, or a delta of the model call that the event Seq began.
type Item struct {
	Event  loop.Event
	Delta  *model.Delta
	Seq    int64 // event; for a delta, of the event that began the attempt
	Offset int64 // delta: counts from 1 within its attempt
}

// subscription is a listener to one run. It never holds a driver up: one that is too slow loses deltas, never events, which it reads
// from the journal.
type subscription struct {
	ch chan Item
}

const subscriptionRoom = 1024

func (h *Host) subscribe(run string) (*subscription, func()) {
	s := &subscription{ch: make(chan Item, subscriptionRoom)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs[run] == nil {
		h.subs[run] = map[*subscription]struct{}{}
	}
	h.subs[run][s] = struct{}{}
	var once sync.Once
	return s, func() {
		once.Do(func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.subs[run], s)
			if len(h.subs[run]) == 0 {
				delete(h.subs, run)
			}
		})
	}
}

func (h *Host) offer(run string, it Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs[run] {
		select {
		case s.ch <- it:
		default:
		}
	}
}

// publish tells listeners of events that are durable now.
func (h *Host) publish(run string, events []loop.Event) {
	h.mu.Lock()
	listened := len(h.subs[run]) > 0
	h.mu.Unlock()
	if !listened {
		return
	}
	for _, ev := range events {
		h.offer(run, Item{Event: ev, Seq: ev.Seq})
	}
}

func (h *Host) publishDelta(run string, seq, offset int64, d model.Delta) {
	h.offer(run, Item{Delta: &d, Seq: seq, Offset: offset})
}

// Events yields the events of a run after the given sequence, each once and in order. With follow it goes on with what happens next
// (deltas too, where this host drives the run) and ends after RunStopped or when ctx does. A listener that is too slow loses
// deltas, never events.
func (h *Host) Events(ctx context.Context, run string, after int64, follow bool) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var sub *subscription
		if follow {
			s, cancel := h.subscribe(run)
			defer cancel()
			sub = s
		}
		signal, stop := h.store.Notify(run)
		defer stop()
		if _, err := h.store.Get(ctx, run); err != nil {
			yield(Item{}, err)
			return
		}
		for {
			n, ended, ok := h.catchUp(ctx, run, after, yield)
			after = n
			if !ok || ended || !follow {
				return
			}
			select {
			case it := <-sub.ch:
				if it.Delta != nil && it.Seq >= after {
					if it.Seq > after { // its event comes first
						if after, ended, ok = h.catchUp(ctx, run, after, yield); !ok || ended {
							return
						}
					}
					if !yield(it, nil) {
						return
					}
				}
			case <-signal:
			case <-ctx.Done():
				yield(Item{}, ctx.Err())
				return
			}
		}
	}
}

// catchUp yields what the journal holds after a sequence.
func (h *Host) catchUp(ctx context.Context, run string, after int64, yield func(Item, error) bool) (last int64, ended, ok bool) {
	last, ok = after, true
	err := h.read1(ctx, run, after, func(ev loop.Event) error {
		last = ev.Seq
		_, ended = ev.Body.(loop.RunStopped)
		if !yield(Item{Event: ev, Seq: ev.Seq}, nil) {
			ok = false
			return errLetGo
		}
		return nil
	})
	if err != nil && ok {
		yield(Item{}, err)
		return last, ended, false
	}
	return last, ended, ok
}
