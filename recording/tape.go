package recording

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
)

// A tape is a version byte and, for each delta, three varints: the time since the delta before it, the channel and block in one number
// (block*4 + channel), and the bytes added. A delta costs about four bytes.
const tapeVersion = 1

var tapeChannels = [...]string{Thought, Text, Arguments}

// TapePiece is the time of one delta: its offset from the start of the attempt, its channel, its block, and how many bytes of that
// block's channel it added. The text itself is in the message.
type TapePiece struct {
	At      loop.Micros
	Channel string
	Block   int
	Bytes   int
}

// EncodeTape packs the times of deltas. Times that go back count as the time before them.
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

// DecodeTape reads what EncodeTape wrote. Beside an error it returns the pieces before it.
func DecodeTape(b []byte) ([]TapePiece, error) {
	if len(b) == 0 || b[0] != tapeVersion {
		return nil, errors.New("recording: decode tape: not a tape of a version that is known")
	}
	b = b[1:]
	out := make([]TapePiece, 0, len(b)/4)
	var at loop.Micros
	for len(b) > 0 {
		var v [3]uint64
		for i := range v {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > 1<<53 {
				return out, errors.New("recording: decode tape: cut off or not a tape")
			}
			v[i], b = n, b[size:]
		}
		if v[1]%4 > 2 || v[1]/4 > maxBlock || v[2] > maxLine {
			return out, errors.New("recording: decode tape: no such channel, block or size")
		}
		if at += loop.Micros(v[0]); at > 1<<53 {
			return out, errors.New("recording: decode tape: its time is out of range")
		}
		out = append(out, TapePiece{at, tapeChannels[v[1]%4], int(v[1] / 4), int(v[2])})
	}
	return out, nil
}

// maxBlock bounds the index of a block in a response.
const maxBlock = 1 << 20

// channelText is the text of a block that a channel streams; ok is false where the block has none of the kind.
func channelText(b loop.Block, channel string) (text string, ok bool) {
	switch {
	case b.Kind == loop.BlockThought && channel == Thought, b.Kind == loop.BlockText && channel == Text:
		return b.Text, true
	case b.Kind == loop.BlockCall && channel == Arguments:
		return b.Args, true
	}
	return "", false
}

// cutMessage gives the pieces of a tape their texts. bounds maps a position in a block's text as it was when the tape was made to one in
// the text as it is now (nil: they are the same). ok is false where tape and message do not belong together.
func cutMessage(tape []TapePiece, blocks []loop.Block, bounds func(block, pos int) int) (out []cutPiece, ok bool) {
	used := make([]int, len(blocks)) // of the text as it was
	done := make([]int, len(blocks)) // of the text as it is
	for _, p := range tape {
		if p.Block < 0 || p.Block >= len(blocks) {
			return nil, false
		}
		text, fits := channelText(blocks[p.Block], p.Channel)
		if !fits {
			return nil, false
		}
		used[p.Block] += p.Bytes
		end := used[p.Block]
		if bounds != nil {
			end = bounds(p.Block, end)
		}
		from := done[p.Block]
		if end < from || end > len(text) || end < len(text) && !utf8.RuneStart(text[end]) {
			return nil, false
		}
		out = append(out, cutPiece{p, text[from:end]})
		done[p.Block] = end
	}
	for i, n := range done {
		for _, ch := range tapeChannels {
			if text, fits := channelText(blocks[i], ch); fits && n > 0 && n != len(text) {
				return nil, false
			}
		}
	}
	return out, true
}

type cutPiece struct {
	TapePiece
	text string
}
