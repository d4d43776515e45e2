package drive

import (
	"context"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Clock is where the driver takes the time from. All methods are safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed; stop reports whether it prevented that.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// Sleep returns after d, or with ctx's error before. Work that the driver started sleeps with it.
	Sleep(ctx context.Context, d time.Duration) error
}

// watched is a clock that wants to know when drivers only wait: a virtual clock moves on then.
type watched interface {
	// Enter says that a driver begins to drive; leave that it is done.
	Enter() (leave func())
	// Waiting says that a driver waits for the answers of n pieces of work (children not counted); awake that it goes on.
	Waiting(n int) (awake func())
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (SystemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// Sleep sleeps on a timer.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func micros(t time.Time) loop.Micros { return loop.Micros(t.UnixMicro()) }

func toMicros(d time.Duration) loop.Micros { return loop.Micros(d.Microseconds()) }

func toDuration(m loop.Micros) time.Duration { return time.Duration(m) * time.Microsecond }
