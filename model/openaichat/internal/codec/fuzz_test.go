package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

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

// Whatever a server sends, the reader yields a response or an error; deltas are UTF-8 and add up to the blocks; and what was read
// goes back as JSON.
func FuzzAnswer(f *testing.F) {
	f.Add(stream(
		`{"id":"i","model":"m","choices":[{"index":0,"delta":{"content":"a","reasoning_details":[{"type":"reasoning.text","text":"x","index":0}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"i","extra_content":{"a":1},"function":{"name":"f","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, "[DONE]"), true)
	f.Add([]byte(`{"choices":[{"index":0,"message":{"content":[{"type":"thinking","thinking":[{"text":"a"}],"b":1},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}],"function_call":{"name":"f"},"refusal":"no"},"finish_reason":"stop"}]}`), false)
	f.Add(stream(`{"error":{"code":"tool_use_failed","failed_generation":"x"}}`), true)
	f.Fuzz(func(t *testing.T, b []byte, streamed bool) {
		var said, thought string
		a := &Answer{Sink: func(d model.Delta) {
			if !utf8.ValidString(d.Text) {
				t.Fatalf("delta %q", d.Text)
			}
			switch d.Channel {
			case model.Text:
				said += d.Text
			case model.Thought:
				thought += d.Text
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
		var text string
		for _, b := range res.Blocks {
			if b.Kind == loop.BlockText {
				text += b.Text
			}
			if len(b.Raw) > 0 && !json.Valid(b.Raw) {
				t.Fatalf("raw %s", b.Raw)
			}
		}
		if utf8.Valid(b) && text != said {
			t.Fatalf("deltas are not the text: %s", cmp.Diff(said, text))
		}
		c := &model.Cache{}
		Encode(c, []*loop.Message{{Role: loop.Assistant, Blocks: res.Blocks}}, Rules{})
		if sent := "[" + string(c.Bytes) + "]"; !json.Valid([]byte(sent)) {
			t.Fatalf("encoded as %s", sent)
		}
	})
}
