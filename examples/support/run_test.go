package support

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
)

// desk is the assistant on a store and a database, as several processes would have it: each call works with a host and a model
// of its own.
type desk struct {
	t     *testing.T
	store *memory.Store
	db    *DB
	hook  func(drive.Point) error
}

func newDesk(t *testing.T) *desk { return &desk{t: t, store: memory.New(), db: open(t)} }

// host opens a new process; input picks the script.
func (d *desk) host(input string) (*drive.Host, *drive.Agent) {
	d.t.Helper()
	s, name, err := Script(input)
	if err != nil {
		d.t.Fatal(err)
	}
	agent := Agent(scripted.New(s, scripted.Options{Name: name}), d.db)
	h, err := drive.Open(drive.Options{Store: d.store, Hook: d.hook})
	if err != nil {
		d.t.Fatal(err)
	}
	h.Register(agent)
	return h, agent
}

func (d *desk) start(input string) (*drive.Run, error) {
	d.t.Helper()
	h, agent := d.host(input)
	return h.Start(d.t.Context(), drive.Start{Agent: agent, Input: drive.Text(input), ID: "run_1"})
}

// decide answers the one pending approval and goes on, in another process.
func (d *desk) decide(input, decision string) (*drive.Run, error) {
	d.t.Helper()
	h, _ := d.host(input)
	run, err := h.Show(d.t.Context(), "run_1")
	if err != nil {
		return nil, err
	}
	if len(run.Pending) != 1 {
		return run, fmt.Errorf("%d calls are pending: %+v", len(run.Pending), run.Pending)
	}
	if err := h.Decide(d.t.Context(), "run_1", run.Pending[0].Call, drive.Decision{Decision: decision, By: "luis"}); err != nil {
		return run, err
	}
	return h.Resume(d.t.Context(), "run_1")
}

// outcome is what a person sees of a run in the end.
type outcome struct {
	Status   string
	Stop     loop.Reason
	Limit    string
	Declined bool
	Facts    []string
	Sent     int64
}

func (d *desk) outcome(run *drive.Run) outcome {
	d.t.Helper()
	o := outcome{Status: run.Status, Stop: run.Stop, Limit: run.Limit, Sent: count(d.t, d.db, `SELECT count(*) FROM sent`)}
	if run.Stopped != nil {
		o.Declined = run.Stopped.Declined
	}
	for _, name := range []string{"request", "policy", "draft", "receipt"} {
		if _, ok := run.Facts[name]; ok {
			o.Facts = append(o.Facts, name)
		}
	}
	return o
}

var (
	waits     = outcome{Status: loop.StatusWaiting, Facts: []string{"request", "policy", "draft"}}
	completes = outcome{Status: loop.StatusStopped, Stop: loop.StopCompleted, Facts: []string{"request", "policy", "draft", "receipt"}, Sent: 1}
	declines  = outcome{Status: loop.StatusStopped, Stop: loop.StopCompleted, Declined: true, Facts: []string{"request", "policy", "draft"}}
)

func TestRunsThatSend(t *testing.T) {
	for _, input := range []string{"Answer case 4792", "Answer case 4805", "Answer case 4806", "Answer case 4809", "Answer case 4812", "Answer case 4821"} {
		for decision, want := range map[string]outcome{loop.Approve: completes, loop.Reject: declines} {
			t.Run(input+" "+decision, func(t *testing.T) {
				d := newDesk(t)
				run, err := d.start(input)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(waits, d.outcome(run)); diff != "" {
					t.Fatalf("before the decision: %s\n%+v", diff, run.Stopped)
				}
				if p := run.Pending[0]; p.Tool != "send_reply" || !strings.Contains(string(p.Args), `"to":`) {
					t.Errorf("pending is %+v", p)
				}
				if run, err = d.decide(input, decision); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, d.outcome(run)); diff != "" {
					t.Errorf("in the end: %s\n%+v", diff, run.Stopped)
				}
				if run.Answer == "" {
					t.Error("no answer")
				}
			})
		}
	}
}

