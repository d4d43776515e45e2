package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrNoJSON is returned by Canonical for input that is empty or blank. Whether that means {} is the provider's rule, so
// the caller decides.
var ErrNoJSON = errors.New("canonical JSON: the input is empty")

// Bounds of Canonical.
const (
	CanonDepth    = 512   // arrays and objects within each other
	CanonExponent = 9_999 // largest power of ten, either way; beyond it exact arithmetic is an attack, not a value
)

// CanonError says where and why Canonical refused its input.
type CanonError struct {
	Path   string // JSON Pointer (RFC 6901) of the value; "" is the whole input
	Offset int    // bytes from the start of the input
	Why    string
}

func (e *CanonError) Error() string {
	where := e.Path
	if where == "" {
		where = "the top level"
	}
	return "canonical JSON: at " + where + ", byte " + strconv.Itoa(e.Offset) + ": " + e.Why
}

// Canonical returns the one spelling of a JSON value: RFC 8785 (no white space, members sorted by the UTF-16 code units of
// their keys, the shortest escapes), but with exact numbers. A number never passes through a binary float: its decimal
// value is kept to the last digit and only its spelling is normalised, by the rule RFC 8785 takes from ECMAScript's
// Number::toString, applied to the exact digits. With n the power of ten of the first digit plus one: for -6 < n ≤ 21
// plain digits ("0.000001", "100"), else d.ddde±x with x = n-1 ("1e+21", "1.5e-7"); no trailing zeros, -0 is 0. Where a
// number is the shortest form of a double, the result is that of RFC 8785.
//
// Refused, with a *CanonError: whatever is not JSON (RFC 8259), data after the value, invalid UTF-8, lone surrogates, a key
// that occurs twice in an object, more than CanonDepth levels, a number of 10^(CanonExponent+1) or more, or whose first
// digit is below 10^-CanonExponent. Blank input is ErrNoJSON. The result shares no memory with b.
func Canonical(b []byte) ([]byte, error) {
	c := canon{in: b, out: make([]byte, 0, len(b))}
	c.space()
	if c.pos == len(b) {
		return nil, ErrNoJSON
	}
	if err := c.value(0); err != nil {
		return nil, err
	}
	c.space()
	if c.pos < len(b) {
		return nil, c.errorf("data after the value")
	}
	return c.out, nil
}

// Fingerprint names a sequence of byte strings: 32 hex digits, the first half of the SHA-256 over each part behind its
// length (8 bytes, big endian). Parts are told apart: ("ab", "c") and ("a", "bc") differ.
func Fingerprint(parts ...[]byte) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

// canon reads in at pos and appends to out.
type canon struct {
	in  []byte
	pos int
	out []byte
}

// canonMember is a member of an object: its key, and where "key":value lies in out.
type canonMember struct {
	key      string
	at       int // of the key in the input
	from, to int
}

func (c *canon) errorf(format string, args ...any) *CanonError {
	return &CanonError{Offset: c.pos, Why: fmt.Sprintf(format, args...)}
}

// in puts the error one level deeper: paths are made only when something is wrong.
func (e *CanonError) in(elem string) *CanonError {
	e.Path = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(elem)) + e.Path
	return e
}

