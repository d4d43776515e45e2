package fake

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/model/wire"
)

// object writes a JSON object with its members in the given order: name, value, name, value. Values of type json.RawMessage
// and []byte are JSON already.
func object(kv ...any) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i+1 < len(kv); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, kv[i].(string))
		b = append(b, ':')
		b = appendValue(b, kv[i+1])
	}
	return append(b, '}')
}

func array(values ...json.RawMessage) json.RawMessage {
	return slices.Concat([]byte{'['}, bytes.Join(byteSlices(values), []byte{','}), []byte{']'})
}

func byteSlices(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.RawMessage:
		return append(b, v...)
	case []byte:
		return append(b, v...)
	case string:
		return wire.AppendString(b, v)
	case nil:
		return append(b, "null"...)
	}
	j, err := json.Marshal(v)
	if err != nil { // only numbers and booleans come here
		panic(err)
	}
	return append(b, j...)
}

// with returns an object with further members at its end.
func with(o json.RawMessage, kv ...any) json.RawMessage {
	more := object(kv...)
	if len(kv) == 0 {
		return o
	}
	if len(o) <= 2 {
		return more
	}
	return slices.Concat(o[:len(o)-1], []byte{','}, more[1:])
}

// parse reads a body. Nesting is bounded, because the readers below recurse; a character that is cut in half is an error, as it
// is for JSON (RFC 8259, section 8.1).
func parse(body []byte) (gjson.Result, bool) {
	if !wire.Valid(body) || !utf8.Valid(body) {
		return gjson.Result{}, false
	}
	v := gjson.ParseBytes(body)
	return v, v.IsObject()
}

func jsonObject(s string) bool {
	return wire.Valid([]byte(s)) && gjson.Parse(s).IsObject()
}

// sameJSON compares two JSON texts by value: order of keys and white space do not count, spelling of numbers does not either
// where float64 tells them apart. Texts that are no JSON are compared as they are.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	ca, cb := canonical(a), canonical(b)
	return ca != "" && ca == cb
}

// canonical is JSON with sorted keys, "" if s is no JSON.
func canonical(s string) string {
	if !wire.Valid([]byte(s)) {
		return ""
	}
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// known is a set of member names.
type known map[string]bool

func names(list string) known {
	k := known{}
	for _, n := range strings.Fields(list) {
		k[n] = true
	}
	return k
}

func (k known) plus(list string) known {
	out := names(list)
	for n := range k {
		out[n] = true
	}
	return out
}

// unknown is the first member of o that is not in the set, "" if there is none.
func (k known) unknown(o gjson.Result) string {
	var found string
	o.ForEach(func(key, _ gjson.Result) bool {
		if !k[key.Str] {
			found = key.Str
		}
		return found == ""
	})
	return found
}

// isNull reports whether a member is absent or null.
func isNull(v gjson.Result) bool { return !v.Exists() || v.Type == gjson.Null }

func isString(v gjson.Result) bool { return v.Type == gjson.String }

// inner is the raw text of an array without its brackets.
func inner(v gjson.Result) []byte {
	s := strings.TrimSpace(v.Raw)
	if len(s) < 2 || s[0] != '[' {
		return nil
	}
	return []byte(strings.TrimSpace(s[1 : len(s)-1]))
}

// tail is the raw text of an array from its n-th element on.
func tail(v gjson.Result, n int) []byte {
	elems := v.Array()
	if n == 0 {
		return inner(v)
	}
	if n >= len(elems) {
		return nil
	}
	raw := strings.TrimSpace(v.Raw)
	// Indexes of elements count from the beginning of the document where the value came from one, so look the text up instead.
	at := 1
	for i := 0; i < n; i++ {
		at += strings.Index(raw[at:], elems[i].Raw) + len(elems[i].Raw)
	}
	return []byte(strings.TrimSpace(strings.TrimLeft(raw[at:len(raw)-1], " \t\r\n,")))
}
