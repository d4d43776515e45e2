package wire

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestLower(t *testing.T) {
	few := &Schema{Known: " type properties items enum anyOf additionalProperties required $ref $defs format description ", Enum: true, AnyOf: true}
	closed := &Schema{Known: few.Known, Closed: true, Formats: " date "}
	tests := []struct {
		name    string
		rules   *Schema
		in, out string
		dropped []string
	}{
		{"keywords go, annotations silently", few, `{"type":"string","minLength":1,"title":"T","default":"x","pattern":"a"}`, `{"type":"string"}`, []string{"minLength", "pattern"}},
		{"names of properties are no keywords", few, `{"properties":{"pattern":{"type":"string","pattern":"a"},"title":{}}}`, `{"properties":{"pattern":{"type":"string"},"title":{}}}`, []string{"pattern"}},
		{"const and oneOf", few, `{"oneOf":[{"const":"a"},{"const":1}]}`, `{"anyOf":[{"enum":["a"]},{"enum":[1]}]}`, nil},
		{"oneOf beside anyOf", few, `{"anyOf":[true],"oneOf":[{}]}`, `{"anyOf":[true]}`, []string{"oneOf"}},
		{"a reference stands alone", few, `{"$ref":"#/$defs/a","description":"d","$defs":{"a":{"not":{}}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{}}}`, []string{"description", "not"}},
		{"deep", few, `{"items":{"items":{"additionalProperties":{"maxLength":1}}}}`, `{"items":{"items":{"additionalProperties":{}}}}`, []string{"maxLength"}},
		{"closed objects", closed, `{"type":"object","properties":{"a":{"type":"object","additionalProperties":false},"b":{"type":"object","properties":{},"additionalProperties":true}}}`,
			`{"type":"object","properties":{"a":{"type":"object","additionalProperties":false},"b":{"type":"object","properties":{},"additionalProperties":false}},"additionalProperties":false}`, nil},
		{"formats", closed, `{"items":[{"format":"date"},{"format":"x"}]}`, `{"items":[{"format":"date"},{"format":"x"}]}`, nil},
		{"formats of a property", closed, `{"properties":{"a":{"format":"x"}}}`, `{"properties":{"a":{}},"additionalProperties":false}`, []string{"format"}},
		{"no object", few, `true`, `true`, nil},
		{"odd forms", few, `{"properties":[1],"anyOf":{},"items":5}`, `{"properties":[1],"anyOf":{},"items":5}`, nil},
	}
	for _, tt := range tests {
		out, dropped := tt.rules.Lower([]byte(tt.in))
		if string(out) != tt.out {
			t.Errorf("%s: %s\nwant %s", tt.name, out, tt.out)
		}
		if diff := cmp.Diff(tt.dropped, dropped); diff != "" && len(tt.dropped)+len(dropped) > 0 {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func FuzzLower(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"const":1,"oneOf":[{}]}},"$defs":{"x":{"items":[{}]}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if !Valid(in) {
			return
		}
		s := &Schema{Known: " type properties items anyOf $defs enum additionalProperties ", Closed: true, Enum: true, AnyOf: true}
		if out, _ := s.Lower(in); !Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]byte{"": 0, "  ": 0, "\xef\xbb\xbf \r\n[1]": '[', "data: x": 'd', strings.Repeat(" ", 600) + "{": 0} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			first, again, err := Sniff(r)
			if err != nil || first != want {
				t.Errorf("%q: %q, %v", in, first, err)
				continue
			}
			if all, err := io.ReadAll(again); err != nil || string(all) != in {
				t.Errorf("%q: %q, %v", in, all, err)
			}
		}
	}
	if _, _, err := Sniff(iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
}
