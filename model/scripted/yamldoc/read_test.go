package yamldoc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlaces(t *testing.T) {
	docs, err := Parse("f", []byte("a: 1\n---\nb:\n  - c: {d: x}\n    e: |\n      two\n      lines\n  - [1, 2.50]\n"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Path, Text   string
		Kind         Kind
		Line, Column int
	}
	var rows []row
	var walk func(n *Node)
	walk = func(n *Node) {
		rows = append(rows, row{n.Path, n.Text, n.Kind, n.Line, n.Column})
		for _, v := range n.Items {
			walk(v)
		}
		for _, f := range n.Fields {
			walk(f.Value)
		}
	}
	for _, d := range docs {
		walk(d)
	}
	want := []row{
		{"", "", Map, 1, 1},
		{"a", "1", Number, 1, 4},
		{"", "", Map, 3, 1},
		{"b", "", List, 4, 3},
		{"b[0]", "", Map, 4, 5},
		{"b[0].c", "", Map, 4, 8},
		{"b[0].c.d", "x", String, 4, 12},
		{"b[0].e", "two\nlines\n", String, 5, 8},
		{"b[1]", "", List, 8, 5},
		{"b[1][0]", "1", Number, 8, 6},
		{"b[1][1]", "2.50", Number, 8, 9},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Fatal(diff)
	}
}

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		"{z: 1, a: 2}":                    `{"z":1,"a":2}`,
		"[1.0, 1e5, -0, 0x1F, 1_000, +5]": `[1.0,1e5,-0,31,1000,5]`,
		"123456789012345678901234567890":  `123456789012345678901234567890`,
		"[yes, True, null, ~, '']":        `["yes",true,null,null,""]`,
		"2026-11-02":                      `"2026-11-02"`,
		"'1.0'":                           `"1.0"`,
		"!!str 1.0":                       `"1.0"`,
		`"<a> & \u00e9 \t"`:               `"<a> & é \t"`,
		"{1: a, true: b}":                 `{"1":"a","true":"b"}`,
	} {
		n, err := ParseOne("", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, string(n.JSON())); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	for in, want := range map[string]string{
		"a: .inf":      "f:1:4: a: JSON has no such number; quote it to make it text",
		"a: !thing x":  "f:1:4: a: the tag !thing means nothing here; leave it out",
		"a: *b":        "f:1:4: a: the alias *b has no anchor before it",
		"a: &a [*a]":   "f:1:8: a[0]: the alias *a stands inside its own anchor",
		"? [a]\n: b":   "f:2:1: found an invalid key for this map",
		"a: [b\nc: d":  "f:2:1: ',' or ']' must be specified",
		"{<<: [1], a}": "",
	} {
		_, err := Parse("f", []byte(in))
		if err == nil {
			t.Errorf("%s: accepted", in)
			continue
		}
		if want != "" {
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("%s: %s", in, diff)
			}
		}
	}
}

// A page of aliases that stands for more values than memory holds is refused, not read.
func TestAliasBomb(t *testing.T) {
	in := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		d, p := string(rune('0'+i)), string(rune('0'+i-1))
		in += "a" + d + ": &a" + d + " [*a" + p + ",*a" + p + ",*a" + p + ",*a" + p + ",*a" + p + ",*a" + p + ",*a" + p + ",*a" + p + "]\n"
	}
	if _, err := Parse("f", []byte(in)); err == nil {
		t.Fatal("accepted")
	}
}

func TestDeepIsRefused(t *testing.T) {
	for _, in := range []string{strings.Repeat("[", 50_000), strings.Repeat("- ", 50_000), strings.Repeat("{a: ", 50_000)} {
		if _, err := Parse("f", []byte(in)); err == nil || !strings.Contains(err.Error(), "are open here") {
			t.Errorf("%.10q: %v", in, err)
		}
	}
}

func TestReaders(t *testing.T) {
	n, err := ParseOne("", []byte("{n: -1, f: x, d: 90, ok: 1m30s, w: reed, l: a, b: maybe, big: 99999999999999999999}"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Problems{File: "f"}
	p.Int(n.Get("n"))
	p.Float(n.Get("f"))
	p.Duration(n.Get("d"))
	if d := p.Duration(n.Get("ok")); d != 90*time.Second {
		t.Error(d)
	}
	p.OneOf(n.Get("w"), "an effect", "read", "idempotent", "once")
	p.Strings(n.Get("l"))
	p.Bool(n.Get("b"))
	p.Int(n.Get("big"))
	want := `f:1:5: n: -1 is negative; 0 means none at all; leave the key out where there is no limit
f:1:12: f: want a number, not "x"
f:1:18: d: 90 has no unit; write 90s or 90m
f:1:36: w: "reed" is not an effect; use read, idempotent or once
f:1:45: l: want a list, not "a"
f:1:51: b: want true or false, not "maybe"; write true or false
f:1:63: big: 99999999999999999999 is not a whole number in range`
	if diff := cmp.Diff(want, p.Err().Error()); diff != "" {
		t.Fatal(diff)
	}
}
