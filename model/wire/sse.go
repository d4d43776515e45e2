package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxEvent bounds one event of a stream, in bytes. An image of a response can be some megabytes long.
const MaxEvent = 32 << 20

// ErrTooLong is wrapped by errors about an event or a body above its bound.
var ErrTooLong = errors.New("longer than the bound")

// ErrStop ends Events early without an error: the caller has seen the end of the stream.
var ErrStop = errors.New("end of the stream seen")

var buffers = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// Events reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) from r and calls f for each
// that has data, with the name of the event ("" where there is none) and its data, lines joined by \n. Both are valid until f
// returns. Lines may end in LF, CRLF or CR; comments, ids and retry times are skipped, a byte order mark too. Data that no
// blank line follows before the end of r is given to f as well: f sees from its JSON whether it is whole. Events returns nil at
// the end of r or when f returns ErrStop, else f's error or the reader's.
func Events(r io.Reader, f func(name, data []byte) error) error {
	bp := buffers.Get().(*[]byte)
	defer func() {
		if len(*bp) <= 1<<20 {
			buffers.Put(bp)
		}
	}()
	d := decoder{f: f}
	buf, start, end := *bp, 0, 0
	scanned := 0 // buf[start:start+scanned] holds no line end
	for {
		if end == len(buf) {
			if start > 0 {
				copy(buf, buf[start:end])
				end, start = end-start, 0
			} else if len(buf) >= MaxEvent {
				return fmt.Errorf("a line of the stream: %w of %d bytes", ErrTooLong, MaxEvent)
			} else {
				buf = append(buf, make([]byte, len(buf))...)
				*bp = buf
			}
		}
		n, rerr := r.Read(buf[end:])
		end += n
		for {
			i := lineEnd(buf[start+scanned : end])
			if i < 0 {
				scanned = end - start
				break
			}
			line := buf[start : start+scanned+i]
			start += scanned + i + 1
			scanned = 0
			if err := d.line(line, buf[start-1] == '\r'); err != nil {
				return stopped(err)
			}
		}
		if rerr == io.EOF {
			if start < end {
				if err := d.line(buf[start:end], false); err != nil {
					return stopped(err)
				}
			}
			return stopped(d.flush())
		}
		if rerr != nil {
			return rerr
		}
	}
}

func stopped(err error) error {
	if err == ErrStop {
		return nil
	}
	return err
}

// lineEnd finds the first LF or CR. LF is looked for first, since lines almost always end in it.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if cr := bytes.IndexByte(b[:lf], '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// decoder puts lines together to events.
type decoder struct {
	f       func(name, data []byte) error
	name    []byte
	data    []byte
	has     bool // data is there, be it empty
	any     bool // a line was seen: no byte order mark any more
	afterCR bool // an empty line now is the LF of a CRLF
}

func (d *decoder) line(l []byte, cr bool) error {
	if d.afterCR && len(l) == 0 && !cr {
		d.afterCR = false
		return nil
	}
	d.afterCR = cr
	if !d.any {
		d.any = true
		l = bytes.TrimPrefix(l, []byte("\xef\xbb\xbf"))
	}
	if len(l) == 0 {
		return d.flush()
	}
	field, value, _ := bytes.Cut(l, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		if d.has {
			d.data = append(d.data, '\n')
		}
		if len(d.data)+len(value) > MaxEvent {
			return fmt.Errorf("an event of the stream: %w of %d bytes", ErrTooLong, MaxEvent)
		}
		d.data = append(d.data, value...)
		d.has = true
	case "event":
		d.name = append(d.name[:0], value...)
	}
	return nil
}

func (d *decoder) flush() error {
	var err error
	if d.has {
		err = d.f(d.name, d.data)
	}
	d.name, d.data, d.has = d.name[:0], d.data[:0], false
	return err
}

// ReadAll reads a whole body of at most MaxEvent bytes. The size is the declared one, or -1.
func ReadAll(r io.Reader, size int64) ([]byte, error) {
	if size < 0 || size > MaxEvent {
		size = 4 << 10
	}
	b := make([]byte, 0, size+1)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		if len(b) > MaxEvent {
			return b, fmt.Errorf("the response: %w of %d bytes", ErrTooLong, MaxEvent)
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
