package coach

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
)

// gym is the coach on a store and a database, as several processes would have it: each call works with a host and a model of its
// own. The session keeps the script of its first message, as the command does.
type gym struct {
	t     *testing.T
	store *memory.Store
	db    *DB
	first string // message of the session
	hook  func(drive.Point) error
	model func() model.Model // nil: the script's
	n     int                // runs begun
	asks  bool               // streams
}

func newGym(t *testing.T) *gym { return &gym{t: t, store: memory.New(), db: open(t)} }

func (g *gym) run() string { return fmt.Sprintf("run_%d", g.n) }

// host opens a new process.
func (g *gym) host() (*drive.Host, *drive.Agent) {
	g.t.Helper()
	var m model.Model
	if g.model != nil {
		m = g.model()
	} else {
		s, name, err := Script(g.first)
		if err != nil {
			g.t.Fatal(err)
		}
		m = scripted.New(s, scripted.Options{Name: name})
	}
	agent := Agent(m, g.db)
	h, err := drive.Open(drive.Options{Store: g.store, Hook: g.hook, Stream: g.asks})
	if err != nil {
		g.t.Fatal(err)
	}
	h.Register(agent)
	return h, agent
}

// say is a message: a new run of the session.
func (g *gym) say(text string) (*drive.Run, error) {
	g.t.Helper()
	session := ""
	if g.n > 0 {
		session = "run_1"
	} else {
		g.first = text
	}
	g.n++
	return g.begin(text, session)
}

func (g *gym) begin(text, session string) (*drive.Run, error) {
	h, agent := g.host()
	return h.Start(g.t.Context(), drive.Start{Agent: agent, Input: drive.Text(text), ID: g.run(), Session: session})
}

// decide answers the one pending approval of the last run and goes on, in another process.
func (g *gym) decide(decision string) (*drive.Run, error) {
	g.t.Helper()
	h, _ := g.host()
	run, err := h.Show(g.t.Context(), g.run())
	if err != nil {
		return nil, err
	}
	if len(run.Pending) != 1 {
		return run, fmt.Errorf("%d calls are pending: %+v", len(run.Pending), run.Pending)
	}
	if err := h.Decide(g.t.Context(), g.run(), run.Pending[0].Call, drive.Decision{Decision: decision, By: "luis"}); err != nil {
		return run, err
	}
	return h.Resume(g.t.Context(), g.run())
}

// outcome is what a person sees of a run in the end, and what the database has from all runs.
type outcome struct {
	Status       string
	Stop         loop.Reason
	Limit        string
	Facts        []string
	Goals        int64 // saved by calls
	Workouts     int64
	Measurements int64
}

func (g *gym) outcome(run *drive.Run) outcome {
	g.t.Helper()
	o := outcome{Status: run.Status, Stop: run.Stop, Limit: run.Limit,
		Goals:        count(g.t, g.db, `SELECT count(*) FROM goals WHERE key IS NOT NULL`),
		Workouts:     count(g.t, g.db, `SELECT count(*) FROM workouts WHERE key IS NOT NULL`),
		Measurements: count(g.t, g.db, `SELECT count(*) FROM measurements WHERE key IS NOT NULL`)}
	for _, name := range []string{factGoal, factWorkout, factMeasurement} {
		if _, ok := run.Facts[name]; ok {
			o.Facts = append(o.Facts, name)
		}
	}
	return o
}

var (
	answered = outcome{Status: loop.StatusStopped, Stop: loop.StopCompleted}
	waiting  = outcome{Status: loop.StatusWaiting}
	limited  = outcome{Status: loop.StatusStopped, Stop: loop.StopLimit, Limit: loop.LimitRounds}
	saved    = outcome{Status: loop.StatusStopped, Stop: loop.StopCompleted, Facts: []string{factGoal}, Goals: 1}
	logs     = outcome{Status: loop.StatusStopped, Stop: loop.StopCompleted, Facts: []string{factWorkout}, Workouts: 1}
	weighed  = outcome{Status: loop.StatusStopped, Stop: loop.StopCompleted, Facts: []string{factMeasurement}, Measurements: 1}
)

// talks is what becomes of each message of each script, in both languages, when the write that it asks for is approved.
var talks = map[string][]outcome{
	"progress": {answered, answered, saved},
	"limit":    {limited, saved},
	"goal":     {saved},
	"refuse":   {saved},
	"log":      {logs},
	"weigh":    {weighed},
	"advice":   {answered},
}

// scriptsDo calls f for each script with what is expected of its messages.
func scriptsDo(t *testing.T, f func(t *testing.T, info ScriptInfo, want []outcome)) {
	for _, info := range Scripts() {
		topic := strings.Split(info.Name, "-")[1]
		t.Run(info.Name, func(t *testing.T) { f(t, info, talks[topic]) })
	}
}

