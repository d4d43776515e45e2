package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ronda-go/ronda/journal"
)

// head is what the writer knows of a run, so that most appends read nothing.
type head struct {
	id     int64
	seq    int64
	epoch  int64
	owner  string // "" when free
	place  string
	live   bool
	inputs int
	agent  string
	model  string
	title  string
}

// maxHeads bounds the memory of runs that wait under a lease.
const maxHeads = 4096

const selectHead = `SELECT id, seq, epoch, owner, place, live, inputs, agent, model, title FROM runs WHERE run = ?`

// head finds a run; ErrNotFound.
func (w *writer) head(run string) (*head, error) {
	if h, ok := w.heads[run]; ok {
		return h, nil
	}
	var h *head
	err := w.query(selectHead, func(r []driver.Value) error {
		h = &head{
			id: integer(r[0]), seq: integer(r[1]), epoch: integer(r[2]), owner: text(r[3]), place: text(r[4]),
			live: integer(r[5]) != 0, inputs: int(integer(r[6])), agent: text(r[7]), model: text(r[8]), title: text(r[9]),
		}
		return nil
	}, run)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, notFound("No run of this store has that id")
	}
	w.remember(run, h)
	return h, nil
}

func (w *writer) remember(run string, h *head) {
	if len(w.heads) >= maxHeads {
		clear(w.heads)
	}
	w.heads[run] = h
}

func notFound(hint string) error { return &hinted{journal.ErrNotFound, hint} }

// packed is what a batch stores, made ready outside of the transaction.
type packed struct {
	events    []byte // nil: none
	waiting   any
	artifacts []artifact
	tapes     [][]byte
}

type artifact struct {
	ref  []byte
	mime string
	data []byte
}

func packBatch(b *journal.Batch) packed {
	p := packed{waiting: waitingJSON(b.Run.Waiting), artifacts: packArtifacts(b.Artifacts)}
	if len(b.Records) > 0 {
		p.events = packRecords(b.Records)
	}
	for i := range b.Tapes {
		p.tapes = append(p.tapes, pack(b.Tapes[i].Data))
	}
	return p
}

func waitingJSON(ws []string) any {
	if len(ws) == 0 {
		return nil
	}
	b, _ := json.Marshal(ws) // strings always have a form
	return string(b)
}

func packArtifacts(as []journal.Artifact) []artifact {
	var out []artifact
	for i := range as {
		ref, _ := hex.DecodeString(as[i].Ref[len("sha256:"):]) // CheckArtifacts has seen it
		out = append(out, artifact{ref, as[i].MIME, pack(as[i].Data)})
	}
	return out
}

const insertRun = `INSERT INTO runs (run, session, parent, root, agent, model, status, live, waiting, stop, lim, created, updated, wake,
	seq, digest, title, summary, owner, place, epoch) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)`

// Create makes a run with its first events.
func (s *Store) Create(ctx context.Context, b journal.Batch) (journal.Lease, error) {
	const op = "create"
	id := b.Lease.Run
	if err := s.enter(ctx); err != nil {
		return journal.Lease{}, s.failed(op, id, err)
	}
	if err := b.Check(true); err != nil {
		return journal.Lease{}, s.failed(op, id, err)
	}
	p := packBatch(&b)
	err := s.claiming(ctx, func(w *writer, place string) error { return w.create(&b, &p, place) })
	if err != nil {
		return journal.Lease{}, s.failed(op, id, err)
	}
	s.hub.Changed(id)
	return journal.Lease{Run: id, Owner: b.Lease.Owner, Epoch: 1}, nil
}

func (w *writer) create(b *journal.Batch, p *packed, place string) error {
	r := b.Begin()
	live := r.Status != journal.Stopped
	if _, taken, err := w.number(`SELECT id FROM runs WHERE run = ?`, r.ID); err != nil || taken {
		return orExists(err, "Choose another id")
	}
	if live && r.Session != "" && r.Parent == "" {
		other := ""
		err := w.query(`SELECT run FROM runs WHERE session = ? AND live = 1 AND parent IS NULL AND session IS NOT NULL`,
			func(row []driver.Value) error { other = text(row[0]); return nil }, r.Session)
		if err != nil {
			return err
		}
		if other != "" {
			return &hinted{fmt.Errorf("%w: session %s has the live run %s", journal.ErrExists, r.Session, other), "Send it a message, or wait for its end"}
		}
	}
	if err := w.checkTapes(0, b.Tapes); err != nil {
		return err
	}
	root := r.Root
	if root == r.ID {
		root = ""
	}
	id, err := w.exec(insertRun, r.ID, orNull(r.Session), orNull(r.Parent), orNull(root), r.Agent, r.Model, r.Status, live,
		p.waiting, orNull(string(r.Stop)), orNull(r.Limit), int64(r.Created), int64(r.Updated), int64(r.Wake),
		r.Seq, r.Digest, r.Title, blobOrNull(r.Summary), b.Lease.Owner, place)
	if err != nil {
		return err
	}
	if err := w.storeRest(id, r.Seq, b, p); err != nil {
		return err
	}
	if live {
		w.remember(r.ID, &head{id: id, seq: r.Seq, epoch: 1, owner: b.Lease.Owner, place: place, live: true, agent: r.Agent, model: r.Model, title: r.Title})
	}
	return nil
}

