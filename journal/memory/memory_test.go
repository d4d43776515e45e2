package memory_test

import (
	"testing"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/journaltest"
	"github.com/ronda-go/ronda/journal/memory"
)

func TestStore(t *testing.T) {
	journaltest.Run(t, func(*testing.T) (journal.Store, func(*testing.T) journal.Store) { return memory.New(), nil })
}
