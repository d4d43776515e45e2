package recording

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
)

// parseLine reads the members of a line without looking into its values, which is most of what opening a large recording costs. It is
// false where the line is not an object as this package writes it; the general parser then says what is wrong.
func parseLine(line []byte, w *wireLine) bool {
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return false
	}
	pos := 1
	for {
		if pos >= len(line) || line[pos] != '"' {
			return false
		}
		end := scalarEnd(line, pos)
		if end+1 >= len(line) || line[end] != ':' {
			return false
		}
		key := line[pos+1 : end-1]
		from := end + 1
		to := valueEnd(line, from)
		if to <= from || to >= len(line) {
			return false
		}
		if !w.member(string(key), line[from:to]) {
			return false
		}
		if line[to] == '}' {
			return to == len(line)-1
		}
		if line[to] != ',' {
			return false
		}
		pos = to + 1
	}
}

// member sets one member; false where its value is not of the type that it ought to be.
func (w *wireLine) member(key string, v []byte) bool {
	switch key {
	case "s":
		return number(v, &w.S)
	case "t":
		return number(v, &w.T)
	case "q":
		return number(v, &w.Q)
	case "o":
		return number(v, &w.O)
	case "e":
		w.E = new(int64)
		return number(v, w.E)
	case "r", "refs", "v", "reader":
		var n int64
		if !number(v, &n) || n < 0 || n > 1<<30 {
			return false
		}
		switch key {
		case "r":
			w.R = int(n)
		case "refs":
			w.Refs = int(n)
		case "v":
			w.V = int(n)
		default:
			w.Reader = int(n)
		}
	case "k":
		return word(v, &w.K)
	case "c":
		return word(v, &w.C)
	case "wait":
		return word(v, &w.Wait)
	case "opt":
		w.Opt = string(v) == "true"
	case "b":
		w.B = v
	case "d":
		w.D = v
	}
	return true
}

func number(v []byte, to *int64) bool {
	n, err := strconv.ParseInt(string(v), 10, 64)
	*to = n
	return err == nil
}

// word reads a string without escapes.
func word(v []byte, to *string) bool {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return false
	}
	*to = string(v[1 : len(v)-1])
	return true
}

// valueEnd is where the value that begins at pos ends. Inside of objects and arrays only strings and brackets are looked at.
func valueEnd(b []byte, pos int) int {
	if pos >= len(b) {
		return pos
	}
	if b[pos] != '{' && b[pos] != '[' {
		return scalarEnd(b, pos)
	}
	depth := 0
	for pos < len(b) {
		switch b[pos] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		case '"':
			pos = scalarEnd(b, pos)
			continue
		}
		pos++
	}
	return pos
}

// parsePieces reads [[12,"text"],…]; false where it is something else. Without texts the pieces only hold where theirs stand in b.
func parsePieces(b []byte, texts bool) ([]Piece, bool) {
	if len(b) < 2 || b[0] != '[' || b[len(b)-1] != ']' {
		return nil, false
	}
	out := make([]Piece, 0, bytes.Count(b, []byte(`,"`)))
	pos := 1
	for pos < len(b)-1 {
		if b[pos] != '[' {
			return nil, false
		}
		pos++
		end := scalarEnd(b, pos)
		var at int64
		if end >= len(b) || b[end] != ',' || !number(b[pos:end], &at) || at < 0 || at > 1<<53 {
			return nil, false
		}
		pos = end + 1
		if pos >= len(b) || b[pos] != '"' {
			return nil, false
		}
		end = scalarEnd(b, pos)
		if end >= len(b) || b[end] != ']' || b[end-1] != '"' || end-pos < 2 {
			return nil, false
		}
		piece := Piece{At: loop.Micros(at)}
		if texts {
			piece.Text = unquote(b[pos:end])
		} else {
			piece.raw = b[pos:end]
		}
		out = append(out, piece)
		pos = end + 1
		switch {
		case pos == len(b)-1:
		case b[pos] == ',' && pos+1 < len(b)-1:
			pos++
		default:
			return nil, false
		}
	}
	return out, true
}

// appendUnquoted appends what a JSON string says.
func appendUnquoted(dst, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return append(dst, quoted[1:len(quoted)-1]...)
	}
	return append(dst, unquote(quoted)...)
}
