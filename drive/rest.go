package drive

import (
	"context"
	"sync"
)

// rest is what a watched clock is told of one driver: when it only waits, and at once when something has come for it. Without such a
// clock it does nothing. A virtual clock moves on when every driver only waits, so there must be no moment at which a driver seems
// to wait although an answer, a timer or an input is on its way to it.
type rest struct {
	entered bool            // a child: its parent's driver entered the clock for it
	above   context.Context // a child: ends when its parent's driver wants it to end

	mu     sync.Mutex
	awake  func() // while the driver waits
	turn   int    // counts the waits
	posted int    // answers given and not yet received
	heard  bool   // a child: the wish to end has reached it
	awaits *work  // whose end the driver waits for before it returns
}

// rests tells a watched clock that the driver waits for what is in flight.
func (d *driver) rests() {
	w, ok := d.h.clock.(watched)
	if !ok {
		return
	}
	n := 0
	for _, f := range d.flight {
		if !f.child {
			n++
		}
	}
	r := &d.rest
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.posted > 0 || r.awake != nil || r.above != nil && r.above.Err() != nil && !r.heard {
		return
	}
	r.awake = w.Waiting(n)
}

// wake says that the driver goes on, or will as soon as it is its turn.
func (r *rest) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awake != nil {
		r.awake()
		r.awake = nil
	}
}

// awaitsEnd says that the driver, which ends, waits for a child's driver alone, unless that has gone already.
func (r *rest) awaitsEnd(w *work, clock watched) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaits = w; !w.left {
		r.awake = clock.Waiting(0)
	}
}

// left says that a child's driver is gone. Only who waits for that one goes on: others wait for what is still to come.
func (r *rest) left(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.left = true; r.awaits == w && r.awake != nil {
		r.awake()
		r.awake = nil
	}
}

// posts says that an answer is on its way.
func (r *rest) posts() {
	r.mu.Lock()
	r.posted++
	r.mu.Unlock()
	r.wake()
}

func (r *rest) received() {
	r.mu.Lock()
	r.posted--
	r.mu.Unlock()
}

// begins counts a wait; what is armed for one wait must not wake another.
func (r *rest) begins() (turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	return r.turn
}

// wakeIn is wake for one wait only.
func (r *rest) wakeIn(turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == turn && r.awake != nil {
		r.awake()
		r.awake = nil
	}
}

// hears says that the wish to end has arrived.
func (r *rest) hears() {
	r.mu.Lock()
	r.heard = true
	r.mu.Unlock()
}

func (r *rest) enteredBy(above context.Context) { r.entered, r.above = true, above }

type workKey struct{}

// Abandoned says whether ctx belongs to work (a tool's run, a model call) that no driver waits for any more. A virtual clock does not
// count such work.
func Abandoned(ctx context.Context) bool {
	w, ok := ctx.Value(workKey{}).(*work)
	return ok && w.over.Load()
}
