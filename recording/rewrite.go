package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
)

// refAt is the size from which a string leaves its event and becomes an artifact.
const refAt = 4 << 10

// step is one level of a path into a JSON value: a key of an object, or an index where Key is "".
type step struct {
	key   string
	index int
	array bool
}

// walk is a position in a JSON value.
type walk struct{ steps []step }

// key is the name under which the value stands, "" in an array.
func (w *walk) key() string { return w.steps[len(w.steps)-1].key }

// top is the first key of the path.
func (w *walk) top() string { return w.steps[0].key }

// block gives the index i of blocks[i].NAME.
func (w *walk) block(name string) (i int, ok bool) {
	s := w.steps
	if len(s) == 3 && s[0].key == "blocks" && s[1].array && s[2].key == name {
		return s[1].index, true
	}
	return 0, false
}

// opaque says whether the value belongs to what a provider sent and nobody may touch: the raw member of a block.
func (w *walk) opaque() bool {
	switch w.top() {
	case "blocks", "input", "messages", "more":
	default:
		return false
	}
	for i, s := range w.steps {
		if s.key == "raw" && i > 1 && w.steps[i-1].array {
			switch w.steps[i-2].key {
			case "blocks", "input", "more":
				return true
			}
		}
	}
	return false
}

// rewrite copies a valid JSON value and lets visit replace its scalars; nil keeps one as it is. Strings are given with their quotes. Keys
// are not visited. A value that is no object is returned as it is.
func rewrite(raw []byte, visit func(w *walk, scalar []byte) []byte) []byte {
	var out []byte // nil until something changes
	w := &walk{}
	copied, pos, wantKey := 0, 0, false
	replace := func(from, to int, by []byte) {
		out = append(out, raw[copied:from]...)
		out = append(out, by...)
		copied = to
	}
	for pos < len(raw) {
		switch c := raw[pos]; c {
		case '{', '[':
			w.steps = append(w.steps, step{array: c == '['})
			wantKey = c == '{'
			pos++
		case '}', ']':
			if len(w.steps) == 0 {
				return raw
			}
			w.steps = w.steps[:len(w.steps)-1]
			wantKey = false
			pos++
		case ',':
			if len(w.steps) == 0 {
				return raw
			}
			if last := &w.steps[len(w.steps)-1]; last.array {
				last.index++
			} else {
				wantKey = true
			}
			pos++
		case ':', ' ', '\t', '\n', '\r':
			pos++
		default:
			end := scalarEnd(raw, pos)
			if len(w.steps) == 0 || end <= pos {
				return raw
			}
			if wantKey && c == '"' {
				w.steps[len(w.steps)-1].key = unquote(raw[pos:end])
				wantKey = false
			} else if by := visit(w, raw[pos:end]); by != nil {
				replace(pos, end, by)
			}
			pos = end
		}
	}
	if out == nil {
		return raw
	}
	return append(out, raw[copied:]...)
}

// scalarEnd is where the string, number or word that begins at pos ends.
func scalarEnd(raw []byte, pos int) int {
	if raw[pos] != '"' {
		for pos < len(raw) && bytes.IndexByte([]byte(",]} \t\n\r"), raw[pos]) < 0 {
			pos++
		}
		return pos
	}
	for pos++; pos < len(raw); pos++ {
		switch raw[pos] {
		case '\\':
			pos++
		case '"':
			return pos + 1
		}
	}
	return len(raw)
}

// unquote decodes a JSON string.
func unquote(raw []byte) string {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // the caller's JSON is valid
	return s
}

