package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/journaltest"
	"github.com/ronda-go/ronda/journal/sqlite"
)

func open(t testing.TB, path string, opts sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	for _, durability := range []string{"full", "normal"} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			journaltest.Run(t, func(t *testing.T) (journal.Store, func(*testing.T) journal.Store) {
				path := filepath.Join(t.TempDir(), "data", "ronda.db")
				again := func(t *testing.T) journal.Store { return open(t, path, sqlite.Options{Durability: durability}) }
				return again(t), again
			})
		})
	}
}
