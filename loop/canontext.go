package loop

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string, appends its canonical spelling and returns what it says.
func (c *canon) str() (string, *CanonError) {
	c.pos++
	from := c.pos
	for c.pos < len(c.in) { // most strings hold nothing to rewrite
		switch b := c.in[c.pos]; {
		case b == '"':
			s := string(c.in[from:c.pos])
			if !utf8.ValidString(s) {
				return "", c.badUTF8(from)
			}
			c.pos++
			c.out = append(c.out, '"')
			c.out = append(c.out, s...)
			c.out = append(c.out, '"')
			return s, nil
		case b == '\\':
			return c.escaped(from)
		case b < 0x20:
			return "", c.errorf("a control character (0x%02x) in a string; write it as an escape", b)
		}
		c.pos++
	}
	return "", c.errorf("the input ends in a string")
}

// escaped reads the rest of a string that holds an escape at pos; from is where its text began.
func (c *canon) escaped(from int) (string, *CanonError) {
	s := append([]byte(nil), c.in[from:c.pos]...)
	for c.pos < len(c.in) {
		switch b := c.in[c.pos]; {
		case b == '"':
			if !utf8.Valid(s) {
				return "", c.badUTF8(from)
			}
			c.pos++
			c.quote(s)
			return string(s), nil
		case b == '\\':
			r, err := c.escape()
			if err != nil {
				return "", err
			}
			s = utf8.AppendRune(s, r)
		case b < 0x20:
			return "", c.errorf("a control character (0x%02x) in a string; write it as an escape", b)
		default:
			s = append(s, b)
			c.pos++
		}
	}
	return "", c.errorf("the input ends in a string")
}

// badUTF8 points at the first bad byte of a string whose text begins at from.
func (c *canon) badUTF8(from int) *CanonError {
	for c.pos = from; c.pos < len(c.in); {
		r, size := utf8.DecodeRune(c.in[c.pos:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		c.pos += size
	}
	return c.errorf("a string with invalid UTF-8")
}

// escape reads one escape; a pair of surrogates is one.
func (c *canon) escape() (rune, *CanonError) {
	at := c.pos
	c.pos++
	b := c.peek()
	if i := strings.IndexByte(`"\/bfnrt`, b); i >= 0 {
		c.pos++
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if b != 'u' {
		return 0, c.unexpected("an escape (one of \" \\ / b f n r t u)")
	}
	r, err := c.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if c.peek() == '\\' && c.pos+1 < len(c.in) && c.in[c.pos+1] == 'u' {
		c.pos++
		low, err := c.hex4()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	c.pos = at
	return 0, c.errorf("half of a surrogate pair (%s)", c.in[at:at+6])
}

// hex4 reads the u at pos and the four digits behind it.
func (c *canon) hex4() (rune, *CanonError) {
	c.pos++
	var r rune
	for range 4 {
		b := c.peek()
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, c.unexpected("a hexadecimal digit")
		}
		r = r<<4 | rune(b)
		c.pos++
	}
	return r, nil
}

// quote appends a string as RFC 8785, section 3.2.2.2 says: two-letter escapes where they exist, \u00xx for the other
// control characters, all else as it is.
func (c *canon) quote(s []byte) {
	const digits = "0123456789abcdef"
	c.out = append(c.out, '"')
	for _, b := range s {
		if i := strings.IndexByte("\"\\\b\f\n\r\t", b); i >= 0 {
			c.out = append(c.out, '\\', `"\bfnrt`[i])
		} else if b < 0x20 {
			c.out = append(c.out, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
		} else {
			c.out = append(c.out, b)
		}
	}
	c.out = append(c.out, '"')
}

// number reads a number and appends its canonical spelling.
func (c *canon) number() *CanonError {
	at := c.pos
	negative := c.peek() == '-'
	if negative {
		c.pos++
	}
	whole := c.digits()
	if len(whole) == 0 {
		return c.unexpected("a digit")
	}
	if len(whole) > 1 && whole[0] == '0' {
		c.pos = at
		return c.errorf("a number that begins with a needless 0")
	}
	var frac []byte
	if c.peek() == '.' {
		c.pos++
		if frac = c.digits(); len(frac) == 0 {
			return c.unexpected("a digit")
		}
	}
	exp, fits, err := c.exponent()
	if err != nil {
		return err
	}
	digits := whole
	if len(frac) > 0 {
		digits = append(append(make([]byte, 0, len(whole)+len(frac)), whole...), frac...)
	}
	point := len(whole) // where the decimal point stands in digits
	for len(digits) > 0 && digits[0] == '0' {
		digits, point = digits[1:], point-1
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		c.out = append(c.out, '0')
		return nil
	}
	if point += exp; !fits || point-1 > CanonExponent || point-1 < -CanonExponent {
		c.pos = at
		return c.errorf("a number out of range (10^±%d)", CanonExponent)
	}
	if negative {
		c.out = append(c.out, '-')
	}
	c.spell(digits, point)
	return nil
}

func (c *canon) digits() []byte {
	from := c.pos
	for b := c.peek(); '0' <= b && b <= '9'; b = c.peek() {
		c.pos++
	}
	return c.in[from:c.pos]
}

// exponent reads the exponent, if there is one. One that does not fit is no error yet: the digits may all be 0.
func (c *canon) exponent() (n int, fits bool, err *CanonError) {
	if c.peek()|0x20 != 'e' {
		return 0, true, nil
	}
	c.pos++
	minus := c.peek() == '-'
	if minus || c.peek() == '+' {
		c.pos++
	}
	d := c.digits()
	if len(d) == 0 {
		return 0, false, c.unexpected("a digit")
	}
	n, e := strconv.Atoi(string(d))
	if minus {
		n = -n
	}
	// The digits before and after the point may shift it back into the range.
	const far = 1 << 30
	return n, e == nil && -far < n && n < far, nil
}

// spell appends 0.digits × 10^point. See Canonical for the rule.
func (c *canon) spell(digits []byte, point int) {
	switch n := len(digits); {
	case n <= point && point <= 21:
		c.out = append(c.out, digits...)
		c.zeros(point - n)
	case 0 < point && point <= 21:
		c.out = append(c.out, digits[:point]...)
		c.out = append(c.out, '.')
		c.out = append(c.out, digits[point:]...)
	case -6 < point && point <= 0:
		c.out = append(c.out, '0', '.')
		c.zeros(-point)
		c.out = append(c.out, digits...)
	default:
		c.out = append(c.out, digits[0])
		if n > 1 {
			c.out = append(c.out, '.')
			c.out = append(c.out, digits[1:]...)
		}
		c.out = append(c.out, 'e')
		if point > 0 {
			c.out = append(c.out, '+')
		}
		c.out = strconv.AppendInt(c.out, int64(point-1), 10)
	}
}

func (c *canon) zeros(n int) {
	for range n {
		c.out = append(c.out, '0')
	}
}