// Ref names bytes: "sha256:" and their digest.
func Ref(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The types of artifacts that strings become.
const (
	mimeText = "text/plain; charset=utf-8"
	mimeJSON = "application/json" // the value as it was spelled
)

// refObject is what stands in the place of a value that became an artifact.
type refObject struct {
	Ref     string `json:"$ref"`
	Bytes   int    `json:"bytes"`
	MIME    string `json:"mime"`
	Preview string `json:"preview,omitempty"`
}

var (
	// Short references: {"$delta":n} is the text of block n, which came in pieces; {"$sum":n} the digest of the arguments of call n of
	// the response, where it is what the arguments say.
	refMark   = []byte(`{"$ref":"sha256:`)
	deltaMark = []byte(`{"$delta":`)
	sumMark   = []byte(`{"$sum":`)
)

// marks lists how references begin.
var marks = [][]byte{refMark, deltaMark, sumMark}

// nextMark is where the next reference begins; −1 if there is none.
func nextMark(b []byte) int {
	at := -1
	for _, m := range marks {
		if i := bytes.Index(b, m); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// callArgs are the arguments of the calls of a response.
func callArgs(b loop.ModelReplied) []string {
	var out []string
	for _, bl := range b.Blocks {
		if bl.Kind == loop.BlockCall {
			out = append(out, bl.Args)
		}
	}
	return out
}

// argsSum is the digest that CallAuthorized keeps of a call's arguments; false where they have none.
func argsSum(calls []string, i int) (string, bool) {
	if i < 0 || i >= len(calls) {
		return "", false
	}
	args := strings.TrimSpace(calls[i])
	if args == "" || args == "null" {
		args = "{}"
	}
	c, err := loop.Canonical([]byte(args))
	if err != nil {
		return "", false
	}
	return loop.Fingerprint(c), true
}

// aside makes an artifact of a JSON value and what stands in its place.
func aside(value []byte) (Artifact, []byte) {
	a := Artifact{MIME: mimeJSON, Data: bytes.Clone(value)}
	preview := ""
	if value[0] == '"' {
		s := unquote(value)
		preview = prefix(s, 120)
		if bytes.Equal(appendString(nil, s), value) {
			a.MIME, a.Data = mimeText, []byte(s)
		}
	}
	a.Ref = Ref(a.Data)
	obj, err := marshal(refObject{a.Ref, len(a.Data), a.MIME, preview})
	if err != nil { // strings and a number always encode
		panic(err)
	}
	return a, obj
}

// prefix cuts a text at the border of a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// restore puts back what stands in an event's body under references. text gives the text of a block that came in pieces, artifact the bytes
// of a reference. Bytes that are not there are an error that wraps ErrMissing.
func restore(body []byte, text, sum func(i int) (string, bool), artifact func(ref string) (Artifact, bool)) ([]byte, error) {
	var out []byte
	rest := body
	for {
		i := nextMark(rest)
		if i < 0 {
			return append(out, rest...), nil
		}
		out = append(out, rest[:i]...)
		if n, end, ok := shortRef(rest[i:]); ok {
			from := text
			if bytes.HasPrefix(rest[i:], sumMark) {
				from = sum
			}
			s, ok := from(n)
			if !ok {
				return nil, fmt.Errorf("%w: what %s stands for is not there", ErrMissing, rest[i:i+end])
			}
			out, rest = appendString(out, s), rest[i+end:]
			continue
		}
		var obj refObject
		dec := json.NewDecoder(bytes.NewReader(rest[i:]))
		if err := dec.Decode(&obj); err != nil {
			return nil, fmt.Errorf("a reference cannot be read: %w", err)
		}
		end := i + int(dec.InputOffset())
		a, ok := artifact(obj.Ref)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %s (%d bytes)", ErrMissing, obj.Ref, obj.Bytes)
		case obj.MIME == mimeText:
			out = appendString(out, string(a.Data))
		case json.Valid(a.Data):
			out = append(out, a.Data...)
		default:
			return nil, fmt.Errorf("the artifact %s is not the JSON that it should be", obj.Ref)
		}
		rest = rest[end:]
	}
}

// shortRef reads {"$delta":n} and {"$sum":n}; end is where it ends.
func shortRef(b []byte) (n, end int, ok bool) {
	for _, m := range marks[1:] {
		if bytes.HasPrefix(b, m) {
			end = bytes.IndexByte(b, '}') + 1
			if end <= len(m) {
				return 0, 0, false
			}
			n, err := strconv.Atoi(string(b[len(m) : end-1]))
			return n, end, err == nil && n >= 0
		}
	}
	return 0, 0, false
}
