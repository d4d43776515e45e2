package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{` { "b" : 1 , "a" : [ true , false , null ] } `, `{"a":[true,false,null],"b":1}`},
		{`{}`, `{}`},
		{"[\r\n]", `[]`},
		{`{"":{"":[]}}`, `{"":{"":[]}}`},
		// The example of RFC 8785, section 3.2.3: by UTF-16 code units, not by code points or bytes.
		{`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
			"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
		{`{"\ud83d\ude01":1,"\ud83d\ude00":2,"\ud83c\udf00":3}`, `{"🌀":3,"😀":2,"😁":1}`},
		{`{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
		{`"\u003c\/\u007f\u2028<>&"`, "\"</\u007f\u2028<>&\""},
		{`"\b\t\n\f\r\u0008\u0009\u000a\u000b\u001F\u0000\"\\"`, `"\b\t\n\f\r\b\t\n\u000b\u001f\u0000\"\\"`},
		// Numbers: exact, one spelling.
		{`12345678901234567890.123`, `12345678901234567890.123`},
		{`[1,1.0,1e0,10e-1,0.1e1,1E+0]`, `[1,1,1,1,1,1]`},
		{`[0,-0,0.0,-0e5,0e99999999999999999999]`, `[0,0,0,0,0]`},
		{`[-1.50,100,1e2,1.00e+02]`, `[-1.5,100,100,100]`},
		{`[1e20,1e21,123456789012345678901,1234567890123456789012]`,
			`[100000000000000000000,1e+21,123456789012345678901,1.234567890123456789012e+21]`},
		{`[0.000001,0.0000001,1.5e-7,0.00000123]`, `[0.000001,1e-7,1.5e-7,0.00000123]`},
		{`[9007199254740993,0.1000000000000000055511151231257827]`, `[9007199254740993,0.1000000000000000055511151231257827]`},
		{`[1e9999,0.1e-9998,10e9998]`, `[1e+9999,1e-9999,1e+9999]`},
	} {
		got, err := Canonical([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("Canonical(%s)\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a":{"k":[0,{"x":1,"y":2,"x":1}]}}`, `at /a/k/1, byte 26: the key "x" occurs twice`},
		{`{"a":1,"\u0061":2}`, `at the top level, byte 7: the key "a" occurs twice`},
		{`{"a/b":{"~":tru}}`, `at /a~1b/~0, byte 15: '}' where "e" should be`},
		{`{"a":1} {}`, `at the top level, byte 8: data after the value`},
		{`{"a":1`, `at /a, byte 6: the input ends where ',' or '}' should be`},
		{`[1 2]`, `at /0, byte 3: '2' where ',' or ']' should be`},
		{`[1,]`, `at /1, byte 3: ']' where a value should be`},
		{`{"a":1,}`, `at the top level, byte 7: '}' where a key in double quotes should be`},
		{`{"a" 1}`, `at /a, byte 5: '1' where ':' should be`},
		{`{a:1}`, `at the top level, byte 1: 'a' where a key in double quotes should be`},
		{`NaN`, `at the top level, byte 0: 'N' where a value should be`},
		{"\ufeff{}", `at the top level, byte 0: '\ufeff' where a value should be`},
		{"\xff", `at the top level, byte 0: byte 0xff where a value should be`},
		{"[\"ab\xffc\"]", `at /0, byte 4: a string with invalid UTF-8`},
		{"[\"\\n\xed\xa0\x80\"]", `at /0, byte 4: a string with invalid UTF-8`},
		{`"\ud800"`, `at the top level, byte 1: half of a surrogate pair (\ud800)`},
		{`"\ud800\u0041"`, `at the top level, byte 1: half of a surrogate pair (\ud800)`},
		{`"x\uDC00\uD800"`, `at the top level, byte 2: half of a surrogate pair (\uDC00)`},
		{`"\ud800\u00"`, `at the top level, byte 11: '"' where a hexadecimal digit should be`},
		{`"\x"`, `at the top level, byte 2: 'x' where an escape (one of " \ / b f n r t u) should be`},
		{`"\`, `at the top level, byte 2: the input ends where an escape (one of " \ / b f n r t u) should be`},
		{"\"a\nb\"", `at the top level, byte 2: a control character (0x0a) in a string; write it as an escape`},
		{"\"\\n\tb\"", `at the top level, byte 3: a control character (0x09) in a string; write it as an escape`},
		{`"abc`, `at the top level, byte 4: the input ends in a string`},
		{`"\n`, `at the top level, byte 3: the input ends in a string`},
		{`01`, `at the top level, byte 0: a number that begins with a needless 0`},
		{`-`, `at the top level, byte 1: the input ends where a digit should be`},
		{`1.`, `at the top level, byte 2: the input ends where a digit should be`},
		{`.5`, `at the top level, byte 0: '.' where a value should be`},
		{`1e`, `at the top level, byte 2: the input ends where a digit should be`},
		{`+1`, `at the top level, byte 0: '+' where a value should be`},
		{`[1e10000]`, `at /0, byte 1: a number out of range (10^±9999)`},
		{`[0.1e-9999]`, `at /0, byte 1: a number out of range (10^±9999)`},
		{`1e99999999999999999999`, `at the top level, byte 0: a number out of range (10^±9999)`},
		{`{"` + strings.Repeat("é", 60) + `":x}`, `at /` + strings.Repeat("é", 40) + `…, byte 124: 'x' where a value should be`},
	} {
		got, err := Canonical([]byte(c.in))
		if err == nil || err.Error() != "canonical JSON: "+c.want {
			t.Errorf("Canonical(%.60q) = %s\n got %v\nwant canonical JSON: %s", c.in, got, err, c.want)
		}
		var ce *CanonError
		if !errors.As(err, &ce) {
			t.Errorf("Canonical(%.60q): the error is a %T", c.in, err)
		}
	}
	for _, in := range []string{"", " \t\r\n"} {
		if _, err := Canonical([]byte(in)); !errors.Is(err, ErrNoJSON) {
			t.Errorf("Canonical(%q): %v, want ErrNoJSON", in, err)
		}
	}
}

func TestCanonicalDepth(t *testing.T) {
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if got, err := Canonical(nest(CanonDepth)); err != nil || !bytes.Equal(got, nest(CanonDepth)) {
		t.Errorf("%d levels: %v", CanonDepth, err)
	}
	if _, err := Canonical(nest(CanonDepth + 1)); err == nil || !strings.Contains(err.Error(), "more than 512 levels") {
		t.Errorf("%d levels: %v", CanonDepth+1, err)
	}
}

// Where a double exists, the spelling is that of RFC 8785: ECMAScript's.
func TestCanonicalNumbersOfDoubles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			t.Skip("not in JSON")
		}
		want, _ := json.Marshal(f) // encoding/json follows ECMAScript but for -0
		if f == 0 {
			want = []byte("0")
		}
		for _, format := range []byte{'e', 'f', 'g'} {
			in := strconv.FormatFloat(f, format, -1, 64)
			if got, err := Canonical([]byte(in)); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("Canonical(%s) = %s, %v; want %s", in, got, err, want)
			}
		}
	})
}

// drawJSON draws a value as JSON text in two spellings that mean the same: members in other orders, other white space,
// other escapes, other spellings of numbers.
func drawJSON(t *rapid.T, depth int) (string, string) {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	space := rapid.StringOfN(rapid.RuneFrom([]rune(" \n\t\r")), 0, 2, -1)
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		w := rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
		return w, space.Draw(t, "space") + w
	case 1, 2:
		return drawNumber(t)
	case 3:
		s := rapid.String().Draw(t, "string")
		return spellString(s, false), spellString(s, true)
	case 4:
		var a, b []string
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			x, y := drawJSON(t, depth-1)
			a, b = append(a, x), append(b, space.Draw(t, "space")+y)
		}
		return "[" + strings.Join(a, ",") + "]", "[" + strings.Join(b, ",") + " ]"
	}
	var a, b []string
	for _, k := range rapid.SliceOfNDistinct(rapid.String(), 0, 5, rapid.ID[string]).Draw(t, "keys") {
		x, y := drawJSON(t, depth-1)
		a, b = append(a, spellString(k, false)+":"+x), append(b, spellString(k, true)+space.Draw(t, "space")+":"+y)
	}
	return "{" + strings.Join(a, ",") + "}", "{" + strings.Join(rapid.Permutation(b).Draw(t, "order"), " ,") + "}"
}

