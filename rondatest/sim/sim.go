// Package sim runs agents at random and asserts the invariants of the design after every event. From a seed it draws a configuration,
// a model, tools, people and crashes; the same seed gives the same draw.
//
// A world must live in a bubble of testing/synctest: it uses the machine's clock, which is virtual there, so that neither time-outs
// nor back-offs take real time and a run that hangs is a failure at once.
//
//	go test ./rondatest/sim                     the seeds of CI
//	go test ./rondatest/sim -seed 4711 -v       one seed, with its journals
//	go test ./rondatest/sim -seeds 100000       more of them
package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
)

// Violation is an invariant that did not hold.
type Violation struct {
	Rule string // of the design, section 3: "at most once"
	Run  string
	Seq  int64 // of the last event of the run, as far as it is known
	Why  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: run %s after event %d: %s", v.Rule, v.Run, v.Seq, v.Why)
}

// End is how one run of a world ended, in what must not depend on crashes.
type End struct {
	Status, Limit, Answer string
	Stop                  loop.Reason
	Facts                 map[string]string
	Rounds                int64
}

// Outcome is what came of a world.
type Outcome struct {
	Violations []Violation
	Ends       map[string]End    // by run
	Effects    map[string]int    // what tools with effect once really did: by the call's place in the tree
	Journals   map[string]string // readable, by run
	Points     int               // moments at which a crash was possible
	Kinds      map[string]int    // events by kind
	Loose      string            // why the ends may differ from those of another world of the seed; "" they may not
}

// plant is a fault put in on purpose. Only tests have any: it sits between the driver and what it is watched by.
type plant struct {
	event   func(run string, ev *loop.Event) (drop bool)          // as written
	live    func(st *loop.State)                                  // the driver's state
	request func(r *seenRequest)                                  // as sent
	before  func(c *execution)                                    // as it is about to be executed
	call    func(w *world, c *execution) (again bool)             // as executed; again executes it once more
	ledger  func(run string, st *loop.State)                      // as folded
	extra   func(w *world, run string, st loop.State) *loop.Event // written beside
	end     func(e *End, crashed bool)                            // as reported
}

// world is one simulated life: hosts come and go, the store and the outside stay.
type world struct {
	seed  uint64
	draw  *draw
	store journal.Store
	crash []int // numbers of the points at which the process dies
	plant *plant

	mu         sync.Mutex
	violations []Violation
	watch      map[string]*witness
	paths      map[string]string // run → where it hangs in the tree
	effects    map[string]int    // by idempotency key
	onceBy     map[string]int    // the same of once tools, by place
	asked      map[string]bool   // acts of the outside that must happen once
	executed   map[string]int    // attempts of calls by run, call, attempt
	keys       map[string]string
	points     int
	ids        int
	loose      string
	door       *door
	host       *drive.Host
	agent      *drive.Agent
	served     map[string]bool
	kinds      map[string]int
}

// Simulate lives one world. crash lists the moments at which the process dies, counted over all moments of the world.
func Simulate(seed uint64, crash ...int) *Outcome { return simulate(seed, nil, crash...) }

func simulate(seed uint64, p *plant, crash ...int) *Outcome {
	w := &world{seed: seed, draw: drawWorld(seed), store: memory.New(), crash: crash, plant: p, watch: map[string]*witness{}, paths: map[string]string{},
		effects: map[string]int{}, onceBy: map[string]int{}, asked: map[string]bool{}, executed: map[string]int{}, keys: map[string]string{}, served: map[string]bool{}, kinds: map[string]int{}}
	if p == nil {
		w.plant = &plant{}
	}
	if w.draw.root.timed() {
		w.loose = "time, tokens or money are limited"
	}
	w.live()
	return w.outcome()
}

// live plays the session: each run from its start to its stop.
func (w *world) live() {
	ctx := context.Background()
	w.open()
	for n := range w.draw.runs {
		id := fmt.Sprintf("r%d", n+1)
		w.setPath(id, id)
		if !w.drive(ctx, id) {
			w.close()
			return
		}
	}
	w.close()
	w.atTheEnd()
}

// close lets the last host go: nothing may stay behind.
func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := w.host.Shutdown(ctx); err != nil {
		w.violate("bounded", "", 0, "the host does not let go: %v", err)
	}
	w.door.shut()
}

