package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

const inputColumns = `name, key, kind, by, at, body`

func scanInput(run string, r []driver.Value) journal.Input {
	return journal.Input{
		ID: text(r[0]), Run: run, Key: text(r[1]), Kind: text(r[2]), By: text(r[3]), At: loop.Micros(integer(r[4])), Body: blob(r[5]),
	}
}

// Put offers an input.
func (s *Store) Put(ctx context.Context, in journal.Input) (accepted journal.Input, won bool, err error) {
	const op = "put input for"
	if err := s.enter(ctx); err != nil {
		return accepted, false, s.failed(op, in.Run, err)
	}
	if err := in.Check(); err != nil {
		return accepted, false, s.failed(op, in.Run, err)
	}
	fresh := false
	err = s.change(ctx, func(w *writer) error {
		accepted, won, fresh = journal.Input{}, false, false
		h, err := w.head(in.Run)
		if err != nil {
			return err
		}
		if !h.live {
			return journal.ErrStopped
		}
		if accepted, won, err = w.first(h.id, &in); err != nil || accepted.ID != "" {
			return err
		}
		fresh = true
		accepted, won = in, true
		return w.accept(h, &in)
	})
	if err != nil {
		return journal.Input{}, false, s.failed(op, in.Run, err)
	}
	if fresh {
		s.hub.Changed(in.Run)
	}
	return accepted, won, nil
}

// first finds the input that was accepted in place of in before, or in itself, if its sender did not hear the answer.
func (w *writer) first(run int64, in *journal.Input) (old journal.Input, won bool, err error) {
	found := func(r []driver.Value) error { old = scanInput(in.Run, r); return nil }
	if err := w.query(`SELECT `+inputColumns+` FROM inputs WHERE run = ? AND name = ?`, found, run, in.ID); err != nil || old.ID != "" {
		return old, err == nil, err
	}
	if in.Key != "" {
		err = w.query(`SELECT `+inputColumns+` FROM inputs WHERE run = ? AND key = ?`, found, run, in.Key)
	}
	return old, false, err
}

func (w *writer) accept(h *head, in *journal.Input) error {
	_, err := w.exec(`INSERT INTO inputs (run, name, key, kind, by, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		h.id, in.ID, orNull(in.Key), in.Kind, in.By, int64(in.At), blobOrNull(in.Body))
	if err != nil {
		return err
	}
	if _, err := w.exec(`UPDATE runs SET inputs = ? WHERE id = ?`, int64(h.inputs+1), h.id); err != nil {
		return err
	}
	h.inputs++
	return nil
}

// Inputs lists what was accepted and not yet taken.
func (s *Store) Inputs(ctx context.Context, run string) ([]journal.Input, error) {
	var out []journal.Input
	err := s.reading(ctx, func(c *conn) error {
		if err := c.known(run); err != nil {
			return err
		}
		return c.query(`SELECT `+inputColumns+` FROM inputs WHERE run = (SELECT id FROM runs WHERE run = ?) AND taken = 0 ORDER BY id`,
			func(r []driver.Value) error { out = append(out, scanInput(run, r)); return nil }, run)
	})
	if err != nil {
		return nil, s.failed("list inputs of", run, err)
	}
	return out, nil
}

// Accepted returns the input that holds a key.
func (s *Store) Accepted(ctx context.Context, run, key string) (journal.Input, error) {
	var in journal.Input
	err := s.reading(ctx, func(c *conn) error {
		if err := c.known(run); err != nil {
			return err
		}
		err := c.query(`SELECT `+inputColumns+` FROM inputs WHERE run = (SELECT id FROM runs WHERE run = ?) AND key = ?`,
			func(r []driver.Value) error { in = scanInput(run, r); return nil }, run, key)
		if err == nil && in.ID == "" {
			err = fmt.Errorf("%w: no input holds the key %q", journal.ErrNotFound, key)
		}
		return err
	})
	if err != nil {
		return journal.Input{}, s.failed("find input of", run, err)
	}
	return in, nil
}
