//go:build unix

package anthropic

import (
	"testing"

	"github.com/ronda-go/ronda/rondatest/mock"
)

// BenchmarkRounds is the adapter alone over runs of 50 rounds with results of 1 KiB.
func BenchmarkRounds(b *testing.B) {
	mock.Bench(b, Model("mock-r50", BaseURL(mock.Start(b)), APIKey("k")))
}

// TestStrictServer plays runs against a server that refuses calls and results that are missing, altered or out of order.
func TestStrictServer(t *testing.T) {
	url := mock.Start(t)
	for _, name := range []string{"mock-r7", "mock-r12-k4-p3-f1"} {
		for _, stream := range []bool{false, true} {
			if _, err := mock.Run(t.Context(), Model(name, BaseURL(url), APIKey("k")), "Look things up.", stream); err != nil {
				t.Errorf("%s, stream %v: %v", name, stream, err)
			}
		}
	}
}