// converse has a whole conversation; each pending write gets the decision. It returns the last run.
func converse(t *testing.T, g *gym, info ScriptInfo, want []outcome, decision string) *drive.Run {
	t.Helper()
	if len(want) != len(info.Say) {
		t.Fatalf("%d messages, %d outcomes", len(info.Say), len(want))
	}
	var run *drive.Run
	for i, text := range info.Say {
		var err error
		if run, err = g.say(text); err != nil {
			t.Fatal(err)
		}
		end := want[i]
		if asks := end.Goals+end.Workouts > 0; asks {
			if diff := cmp.Diff(waiting, g.outcome(run)); diff != "" || run.Answer != "" {
				t.Fatalf("%q before the decision: %s\nanswer %q, %+v", text, diff, run.Answer, run.Stopped)
			}
			if run, err = g.decide(decision); err != nil {
				t.Fatal(err)
			}
			if decision == loop.Reject {
				end = answered
			}
		}
		if diff := cmp.Diff(end, g.outcome(run)); diff != "" || run.Answer == "" {
			t.Fatalf("%q: %s\nanswer %q, %+v", text, diff, run.Answer, run.Stopped)
		}
		checkWords(t, g, info, run)
	}
	return run
}

// checkWords looks at an answer: in the language of the script, no interim text of the conversation in it, and no number of
// kilograms or percent that is in no result and no message.
func checkWords(t *testing.T, g *gym, info ScriptInfo, run *drive.Run) {
	t.Helper()
	seen, interim := g.words()
	seen += strings.Join(info.Say, "\n")
	for _, text := range interim {
		if strings.Contains(run.Answer, text) {
			t.Errorf("interim text in the answer %q: %q", run.Answer, text)
		}
	}
	if spanish.MatchString(run.Answer) != (info.Language == "es") {
		t.Errorf("%s answers %q", info.Name, run.Answer)
	}
	seen = decimals.ReplaceAllString(seen, "$1.$2")
	for _, m := range amount.FindAllStringSubmatch(run.Answer, -1) {
		n := decimals.ReplaceAllString(m[1], "$1.$2")
		if !regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(n) + `([^0-9.]|\.[^0-9]|$)`).MatchString(seen) {
			t.Errorf("%q: %s is in no result", run.Answer, m[0])
		}
	}
}

var (
	amount   = regexp.MustCompile(`([0-9]+(?:[.,][0-9]+)?) (?:kg|%)`)
	decimals = regexp.MustCompile(`\b([0-9]+),([0-9])\b`) // 101,3 in Spanish
	spanish  = regexp.MustCompile(`\b(de|el|la)\b`)
)

// words are what the tools returned in the session so far with what goals it proposes, and the texts that came with calls.
func (g *gym) words() (results string, interim []string) {
	g.t.Helper()
	h, _ := g.host()
	for n := range g.n {
		for item, err := range h.Events(g.t.Context(), fmt.Sprintf("run_%d", n+1), 0, false) {
			if err != nil {
				g.t.Fatal(err)
			}
			switch b := item.Event.Body.(type) {
			case loop.ToolReturned:
				results += b.Text + "\n"
			case loop.ModelReplied:
				if b.Finish != loop.FinishCalls {
					continue
				}
				if text := loop.AnswerOf(b.Blocks); text != "" {
					interim = append(interim, text)
				}
				for _, bl := range b.Blocks {
					if bl.Kind == loop.BlockCall && bl.Name == "save_goal" { // a goal's weight is the coach's own proposal
						results += fmt.Sprintln(bl.Args)
					}
				}
			}
		}
	}
	return results, interim
}

// A conversation in each script, approved and refused: what a refused write would have done is never claimed.
func TestConversations(t *testing.T) {
	scriptsDo(t, func(t *testing.T, info ScriptInfo, want []outcome) {
		run := converse(t, newGym(t), info, want, loop.Approve)
		if last := want[len(want)-1]; len(last.Facts) > 0 && Claims(run.Answer) == "" {
			t.Errorf("the answer does not say what was saved: %q", run.Answer)
		}
		if last := want[len(want)-1]; last.Goals+last.Workouts == 0 {
			return
		}
		run = converse(t, newGym(t), info, want, loop.Reject)
		if claim := Claims(run.Answer); claim != "" {
			t.Errorf("after a refusal the answer claims: %q", claim)
		}
	})
}

