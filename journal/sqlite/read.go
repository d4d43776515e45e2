package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// reading performs fn on a connection that sees all that was acknowledged.
func (s *Store) reading(ctx context.Context, fn func(c *conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	c, err := s.pool.get()
	if err != nil {
		return err
	}
	defer s.pool.put(c)
	return fn(c)
}

// known is nil if the run is there.
func (c *conn) known(run string) error {
	_, found, err := c.number(`SELECT id FROM runs WHERE run = ?`, run)
	if err == nil && !found {
		err = notFound("No run of this store has that id")
	}
	return err
}

// A page of Read: it holds no connection while fn runs, so fn may do what it likes and takes its time.
const (
	pageBatches = 64
	pageBytes   = 1 << 20
)

const selectBatches = `SELECT seq, data FROM batches WHERE run = (SELECT id FROM runs WHERE run = ?) AND seq > ? ORDER BY seq LIMIT ?`

// Read yields the records of a run.
func (s *Store) Read(ctx context.Context, run string, after int64, fn func(journal.Record) error) error {
	const op = "read"
	for first := true; ; first = false {
		page, more, err := s.readPage(ctx, run, after, first)
		if err != nil {
			return s.failed(op, run, err)
		}
		for _, r := range page {
			if r.Seq <= after {
				continue
			}
			if err := ctx.Err(); err != nil {
				return s.failed(op, run, err)
			}
			if err := fn(r); err != nil {
				return err
			}
			after = r.Seq
		}
		if !more {
			return nil
		}
	}
}

func (s *Store) readPage(ctx context.Context, run string, after int64, first bool) (page []journal.Record, more bool, err error) {
	type row struct {
		last int64
		data []byte
	}
	var rows []row
	size := 0
	full := fmt.Errorf("page is full") // ends the query early
	err = s.reading(ctx, func(c *conn) error {
		err := c.query(selectBatches, func(r []driver.Value) error {
			data := blob(r[1])
			rows = append(rows, row{integer(r[0]), data})
			if size += len(data); size > pageBytes {
				return full
			}
			return nil
		}, run, after, int64(pageBatches))
		if err == full {
			more, err = true, nil
		}
		if err == nil && len(rows) == 0 && first {
			return c.known(run)
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	for _, r := range rows {
		if page, err = unpackRecords(page, r.last, r.data); err != nil {
			return nil, false, fmt.Errorf("events up to %d: %w", r.last, err)
		}
	}
	return page, more || len(rows) == pageBatches, nil
}

const runColumns = `run, session, parent, root, agent, model, status, waiting, stop, lim, created, updated, wake, seq, digest, inputs, title, summary, id`

func scanRun(r []driver.Value) (run journal.Run, id int64, err error) {
	run = journal.Run{
		ID: text(r[0]), Session: text(r[1]), Parent: text(r[2]), Root: text(r[3]), Agent: text(r[4]), Model: text(r[5]),
		Status: text(r[6]), Stop: loop.Reason(text(r[8])), Limit: text(r[9]),
		Created: loop.Micros(integer(r[10])), Updated: loop.Micros(integer(r[11])), Wake: loop.Micros(integer(r[12])),
		Seq: integer(r[13]), Digest: text(r[14]), Inputs: int(integer(r[15])), Title: text(r[16]), Summary: blob(r[17]),
	}
	if run.Root == "" {
		run.Root = run.ID
	}
	if w := text(r[7]); w != "" {
		if err := json.Unmarshal([]byte(w), &run.Waiting); err != nil {
			return run, 0, fmt.Errorf("%w: the row of run %s: waiting: %w", journal.ErrCorrupt, run.ID, err)
		}
	}
	return run, integer(r[18]), nil
}

// Get returns the row of a run.
func (s *Store) Get(ctx context.Context, id string) (journal.Run, error) {
	var run journal.Run
	err := s.reading(ctx, func(c *conn) error {
		found := false
		err := c.query(`SELECT `+runColumns+` FROM runs WHERE run = ?`, func(r []driver.Value) (err error) {
			found = true
			run, _, err = scanRun(r)
			return err
		}, id)
		if err == nil && !found {
			err = notFound("No run of this store has that id")
		}
		return err
	})
	if err != nil {
		return journal.Run{}, s.failed("get", id, err)
	}
	return run, nil
}

// Artifact returns stored bytes.
func (s *Store) Artifact(ctx context.Context, ref string) (journal.Artifact, error) {
	a := journal.Artifact{Ref: ref}
	err := s.reading(ctx, func(c *conn) error {
		if !journal.IsRef(ref) {
			return notFound("The name of an artifact is sha256: and 64 hex digits")
		}
		key, _ := hex.DecodeString(ref[len("sha256:"):])
		var packed []byte
		err := c.query(`SELECT mime, data FROM artifacts WHERE ref = ?`, func(r []driver.Value) error {
			a.MIME, packed = text(r[0]), blob(r[1])
			return nil
		}, key)
		if err == nil && packed == nil {
			err = notFound("")
		}
		if err != nil {
			return err
		}
		a.Data, err = unpack(packed)
		return err
	})
	if err != nil {
		return journal.Artifact{}, s.failed("read artifact", ref, err)
	}
	return a, nil
}

// Tapes returns the tapes of a run in the order in which they came.
func (s *Store) Tapes(ctx context.Context, run string) ([]journal.Tape, error) {
	var tapes []journal.Tape
	err := s.reading(ctx, func(c *conn) error {
		if err := c.known(run); err != nil {
			return err
		}
		return c.query(`SELECT name, data FROM tapes WHERE run = (SELECT id FROM runs WHERE run = ?) ORDER BY id`, func(r []driver.Value) error {
			data, err := unpack(blob(r[1]))
			if err != nil {
				return fmt.Errorf("tape %s: %w", text(r[0]), err)
			}
			tapes = append(tapes, journal.Tape{Run: run, ID: text(r[0]), Data: data})
			return nil
		}, run)
	})
	if err != nil {
		return nil, s.failed("read tapes of", run, err)
	}
	return tapes, nil
}
