package scripted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

func usage(in, out int64) *loop.Usage { return &loop.Usage{Input: in, Output: out} }

func TestParse(t *testing.T) {
	three := 3
	got, err := Parse([]byte(`
- thinking: The history first.
  text: Looking it up.
  calls:
    - {search: {q: "bench", n: 1.50, big: 12345678901234567890123, e: 1e5, a: [true, null, 0x1F]}}
    - {call: pay, args: {amount: 5}, id: c2}
  usage: {input: 90, cache_read: 7, output: 10, reasoning: 3}
  finish: length
- text: Done.
- fail: {status: 529, retry_after: 2s}
- fail: {timeout: true}
- {fail: {cut_after: 3}, text: Half}
- fail: {error_event: overloaded}
- fail: {no_end: true}
- malformed: call
- raw_arguments: {pay: "{\"amount\": 5"}
- {text: x, usage: none}
- when: {tools: none, contains: a, system_contains: [b, c]}
  text: So far I know this.
- {text: ""}
- repeat: {calls: [{search: {q: "x"}}]}
- {when: {tools: none}, text: end}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := usage(100, 10)
	want := &Script{Line: 22, Items: []Item{
		{
			Line: 2, Thinking: "The history first.", Text: "Looking it up.", Finish: loop.FinishLength,
			Calls: []Call{
				{Name: "search", Args: `{"q":"bench","n":1.50,"big":12345678901234567890123,"e":1e5,"a":[true,null,31]}`},
				{Name: "pay", Args: `{"amount":5}`, ID: "c2"},
			},
			Usage: &loop.Usage{Input: 90, CacheRead: 7, Output: 10, Reasoning: 3},
		},
		{Line: 9, Text: "Done.", Usage: d},
		{Line: 10, Fail: &Fail{Status: 529, RetryAfter: 2 * time.Second}, Usage: d},
		{Line: 11, Fail: &Fail{Timeout: true}, Usage: d},
		{Line: 12, Fail: &Fail{CutAfter: &three}, Text: "Half", Usage: d},
		{Line: 13, Fail: &Fail{ErrorEvent: "overloaded"}, Usage: d},
		{Line: 14, Fail: &Fail{NoEnd: true}, Usage: d},
		{Line: 15, Malformed: true, Usage: d},
		{Line: 16, Calls: []Call{{Name: "pay", Args: `{"amount": 5`, Raw: true}}, Usage: d},
		{Line: 17, Text: "x"},
		{Line: 18, Text: "So far I know this.", Usage: d, When: &When{
			Tools: "none", Contains: []string{"a"}, SystemContains: []string{"b", "c"},
		}},
		{Line: 20, Usage: d},
		{Line: 21, Repeat: true, Calls: []Call{{Name: "search", Args: `{"q":"x"}`}}, Usage: d},
		{Line: 22, Text: "end", Usage: d, When: &When{Tools: "none"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown key":      {"- text: a\n  txt: b", `2:3: [0].txt: unknown key "txt"; did you mean text?`},
		"empty":            {"", "1:1: the file is empty"},
		"no items":         {"[]", "1:1: the script is empty; write at least one response: - text: Hello."},
		"not a list":       {"text: a", "1:1: want a list, not a map"},
		"says nothing":     {"- {usage: none}", "1:3: [0]: says nothing; write text, thinking, calls, raw_arguments, malformed, fail or repeat; text: \"\" is an empty answer"},
		"after repeat":     {"- repeat: {text: a}\n- text: b", "2:3: [1]: is never reached: the item before it repeats for ever; after repeat only items with when can be taken"},
		"beside repeat":    {"- repeat: {text: a}\n  text: b", "2:3: [0].text: stands beside repeat; move it into repeat: {…}"},
		"two failures":     {"- fail: {timeout: true, no_end: true}", "1:9: [0].fail: want exactly one way to fail; use status, timeout, cut_after, error_event or no_end"},
		"ok status":        {"- fail: {status: 200}", "1:18: [0].fail.status: 200 is not a status that fails a request; use 400 to 599, such as 429 or 529"},
		"args as text":     {"- calls: [{pay: five}]", `1:17: [0].calls[0].pay: arguments are a map, not text; for arguments that are not JSON use raw_arguments: {tool: "…"}`},
		"two in one call":  {"- calls: [{pay: {}, look: {}}]", "1:11: [0].calls[0]: is not one call; write {tool: {arguments}} or {call: tool, args: {arguments}, id: x}"},
		"finish reason":    {"- {text: a, finish: calls}", `1:21: [0].finish: "calls" is not a finish reason of a script; use stop, length or filter`},
		"negative usage":   {"- {text: a, usage: {input: -1}}", "1:28: [0].usage.input: -1 is negative; 0 means none at all; leave the key out where there is no limit"},
		"twice":            {"- text: a\n  text: b", `2:3: mapping key "text" already defined at [1:3]`},
		"two documents":    {"- text: a\n---\n- text: b", "3:1: a second document begins here; keep one document, without ---"},
		"alias from air":   {"- text: *a", "1:9: [0].text: the alias *a has no anchor before it"},
		"when of any kind": {"- {when: {}, text: a}", "1:10: [0].when: matches everything; leave it out, or write when: {tools: none}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestSeveralErrorsAtOnce(t *testing.T) {
	_, err := ParseFile("s.yaml", []byte("- txt: a\n- {text: b, finish: now}\n"))
	want := `s.yaml:1:3: [0].txt: unknown key "txt"; did you mean text?
s.yaml:1:3: [0]: says nothing; write text, thinking, calls, raw_arguments, malformed, fail or repeat; text: "" is an empty answer
s.yaml:2:21: [1].finish: "now" is not a finish reason of a script; use stop, length or filter`
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Fatal(diff)
	}
}

func TestAliasesAndMerges(t *testing.T) {
	got, err := Parse([]byte(`
- &a {text: hi, usage: &u {input: 1, output: 2}}
- *a
- {text: there, usage: *u}
- {<<: *a, text: over}
`))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, it := range got.Items {
		texts = append(texts, it.Text)
		if diff := cmp.Diff(usage(1, 2), it.Usage); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]string{"hi", "hi", "there", "over"}, texts); diff != "" {
		t.Fatal(diff)
	}
}

// A script inside a larger document, decoded by the YAML library, has the lines of that document.
func TestEmbedded(t *testing.T) {
	var doc struct {
		Name   string  `yaml:"name"`
		Script *Script `yaml:"script"`
	}
	in := "name: x\nscript:\n  - text: a\n  - calls: [{look: {}}]\n"
	if err := yaml.UnmarshalWithOptions([]byte(in), &doc, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	want := &Script{Line: 4, Items: []Item{
		{Line: 3, Text: "a", Usage: usage(100, 10)},
		{Line: 4, Calls: []Call{{Name: "look", Args: "{}"}}, Usage: usage(100, 10)},
	}}
	if diff := cmp.Diff(want, doc.Script); diff != "" {
		t.Fatal(diff)
	}
	err := yaml.Unmarshal([]byte("name: x\nscript:\n  - text: a\n    oops: 1\n"), &doc)
	if err == nil || !strings.Contains(err.Error(), `4:5: [0].oops: unknown key "oops"`) {
		t.Fatalf("got %v", err)
	}
}

// Each script of the shared scenarios is a script.
func TestSharedScenarios(t *testing.T) {
	dir := os.Getenv("RONDA_SCENARIOS")
	if dir == "" {
		dir = "../../../shared/scenarios"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if len(files) == 0 {
		t.Skip("no scenarios found; set RONDA_SCENARIOS to their folder")
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := yamldoc.Parse(f, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			p := &yamldoc.Problems{File: f}
			s := Read(p, d.Get("script"))
			if err := p.Err(); err != nil {
				t.Error(err)
			}
			if len(s.Items) == 0 {
				t.Errorf("%s:%d: no items", f, d.Line)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"- text: a", "- {calls: [{a: {b: 1.0}}]}", "- fail: {status: 429, retry_after: 1s}", "- repeat: {text: a}",
		"- &a {text: hi}\n- *a\n- {<<: *a}", "- when: {tools: none}\n  text: |\n    a\n    b", "script: [{text: a}]",
		"- raw_arguments: {pay: \"{\"}", "- {text: !!str 5}", "- malformed: call", "? a\n: b", "- text: 'é", "a: &a [*a]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			if s != nil && len(err.Error()) == 0 {
				t.Fatal("an error without words")
			}
			return
		}
		for _, it := range s.Items {
			for _, c := range it.Calls {
				if !c.Raw && !validJSON(c.Args) {
					t.Fatalf("arguments are no JSON: %q", c.Args)
				}
			}
			_ = it.Blocks(func(int) string { return "" })
		}
	})
}
