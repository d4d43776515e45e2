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

// stores open the stores that a scenario can run on.
var stores = map[string]func() (journal.Store, func(), error){
	"memory": func() (journal.Store, func(), error) {
		s := memory.New()
		return s, func() { _ = s.Close() }, nil
	},
	"sqlite": func() (journal.Store, func(), error) {
		dir, err := os.MkdirTemp("", "ronda-scenario-")
		if err != nil {
			return nil, nil, err
		}
		s, err := sqlite.Open(filepath.Join(dir, "ronda.db"), sqlite.Options{})
		if err != nil {
			_ = os.RemoveAll(dir)
			return nil, nil, err
		}
		return s, func() { _ = s.Close(); _ = os.RemoveAll(dir) }, nil
	},
}

func openStore(name string) (journal.Store, func(), error) {
	open := stores[name]
	if open == nil {
		return nil, nil, fmt.Errorf("there is no store %q", name)
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
	err := w.store.Read(context.Background(), run, last, func(r journal.Record) error {
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
