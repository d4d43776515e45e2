// Package wire holds what the adapters of all four protocols need alike: the frames of an event stream, the clocks and the
// transport errors of one attempt, waits that providers ask for, a spliced body, ids of calls, and JSON strings.
//
// It knows no provider. Values are for one attempt (or one run, where they are kept in model.Cache.State) and are not safe for
// concurrent use unless they say so.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Body is a request body of several parts that are sent one after another without being copied together. The parts must not
// change while the request lives; appending behind a part is no change.
type Body struct {
	parts [3][]byte
	at, n int // the part and the place in it that are read next
	size  int64
}

// Splice makes a body of up to three parts.
func Splice(parts ...[]byte) *Body {
	b := &Body{}
	copy(b.parts[:], parts)
	for _, p := range b.parts {
		b.size += int64(len(p))
	}
	return b
}

// Len is the number of bytes of the whole body.
func (b *Body) Len() int64 { return b.size }

// Again is the same body from its beginning, for a transport that found its connection closed before it could write.
func (b *Body) Again() *Body { return &Body{parts: b.parts, size: b.size} }

// Read fills p across the borders of parts: the transport sends full buffers.
func (b *Body) Read(p []byte) (n int, err error) {
	for n < len(p) && b.at < len(b.parts) {
		m := copy(p[n:], b.parts[b.at][b.n:])
		n += m
		if b.n += m; b.n == len(b.parts[b.at]) {
			b.at, b.n = b.at+1, 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close does nothing; it makes Body an io.ReadCloser.
func (b *Body) Close() error { return nil }

// maxNesting is what encoding/json allows; gjson recurses without a limit of its own.
const maxNesting = 10000

// Valid reports whether data is one JSON value that may be handed to gjson without fear for the stack.
func Valid(data []byte) bool {
	if bytes.Count(data, []byte{'['})+bytes.Count(data, []byte{'{'}) > maxNesting {
		return json.Valid(data)
	}
	return gjson.ValidBytes(data)
}

const hexDigits = "0123456789abcdef"

// plain marks the ASCII characters that stand for themselves in a JSON string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\' && c != 0x7f
	}
	return t
}()

// AppendString appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD; <, > and & stay, since results hold much
// HTML and nobody embeds a request in a page.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, len(s)+2), '"')
	from := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			dst = appendEscaped(dst, c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[from:i]...)
			dst = append(dst, "\ufffd"...)
			i++
			from = i
			continue
		}
		i += size
	}
	return append(append(dst, s[from:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendOptions appends ,"name":value for each option, sorted by name so that equal requests have equal bytes. An option that
// the adapter sets itself (it is in reserved) is an error that names it, as is a value that is no JSON.
func AppendOptions(dst []byte, options map[string]any, reserved func(name string) bool) ([]byte, error) {
	if len(options) == 0 {
		return dst, nil
	}
	names := make([]string, 0, len(options))
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if reserved(name) {
			return nil, fmt.Errorf("option %q: the adapter sets it itself; use the field of the agent that stands for it", name)
		}
		v, err := json.Marshal(options[name])
		if err != nil {
			return nil, fmt.Errorf("option %q: %w", name, err)
		}
		dst = AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), v...)
	}
	return dst, nil
}

// Held keeps the beginning of a character that a provider cut in two, so that what is given on is valid UTF-8.
type Held struct{ rest string }

// Push takes the next piece and returns what is whole so far. Bytes that can never become a character turn into U+FFFD.
func (h *Held) Push(s string) string {
	if h.rest != "" {
		s, h.rest = h.rest+s, ""
	}
	if cut := unfinished(s); cut > 0 {
		h.rest, s = s[len(s)-cut:], s[:len(s)-cut]
	}
	return clean(s)
}

// Rest returns what is still held at the end of the stream: U+FFFD, or nothing.
func (h *Held) Rest() string {
	s := h.rest
	h.rest = ""
	return clean(s)
}

// unfinished counts the bytes at the end of s that may be the beginning of a character.
func unfinished(s string) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(s)); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

func clean(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s), []byte("\ufffd")))
}

// Instructions are the system instructions of one call: those of the agent and those of this call alone.
func Instructions(system, extra string) string {
	if system == "" || extra == "" {
		return system + extra
	}
	return system + "\n\n" + extra
}
