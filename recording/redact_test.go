package recording_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
	"github.com/ronda-go/ronda/tool"
)

const secretValue = `hunter2"x/y`

func redactor(t testing.TB) *recording.Redactor {
	t.Helper()
	r, err := recording.NewRedactor("test", []recording.Secret{{"DB_PASSWORD", secretValue}, {"TOKEN", "tok-abcdef"}, {"LONGER", "tok-abcdefghi"}}, recording.Patterns())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var awsKey = "AKIA" + strings.Repeat("Q7", 8)

func TestRedact(t *testing.T) {
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----"
	for _, c := range []struct{ in, want string }{
		{"nothing here", "nothing here"},
		{"pw " + secretValue + "!", "pw {{secret:DB_PASSWORD}}!"},
		{`{"pw":"hunter2\"x/y"}`, `{"pw":"{{secret:DB_PASSWORD}}"}`},
		{"u?p=hunter2%22x%2Fy", "u?p={{secret:DB_PASSWORD}}"},
		{"tok-abcdef tok-abcdefghi", "{{secret:TOKEN}} {{secret:LONGER}}"},
		{"key " + awsKey + " and again " + awsKey, "key {{redacted:aws-key#1}} and again {{redacted:aws-key#1}}"},
		{"a\n" + pem + "\nb", "a\n{{redacted:private-key#1}}\nb"},
	} {
		if got := redactor(t).Redact(c.in); got != c.want {
			t.Errorf("%q: want %q, got %q", c.in, c.want, got)
		}
	}
	r := redactor(t)
	if got := r.Restore(r.Redact("pw " + secretValue)); got != "pw "+secretValue {
		t.Errorf("restored: %q", got)
	}
	if _, err := recording.NewRedactor("", []recording.Secret{{"X", "abc"}}, nil); err == nil {
		t.Error("a secret of three bytes was accepted")
	}
}

// TestRedactStreamAtEverySplit cuts a text in two and in three at every place.
func TestRedactStreamAtEverySplit(t *testing.T) {
	text := "my pw is " + secretValue + ", tok-abcdefg; " + awsKey + " -----BEGIN X PRIVATE KEY-----\nab c\n-----END X PRIVATE KEY----- end tok-abcdefghi"
	want := redactor(t).Redact(text)
	for i := range len(text) + 1 {
		for j := i; j <= len(text); j++ {
			s := redactor(t).Stream()
			out := ""
			for _, piece := range []string{text[:i], text[i:j], text[j:]} {
				out += s.Write(piece)
				if leaks(out) {
					t.Fatalf("cut at %d and %d: given out was %q", i, j, out)
				}
			}
			if out += s.Flush(); out != want {
				t.Fatalf("cut at %d and %d:\nwant %q\ngot  %q", i, j, want, out)
			}
		}
	}
}

func leaks(s string) bool {
	return strings.Contains(s, secretValue) || strings.Contains(s, awsKey) || strings.Contains(s, "ab c") || strings.Contains(s, "tok-abcdef")
}

// TestRecordingIsRedactedAtEverySplit streams a secret cut at every place: neither a delta line nor anything else of the file holds it, and
// the pieces are still those of the message.
func TestRecordingIsRedactedAtEverySplit(t *testing.T) {
	text := "The password is " + secretValue + "."
	for cut := 1; cut < len(text); cut++ {
		rec := streamed(text, cut)
		data, err := rec.Bytes(recording.Lines, recording.WriteOptions{Redactor: redactor(t)})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("hunter2")) {
			t.Fatalf("cut at %d: the file holds the secret:\n%s", cut, data)
		}
		back, err := recording.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if rep := recording.Verify(back); !rep.OK() {
			t.Fatalf("cut at %d: %+v", cut, rep)
		}
		reply := back.Root().Events[2].Body.(loop.ModelReplied)
		if reply.Blocks[0].Text != "The password is {{secret:DB_PASSWORD}}." || string(reply.Blocks[1].Raw) != `{"sig":"hunter-two"}` {
			t.Fatalf("cut at %d: %+v", cut, reply.Blocks)
		}
		if pieces, err := recording.DecodeTape(back.Root().Tapes["t"]); err != nil || len(pieces) != 2 {
			t.Fatalf("cut at %d: the tape has %d pieces, %v", cut, len(pieces), err)
		}
	}
}

