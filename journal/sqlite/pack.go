package sqlite

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/ronda-go/ronda/journal"
)

// A packed value is one byte that says how, a CRC-32C of what it holds, and the bytes. A file of this package is bound to
// the dictionary for ever: another one needs another way of packing.
const (
	packPlain = 0 // as it is
	packS2    = 1 // an S2 block with the dictionary of dictionary.txt

	packHead = 1 + 4
	// maxRatio bounds what a damaged length can make unpack allocate.
	maxRatio = 1000
)

//go:embed dictionary.txt
var dictionaryText []byte

// dictionary holds events as the loop writes them: in a batch of a round there is little beside the payload that is not in it.
var dictionary = sync.OnceValue(func() *s2.Dict { return s2.NewDict(append([]byte{0}, dictionaryText...)) })

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scratch holds buffers for what pack compresses.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// pack never returns an empty slice.
func pack(plain []byte) []byte {
	sum := crc32.Checksum(plain, castagnoli)
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	if n := s2.MaxEncodedLen(len(plain)); cap(*buf) < n {
		*buf = make([]byte, 0, n+n/2)
	}
	short := dictionary().Encode((*buf)[:0], plain)
	how := byte(packS2)
	if len(short) >= len(plain) || len(plain)/maxRatio >= len(short) {
		how, short = packPlain, plain
	}
	out := make([]byte, packHead, packHead+len(short))
	out[0] = how
	binary.LittleEndian.PutUint32(out[1:], sum)
	if cap(*buf) > 1<<20 {
		*buf = nil // one large result must not stay for ever
	}
	return append(out, short...)
}

// unpack returns bytes of their own. It never panics, whatever b is.
func unpack(b []byte) ([]byte, error) {
	if len(b) < packHead {
		return nil, fmt.Errorf("%w: a packed value of %d bytes", journal.ErrCorrupt, len(b))
	}
	body := b[packHead:]
	var plain []byte
	switch b[0] {
	case packPlain:
		plain = append([]byte{}, body...)
	case packS2:
		n, err := s2.DecodedLen(body)
		if err != nil || n/maxRatio > len(body) {
			return nil, fmt.Errorf("%w: a packed value says that it holds %d bytes", journal.ErrCorrupt, n)
		}
		if plain, err = dictionary().Decode(make([]byte, n), body); err != nil {
			return nil, fmt.Errorf("%w: a packed value: %w", journal.ErrCorrupt, err)
		}
	default:
		return nil, fmt.Errorf("%w: a value packed in the way %d", journal.ErrCorrupt, b[0])
	}
	if crc32.Checksum(plain, castagnoli) != binary.LittleEndian.Uint32(b[1:]) {
		return nil, fmt.Errorf("%w: a checksum does not fit", journal.ErrCorrupt)
	}
	return plain, nil
}

// packRecords packs the records of one batch, each with its length before it.
func packRecords(rs []journal.Record) []byte {
	n := 0
	for i := range rs {
		n += binary.MaxVarintLen32 + len(rs[i].Data)
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	plain := (*buf)[:0]
	if cap(plain) < n {
		plain = make([]byte, 0, n+n/2)
	}
	for i := range rs {
		plain = binary.AppendUvarint(plain, uint64(len(rs[i].Data)))
		plain = append(plain, rs[i].Data...)
	}
	if *buf = plain; cap(plain) > 1<<20 {
		*buf = nil
	}
	return pack(plain)
}

// unpackRecords appends the records of a batch that ends at last. Each has bytes of its own.
func unpackRecords(out []journal.Record, last int64, packed []byte) ([]journal.Record, error) {
	plain, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	first := len(out)
	for len(plain) > 0 {
		n, used := binary.Uvarint(plain)
		if used <= 0 || n > uint64(len(plain)-used) {
			return nil, fmt.Errorf("%w: a record is longer than its batch", journal.ErrCorrupt)
		}
		plain = plain[used:]
		out = append(out, journal.Record{Data: append([]byte{}, plain[:n]...)})
		plain = plain[n:]
	}
	count := int64(len(out) - first)
	if last < count {
		return nil, fmt.Errorf("%w: %d records end at %d", journal.ErrCorrupt, count, last)
	}
	for i := range count {
		out[int64(first)+i].Seq = last - count + i + 1
	}
	return out, nil
}
