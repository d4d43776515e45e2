package sqlite

import (
	"sync"

	"github.com/ronda-go/ronda/journal"
)

// pool holds connections that only read. Whoever takes one gives it back before it calls anyone else, so that a few are enough.
type pool struct {
	dsn   string
	slots chan struct{} // one for each connection in use

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

const maxReaders = 4

func newPool(dsn string) *pool {
	return &pool{dsn: dsn, slots: make(chan struct{}, maxReaders)}
}

func (p *pool) get() (*conn, error) {
	p.slots <- struct{}{}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.slots
		return nil, journal.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := connect(p.dsn)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return c, nil
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	if p.closed {
		_ = c.close()
	} else {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	<-p.slots
}

// close waits for those that are in use.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var first error
	for _, c := range idle {
		if err := c.close(); err != nil && first == nil {
			first = err
		}
	}
	for range maxReaders {
		p.slots <- struct{}{}
	}
	for range maxReaders {
		<-p.slots
	}
	return first
}
