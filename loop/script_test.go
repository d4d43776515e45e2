package loop

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts of testdata print into them; commit that only when you can say why it changed")

// TestScripts plays the scripts of testdata. A script is a sequence of blocks: lines with what happens, a line "----", and what the
// loop makes of it: the events that it owed itself, refusals ("! …"), the state and what is owed then. The notation is in script.line.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.script")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playScript(t, string(raw))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(raw), got); diff != "" {
				t.Errorf("- want, + got (go test ./loop -run TestScripts -rewrite writes what it got):\n%s", diff)
			}
		})
	}
}

// playScript returns the script with what it printed.
func playScript(t *testing.T, text string) string {
	var out strings.Builder
	s := &script{t: t}
	var pending []string
	skipping := false
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		switch {
		case skipping:
			if line == "" {
				skipping = false
				out.WriteString("\n")
			}
		case line == "----":
			out.WriteString("----\n")
			for _, p := range pending {
				s.line(p)
			}
			s.show()
			out.WriteString(s.out.String())
			s.out.Reset()
			pending, skipping = nil, true
		default:
			out.WriteString(line + "\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				pending = append(pending, line)
			}
		}
	}
	return out.String()
}

// script is a run in the hands of a script.
type script struct {
	t     *testing.T
	state State
	talk  *Transcript
	now   Micros
	out   strings.Builder
	log   []Event
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// apply folds an event now and checks that a refused one changes nothing.
func (s *script) apply(b Body, print bool) {
	ev := Event{Seq: s.state.Seq + 1, Time: s.now, Body: b}
	before := mustJSON(s.state)
	next, err := Next(s.state, ev)
	if after := mustJSON(s.state); after != before {
		s.t.Errorf("Next changed its argument:\n%s\n%s", before, after)
	}
	if err != nil {
		if mustJSON(next) != before {
			s.t.Errorf("a refused event changed the state: %v", err)
		}
		var e *EventError
		if !errors.As(err, &e) || e.State != s.state.String() {
			s.t.Errorf("the error does not print the state: %v", err)
		}
		s.printf("! %v %s: %s", e.Err, e.Kind, e.Why)
		return
	}
	if print {
		s.printf("%s %s", b.Kind(), mustJSON(b))
	}
	s.state = next
	if s.talk == nil {
		s.talk = NewTranscript(nil)
	}
	s.talk.Apply(ev, next)
	s.log = append(s.log, ev)
}

func mustJSON(v any) string {
	b, err := marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// words of a line: quoted strings, name{json}, key=value and plain words.
func words(line string) (list []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		end := 0
		for end < len(line) && line[end] != ' ' && line[end] != '{' && line[end] != '"' {
			end++
		}
		if end < len(line) && line[end] != ' ' {
			dec := json.NewDecoder(strings.NewReader(line[end:]))
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				panic(fmt.Sprintf("%s: %v", line, err))
			}
			end += int(dec.InputOffset())
		}
		list = append(list, line[:end])
		line = line[end:]
	}
	return list
}

func quoted(w string) (string, bool) {
	var s string
	return s, strings.HasPrefix(w, `"`) && json.Unmarshal([]byte(w), &s) == nil
}

func (s *script) fatal(line string, err any) { s.t.Fatalf("script: %s: %v", line, err) }

