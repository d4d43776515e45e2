package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

func stream(events ...string) []byte {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return []byte(b.String())
}

// Whatever a server sends, the reader yields a response or an error; deltas are UTF-8; and what was read goes back as JSON.
func FuzzAnswer(f *testing.F) {
	f.Add(stream(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"f"}}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`, `{"type":"response.incomplete","response":{"status":"incomplete"}}`), true)
	f.Add(stream(`{"type":"response.output_item.added","item":{"id":"a","type":"message"}}`, `{"type":"response.output_text.delta","item_id":"a","delta":"x"}`,
		`{"type":"response.output_item.done","output_index":3,"item":{"id":"r","type":"reasoning","summary":[{"text":"s"}]}}`, "[DONE]"), true)
	f.Add([]byte(`{"object":"response","status":"completed","output":[{"id":"a","type":"message","content":[{"type":"output_text","text":"t","annotations":[1]},{"type":"output_text","text":"u"}]},{"type":"image_generation_call","result":"aGk="},{"type":"x"}],"usage":{"input_tokens":1}}`), false)
	f.Fuzz(func(t *testing.T, b []byte, streamed bool) {
		a := &Answer{Sink: func(d model.Delta) {
			if !utf8.ValidString(d.Text) {
				t.Fatalf("delta %q", d.Text)
			}
		}}
		var err error
		if streamed {
			err = wire.Events(bytes.NewReader(b), a.Event)
		} else if err = a.Event(nil, b); err == wire.ErrStop {
			err = nil
		}
		if err != nil {
			return
		}
		res, failed := a.Response(streamed, "reading")
		if (res == nil) == (failed == nil) {
			t.Fatalf("response %v, error %v", res, failed)
		}
		if res == nil {
			return
		}
		for _, r := range []Rules{{}, {Strict: true}} {
			c := &model.Cache{}
			e := Encode(c, []*loop.Message{{Role: loop.Assistant, Blocks: res.Blocks}}, r)
			if sent := "[" + string(c.Bytes) + "]"; !json.Valid([]byte(sent)) || e.Ends[0] != len(c.Bytes) {
				t.Fatalf("encoded as %s", sent)
			}
		}
	})
}
