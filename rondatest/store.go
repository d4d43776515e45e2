package rondatest

import (
	"context"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
)

// stores open the stores that a scenario can run on.
var stores = map[string]func() (journal.Store, func(), error){
	"memory": func() (journal.Store, func(), error) {
		s := memory.New()
		return s, func() { _ = s.Close() }, nil
	},
}

func openStore(name string) (journal.Store, func(), error) {
	open := stores[name]
	if open == nil {
		return nil, nil, fmt.Errorf("there is no store %q", name)
	}
	return open()
}

// events decodes the journal of a run.
func (w *world) events(run string, fn func(loop.Event) error) error {
	return w.store.Read(context.Background(), run, 0, func(r journal.Record) error {
		ev, err := loop.Decode(r.Data)
		if err != nil {
			return fmt.Errorf("event %d of %s: %w", r.Seq, run, err)
		}
		return fn(ev)
	})
}
