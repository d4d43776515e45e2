package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/journal"
)

// Put offers an input.
func (s *Store) Put(ctx context.Context, in journal.Input) (accepted journal.Input, won bool, err error) {
	const op = "put input for"
	r, err := s.find(ctx, op, in.Run)
	if err != nil {
		return accepted, false, err
	}
	if err := in.Check(); err != nil {
		return accepted, false, failed(op, in.Run, err, "")
	}
	r.Lock()
	defer r.Unlock()
	if r.row.Status == journal.Stopped {
		return accepted, false, failed(op, in.Run, journal.ErrStopped, "")
	}
	if old := r.byID[in.ID]; old != nil {
		return copyInput(old.Input), true, nil
	}
	if old := r.byKey[in.Key]; old != nil {
		return copyInput(old.Input), false, nil
	}
	if r.byID == nil {
		r.byID, r.byKey = map[string]*input{}, map[string]*input{}
	}
	kept := &input{Input: copyInput(in)}
	r.inputs = append(r.inputs, kept)
	r.byID[in.ID] = kept
	if in.Key != "" {
		r.byKey[in.Key] = kept
	}
	r.row.Inputs++
	s.hub.Changed(in.Run)
	return in, true, nil
}

func copyInput(in journal.Input) journal.Input {
	in.Body = slices.Clone(in.Body)
	return in
}

// Inputs lists what was accepted and not yet taken.
func (s *Store) Inputs(ctx context.Context, id string) ([]journal.Input, error) {
	r, err := s.find(ctx, "list inputs of", id)
	if err != nil {
		return nil, err
	}
	r.RLock()
	defer r.RUnlock()
	var out []journal.Input
	for _, in := range r.inputs {
		if !in.taken {
			out = append(out, copyInput(in.Input))
		}
	}
	return out, nil
}

// Accepted returns the input that holds a key.
func (s *Store) Accepted(ctx context.Context, id, key string) (journal.Input, error) {
	const op = "find input of"
	r, err := s.find(ctx, op, id)
	if err != nil {
		return journal.Input{}, err
	}
	r.RLock()
	defer r.RUnlock()
	in := r.byKey[key]
	if in == nil {
		return journal.Input{}, failed(op, id, fmt.Errorf("%w: no input holds the key %q", journal.ErrNotFound, key), "")
	}
	return copyInput(in.Input), nil
}

// Read yields records. It holds no lock while fn runs: records are never changed, only more come.
func (s *Store) Read(ctx context.Context, id string, after int64, fn func(journal.Record) error) error {
	const op = "read"
	r, err := s.find(ctx, op, id)
	if err != nil {
		return err
	}
	r.RLock()
	records := r.records
	r.RUnlock()
	if after > 0 {
		records = records[min(after, int64(len(records))):]
	}
	for _, rec := range records {
		if err := ctx.Err(); err != nil {
			return failed(op, id, err, "")
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the row of a run.
func (s *Store) Get(ctx context.Context, id string) (journal.Run, error) {
	r, err := s.find(ctx, "get", id)
	if err != nil {
		return journal.Run{}, err
	}
	return r.get(), nil
}

func (r *run) get() journal.Run {
	r.RLock()
	defer r.RUnlock()
	row := r.row
	row.Waiting, row.Summary = slices.Clone(row.Waiting), slices.Clone(row.Summary)
	return row
}

// List looks at every run: this store is for few runs or for those that nobody lists.
func (s *Store) List(ctx context.Context, q journal.Query) (journal.Page, error) {
	const op = "list runs"
	if err := s.enter(ctx, op, ""); err != nil {
		return journal.Page{}, err
	}
	from, paged, err := journal.ParseCursor(q.Cursor)
	if err != nil {
		return journal.Page{}, failed(op, "", err, "")
	}
	type entry struct {
		r  *run
		at journal.Cursor
	}
	newest := func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.at.Created, a.at.Created), cmp.Compare(b.at.N, a.at.N))
	}
	var found []entry
	for i := range s.shard {
		sh := &s.shard[i]
		sh.RLock()
		for _, r := range sh.runs {
			r.RLock()
			e := entry{r, journal.Cursor{Created: r.row.Created, N: r.n}}
			if matches(&r.row, &q) && (!paged || newest(entry{at: from}, e) < 0) {
				found = append(found, e)
			}
			r.RUnlock()
		}
		sh.RUnlock()
	}
	slices.SortFunc(found, newest)
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	var page journal.Page
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].at.String()
	}
	for _, e := range found {
		page.Runs = append(page.Runs, e.r.get())
	}
	return page, nil
}

