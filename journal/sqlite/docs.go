package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/ronda-go/ronda/journal"
)

// PutArtifacts stores artifacts outside a batch.
func (s *Store) PutArtifacts(ctx context.Context, as []journal.Artifact) error {
	const op = "store artifacts"
	if err := s.enter(ctx); err != nil {
		return s.failed(op, "", err)
	}
	if err := journal.CheckArtifacts(as); err != nil {
		return s.failed(op, "", err)
	}
	if len(as) == 0 {
		return nil
	}
	packed := packArtifacts(as)
	if err := s.change(ctx, func(w *writer) error { return w.keep(packed) }); err != nil {
		return s.failed(op, "", err)
	}
	return nil
}

// Idempotent remembers what a key made first.
func (s *Store) Idempotent(ctx context.Context, key, value string) (string, error) {
	stored := value
	err := s.change(ctx, func(w *writer) error {
		found := false
		err := w.query(`SELECT value FROM keys WHERE key = ?`, func(r []driver.Value) error {
			stored, found = text(r[0]), true
			return nil
		}, key)
		if err != nil || found {
			return err
		}
		stored = value
		_, err = w.exec(`INSERT INTO keys (key, value) VALUES (?, ?)`, key, value)
		return err
	})
	if err != nil {
		return "", s.failed("remember key", key, err)
	}
	return stored, nil
}

// PutDoc keeps a document in place of the one before.
func (s *Store) PutDoc(ctx context.Context, space, name string, doc []byte) error {
	doc = append([]byte{}, doc...) // the writer may still read it when ctx has ended
	err := s.change(ctx, func(w *writer) error {
		_, err := w.exec(`INSERT INTO docs (space, name, doc) VALUES (?, ?, ?) ON CONFLICT (space, name) DO UPDATE SET doc = excluded.doc`,
			space, name, blobOrNull(doc))
		return err
	})
	if err != nil {
		return s.failed("store document", space+"/"+name, err)
	}
	return nil
}

// Doc returns a document.
func (s *Store) Doc(ctx context.Context, space, name string) ([]byte, error) {
	var doc []byte
	err := s.reading(ctx, func(c *conn) error {
		found := false
		err := c.query(`SELECT doc FROM docs WHERE space = ? AND name = ?`, func(r []driver.Value) error {
			doc, found = append([]byte{}, blob(r[0])...), true
			return nil
		}, space, name)
		if err == nil && !found {
			err = journal.ErrNotFound
		}
		return err
	})
	if err != nil {
		return nil, s.failed("read document", space+"/"+name, err)
	}
	return doc, nil
}

// Docs returns all documents of a space; none is no error.
func (s *Store) Docs(ctx context.Context, space string) (map[string][]byte, error) {
	docs := map[string][]byte{}
	err := s.reading(ctx, func(c *conn) error {
		return c.query(`SELECT name, doc FROM docs WHERE space = ?`, func(r []driver.Value) error {
			docs[text(r[0])] = append([]byte{}, blob(r[1])...)
			return nil
		}, space)
	})
	if err != nil {
		return nil, s.failed("read documents", space, err)
	}
	return docs, nil
}

// DeleteDoc removes a document; one that is not there is no error.
func (s *Store) DeleteDoc(ctx context.Context, space, name string) error {
	err := s.change(ctx, func(w *writer) error {
		_, err := w.exec(`DELETE FROM docs WHERE space = ? AND name = ?`, space, name)
		return err
	})
	if err != nil {
		return s.failed("delete document", space+"/"+name, err)
	}
	return nil
}
