package sqlite

import (
	"sync"
	"time"
)

// poll looks for what other processes wrote while anybody watches. SQLite tells nobody, but a connection can see cheaply
// whether another one wrote.
type poll struct {
	mu      sync.Mutex
	running bool
	ended   bool
	stop    chan struct{}
	wg      sync.WaitGroup
}

// pollEvery is how late a watcher hears of another process.
const pollEvery = 100 * time.Millisecond

// Notify is told at once of this process's changes, and within a tenth of a second of those of others.
func (s *Store) Notify(run string) (<-chan struct{}, func()) {
	ch, stop := s.hub.Subscribe(run)
	p := &s.poll
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && !p.ended {
		p.running, p.stop = true, make(chan struct{})
		look, done := s.looker() // before the caller goes on: what happens from here on is seen
		p.wg.Go(func() { s.watch(p.stop, look, done) })
	}
	return ch, stop
}

// watch ends when nobody watches any more.
func (s *Store) watch(stop chan struct{}, look, done func()) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	defer done()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if s.poll.idle(s) {
			return
		}
		look()
	}
}

// idle decides, under the lock that Notify takes, whether the goroutine may end.
func (p *poll) idle(s *Store) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = s.hub.Watched()
	return !p.running
}

// looker returns what looks once. The writer's own connection does not take its own changes for another's; a store that only
// reads has a connection of its own.
func (s *Store) looker() (look, done func()) {
	if s.w != nil {
		return func() {
			s.closing.RLock()
			defer s.closing.RUnlock()
			if s.closed {
				return
			}
			select {
			case s.w.queue <- &request{answer: make(chan error, 1)}:
			default: // it is busy, and looks at the begin of each transaction
			}
		}, func() {}
	}
	c, err := connect(s.pool.dsn)
	if err != nil {
		return func() {}, func() {}
	}
	last, _, _ := c.number("PRAGMA data_version")
	return func() {
		if v, _, err := c.number("PRAGMA data_version"); err == nil && v != last {
			last = v
			s.hub.All()
		}
	}, func() { _ = c.close() }
}

func (p *poll) close() {
	p.mu.Lock()
	if p.running && !p.ended {
		close(p.stop)
	}
	p.ended = true
	p.mu.Unlock()
	p.wg.Wait()
}
