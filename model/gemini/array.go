package gemini

import (
	"fmt"
	"io"

	"github.com/ronda-go/ronda/model/wire"
)

// array reads a JSON array that comes in pieces and calls f with each element that is an object, as soon as it is whole. Bytes
// outside of objects are separators and not looked at. The bytes are valid until f returns. An element that does not end is
// an io.ErrUnexpectedEOF.
func array(r io.Reader, f func([]byte) error) error {
	buf := make([]byte, 8<<10)
	start, pos, end := 0, 0, 0 // the element that is open begins at start; pos was looked at
	depth, quoted, escaped := 0, false, false
	for {
		if end == len(buf) {
			if start > 0 {
				copy(buf, buf[start:end])
				pos, end, start = pos-start, end-start, 0
			} else if len(buf) >= wire.MaxEvent {
				return fmt.Errorf("an element of the stream: %w of %d bytes", wire.ErrTooLong, wire.MaxEvent)
			} else {
				buf = append(buf, make([]byte, len(buf))...)
			}
		}
		n, err := r.Read(buf[end:])
		end += n
		for ; pos < end; pos++ {
			c := buf[pos]
			switch {
			case escaped:
				escaped = false
			case quoted:
				escaped = c == '\\'
				quoted = c != '"'
			case depth > 0 && c == '"':
				quoted = true
			case c == '{' || depth > 0 && c == '[':
				if depth == 0 {
					start = pos
				}
				depth++
			case depth > 0 && (c == '}' || c == ']'):
				if depth--; depth == 0 {
					if err := f(buf[start : pos+1]); err != nil {
						return err
					}
					start = pos + 1
				}
			}
		}
		if depth == 0 {
			start = pos
		}
		if err == io.EOF && depth > 0 {
			return io.ErrUnexpectedEOF
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
