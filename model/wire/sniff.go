package wire

import (
	"bytes"
	"io"
)

// Sniff reads up to the first byte that is neither white space nor part of a byte order mark, and returns it (0 at the end of r)
// with a reader that begins again at the start. Providers and gateways answer streams in more than one form.
func Sniff(r io.Reader) (first byte, again io.Reader, err error) {
	buf := make([]byte, 0, 512)
	for first == 0 {
		n, err := r.Read(buf[len(buf):cap(buf)])
		for _, c := range buf[len(buf) : len(buf)+n] {
			switch c {
			case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
				continue
			}
			first = c
			break
		}
		buf = buf[:len(buf)+n]
		if err == io.EOF || err == nil && len(buf) == cap(buf) {
			break
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return first, io.MultiReader(bytes.NewReader(buf), r), nil
}
