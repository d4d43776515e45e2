package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func read(r io.Reader) (events []string, err error) {
	err = Events(r, func(name, data []byte) error {
		events = append(events, string(name)+"|"+string(data))
		return nil
	})
	return events, err
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"lf", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"crlf", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"x|a", "|b"}},
		{"cr", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		{"mixed line ends", "data: a\r\n\ndata: b\n\r\n", []string{"|a", "|b"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		{"comments", ": hello\n\n:\n: x\ndata: a\n\n", []string{"|a"}},
		{"no space after the colon", "data:a\ndata:  b\n\n", []string{"|a\n b"}},
		{"lines are joined", "data: a\ndata: b\ndata\n\n", []string{"|a\nb\n"}},
		{"empty data", "data:\n\n", []string{"|"}},
		{"name without data", "event: x\n\ndata: a\n\n", []string{"|a"}},
		{"id and retry", "id: 1\nretry: 5\ndata: a\n\n", []string{"|a"}},
		{"no blank line at the end", "data: a\n\ndata: b", []string{"|a", "|b"}},
		{"nothing", "", nil},
		{"characters", "data: é€😀\n\n", []string{"|é€😀"}},
	} {
		for name, r := range map[string]io.Reader{
			"whole":      strings.NewReader(c.in),
			"one byte":   iotest.OneByteReader(strings.NewReader(c.in)),
			"half reads": iotest.HalfReader(strings.NewReader(c.in)),
			"data + EOF": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			got, err := read(r)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v -want +got:\n%s", c.name, name, err, diff)
			}
		}
	}
}

func TestEventsEnd(t *testing.T) {
	cut := errors.New("connection reset")
	got, err := read(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(cut)))
	if !cmp.Equal(got, []string{"|a"}) || !errors.Is(err, cut) {
		t.Errorf("cut: %q %v", got, err)
	}
	n := 0
	if err := Events(strings.NewReader("data: a\n\ndata: b\n\n"), func(_, _ []byte) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("stop: %d events, %v", n, err)
	}
	if err := Events(strings.NewReader("data: a\n\n"), func(_, _ []byte) error { return cut }); err != cut {
		t.Errorf("the error of f: %v", err)
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestBounds(t *testing.T) {
	if _, err := read(endless{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("a line: %v", err)
	}
	long := io.MultiReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("y", 1<<20)+"\n", 40)))
	if _, err := read(long); !errors.Is(err, ErrTooLong) {
		t.Errorf("an event: %v", err)
	}
	if _, err := ReadAll(endless{}, -1); !errors.Is(err, ErrTooLong) {
		t.Errorf("a body: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: a\r\n\r\n: c\n\ndata: {\"a\":1}\n\n"), 3)
	f.Add([]byte("\xef\xbb\xbfdata\r\rdata:\n"), 1)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		whole, err := read(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if size < 1 {
			size = 1
		}
		cut, err := read(&pieces{in, size})
		if err != nil || !cmp.Equal(whole, cut) {
			t.Fatalf("cut in pieces of %d: %v\n%s", size, err, cmp.Diff(whole, cut))
		}
	})
}

type pieces struct {
	b    []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(p.size, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

func BenchmarkEvents(b *testing.B) {
	in := []byte(strings.Repeat("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n", 100))
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if err := Events(bytes.NewReader(in), func(_, _ []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
