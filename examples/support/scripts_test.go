package support

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/tool"
)

func TestScript(t *testing.T) {
	for input, want := range map[string]string{
		"Answer case 4812":                         "support-4812",
		"Please answer 4821, not in 2 minutes":     "support-4821",
		"Responde al caso nº4818.":                 "support-4818",
		"Case 4812 is like 4821":                   "support-4812",
		"The order is A-20931; the case is 04812?": "",
		"Answer case 4780":                         "",
		"Hello":                                    "",
	} {
		s, name, err := Script(input)
		if name != want || (err == nil) != (want != "") || (s == nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", input, name, err, want)
		}
	}
	_, _, err := Script("Answer case 4780")
	for _, want := range []string{"case 4780", "4812  a return within the time", "4821  ", "real model"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// walk plays a script against the real tools in the way a run would: arguments against the schema, facts, the key of each
// call. It ends with the finish that holds, or with the text after the limit.
type walk struct {
	db      *DB
	reject  bool
	trace   []string // tool, or tool!class
	facts   map[string]loop.Fact
	seen    string // results and input so far
	ended   string // status of the finish, or "text"
	answer  string
	refused []string // what the contract missed of a finish that did not hold
}

func (w *walk) play(t *testing.T, s *scripted.Script) {
	t.Helper()
	for i, item := range s.Items {
		if item.When != nil {
			w.ended, w.answer = "text", item.Text
			return
		}
		for n, c := range item.Calls {
			if c.Name == loop.FinishTool {
				w.finish(t, c)
			} else {
				w.call(t, c, fmt.Sprintf("call-%d-%d", i, n))
			}
			if w.ended != "" {
				if i < len(s.Items)-2 {
					t.Errorf("item %d of %d ended the walk", i+1, len(s.Items))
				}
				return
			}
		}
	}
	t.Error("the script ended without an end")
}

func (w *walk) call(t *testing.T, c scripted.Call, key string) {
	t.Helper()
	if c.Name == "send_reply" && w.reject {
		w.trace = append(w.trace, c.Name+"!rejected")
		return
	}
	for _, tl := range Tools(w.db) {
		def := tl.Def()
		if def.Name != c.Name {
			continue
		}
		var args map[string]any
		if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
			t.Fatal(err)
		}
		for _, g := range def.Grounded {
			if v, _ := args[g].(string); !strings.Contains(w.seen, v) {
				t.Errorf("%s: %s %q occurs in no earlier result; the draft on record is %s", c.Name, g, v, w.facts["draft"].Value)
			}
		}
		res, err := tl.Run(t.Context(), tool.Call{Run: "r1", ID: key, Name: c.Name, Key: key, Args: json.RawMessage(c.Args)})
		for name, v := range res.Facts {
			w.facts[name] = loop.Fact{Value: v}
		}
		w.seen += res.Text
		w.trace = append(w.trace, c.Name+class(t, err))
		return
	}
	t.Fatalf("the script calls %q, which the agent does not have", c.Name)
}

func class(t *testing.T, err error) string {
	t.Helper()
	var e *tool.Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e):
		t.Fatal(err)
	case e.Class == loop.ClassInvalid:
		t.Error(e.Message)
	}
	return "!" + string(e.Class)
}

func (w *walk) finish(t *testing.T, c scripted.Call) {
	t.Helper()
	var in struct{ Status, Response string }
	if err := json.Unmarshal([]byte(c.Args), &in); err != nil {
		t.Fatal(err)
	}
	if in.Status == loop.FinishDone {
		contract := Contract(w.db)
		missing, undecided, err := contract.Check(t.Context(), drive.Evidence{Facts: w.facts})
		if err != nil || undecided {
			t.Fatal(err)
		}
		if len(missing) > 0 {
			w.refused = append(w.refused, missing...)
			return
		}
	}
	w.ended, w.answer = in.Status, in.Response
}

