package rondatest

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/ronda-go/ronda/drive"
)

// Clock is a virtual clock for drivers: its time moves on by itself when every driver that uses it only waits and every piece of
// their work sleeps on it; then the next timer or sleeper is next, one at a time, in the order of their times. Nothing sleeps for
// real. It implements drive.Clock and what drivers tell a clock that watches them. Safe for concurrent use.
type Clock struct {
	mu       sync.Mutex
	now      time.Time
	order    int64
	events   events
	sleepers map[*sleeper]struct{}
	drivers  int // entered
	waiting  int // of them
	working  int // pieces of work that the waiting drivers wait for
	busy     int // callbacks under way
	version  int64
	changed  chan struct{} // closed when a driver leaves
	stuck    func()
}

// NewClock returns a clock that stands at the given time.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start, sleepers: map[*sleeper]struct{}{}, changed: make(chan struct{})}
}

// OnStuck sets what is called when every driver waits and nothing will ever wake one: no timer is set and no work ends by itself.
func (c *Clock) OnStuck(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = f
}

// Now is the virtual time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc calls f in a goroutine of its own once d has passed; while f runs the time stands.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.add(d)
	e.fire = f
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.remove(e)
	}
}

// Sleep returns after d, or with ctx's error before.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error { return c.sleep(ctx, d, false) }

// Hang sleeps until ctx ends.
func (c *Clock) Hang(ctx context.Context) error { return c.sleep(ctx, -1, false) }

// SleepThrough returns after d, whatever becomes of ctx: work that does not listen.
func (c *Clock) SleepThrough(ctx context.Context, d time.Duration) { _ = c.sleep(ctx, d, true) }

// sleeper is work that sleeps.
type sleeper struct {
	ctx  context.Context
	deaf bool
}

// sleeps says whether the sleeper counts: one that is about to wake does not, nor does work that no driver waits for any more.
func (s *sleeper) sleeps() bool {
	return !drive.Abandoned(s.ctx) && (s.deaf || s.ctx.Err() == nil)
}

func (c *Clock) sleep(ctx context.Context, d time.Duration, deaf bool) error {
	if err := ctx.Err(); err != nil && !deaf {
		return err
	}
	s := &sleeper{ctx, deaf}
	woken := make(chan struct{})
	c.mu.Lock()
	c.sleepers[s] = struct{}{}
	var e *event
	if d >= 0 {
		e = c.add(d)
		e.wake = func() { delete(c.sleepers, s); close(woken) }
	}
	c.advance()
	c.mu.Unlock()
	done := ctx.Done()
	if deaf {
		done = nil
	}
	select {
	case <-woken:
		return nil
	case <-done:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e != nil {
		c.remove(e)
	}
	delete(c.sleepers, s)
	c.advance()
	return ctx.Err()
}

// Enter says that a driver begins to drive.
func (c *Clock) Enter() (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drivers++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drivers--
		close(c.changed)
		c.changed = make(chan struct{})
		c.advance()
	})
}

// Waiting says that a driver waits for n pieces of work.
func (c *Clock) Waiting(n int) (awake func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	c.working += n
	c.advance()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
		c.working -= n
		c.version++
	})
}

// Quiet returns once no driver drives.
func (c *Clock) Quiet() {
	for {
		c.mu.Lock()
		n, changed := c.drivers, c.changed
		c.mu.Unlock()
		if n == 0 {
			return
		}
		<-changed
	}
}

// Advance lets time pass while no driver drives: what falls due on the way happens at its time.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.now.Add(d)
	for len(c.events) > 0 && !c.events[0].at.After(end) {
		e := heap.Pop(&c.events).(*event)
		c.now = later(c.now, e.at)
		if e.wake != nil {
			e.wake()
			continue
		}
		c.busy++
		c.mu.Unlock()
		e.fire()
		c.mu.Lock()
		c.busy--
	}
	c.now = later(c.now, end)
}

// idle says that nothing happens unless time passes.
func (c *Clock) idle() bool {
	if c.drivers == 0 || c.waiting < c.drivers || c.busy > 0 {
		return false
	}
	asleep := 0
	for s := range c.sleepers {
		if s.sleeps() {
			asleep++
		}
	}
	return asleep >= c.working
}

// advance goes to the next event if nothing else can happen. The caller holds the lock.
func (c *Clock) advance() {
	c.version++
	if !c.idle() {
		return
	}
	if len(c.events) == 0 {
		c.watchStuck()
		return
	}
	e := heap.Pop(&c.events).(*event)
	c.now = later(c.now, e.at)
	if e.wake != nil {
		e.wake() // the work is awake: not idle any more
		return
	}
	c.busy++
	go func() {
		e.fire()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
		c.advance()
	}()
}

// stuckAfter is how long, in real time, nothing may happen before a run counts as stuck.
const stuckAfter = 3 * time.Second

func (c *Clock) watchStuck() {
	version := c.version
	time.AfterFunc(stuckAfter, func() {
		c.mu.Lock()
		still := c.version == version && c.idle() && len(c.events) == 0
		f := c.stuck
		c.mu.Unlock()
		if still && f != nil {
			f()
		}
	})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// event is a timer (fire) or the end of a sleep (wake).
type event struct {
	at    time.Time
	order int64
	fire  func()
	wake  func() // called with the lock held
	index int
}

func (c *Clock) add(d time.Duration) *event {
	c.order++
	e := &event{at: c.now.Add(max(d, 0)), order: c.order}
	heap.Push(&c.events, e)
	return e
}

func (c *Clock) remove(e *event) bool {
	if e.index < 0 {
		return false
	}
	heap.Remove(&c.events, e.index)
	return true
}

type events []*event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i]; q[i].index, q[j].index = i, j }
func (q *events) Push(x any)   { e := x.(*event); e.index = len(*q); *q = append(*q, e) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	e.index = -1
	*q = old[:len(old)-1]
	return e
}
