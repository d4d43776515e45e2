package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ronda-go/ronda"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/recording"
	"github.com/ronda-go/ronda/tool"
)

type lookup struct {
	Q string `json:"q"`
}

// recorder is a program with one agent that looks the same thing up again and again, then answers.
func recorder(t *testing.T) func(args ...string) (code int, out, errs string) {
	t.Helper()
	call := "- {thinking: Once more., calls: [{look: {q: bench}}]}\n"
	s, err := scripted.Parse([]byte(strings.Repeat(call, 2) + "- {text: Nothing there.}\n"))
	if err != nil {
		t.Fatal(err)
	}
	agent := &ronda.Agent{Name: "looker", Model: scripted.New(s), Tools: []ronda.Tool{
		tool.Func("look", "Look.", func(context.Context, lookup) (string, error) { return "nothing", nil }, tool.Read())}}
	store := "sqlite://" + filepath.Join(t.TempDir(), "r.db")
	return func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := Program{Agents: []*ronda.Agent{agent}, In: strings.NewReader(""), Out: &out, Err: &errs}.Run(append([]string{"--store", store}, args...))
		return code, out.String(), errs.String()
	}
}

func TestRecordingCommands(t *testing.T) {
	run := recorder(t)
	file := filepath.Join(t.TempDir(), "a.ronda")
	want := func(parts string, args ...string) string {
		t.Helper()
		code, out, errs := run(args...)
		for part := range strings.SplitSeq(parts, "|") {
			if code != 0 || !strings.Contains(out+errs, part) {
				t.Fatalf("%v: code %d, want %q in\n%s%s", args, code, part, out, errs)
			}
		}
		return out
	}
	want("Nothing there.", "run", "looker", "Find the bench.", "-q")
	want("events of 1 runs", "export", "last", "-o", file)
	want("chain, fold and account hold", "verify", file)
	want("today's loop does the same", "replay", file, "--check")
	want("user  Find the bench.|call  look|think Once more.|says  Nothing there.|■     completed", "replay", file)
	want(`look {"q":"bench"} was called 2 times`, "explain", file)
	want("it would have stopped: limit (rounds) at round 1", "explain", "last", "--what-if", "rounds=1")
	want(`"cause"`, "explain", "last", "--json")
	want("no difference", "diff", "last", file)
	want("Nothing there.", "fork", "last", "--at", "7", "-q")
	want("= look", "diff", "last", file)
	other := recorder(t)
	code, out, errs := other("import", file)
	if code != 0 || !strings.HasPrefix(out, "run_") {
		t.Fatalf("import: %d %s %s", code, out, errs)
	}
	if code, out, errs = other("show", strings.TrimSpace(out)); code != 0 || !strings.Contains(out, "completed") {
		t.Fatalf("show: %d %s %s", code, out, errs)
	}
	want("A line of a .ronda.jsonl recording", "schema", "recording")
}

func TestRecordingCommandsSayWhatIsWrong(t *testing.T) {
	run := recorder(t)
	broken := filepath.Join(t.TempDir(), "b.ronda.jsonl")
	if code, _, errs := run("run", "looker", "x", "-q"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := run("export", "last", "-o", broken); code != 0 {
		t.Fatal(errs)
	}
	data, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, bytes.Replace(data, []byte("nothing"), []byte("nothinG"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"verify", broken}, ExitFailed, "the chain breaks at line"},
		{[]string{"import", broken}, ExitFailed, "the chain breaks at line"},
		{[]string{"explain", "last", "--what-if", "luck=3"}, ExitUsage, "there is no such limit"},
		{[]string{"explain", "nowhere.ronda"}, ExitUsage, "there is no such file"},
		{[]string{"fork", "last"}, ExitUsage, "--at is missing"},
		{[]string{"fork", "last", "--at", "999"}, ExitFailed, "the run has events 1 to"},
		{[]string{"export", "last", "-o", "x.txt"}, ExitUsage, ".ronda or .ronda.jsonl"},
		{[]string{"export", "last", "--capture", "some"}, ExitUsage, "full, no_deltas or metadata"},
	} {
		if code, _, errs := run(c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d, want %d and %q in %s", c.args, code, c.code, c.want, errs)
		}
	}
}

func TestKeysOfATerminal(t *testing.T) {
	got := strings.Join(parseKeys([]byte("\x1b[C\x1b[D q/é\r\x7f\x03\x1b")), " ")
	if got != "right left space q / é enter backspace ctrl-c escape" {
		t.Errorf("got %s", got)
	}
}

// TestFrameFits holds every line of the screen to the terminal, whatever texts hold.
func TestFrameFits(t *testing.T) {
	v := recording.View{Total: 100, Pos: 50, Blocks: []recording.Block{{Kind: "text", Text: strings.Repeat("word ", 100) + "\x1b[2J" + strings.Repeat("x", 300)}}}
	f := frame(v, nil, &recording.Recording{Runs: make([]recording.Run, 1)}, 40, 10)
	if strings.Contains(f, "\x1b[2J") {
		t.Error("a text clears the screen")
	}
	if n := strings.Count(f, "\r\n"); n != 9 {
		t.Errorf("%d line ends on a screen of 10 rows", n)
	}
	for line := range strings.SplitSeq(f, "\r\n") {
		plain := strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[7m", "", "\x1b[0m", "").Replace(line)
		if len([]rune(plain)) > 40 {
			t.Errorf("%d columns: %q", len([]rune(plain)), plain)
		}
	}
}