func TestWalkScripts(t *testing.T) {
	normal := []string{"read_case", "find_policy", "draft_reply", "send_reply"}
	rejected := []string{"read_case", "find_policy", "draft_reply", "send_reply!rejected"}
	for _, c := range []struct {
		input   string
		reject  bool
		trace   []string
		ended   string
		refused []string
		facts   map[string]string // of the draft: case, policy
	}{
		{"4792", false, normal, "done", nil, map[string]string{"case": "4792", "policy": "RET-2"}},
		{"4805", false, normal, "done", nil, map[string]string{"case": "4805", "policy": "PRV-2"}},
		{"4806", false, []string{"read_case", "search_cases", "find_policy", "draft_reply", "send_reply"}, "done", nil,
			map[string]string{"case": "4806", "policy": "LAT-2"}},
		{"4809", false, normal, "done", nil, map[string]string{"case": "4809", "policy": "DBL-2"}},
		{"4812", false, normal, "done", nil, map[string]string{"case": "4812", "policy": "RET-3"}},
		{"4821", false, []string{"read_case", "read_case", "read_case", "find_policy", "draft_reply", "send_reply"}, "done", nil,
			map[string]string{"case": "4821", "policy": "RPT-1"}},
		{"4792", true, rejected, "declined", []string{"receipt"}, map[string]string{"case": "4792", "policy": "RET-2"}},
		{"4805", true, rejected, "declined", []string{"receipt"}, map[string]string{"case": "4805", "policy": "PRV-2"}},
		{"4809", true, rejected, "declined", []string{"receipt"}, map[string]string{"case": "4809", "policy": "DBL-2"}},
		{"4812", true, rejected, "declined", []string{"receipt"}, map[string]string{"case": "4812", "policy": "RET-3"}},
		{"4815", false, []string{"read_case", "search_cases", "read_case", "search_cases", "find_policy", "find_policy", "search_cases",
			"find_policy", "search_cases"}, "text", nil, nil},
		{"4816", false, []string{"read_case", "read_case!error", "search_cases", "find_policy"}, "blocked", nil, nil},
		{"4818", false, []string{"read_case", "find_policy", "find_policy", "search_cases"}, "blocked", nil, nil},
	} {
		t.Run(fmt.Sprintf("%s reject=%v", c.input, c.reject), func(t *testing.T) {
			s, _, err := Script(c.input)
			if err != nil {
				t.Fatal(err)
			}
			w := &walk{db: open(t), reject: c.reject, facts: map[string]loop.Fact{}, seen: c.input}
			w.play(t, s)
			var facts map[string]string
			if f, ok := w.facts["draft"]; ok {
				var d Draft
				if err := json.Unmarshal(f.Value, &d); err != nil {
					t.Fatal(err)
				}
				facts = map[string]string{"case": fmt.Sprint(d.CaseID), "policy": d.PolicyRef}
			}
			got := []any{w.trace, w.ended, w.refused, facts}
			want := []any{c.trace, c.ended, c.refused, c.facts}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if len(w.answer) < 40 {
				t.Errorf("the answer is %q", w.answer)
			}
			sent := count(t, w.db, `SELECT count(*) FROM sent`)
			if want := int64(0); c.ended == "done" {
				if want = 1; sent != want {
					t.Errorf("%d replies sent, want %d", sent, want)
				}
			} else if sent != want {
				t.Errorf("%d replies sent, want %d", sent, want)
			}
		})
	}
}

// The limit's script asks for one round more than the agent may use, and never twice for the same.
func TestLimitScriptOutrunsTheRounds(t *testing.T) {
	s, _, err := Script("4815")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for _, item := range s.Items[:len(s.Items)-1] {
		calls[item.Calls[0].Name+item.Calls[0].Args] = true
	}
	if want := Agent(nil, nil).Limits.Rounds + 1; len(calls) != want {
		t.Errorf("%d different calls, want %d", len(calls), want)
	}
}

func TestScriptsAreAbout(t *testing.T) {
	for _, s := range Scripts() {
		if len(s.About) < 20 || strings.Contains(s.About, "about:") {
			t.Errorf("%d: about %q", s.Case, s.About)
		}
	}
}

// The checker answers with what Run returned, facts included.
func TestCheckerOfSendReply(t *testing.T) {
	db := open(t)
	in := drafted(t, db)
	send := Tools(db)[4]
	args, _ := json.Marshal(in)
	call := tool.Call{Run: "r1", ID: "c1", Name: "send_reply", Key: "k9", Args: args}
	checker := send.(tool.Checker)
	if happened, _, err := checker.Check(t.Context(), call); happened != loop.HappenedNo || err != nil {
		t.Errorf("before: %s, %v", happened, err)
	}
	ran, err := send.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	happened, res, err := checker.Check(t.Context(), call)
	if happened != loop.HappenedYes || err != nil || !cmp.Equal(res, ran) || len(res.Facts["receipt"]) == 0 {
		t.Errorf("after: %s, %+v, %v; Run gave %+v", happened, res, err, ran)
	}
	db.Close()
	if happened, _, err := checker.Check(t.Context(), call); happened != loop.HappenedUnknown || err == nil {
		t.Errorf("without a database: %s, %v", happened, err)
	}
}
