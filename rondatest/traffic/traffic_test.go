package traffic

import (
	"bytes"
	"testing"
)

func TestCutsJoinToTheBody(t *testing.T) {
	body := []byte("event: x\r\ndata: {\"a\":\"é€😀\"}\r\n\r\n: c\n\ndata: [DONE]\n\n")
	ways := Cuts(body)
	for i, way := range ways {
		if got := bytes.Join(way, nil); !bytes.Equal(got, body) {
			t.Errorf("way %d: %q", i, got)
		}
	}
	if len(ways) < 4 {
		t.Errorf("%d ways", len(ways))
	}
}

func TestLoad(t *testing.T) {
	for _, wire := range []string{"anthropic", "gemini", "openai-chat", "openai-responses"} {
		files := Load(t, wire)
		for _, f := range files {
			if len(f.Exchanges) == 0 {
				t.Errorf("%s: no exchanges", f.Name)
			}
		}
	}
}