func orExists(err error, hint string) error {
	if err != nil {
		return err
	}
	return &hinted{journal.ErrExists, hint}
}

// Append appends a batch.
func (s *Store) Append(ctx context.Context, b journal.Batch) (int, error) {
	const op = "append"
	id := b.Lease.Run
	if err := s.enter(ctx); err != nil {
		return 0, s.failed(op, id, err)
	}
	if err := b.Check(false); err != nil {
		return 0, s.failed(op, id, err)
	}
	p := packBatch(&b)
	inputs := 0
	err := s.change(ctx, func(w *writer) (err error) {
		inputs, err = w.append(&b, &p)
		return err
	})
	if err != nil {
		return 0, s.failed(op, id, err)
	}
	s.hub.Changed(id)
	return inputs, nil
}

// updateRow leaves the columns alone that have indexes of their own and seldom change; updateWhole writes the rest too.
const (
	updateRow = `UPDATE runs SET seq = ?, status = ?, waiting = ?, lim = ?, updated = ?, wake = ?, digest = ?, summary = ? WHERE id = ?`

	updateWhole = `UPDATE runs SET seq = ?, status = ?, waiting = ?, lim = ?, updated = ?, wake = ?, digest = ?, summary = ?,
		agent = ?, model = ?, title = ?, stop = ?, live = ?, inputs = ? WHERE id = ?`
)

func (w *writer) append(b *journal.Batch, p *packed) (int, error) {
	h, err := w.head(b.Lease.Run)
	if err != nil {
		return 0, err
	}
	if err := h.allows(b); err != nil {
		return 0, err
	}
	taken, err := w.checkTake(h.id, b.Take)
	if err != nil {
		return 0, err
	}
	if err := w.checkTapes(h.id, b.Tapes); err != nil {
		return 0, err
	}
	last, live, inputs := b.Last(), b.Run.Status != journal.Stopped, h.inputs-len(taken)
	r := &b.Run
	if live && inputs == h.inputs && r.Stop == "" && r.Agent == h.agent && r.Model == h.model && r.Title == h.title {
		_, err = w.exec(updateRow, last, r.Status, p.waiting, orNull(r.Limit), int64(r.Updated), int64(r.Wake), r.Digest,
			blobOrNull(r.Summary), h.id)
	} else {
		_, err = w.exec(updateWhole, last, r.Status, p.waiting, orNull(r.Limit), int64(r.Updated), int64(r.Wake), r.Digest,
			blobOrNull(r.Summary), r.Agent, r.Model, r.Title, orNull(string(r.Stop)), live, int64(inputs), h.id)
	}
	if err != nil {
		return 0, err
	}
	for _, id := range taken {
		if _, err := w.exec(`UPDATE inputs SET taken = 1 WHERE id = ?`, id); err != nil {
			return 0, err
		}
	}
	if err := w.storeRest(h.id, last, b, p); err != nil {
		return 0, err
	}
	h.seq, h.live, h.inputs, h.agent, h.model, h.title = last, live, inputs, r.Agent, r.Model, r.Title
	if !live {
		delete(w.heads, b.Lease.Run)
	}
	return inputs, nil
}

// allows checks what needs no look at the file.
func (h *head) allows(b *journal.Batch) error {
	switch {
	case h.owner != b.Lease.Owner || h.epoch != b.Lease.Epoch:
		return &hinted{fmt.Errorf("%w: epoch %d of %s, now %d of %q", journal.ErrLease, b.Lease.Epoch, b.Lease.Owner, h.epoch, h.owner),
			"Another driver has the run: read what it wrote"}
	case !h.live:
		return journal.ErrStopped
	case h.seq != b.After:
		return fmt.Errorf("%w: the journal is at %d, not at %d", journal.ErrConflict, h.seq, b.After)
	case b.NoInputs && h.inputs > len(b.Take):
		return journal.ErrInbox
	}
	return nil
}