// open brings a new process to life.
func (w *world) open() {
	door := newDoor(w)
	h, err := drive.Open(drive.Options{Store: door, Owner: "owner", Stream: w.draw.stream, Tapes: w.draw.stream, Hook: door.hook, NewID: w.newID})
	if err != nil {
		panic(err)
	}
	agent := w.build(w.draw.root, door)
	h.Register(agent)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.door, w.host, w.agent = door, h, agent
}

// restart is what comes after a crash: the dead process does nothing any more.
func (w *world) restart() {
	w.door.shut()
	old := w.host
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	_ = old.Shutdown(ctx)
	cancel()
	w.open()
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("k%d", w.ids)
}

// drive brings one root run to its stop, through crashes and pauses. It reports whether the session can go on.
func (w *world) drive(ctx context.Context, id string) bool {
	start := func() (*drive.Run, error) {
		return w.host.Start(ctx, drive.Start{Agent: w.agent, ID: id, Session: "s", By: "ana", Input: drive.Text(w.task(id))})
	}
	begun := false
	for step := range 200 {
		var run *drive.Run
		err := w.bounded(func() (err error) {
			if begun {
				run, err = w.host.Resume(ctx, id)
			} else {
				run, err = start()
			}
			return err
		})
		switch {
		case errors.Is(err, errHung):
			w.violate("bounded", id, w.seq(id), "the driver hangs: %s", w.state(id))
			return false
		case w.door.dead():
			begun = w.watching(id)
			w.restart()
			continue
		case err != nil:
			w.violate("bounded", id, w.seq(id), "driving failed: %v", err)
			return false
		}
		begun = true
		w.checkView(run)
		switch run.Status {
		case loop.StatusStopped:
			w.afterwards(ctx, id)
			return true
		case loop.StatusRunning:
			w.violate("bounded", id, w.seq(id), "the driver let go of a run that is running: %s", w.state(id))
			return false
		}
		if w.broken() {
			return false
		}
		if w.host.Driving(id) {
			w.violate("linear growth", id, w.seq(id), "a waiting run is still driven")
		}
		if !w.decide(ctx, run, step) {
			return false
		}
	}
	w.violate("bounded", id, w.seq(id), "no end in sight: %s", w.state(id))
	return false
}

var errHung = errors.New("hung")

// bounded waits for f for as long as a run can possibly take, in virtual time.
func (w *world) bounded(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	t := time.NewTimer(1000 * time.Hour)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return errHung
	}
}

func (w *world) violate(rule, run string, seq int64, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violateLocked(rule, run, seq, format, args...)
}

func (w *world) violateLocked(rule, run string, seq int64, format string, args ...any) {
	w.violations = append(w.violations, Violation{rule, run, seq, fmt.Sprintf(format, args...)})
}

// broken says that something did not hold: what comes after it would say little.
func (w *world) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) > 0
}

// loosen says that the ends of this world may differ from those of another one of the same seed.
func (w *world) loosen(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loose == "" {
		w.loose = why
	}
}

// once reports whether something of the outside has not happened yet. It survives crashes.
func (w *world) once(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.asked[what]
	w.asked[what] = true
	return !was
}

func (w *world) setPath(run, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths[run] = path
}

func (w *world) path(run string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.paths[run]; ok {
		return p
	}
	return run
}

func (w *world) watching(run string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watch[run] != nil
}

func (w *world) seq(run string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.watch[run]; t != nil {
		return t.state.Seq
	}
	return 0
}

func (w *world) state(run string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.watch[run]; t != nil {
		return t.state.String()
	}
	return "not started"
}

func (w *world) outcome() *Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := &Outcome{Violations: w.violations, Ends: map[string]End{}, Effects: w.onceBy, Journals: map[string]string{}, Points: w.points, Loose: w.loose, Kinds: w.kinds}
	for _, run := range slices.Sorted(maps.Keys(w.watch)) {
		t := w.watch[run]
		o.Journals[run] = t.log.String()
		if strings.HasPrefix(run, "r") {
			e := t.end()
			if w.plant.end != nil {
				w.plant.end(&e, len(w.crash) > 0)
			}
			o.Ends[run] = e
		}
	}
	return o
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