func matches(r *journal.Run, q *journal.Query) bool {
	return (q.Status == "" || r.Status == q.Status) &&
		(q.Agent == "" || r.Agent == q.Agent) &&
		(q.Session == "" || r.Session == q.Session) &&
		(q.Root == "" || r.Root == q.Root) &&
		(q.Parent == "" || r.Parent == q.Parent) &&
		(q.Stop == "" || r.Stop == q.Stop) &&
		(q.Waiting == "" || slices.Contains(r.Waiting, q.Waiting)) &&
		(q.WakeBy == 0 || 0 < r.Wake && r.Wake <= q.WakeBy) &&
		(!q.Inputs || r.Inputs > 0) &&
		(!q.Roots || r.Parent == "") &&
		(q.IDs == "" || strings.HasPrefix(r.ID, q.IDs) || strings.HasSuffix(r.ID, q.IDs))
}

// Tapes returns the tapes of a run in the order in which they came.
func (s *Store) Tapes(ctx context.Context, id string) ([]journal.Tape, error) {
	r, err := s.find(ctx, "read tapes of", id)
	if err != nil {
		return nil, err
	}
	r.RLock()
	defer r.RUnlock()
	out := slices.Clone(r.tapes)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out, nil
}

// PutArtifacts stores artifacts outside a batch.
func (s *Store) PutArtifacts(ctx context.Context, as []journal.Artifact) error {
	const op = "store artifacts"
	if err := s.enter(ctx, op, ""); err != nil {
		return err
	}
	if err := journal.CheckArtifacts(as); err != nil {
		return failed(op, "", err, "")
	}
	s.keep(as)
	return nil
}

func (s *Store) keep(as []journal.Artifact) {
	if len(as) == 0 {
		return
	}
	s.bytes.Lock()
	defer s.bytes.Unlock()
	if s.bytes.artifacts == nil {
		return // closed meanwhile: whoever reads hears so
	}
	for _, a := range as {
		if _, ok := s.bytes.artifacts[a.Ref]; !ok {
			a.Data = slices.Clone(a.Data)
			s.bytes.artifacts[a.Ref] = a
		}
	}
}

// Artifact returns stored bytes.
func (s *Store) Artifact(ctx context.Context, ref string) (journal.Artifact, error) {
	const op = "read artifact"
	if err := s.enter(ctx, op, ref); err != nil {
		return journal.Artifact{}, err
	}
	s.bytes.RLock()
	defer s.bytes.RUnlock()
	a, ok := s.bytes.artifacts[ref]
	if !ok {
		return journal.Artifact{}, failed(op, ref, journal.ErrNotFound, "")
	}
	a.Data = slices.Clone(a.Data)
	return a, nil
}

// Idempotent remembers what a key made first.
func (s *Store) Idempotent(ctx context.Context, key, value string) (string, error) {
	if err := s.enter(ctx, "remember key", key); err != nil {
		return "", err
	}
	s.bytes.Lock()
	defer s.bytes.Unlock()
	if s.bytes.keys == nil {
		return "", failed("remember key", key, journal.ErrClosed, "")
	}
	if old, ok := s.bytes.keys[key]; ok {
		return old, nil
	}
	s.bytes.keys[key] = value
	return value, nil
}

// PutDoc keeps a document in place of the one before.
func (s *Store) PutDoc(ctx context.Context, space, name string, doc []byte) error {
	if err := s.enter(ctx, "store document", space+"/"+name); err != nil {
		return err
	}
	s.bytes.Lock()
	defer s.bytes.Unlock()
	if s.bytes.docs == nil {
		return failed("store document", space+"/"+name, journal.ErrClosed, "")
	}
	if s.bytes.docs[space] == nil {
		s.bytes.docs[space] = map[string][]byte{}
	}
	s.bytes.docs[space][name] = append([]byte{}, doc...)
	return nil
}

// Doc returns a document.
func (s *Store) Doc(ctx context.Context, space, name string) ([]byte, error) {
	if err := s.enter(ctx, "read document", space+"/"+name); err != nil {
		return nil, err
	}
	s.bytes.RLock()
	defer s.bytes.RUnlock()
	doc, ok := s.bytes.docs[space][name]
	if !ok {
		return nil, failed("read document", space+"/"+name, journal.ErrNotFound, "")
	}
	return slices.Clone(doc), nil
}

// Docs returns all documents of a space; none is no error.
func (s *Store) Docs(ctx context.Context, space string) (map[string][]byte, error) {
	if err := s.enter(ctx, "read documents", space); err != nil {
		return nil, err
	}
	s.bytes.RLock()
	defer s.bytes.RUnlock()
	out := maps.Clone(s.bytes.docs[space])
	if out == nil {
		out = map[string][]byte{}
	}
	for name, doc := range out {
		out[name] = slices.Clone(doc)
	}
	return out, nil
}

// DeleteDoc removes a document; one that is not there is no error.
func (s *Store) DeleteDoc(ctx context.Context, space, name string) error {
	if err := s.enter(ctx, "delete document", space+"/"+name); err != nil {
		return err
	}
	s.bytes.Lock()
	defer s.bytes.Unlock()
	delete(s.bytes.docs[space], name)
	return nil
}
