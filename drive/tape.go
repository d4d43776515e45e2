package drive

import (
	"encoding/binary"
	"errors"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// A tape is a version byte and, for each delta, three varints: the time since the delta before it, the channel and block in one number
// (block*4 + channel), and the bytes added. A delta costs about four bytes.
const tapeVersion = 1

var tapeChannels = []model.Channel{model.Thought, model.Text, model.Arguments}

// EncodeTape packs the times of deltas.
func EncodeTape(pieces []TapePiece) []byte {
	out := make([]byte, 1, 1+4*len(pieces))
	out[0] = tapeVersion
	var last loop.Micros
	for _, p := range pieces {
		out = binary.AppendUvarint(out, uint64(max(p.At-last, 0)))
		ch := 0
		for i, c := range tapeChannels {
			if c == p.Channel {
				ch = i
			}
		}
		out = binary.AppendUvarint(out, uint64(p.Block)*4+uint64(ch))
		out = binary.AppendUvarint(out, uint64(p.Bytes))
		last = max(last, p.At)
	}
	return out
}

// DecodeTape reads what EncodeTape wrote.
func DecodeTape(b []byte) ([]TapePiece, error) {
	if len(b) == 0 || b[0] != tapeVersion {
		return nil, errors.New("drive: decode tape: not a tape of a version that is known")
	}
	b = b[1:]
	var out []TapePiece
	var at loop.Micros
	for len(b) > 0 {
		var v [3]uint64
		for i := range v {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > 1<<53 {
				return out, errors.New("drive: decode tape: cut off or not a tape")
			}
			v[i], b = n, b[size:]
		}
		if v[1]%4 > 2 {
			return out, errors.New("drive: decode tape: no such channel")
		}
		at += loop.Micros(v[0])
		out = append(out, TapePiece{at, tapeChannels[v[1]%4], int(v[1] / 4), int(v[2])})
	}
	return out, nil
}