func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	cut := 80
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func (c *canon) space() {
	for c.pos < len(c.in) {
		switch c.in[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// peek is the next byte; 0 at the end, which starts no token.
func (c *canon) peek() byte {
	if c.pos < len(c.in) {
		return c.in[c.pos]
	}
	return 0
}

// unexpected describes what stands at pos.
func (c *canon) unexpected(want string) *CanonError {
	if c.pos >= len(c.in) {
		return c.errorf("the input ends where %s should be", want)
	}
	r, size := utf8.DecodeRune(c.in[c.pos:])
	if r == utf8.RuneError && size == 1 {
		return c.errorf("byte 0x%02x where %s should be", c.in[c.pos], want)
	}
	return c.errorf("%q where %s should be", r, want)
}

// value reads one value; depth counts the arrays and objects around it.
func (c *canon) value(depth int) *CanonError {
	switch b := c.peek(); {
	case b == '{' || b == '[':
		if depth >= CanonDepth {
			return c.errorf("more than %d levels of arrays and objects", CanonDepth)
		}
		if b == '{' {
			return c.object(depth + 1)
		}
		return c.array(depth + 1)
	case b == '"':
		_, err := c.str()
		return err
	case b == '-' || '0' <= b && b <= '9':
		return c.number()
	case b == 't':
		return c.word("true")
	case b == 'f':
		return c.word("false")
	case b == 'n':
		return c.word("null")
	}
	return c.unexpected("a value")
}

func (c *canon) word(w string) *CanonError {
	for i := range len(w) {
		if c.peek() != w[i] {
			return c.unexpected(strconv.Quote(w[i:]))
		}
		c.pos++
	}
	c.out = append(c.out, w...)
	return nil
}

func (c *canon) array(depth int) *CanonError {
	c.pos++
	c.out = append(c.out, '[')
	for i := 0; ; i++ {
		c.space()
		if i == 0 && c.peek() == ']' {
			break
		}
		if err := c.value(depth); err != nil {
			return err.in(strconv.Itoa(i))
		}
		c.space()
		if c.peek() == ']' {
			break
		}
		if c.peek() != ',' {
			return c.unexpected("',' or ']'").in(strconv.Itoa(i))
		}
		c.pos++
		c.out = append(c.out, ',')
	}
	c.pos++
	c.out = append(c.out, ']')
	return nil
}

func (c *canon) object(depth int) *CanonError {
	c.pos++
	c.out = append(c.out, '{')
	start := len(c.out)
	var members []canonMember
	for {
		c.space()
		if len(members) == 0 && c.peek() == '}' {
			break
		}
		m := canonMember{at: c.pos, from: len(c.out)}
		if c.peek() != '"' {
			return c.unexpected("a key in double quotes")
		}
		var err *CanonError
		if m.key, err = c.str(); err != nil {
			return err
		}
		c.space()
		if c.peek() != ':' {
			return c.unexpected("':'").in(m.key)
		}
		c.pos++
		c.out = append(c.out, ':')
		c.space()
		if err := c.value(depth); err != nil {
			return err.in(m.key)
		}
		m.to = len(c.out)
		members = append(members, m)
		c.space()
		if c.peek() == '}' {
			break
		}
		if c.peek() != ',' {
			return c.unexpected("',' or '}'").in(m.key)
		}
		c.pos++
		c.out = append(c.out, ',')
	}
	c.pos++
	if err := c.sort(start, members); err != nil {
		return err
	}
	c.out = append(c.out, '}')
	return nil
}

// sort puts the members, which begin at start and are parted by one byte each, into their order.
func (c *canon) sort(start int, members []canonMember) *CanonError {
	sorted := true
	for i := 1; i < len(members) && sorted; i++ {
		sorted = compareUTF16(members[i-1].key, members[i].key) < 0
	}
	if sorted {
		return nil
	}
	slices.SortStableFunc(members, func(a, b canonMember) int { return compareUTF16(a.key, b.key) })
	for i := 1; i < len(members); i++ {
		if members[i-1].key == members[i].key {
			return &CanonError{Offset: members[i].at, Why: fmt.Sprintf("the key %q occurs twice", clip(members[i].key))}
		}
	}
	old := slices.Clone(c.out[start:])
	c.out = c.out[:start]
	for i, m := range members {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, old[m.from-start:m.to-start]...)
	}
	return nil
}

// compareUTF16 orders strings by UTF-16 code units. It differs from the order of bytes only between runes above U+FFFF,
// whose first unit is a surrogate, and those from U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			if (ra > 0xffff) != (rb > 0xffff) {
				ra, rb = firstUnit(ra), firstUnit(rb)
			}
			return int(ra) - int(rb)
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) - len(b)
}

func firstUnit(r rune) rune {
	if r > 0xffff {
		r, _ = utf16.EncodeRune(r)
	}
	return r
}
