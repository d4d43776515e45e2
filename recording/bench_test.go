package recording_test

import (
	"bytes"
	"testing"

	"github.com/ronda-go/ronda/recording"
)

func BenchmarkOpen(b *testing.B) {
	rec := big(b, 100_000)
	data, err := rec.Bytes(recording.Zipped, recording.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := recording.ReadAt(bytes.NewReader(data), int64(len(data))); err != nil {
			b.Fatal(err)
		}
	}
}
