package loop

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// The hand-written encoder writes byte for byte what encoding/json writes.
func TestAppendBodyIsEncodingJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\"b\\c", "\x00\x1f\x7f", "<&>\u2028\u2029", "\xff\xfe half \xe2\x82", "ñ漢🏋"}))
	num := rapid.Int64()
	block := rapid.Custom(func(t *rapid.T) Block {
		b := Block{Kind: BlockKind(text.Draw(t, "kind")), Text: text.Draw(t, "text"), ID: text.Draw(t, "id"), Call: text.Draw(t, "call"), Name: text.Draw(t, "name"),
			Args: text.Draw(t, "args"), Error: rapid.Bool().Draw(t, "error"), Wire: text.Draw(t, "wire")}
		if rapid.Bool().Draw(t, "raw") {
			b.Raw = json.RawMessage(`{"signature": "a<b", "n": [1, 2.50]}`)
		}
		return b
	})
	rapid.Check(t, func(t *rapid.T) {
		n := func() int64 { return rapid.OneOf(num, rapid.Just(int64(0))).Draw(t, "n") }
		s := func() string { return text.Draw(t, "s") }
		v := rapid.Bool().Draw(t, "v")
		var usage *Usage
		if v {
			usage = &Usage{n(), n(), n(), n(), n()}
		}
		for _, b := range []Body{
			ModelCallStarted{Call: n(), Attempt: n(), Closing: v, GivenUp: !v, Reserve: Reserve{n(), n(), Pico(n())}, Hint: s(), Model: s(), Purpose: s()},
			ModelReplied{Call: n(), Blocks: rapid.SliceOfN(block, 0, 3).Draw(t, "blocks"), Finish: Finish(s()), Usage: usage, Model: s(), ID: s(), Detail: s(), Tape: s(), Purpose: s()},
			CallAuthorized{Call: s(), Verdict: Verdict(s()), Args: s(), Digest: s(), Rule: s(), Reason: s(), Standing: s(), Finish: s()},
			ToolStarted{Call: s(), Attempt: n()},
			ToolReturned{Call: s(), Attempt: n(), Text: s(), Ref: s(), Bytes: n(), Sum: s()},
		} {
			want, err := marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := appendBody(nil, b)
			if !ok || string(got) != string(want) {
				t.Fatalf("%T:\n got %s\nwant %s", b, got, want)
			}
		}
	})
}