func drawNumber(t *rapid.T) (string, string) {
	sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
	digits := rapid.StringMatching(`[1-9][0-9]{0,30}|0`).Draw(t, "digits")
	exp := rapid.IntRange(-60, 60).Draw(t, "exp")
	plain := fmt.Sprintf("%s%se%d", sign, digits, exp)
	zeros := rapid.IntRange(0, 5).Draw(t, "zeros")
	point := rapid.IntRange(1, len(digits)).Draw(t, "point")
	return plain, fmt.Sprintf("%s%s.%s%sE%+03d", sign, digits[:point], digits[point:], strings.Repeat("0", zeros+1), exp+len(digits)-point)
}

// spellString spells a string in JSON; other means: with as many escapes as possible.
func spellString(s string, other bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r > 0xffff && other:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r <= 0xffff && other, r < 0x20, r == '"', r == '\\':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// exact reads JSON with numbers as exact rationals.
func exact(t interface{ Fatalf(string, ...any) }, b []byte) any {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %s: %v", b, err)
	}
	return rational(v)
}

func rational(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, _ := new(big.Rat).SetString(v.String())
		return "number " + r.String()
	case []any:
		for i := range v {
			v[i] = rational(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rational(v[k])
		}
	}
	return v
}

func TestCanonicalIsOneSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawJSON(t, 3)
		ca, err := Canonical([]byte(a))
		if err != nil {
			t.Fatalf("Canonical(%s): %v", a, err)
		}
		cb, err := Canonical([]byte(b))
		if err != nil {
			t.Fatalf("Canonical(%s): %v", b, err)
		}
		if !bytes.Equal(ca, cb) {
			t.Fatalf("two spellings:\n%s → %s\n%s → %s", a, ca, b, cb)
		}
		if again, err := Canonical(ca); err != nil || !bytes.Equal(again, ca) {
			t.Fatalf("not idempotent: %s → %s, %v", ca, again, err)
		}
		if diff := cmp.Diff(exact(t, []byte(a)), exact(t, ca)); diff != "" {
			t.Fatalf("the meaning of %s changed (-in +out):\n%s", a, diff)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{``, `{"a":[1,2.50,-0],"b":{"\ud83d\ude00":"\n"}}`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`, `1e5000`, `[[[]]]`, `{"b":1,"a":2} x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		out, err := Canonical(in)
		if !bytes.Equal(in, before) {
			t.Fatalf("the input changed")
		}
		if err != nil {
			if out != nil {
				t.Fatalf("output beside the error %v", err)
			}
			return
		}
		if !json.Valid(in) {
			t.Fatalf("%q is not JSON and was taken as %q", in, out)
		}
		if again, err := Canonical(out); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("not idempotent: %q → %q, %v", out, again, err)
		}
		if diff := cmp.Diff(exact(t, in), exact(t, out)); diff != "" {
			t.Fatalf("the meaning of %q changed (-in +out):\n%s", in, diff)
		}
	})
}

func TestFingerprint(t *testing.T) {
	a, b := Fingerprint([]byte("ab"), []byte("c")), Fingerprint([]byte("a"), []byte("bc"))
	if a == b || len(a) != 32 || a != Fingerprint([]byte("ab"), []byte("c")) {
		t.Errorf("Fingerprint: %s and %s", a, b)
	}
	if got := Fingerprint(); got != "e3b0c44298fc1c149afbf4c8996fb924" {
		t.Errorf("Fingerprint of nothing = %s", got)
	}
}

func BenchmarkCanonical(b *testing.B) {
	in := []byte(`{"query":"how much did I lift in the bench press this month","limit":25,"filter":{"from":"2026-01-01","exercises":["bench","incline"],"min":62.5}}`)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(in); err != nil {
			b.Fatal(err)
		}
	}
}