// checkTake finds the rows of inputs that wait.
func (w *writer) checkTake(run int64, take []string) ([]int64, error) {
	var ids []int64
	for _, name := range take {
		id, found, err := w.number(`SELECT id FROM inputs WHERE run = ? AND name = ? AND taken = 0`, run, name)
		if err != nil {
			return nil, err
		}
		if !found || slices.Contains(ids, id) {
			return nil, fmt.Errorf("%w: the input %q does not wait", journal.ErrConflict, name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (w *writer) checkTapes(run int64, tapes []journal.Tape) error {
	for i, t := range tapes {
		_, found, err := w.number(`SELECT id FROM tapes WHERE run = ? AND name = ?`, run, t.ID)
		if err != nil {
			return err
		}
		if found || slices.ContainsFunc(tapes[:i], func(o journal.Tape) bool { return o.ID == t.ID }) {
			return fmt.Errorf("%w: tape %s", journal.ErrExists, t.ID)
		}
	}
	return nil
}

// storeRest stores what a batch holds beside the row of the run.
func (w *writer) storeRest(run, last int64, b *journal.Batch, p *packed) error {
	if p.events != nil {
		if _, err := w.exec(`INSERT INTO batches (run, seq, data) VALUES (?, ?, ?)`, run, last, p.events); err != nil {
			return err
		}
	}
	for i := range p.tapes {
		if _, err := w.exec(`INSERT INTO tapes (run, name, data) VALUES (?, ?, ?)`, run, b.Tapes[i].ID, p.tapes[i]); err != nil {
			return err
		}
	}
	return w.keep(p.artifacts)
}

func (w *writer) keep(as []artifact) error {
	for i := range as {
		_, err := w.exec(`INSERT INTO artifacts (ref, mime, data) VALUES (?, ?, ?) ON CONFLICT (ref) DO NOTHING`, as[i].ref, as[i].mime, as[i].data)
		if err != nil {
			return err
		}
	}
	return nil
}

// Acquire takes the lease of a run.
func (s *Store) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	const op = "acquire"
	if err := s.enter(ctx); err != nil {
		return journal.Lease{}, s.failed(op, run, err)
	}
	if owner == "" {
		return journal.Lease{}, s.failed(op, run, errors.New("the owner is empty"))
	}
	l := journal.Lease{Run: run, Owner: owner}
	err := s.claiming(ctx, func(w *writer, place string) error {
		h, err := w.head(run)
		if err != nil {
			return err
		}
		if h.owner != "" && h.owner != owner && (h.place == place || s.owners.living(h.place)) {
			return &hinted{fmt.Errorf("%w: %s", journal.ErrHeld, h.owner), "Its driver goes on with the run"}
		}
		if _, err := w.exec(`UPDATE runs SET owner = ?, place = ?, epoch = ? WHERE id = ?`, owner, place, h.epoch+1, h.id); err != nil {
			return err
		}
		h.owner, h.place = owner, place
		h.epoch++
		l.Epoch = h.epoch
		return nil
	})
	if err != nil {
		return journal.Lease{}, s.failed(op, run, err)
	}
	return l, nil
}

// Release gives the lease up; a lost lease is no error.
func (s *Store) Release(ctx context.Context, l journal.Lease) error {
	if err := s.enter(ctx); err != nil {
		return s.failed("release", l.Run, err)
	}
	err := s.change(ctx, func(w *writer) error {
		h, err := w.head(l.Run)
		if err != nil {
			return err
		}
		delete(w.heads, l.Run) // a run without a driver takes no memory
		if h.owner != l.Owner || h.epoch != l.Epoch {
			return nil
		}
		_, err = w.exec(`UPDATE runs SET owner = NULL, place = NULL WHERE id = ?`, h.id)
		return err
	})
	if err != nil {
		return s.failed("release", l.Run, err)
	}
	return nil
}

// claiming performs a change that takes a lease, with this store's lock held.
func (s *Store) claiming(ctx context.Context, do func(w *writer, place string) error) error {
	if s.w == nil {
		return journal.ErrReadOnly // before a lock file is made
	}
	place, err := s.owners.claim()
	if err != nil {
		return err
	}
	return s.change(ctx, func(w *writer) error { return do(w, place) })
}
