package rondatest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/journal/sqlite"
	"github.com/ronda-go/ronda/loop"
)

// opened is a store that is open, and how it is opened again by the next process.
type opened struct {
	store  journal.Store
	reopen func() (journal.Store, error) // nil: it lives as long as its only process
	remove func()
}

// again closes the store and opens it again, as a new process does.
func (o *opened) again() error {
	if o.reopen == nil {
		return nil
	}
	_ = o.store.Close()
	s, err := o.reopen()
	if err == nil {
		o.store = s
	}
	return err
}

func (o *opened) close() {
	_ = o.store.Close()
	if o.remove != nil {
		o.remove()
	}
}

// stores open the stores that a scenario can run on.
var stores = map[string]func() (opened, error){
	"memory": func() (opened, error) { return opened{store: memory.New()}, nil },
	"sqlite": func() (opened, error) {
		dir, err := os.MkdirTemp("", "ronda-scenario-")
		if err != nil {
			return opened{}, err
		}
		o := opened{remove: func() { _ = os.RemoveAll(dir) },
			reopen: func() (journal.Store, error) { return sqlite.Open(filepath.Join(dir, "ronda.db"), sqlite.Options{}) }}
		if o.store, err = o.reopen(); err != nil {
			o.remove()
		}
		return o, err
	},
}

func openStore(name string) (opened, error) {
	open := stores[name]
	if open == nil {
		return opened{}, fmt.Errorf("there is no store %q", name)
	}
	return open()
}

// events yields the events of a run; each is decoded once.
func (w *world) events(run string, fn func(loop.Event) error) error {
	w.mu.Lock()
	have := w.read[run]
	w.mu.Unlock()
	last := int64(0)
	if n := len(have); n > 0 {
		last = have[n-1].Seq
	}
	err := w.store().Read(context.Background(), run, last, func(r journal.Record) error {
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return fmt.Errorf("event %d of %s: %w", r.Seq, run, err)
		}
		have = append(have, ev)
		return nil
	})
	if err != nil {
		return err
	}
	have = have[:len(have):len(have)]
	w.mu.Lock()
	w.read[run] = have
	w.mu.Unlock()
	for _, ev := range have {
		if err := fn(ev); err != nil {
			return err
		}
	}
	return nil
}
