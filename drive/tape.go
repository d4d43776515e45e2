package drive

import (
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/recording"
)

// EncodeTape packs the times of deltas: the format of package recording, about four bytes a delta.
func EncodeTape(pieces []TapePiece) []byte {
	list := make([]recording.TapePiece, len(pieces))
	for i, p := range pieces {
		list[i] = recording.TapePiece{At: p.At, Channel: string(p.Channel), Block: p.Block, Bytes: p.Bytes}
	}
	return recording.EncodeTape(list)
}

// DecodeTape reads what EncodeTape wrote.
func DecodeTape(b []byte) ([]TapePiece, error) {
	list, err := recording.DecodeTape(b)
	out := make([]TapePiece, len(list))
	for i, p := range list {
		out[i] = TapePiece{At: p.At, Channel: model.Channel(p.Channel), Block: p.Block, Bytes: p.Bytes}
	}
	return out, err
}
