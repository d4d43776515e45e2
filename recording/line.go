package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// Bounds of readers: what is beyond them is refused, not read into memory.
const (
	maxLine     = 64 << 20
	maxArtifact = 256 << 20
)

// chain is the rolling digest of the lines. Each line's tag is its first four hex digits; check lines and the footer hold it whole.
type chain [sha256.Size]byte

// next is the digest after a line; line is without its tag: everything before `,"h":"`.
func (c chain) next(line []byte) chain {
	h := sha256.New()
	h.Write(c[:])
	h.Write(line)
	var out chain
	h.Sum(out[:0])
	return out
}

func (c chain) tag() string { return hex.EncodeToString(c[:2]) }

func (c chain) String() string { return hex.EncodeToString(c[:]) }

const tagMember = `,"h":"`

// tagLen is the length of a tag with its member and the end of the object.
const tagLen = len(tagMember) + 4 + 2

// seal ends a line (an object without its closing brace) with its tag.
func (c *chain) seal(line []byte) []byte {
	*c = c.next(line)
	line = append(line, tagMember...)
	line = append(line, c.tag()...)
	return append(line, `"}`...)
}

// unseal splits a line into what the chain covers and its tag.
func unseal(line []byte) (body []byte, tag string, ok bool) {
	n := len(line) - tagLen
	if n < 2 || !bytes.HasPrefix(line[n:], []byte(tagMember)) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, "", false
	}
	return line[:n], string(line[n+len(tagMember) : len(line)-2]), true
}

// wireLine is any line. Members have different meanings in different kinds; see package documentation.
type wireLine struct {
	S      int64           `json:"s"`
	T      int64           `json:"t"`
	K      string          `json:"k"`
	R      int             `json:"r"`
	Q      int64           `json:"q"`
	E      *int64          `json:"e"`   // event: its time where it is not t
	Opt    bool            `json:"opt"` // event: readers may skip the kind
	Refs   int             `json:"refs"`
	Wait   string          `json:"wait"`
	O      int64           `json:"o"` // delta: offset of the first piece
	C      string          `json:"c"` // delta: channel
	D      json.RawMessage `json:"d"` // delta: pieces
	B      json.RawMessage `json:"b"`
	V      int             `json:"v"` // header
	Reader int             `json:"reader"`
}

// lineHead begins a line.
func lineHead(dst []byte, s, t int64, kind string, run int) []byte {
	dst = append(dst, `{"s":`...)
	dst = strconv.AppendInt(dst, s, 10)
	dst = append(dst, `,"t":`...)
	dst = strconv.AppendInt(dst, t, 10)
	dst = append(dst, `,"k":`...)
	dst = appendString(dst, kind)
	if run > 0 {
		dst = append(dst, `,"r":`...)
		dst = strconv.AppendInt(dst, int64(run), 10)
	}
	return dst
}

// appendString appends s as a JSON string, spelled as package loop spells it.
func appendString(dst []byte, s string) []byte {
	b, err := marshal(s)
	if err != nil { // a string always encodes
		return append(dst, `""`...)
	}
	return append(dst, b...)
}

// marshal is json.Marshal without the escaping of <, > and &.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// isEvent says whether a kind is one of the journal's: a word that begins with an upper-case letter.
func isEvent(kind string) bool {
	if kind == "" || kind[0] < 'A' || kind[0] > 'Z' {
		return false
	}
	for i := 1; i < len(kind); i++ {
		if c := kind[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
