package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\r\t\x00\x1f\x7f", "<é€😀>&\u2028", "\xff\xf0\x9f", "\ud7ff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(s)
		var want string
		_ = json.Unmarshal(b, &want)
		if got != want {
			t.Fatalf("%q became %q, encoding/json has %q", s, got, want)
		}
	})
}

func FuzzHeld(f *testing.F) {
	f.Add("é€😀x", 1)
	f.Add("\xf0\x9f\x98", 2)
	f.Add("\x80\xff\xe2\x82", 1)
	f.Fuzz(func(t *testing.T, s string, size int) {
		if size < 1 {
			size = 1
		}
		var h Held
		var out string
		for rest := s; rest != ""; {
			n := min(size, len(rest))
			piece := h.Push(rest[:n])
			rest = rest[n:]
			if !utf8.ValidString(piece) {
				t.Fatalf("piece %q", piece)
			}
			out += piece
		}
		out += h.Rest()
		if !utf8.ValidString(out) || utf8.ValidString(s) && out != s {
			t.Fatalf("%q became %q", s, out)
		}
	})
}

func TestSplice(t *testing.T) {
	b := Splice([]byte("head["), []byte("1,2"), []byte("]"))
	if b.Len() != 9 {
		t.Errorf("length %d", b.Len())
	}
	one := make([]byte, 4)
	if n, err := io.ReadFull(b, one); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	rest, err := io.ReadAll(b)
	again, _ := io.ReadAll(b.Again())
	if string(one)+string(rest) != "head[1,2]" || string(again) != "head[1,2]" || err != nil || b.Len() != 9 {
		t.Errorf("%s%s, again %s, %v", one, rest, again, err)
	}
}

func TestAppendOptions(t *testing.T) {
	reserved := func(name string) bool { return name == "model" }
	got, err := AppendOptions([]byte(`{"a":1`), map[string]any{"z": 1, "b": map[string]any{"c": []int{1}}}, reserved)
	if string(got) != `{"a":1,"b":{"c":[1]},"z":1` || err != nil {
		t.Errorf("%s %v", got, err)
	}
	if _, err := AppendOptions(nil, map[string]any{"model": "x"}, reserved); err == nil || !strings.Contains(err.Error(), `"model"`) {
		t.Errorf("reserved: %v", err)
	}
	if _, err := AppendOptions(nil, map[string]any{"f": func() {}}, reserved); err == nil || !strings.Contains(err.Error(), `"f"`) {
		t.Errorf("no JSON: %v", err)
	}
}

func TestValidIsBoundedInDepth(t *testing.T) {
	if Valid([]byte(strings.Repeat("[", 1<<22))) {
		t.Error("an endless nest is valid")
	}
	if !Valid([]byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))) {
		t.Error("a deep nest is not valid")
	}
}

func TestIDs(t *testing.T) {
	call := func(id, own string) *loop.Block { return &loop.Block{Kind: loop.BlockCall, ID: id, Call: own} }
	var m IDs
	var got []string
	for _, c := range []struct {
		b   *loop.Block
		own bool
	}{
		{call("call_1", "r1.0"), true},   // kept
		{call("call_1", "r2.0"), true},   // repeated
		{call("", "r3.0"), true},         // empty
		{call("toolu_9", "r4.0"), false}, // of another wire
		{call("", "r3_0"), true},         // collides with what was made of r3.0
		{call("", ""), true},
		{call("", ""), true},
		{call("call 7/é", "r5.0"), true}, // the wire's own, whatever it looks like
	} {
		got = append(got, m.Call(c.b, c.own))
	}
	for _, own := range []string{"r1.0", "r2.0", "r3.0", "r4.0", "r5.0"} {
		got = append(got, m.Result(&loop.Block{Kind: loop.BlockResult, ID: "call_1", Call: own}))
	}
	got = append(got, m.Result(&loop.Block{Kind: loop.BlockResult, ID: "unheard", Call: "nobody's"}))
	want := []string{
		"call_1", "r2_0", "r3_0", "r4_0", "call_5", "call_6", "call_7", "call 7/é",
		"call_1", "r2_0", "r3_0", "r4_0", "call 7/é", "unheard",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		headers map[string]string
		message string
		want    time.Duration
	}{
		{"milliseconds first", map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, "", 1500 * time.Millisecond},
		{"zero milliseconds say nothing", map[string]string{"Retry-After-Ms": "0", "Retry-After": "1"}, "", time.Second},
		{"seconds", map[string]string{"Retry-After": "20"}, "try again in 5s", 20 * time.Second},
		{"fraction", map[string]string{"Retry-After": "0.25"}, "", 250 * time.Millisecond},
		{"date", map[string]string{"Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT"}, "", time.Minute},
		{"date in the past", map[string]string{"Retry-After": "Sun, 01 Mar 2020 12:01:00 GMT"}, "", 0},
		{"OpenAI's words", nil, "Rate limit reached. Please try again in 1m2.5s. Visit …", 62500 * time.Millisecond},
		{"milliseconds in words", nil, "Please try again in 120ms.", 120 * time.Millisecond},
		{"Azure's words", nil, "Please retry after 6 seconds. To increase …", 6 * time.Second},
		{"Google's words", nil, "Please retry in 34.074824224s.", 34074824 * time.Microsecond},
		{"exhausted allowance", map[string]string{"X-Ratelimit-Remaining-Requests": "3", "X-Ratelimit-Reset-Requests": "1h",
			"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "2m59.56s"}, "", 179560 * time.Millisecond},
		{"epoch", map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1772366430000"}, "", 30 * time.Second},
		{"Anthropic's", map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": "2026-03-01T12:00:07Z"}, "", 7 * time.Second},
		{"nothing exhausted", map[string]string{"X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "9s"}, "", 0},
		{"nonsense", map[string]string{"Retry-After": "soon"}, "try again in a while", 0},
		{"centuries", map[string]string{"Retry-After": "1e300"}, "", 7 * 24 * time.Hour},
		{"not a number", map[string]string{"Retry-After": "NaN"}, "", 0},
	} {
		h := http.Header{}
		for k, v := range c.headers {
			h.Set(k, v)
		}
		if got := RetryAfter(h, c.message, now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestClassOf(t *testing.T) {
	for status, want := range map[int]loop.Class{
		400: loop.ClassFatal, 401: loop.ClassFatal, 403: loop.ClassFatal, 404: loop.ClassFatal, 422: loop.ClassFatal, 501: loop.ClassFatal,
		408: loop.ClassTransient, 409: loop.ClassTransient, 425: loop.ClassTransient, 429: loop.ClassTransient, 498: loop.ClassTransient,
		500: loop.ClassTransient, 502: loop.ClassTransient, 503: loop.ClassTransient, 504: loop.ClassTransient, 529: loop.ClassTransient,
	} {
		if got := ClassOf(status); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}