// line does what one line says:
//
//	start {config}                   the run starts; agent, model and output_cap are filled in
//	after 5s                         time passes
//	go                               the loop records what it owes itself
//	model [9]                        the model call is admitted (with an input of exactly 9 tokens) and starts
//	side 9, lost                     a model is asked for a summary or a verdict (9 tokens); that attempt died with its process
//	reply "text" tool{args} finish=length usage=in/out/read/write|none
//	no-reply transient lost cause=crash after=2s usage=… "why"
//	allow|ask|finish c1.1 [done]     the call was validated and decided
//	refuse c1.1 why "text"
//	begin c1.1                       an attempt starts
//	ok c1.1 "result" fact=value
//	fail c1.1 class cause=crash after=2s notrun "why"
//	child c1.1 k1 {grant}            a child starts
//	Kind {body}                      any event
//	talk, grant c1.1, left           prints the transcript, what a child would get, the time left
func (s *script) line(line string) {
	w := words(line)
	opts := map[string]string{}
	var args []string
	text := ""
	for _, x := range w[1:] {
		if q, ok := quoted(x); ok {
			text = q
		} else if k, v, ok := strings.Cut(x, "="); ok && !strings.Contains(k, "{") {
			opts[k] = v
		} else {
			args = append(args, x)
		}
	}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	has := func(word string) bool { return slices.Contains(args, word) }
	switch w[0] {
	case "start":
		s.start(line, arg(0))
	case "after":
		s.now += duration(arg(0))
	case "go":
		s.records()
	case "model":
		n := int64(-1)
		if arg(0) != "" {
			n, _ = strconv.ParseInt(arg(0), 10, 64)
		}
		s.apply(s.state.Admit(s.now, n), true)
	case "reply":
		s.reply(w[1:])
	case "no-reply":
		s.apply(ModelFailed{Call: s.state.Model.Call, Attempt: s.state.Model.Attempt, Class: Class(arg(0)), Lost: has("lost"), Gone: has("gone"),
			Cause: opts["cause"], RetryAfter: duration(opts["after"]), Usage: usageOf(opts["usage"], true), Message: text}, false)
	case "allow", "ask", "finish":
		s.authorize(w[0], arg(0), arg(1), text)
	case "refuse":
		s.apply(CallRefused{Call: arg(0), Why: arg(1), Message: text}, false)
	case "begin":
		c, _ := s.state.Call(arg(0))
		s.apply(ToolStarted{Call: arg(0), Attempt: c.Attempt + 1}, false)
	case "ok":
		c, _ := s.state.Call(arg(0))
		b := ToolReturned{Call: arg(0), Attempt: c.Attempt, Text: text}
		for k, v := range opts {
			b.Facts = map[string]Value{k: Value(v)}
		}
		s.apply(b, false)
	case "fail":
		c, _ := s.state.Call(arg(0))
		s.apply(ToolFailed{Call: arg(0), Attempt: c.Attempt, Class: Class(arg(1)), Cause: opts["cause"], RetryAfter: duration(opts["after"]), NotRun: has("notrun"), Message: text}, false)
	case "child":
		var grant Limits
		s.decode(line, arg(2), &grant)
		s.apply(ChildStarted{Call: arg(0), Run: arg(1), Grant: grant}, false)
	case "side":
		n, _ := strconv.ParseInt(arg(0), 10, 64)
		if started, why := s.state.AdmitSide(n); why == "" {
			s.apply(started, true)
		} else {
			s.printf("not asked: %s", why)
		}
	case "lost":
		s.apply(s.state.SideLost(), true)
	case "talk":
		s.printTalk()
	case "grant":
		s.printf("grant %s", mustJSON(s.state.GrantFor(s.state.Turn.find(arg(0)), s.now)))
	case "left":
		left, limit, ok := s.state.TimeLeft(s.now)
		s.printf("left %v of %s (%t)", time.Duration(left)*time.Microsecond, limit, ok)
	default:
		s.event(line, w[0], arg(0))
	}
}

func (s *script) decode(line, doc string, v any) {
	if doc == "" {
		return
	}
	if err := json.Unmarshal([]byte(doc), v); err != nil {
		s.fatal(line, err)
	}
}

func (s *script) start(line, doc string) {
	cfg := &Config{Agent: "a", Model: "w/m", OutputCap: 10, Nudges: 1, Repairs: 3}
	s.decode(line, doc, cfg)
	*s = script{t: s.t}
	s.apply(RunStarted{Run: "r", Config: cfg, Input: []Block{{Kind: BlockText, Text: "Do it."}}}, false)
}

func (s *script) event(line, kind, doc string) {
	dec, ok := bodies[kind]
	if !ok {
		s.apply(Unknown{Name: kind, Optional: strings.HasPrefix(kind, "Optional"), Raw: Value(`{}`)}, false)
		return
	}
	if doc == "" {
		doc = "{}"
	}
	b, err := dec([]byte(doc))
	if err != nil {
		s.fatal(line, err)
	}
	s.apply(b, false)
}

// records folds what the loop owes itself, until something else is owed.
func (s *script) records() {
	for range 100 {
		cmds := Ready(s.state, s.now)
		if len(cmds) == 0 || cmds[0].Kind != Record {
			return
		}
		s.apply(cmds[0].Body, true)
	}
	s.t.Fatal("records without end")
}

func (s *script) reply(w []string) {
	b := ModelReplied{Call: s.state.Model.Call, Finish: FinishStop, Usage: &Usage{Input: 10, Output: 1}}
	finish := ""
	for _, x := range w {
		if q, ok := quoted(x); ok {
			b.Blocks = append(b.Blocks, Block{Kind: BlockText, Text: q})
		} else if f, ok := strings.CutPrefix(x, "finish="); ok {
			finish = f
		} else if u, ok := strings.CutPrefix(x, "usage="); ok {
			b.Usage = usageOf(u, false)
		} else {
			name, args, _ := strings.Cut(x, "{")
			b.Blocks = append(b.Blocks, Block{Kind: BlockCall, ID: "w" + strconv.Itoa(len(b.Blocks)), Name: name, Args: "{" + args})
			b.Finish = FinishCalls
		}
	}
	if finish != "" {
		b.Finish = Finish(finish)
	}
	s.apply(b, false)
}

func usageOf(text string, none bool) *Usage {
	if text == "" && none || text == "none" {
		return nil
	}
	var u Usage
	for i, f := range strings.Split(text, "/") {
		n, _ := strconv.ParseInt(f, 10, 64)
		*[]*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite}[i] = n
	}
	return &u
}

func (s *script) authorize(verb, call, status, reason string) {
	block, _ := s.talk.CallBlock(call)
	args := Fingerprint([]byte(block.Args))[:8]
	b := CallAuthorized{Call: call, Verdict: Allow, Args: args, Reason: reason}
	switch verb {
	case "ask":
		b.Verdict, b.Digest = Ask, "d-"+args
	case "finish":
		b.Finish = status
	}
	s.apply(b, false)
}