// streamed is a run whose answer came in two pieces.
func streamed(text string, cut int) *recording.Recording {
	at := loop.Micros(start.UnixMicro())
	events := []loop.Event{
		{Seq: 1, Time: at, Body: loop.RunStarted{Run: "r", Config: &loop.Config{Agent: "a", Model: "m/m"}, Input: []loop.Block{{Kind: loop.BlockText, Text: "hi"}}}},
		{Seq: 2, Time: at, Body: loop.ModelCallStarted{Call: 1}},
		{Seq: 3, Time: at + 5000, Body: loop.ModelReplied{Call: 1, Finish: loop.FinishStop, Tape: "t", Blocks: []loop.Block{{Kind: loop.BlockText, Text: text},
			{Kind: loop.BlockOpaque, Wire: "openai", Raw: []byte(`{"sig":"hunter-two"}`)}}}},
		{Seq: 4, Time: at + 5000, Body: loop.RunStopped{Stop: loop.StopCompleted, Answer: 3}},
	}
	tape := recording.EncodeTape([]recording.TapePiece{{At: 1000, Channel: recording.Text, Bytes: cut}, {At: 2000, Channel: recording.Text, Bytes: len(text) - cut}})
	return &recording.Recording{Header: recording.Header{Run: "r", Started: at}, Runs: []recording.Run{{Events: events, Tapes: map[string][]byte{"t": tape}}}}
}

// TestArtifactsAreRedacted redacts what events only name, and names it anew.
func TestArtifactsAreRedacted(t *testing.T) {
	rec := made(t, func(w *world) *recording.Recording {
		long := tool.Func("fetch", "Fetch.", func(_ context.Context, q query) (string, error) {
			return strings.Repeat("some words ", 3000) + secretValue + strings.Repeat(" more", 200), nil
		}, tool.Read())
		a := &drive.Agent{Name: "a", Model: w.model("- {calls: [{fetch: {q: x}}]}\n- {text: ok}\n"), Tools: []tool.Tool{long}}
		return w.record(w.run(a, "go").ID)
	})
	data, err := rec.Bytes(recording.Lines, recording.WriteOptions{Redactor: redactor(t)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := recording.Read(bytes.NewReader(data))
	if err != nil || bytes.Contains(data, []byte("hunter2")) {
		t.Fatalf("err %v, or the file holds the secret", err)
	}
	for _, ev := range back.Root().Events {
		if b, ok := ev.Body.(loop.ToolReturned); ok {
			if a, ok := back.Artifacts[b.Ref]; !ok || !bytes.Contains(a.Data, []byte("{{secret:DB_PASSWORD}}")) {
				t.Errorf("the result names %s, which is %t there", b.Ref, ok)
			}
			return
		}
	}
	t.Error("no result")
}

func FuzzRedactStream(f *testing.F) {
	f.Add("my "+secretValue+" and tok-abcdefghi", uint16(5), uint16(9))
	f.Add("x -----BEGIN A PRIVATE KEY-----\nq\n-----END A PRIVATE KEY----- "+awsKey+"z", uint16(20), uint16(30))
	f.Fuzz(func(t *testing.T, text string, i, j uint16) {
		a := min(int(i), len(text))
		b := min(a+int(j), len(text))
		s := redactor(t).Stream()
		got := s.Write(text[:a]) + s.Write(text[a:b]) + s.Write(text[b:]) + s.Flush()
		if want := redactor(t).Redact(text); got != want {
			t.Errorf("%q cut at %d and %d: want %q, got %q", text, a, b, want, got)
		}
		for _, v := range []string{secretValue, "tok-abcdef"} {
			if strings.Contains(got, v) {
				t.Errorf("%q: %q leaks", text, v)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, rec := range []*recording.Recording{streamed("hello you", 4), big(f, 40)} {
		data, err := rec.Bytes(recording.Lines, recording.WriteOptions{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		if data, err = rec.Bytes(recording.Zipped, recording.WriteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := recording.ReadAt(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		recording.Verify(rec)
		for _, run := range rec.Runs {
			x := recording.Explain(run.Events)
			_ = x.Text()
			recording.Check(run.Events)
			recording.Diff(run.Events, run.Events)
		}
		again, err := rec.Bytes(recording.Lines, recording.WriteOptions{})
		if err != nil || rec.Broken != nil || len(rec.Missing) > 0 {
			return
		}
		back, err := recording.Read(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, again)
		}
		if a, b := fmt.Sprint(len(rec.Runs), len(rec.Root().Events)), fmt.Sprint(len(back.Runs), len(back.Root().Events)); a != b {
			t.Errorf("runs and events: %s, written and read again %s", a, b)
		}
	})
}

func FuzzDecodeTape(f *testing.F) {
	f.Add(recording.EncodeTape([]recording.TapePiece{{At: 5, Channel: recording.Text, Block: 1, Bytes: 3}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		pieces, err := recording.DecodeTape(data)
		if err != nil {
			return
		}
		again, err := recording.DecodeTape(recording.EncodeTape(pieces))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(pieces) {
			t.Errorf("%v, encoded and decoded %v, %v", pieces, again, err)
		}
	})
}
