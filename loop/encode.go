package loop

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// This file writes the bodies that every round appends without reflection. What it writes is what encoding/json would: a test compares
// the two on drawn values.

// appendBody appends the JSON of a body, if it is one of the frequent ones.
func appendBody(dst []byte, b Body) ([]byte, bool) {
	w := writer{dst, true}
	w.out = append(w.out, '{')
	switch b := b.(type) {
	case ModelCallStarted:
		if b.Plan != nil || b.Prefix != nil || len(b.Notes) > 0 {
			return dst, false
		}
		w.always("call", b.Call)
		w.int("attempt", b.Attempt)
		w.bool("closing", b.Closing)
		w.bool("closing_given_up", b.GivenUp)
		if b.Reserve != (Reserve{}) {
			w.key("reserve")
			w.open()
			w.int("input", b.Reserve.Input)
			w.int("output", b.Reserve.Output)
			w.int("cost", int64(b.Reserve.Cost))
			w.close()
		}
		w.str("hint", b.Hint)
		w.str("model", b.Model)
		w.str("purpose", b.Purpose)
	case ModelReplied:
		w.always("call", b.Call)
		if len(b.Blocks) > 0 {
			w.key("blocks")
			if !w.blocks(b.Blocks) {
				return dst, false
			}
		}
		w.key("finish")
		w.quote(string(b.Finish))
		if b.Usage != nil {
			w.key("usage")
			w.open()
			w.int("input", b.Usage.Input)
			w.int("cache_read", b.Usage.CacheRead)
			w.int("cache_write", b.Usage.CacheWrite)
			w.int("output", b.Usage.Output)
			w.int("reasoning", b.Usage.Reasoning)
			w.close()
		}
		w.str("model", b.Model)
		w.str("id", b.ID)
		w.str("detail", b.Detail)
		w.str("tape", b.Tape)
		w.str("purpose", b.Purpose)
	case CallAuthorized:
		w.key("call")
		w.quote(b.Call)
		w.key("verdict")
		w.quote(string(b.Verdict))
		w.str("args", b.Args)
		w.str("digest", b.Digest)
		w.str("rule", b.Rule)
		w.str("reason", b.Reason)
		w.str("standing", b.Standing)
		w.str("finish", b.Finish)
	case ToolStarted:
		w.key("call")
		w.quote(b.Call)
		w.int("attempt", b.Attempt)
	case ToolReturned:
		if len(b.Facts) > 0 || len(b.More) > 0 {
			return dst, false
		}
		w.key("call")
		w.quote(b.Call)
		w.int("attempt", b.Attempt)
		w.str("text", b.Text)
		w.str("ref", b.Ref)
		w.int("bytes", b.Bytes)
		w.str("sum", b.Sum)
	default:
		return dst, false
	}
	return append(w.out, '}'), true
}

// writer appends members of an object; those that are zero are left out, as omitempty does.
type writer struct {
	out   []byte
	first bool
}

func (w *writer) key(k string) {
	if !w.first {
		w.out = append(w.out, ',')
	}
	w.first = false
	w.out = append(w.out, '"')
	w.out = append(w.out, k...)
	w.out = append(w.out, '"', ':')
}

func (w *writer) open() { w.out, w.first = append(w.out, '{'), true }

func (w *writer) close() { w.out, w.first = append(w.out, '}'), false }

func (w *writer) always(k string, n int64) {
	w.key(k)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *writer) int(k string, n int64) {
	if n != 0 {
		w.always(k, n)
	}
}

func (w *writer) bool(k string, v bool) {
	if v {
		w.key(k)
		w.out = append(w.out, "true"...)
	}
}

func (w *writer) str(k, s string) {
	if s != "" {
		w.key(k)
		w.quote(s)
	}
}

func (w *writer) quote(s string) { w.out = AppendQuoted(w.out, s) }

// blocks appends plain blocks; false where one holds what only the reflecting encoder writes.
func (w *writer) blocks(list []Block) bool {
	w.out = append(w.out, '[')
	for i := range list {
		b := &list[i]
		if b.Media != nil || len(b.More) > 0 || len(b.Raw) > 0 && !json.Valid(b.Raw) {
			return false
		}
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.open()
		w.key("k")
		w.quote(string(b.Kind))
		w.str("text", b.Text)
		w.str("id", b.ID)
		w.str("call", b.Call)
		w.str("name", b.Name)
		w.str("args", b.Args)
		w.bool("error", b.Error)
		w.str("wire", b.Wire)
		if len(b.Raw) > 0 {
			raw, err := marshal(b.Raw)
			if err != nil {
				return false
			}
			w.key("raw")
			w.out = append(w.out, raw...)
		}
		w.close()
	}
	w.out = append(w.out, ']')
	w.first = false
	return true
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string, as encoding/json does without HTML escaping: control characters, the quote and the backslash
// are escaped, U+2028 and U+2029 too, invalid UTF-8 becomes U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			dst = append(dst, s[start:i]...)
			if size == 1 {
				dst = append(dst, `\ufffd`...)
			} else {
				dst = append(dst, `\u202`...)
				dst = append(dst, hexDigits[r&0xF])
			}
			i += size
			start = i
			continue
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