// The closing call gets no tools and explains itself, and "yes, go on" has all rounds again, with the whole conversation.
func TestGoOnAfterTheLimit(t *testing.T) {
	for _, say := range [][2]string{{"Set a squat goal for me that fits my whole year.", "Yes, go on."}, {"Ponme un objetivo de sentadilla que encaje con todo mi año.", "Sí, sigue."}} {
		g := newGym(t)
		before, err := g.say(say[0])
		if err != nil {
			t.Fatal(err)
		}
		if before.Counts.Rounds != 6 || before.Counts.ModelCalls != 8 || before.Counts.ToolCalls != 6 || Claims(before.Answer) != "" {
			t.Errorf("%+v; %q", before.Counts, before.Answer)
		}
		after, err := g.say(say[1])
		if err != nil {
			t.Fatal(err)
		}
		if after.Session != before.Session || after.Counts.Rounds != 1 || len(after.Pending) != 1 || after.Pending[0].Tool != "save_goal" {
			t.Errorf("%+v, pending %+v", after.Counts, after.Pending)
		}
	}
}

// Message after message in one session, with every call in a new process: the transcript is one.
func TestOneSession(t *testing.T) {
	g := newGym(t)
	info := Scripts()[0]
	run := converse(t, g, info, talks["progress"], loop.Approve)
	h, _ := g.host()
	var said []string
	for n := range g.n {
		r, err := h.Show(t.Context(), fmt.Sprintf("run_%d", n+1))
		if err != nil {
			t.Fatal(err)
		}
		if r.Session != run.Session {
			t.Errorf("run %d is of session %s, want %s", n+1, r.Session, run.Session)
		}
		said = append(said, r.Answer)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(said)))) != 3 {
		t.Errorf("answers %q", said)
	}
}

// The same conversation again on the same database: what it saves takes the place of what it saved before.
func TestAgainOnTheSameDatabase(t *testing.T) {
	g := newGym(t)
	info, err := scriptInfo("goal", "en")
	if err != nil {
		t.Fatal(err)
	}
	converse(t, g, info, talks["goal"], loop.Approve)
	g.store, g.n = memory.New(), 0
	if _, err := g.say(info.Say[0]); err != nil {
		t.Fatal(err)
	}
	run, err := g.decide(loop.Approve)
	if err != nil || run.Stop != loop.StopCompleted || count(t, g.db, `SELECT count(*) FROM goals WHERE status = 'open' AND exercise = 'bench_press'`) != 1 {
		t.Errorf("%+v, %v", run, err)
	}
}

// Killed at each point of the work, the next process comes to the same end, and what was written was written once.
func TestKilledAnywhere(t *testing.T) {
	for _, input := range []string{
		"Log today's workout: bench press 5, 5 and 6 reps at 82.5, 82.5 and 85 kg, then barbell rows 3 sets of 8 at 70 kg.",
		"Guarda un objetivo: press de banca 105 kg para el 31 de marzo.",
		"Write down my weight: 81.6 kg this morning.",
	} {
		_, name, err := Script(input)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			want := talks[strings.Split(name, "-")[1]][0]
			for n := 0; ; n++ {
				g := newGym(t)
				died := killedAt(t, g, input, n)
				run := goOn(t, g, input)
				if diff := cmp.Diff(want, g.outcome(run)); diff != "" {
					t.Fatalf("killed at point %d: %s\n%+v", n, diff, run.Stopped)
				}
				if !died.Load() {
					t.Logf("killed at %d points", n)
					if n < 12 {
						t.Errorf("only %d points", n)
					}
					return
				}
			}
		})
	}
}

// killedAt has the process die at the n-th point. Reads run in parallel, so points may come at once.
func killedAt(t *testing.T, g *gym, input string, n int) *atomic.Bool {
	t.Helper()
	var passed atomic.Int64
	died := new(atomic.Bool)
	g.hook = func(drive.Point) error {
		if passed.Add(1) == int64(n)+1 {
			died.Store(true)
			return drive.ErrKilled
		}
		return nil
	}
	if _, err := g.say(input); err != nil && !errors.Is(err, drive.ErrKilled) {
		t.Fatalf("killed at point %d: %v", n, err)
	}
	return died
}

// goOn brings the run to its end, in as many processes as it takes; what asks is approved.
func goOn(t *testing.T, g *gym, input string) *drive.Run {
	t.Helper()
	for range 8 {
		h, _ := g.host()
		run, err := h.Show(t.Context(), g.run())
		switch {
		case errors.Is(err, drive.ErrNotFound): // it died before anything was on record
			run, err = g.begin(input, "")
		case err != nil:
			t.Fatal(err)
		case run.Status == loop.StatusStopped:
			return run
		case len(run.Pending) == 1:
			run, err = g.decide(loop.Approve)
		default:
			run, err = h.Resume(t.Context(), g.run())
		}
		if err != nil && !errors.Is(err, drive.ErrKilled) {
			t.Fatalf("%+v, %v", run, err)
		}
	}
	t.Fatal("the run comes to no end")
	return nil
}