func TestRunsThatDoNotSend(t *testing.T) {
	for _, c := range []struct {
		input  string
		want   outcome
		answer string
	}{
		{"Answer case 4815", outcome{Status: loop.StatusStopped, Stop: loop.StopLimit, Limit: loop.LimitRounds}, "Left to do"},
		{"Answer case 4816", outcome{Status: loop.StatusStopped, Stop: loop.StopBlocked}, "case 3977"},
		{"Answer case 4818", outcome{Status: loop.StatusStopped, Stop: loop.StopBlocked}, "No policy covers"},
	} {
		t.Run(c.input, func(t *testing.T) {
			d := newDesk(t)
			run, err := d.start(c.input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, d.outcome(run)); diff != "" || !strings.Contains(run.Answer, c.answer) {
				t.Errorf("%s\nanswer %q\n%+v", diff, run.Answer, run.Stopped)
			}
		})
	}
}

// A second run of the same case is another task: it asks again, and what a person approves again is sent again.
func TestSecondRunAsksAgain(t *testing.T) {
	d := newDesk(t)
	if _, err := d.db.SendReply(t.Context(), Origin{"run_0", "k0"}, drafted(t, d.db)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.start("Answer case 4812"); err != nil {
		t.Fatal(err)
	}
	run, err := d.decide("Answer case 4812", loop.Approve)
	if err != nil {
		t.Fatal(err)
	}
	var r Receipt
	if err := json.Unmarshal(run.Facts["receipt"].Value, &r); err != nil || r.Receipt != "M-4812-2" {
		t.Errorf("receipt %+v, %v", r, err)
	}
}

// An edit by the approver cannot make the assistant send what it did not draft.
func TestEditedSendingIsRefused(t *testing.T) {
	d := newDesk(t)
	run, err := d.start("Answer case 4812")
	if err != nil {
		t.Fatal(err)
	}
	var args SendInput
	if err := json.Unmarshal(run.Pending[0].Args, &args); err != nil {
		t.Fatal(err)
	}
	args.Body = "Hola."
	edited, _ := json.Marshal(args)
	h, _ := d.host("Answer case 4812")
	err = h.Decide(t.Context(), run.ID, run.Pending[0].Call, drive.Decision{Decision: loop.Edit, Args: edited, By: "luis"})
	if err != nil {
		t.Logf("refused at once: %v", err)
		return
	}
	if run, err = h.Resume(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	if got := d.outcome(run); got.Sent != 0 || got.Stop == loop.StopCompleted && !got.Declined {
		t.Errorf("%+v", got)
	}
}

// Killed at each point of the work, the next process comes to the same end, and the reply is sent once.
func TestKilledAnywhere(t *testing.T) {
	const input = "Answer case 4812"
	for n := 0; ; n++ {
		d := newDesk(t)
		left, died := n, false
		d.hook = func(p drive.Point) error {
			if left--; left == -1 {
				died = true
				return drive.ErrKilled
			}
			return nil
		}
		run, err := d.start(input)
		for tries := 0; run == nil || run.Status != loop.StatusStopped; tries++ {
			if tries > 6 || err != nil && !errors.Is(err, drive.ErrKilled) {
				t.Fatalf("killed at point %d: %+v, %v", n, run, err)
			}
			h, _ := d.host(input)
			shown, showErr := h.Show(t.Context(), "run_1")
			switch {
			case showErr != nil: // it died before anything was on record
				run, err = d.start(input)
			case len(shown.Pending) == 1:
				run, err = d.decide(input, loop.Approve)
			default:
				run, err = h.Resume(t.Context(), "run_1")
			}
		}
		if diff := cmp.Diff(completes, d.outcome(run)); diff != "" {
			t.Fatalf("killed at point %d: %s\n%+v", n, diff, run.Stopped)
		}
		if !died {
			t.Logf("killed at %d points", n)
			if n < 20 {
				t.Errorf("only %d points", n)
			}
			return
		}
	}
}
