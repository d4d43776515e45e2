package wire

import (
	"context"
	"errors"
	"io"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// silent answers after a time, or never.
type silent struct {
	ctx context.Context
	gap time.Duration
	n   int
}

func (s *silent) Read(p []byte) (int, error) {
	if s.n == 0 {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	s.n--
	select {
	case <-time.After(s.gap):
		p[0] = 'x'
		return 1, nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// Each clock fires on its own time without any traffic, and is named; the time that the reader spends elsewhere counts for the
// call's clock alone.
func TestClocks(t *testing.T) {
	all := model.Timeouts{Connect: 10 * time.Second, FirstByte: 2 * time.Minute, BetweenDeltas: time.Minute, Call: 10 * time.Minute}
	for _, c := range []struct {
		name  string
		t     model.Timeouts
		do    func(a *Attempt) error
		clock string
		after time.Duration
		lost  bool
	}{
		{"no connection", all, func(a *Attempt) error {
			<-a.Context().Done()
			return a.Context().Err()
		}, ClockConnect, 10 * time.Second, false},
		{"no answer", all, func(a *Attempt) error {
			time.Sleep(9 * time.Second)
			trace := httptrace.ContextClientTrace(a.Context())
			trace.GotConn(httptrace.GotConnInfo{})
			trace.WroteHeaders()
			<-a.Context().Done()
			return a.Context().Err()
		}, ClockFirstByte, 9*time.Second + 2*time.Minute, true},
		{"silence in the body", all, func(a *Attempt) error {
			a.Answered()
			_, err := io.ReadAll(a.Body(&silent{a.Context(), 50 * time.Second, 3}))
			return err
		}, ClockBetween, 150*time.Second + time.Minute, true},
		{"a slow reader is not the provider's silence", all, func(a *Attempt) error {
			a.Answered()
			r := a.Body(&silent{a.Context(), 50 * time.Second, 2})
			b := make([]byte, 1)
			_, _ = r.Read(b)
			time.Sleep(5 * time.Minute)
			if _, err := r.Read(b); err != nil {
				return err
			}
			_, err := r.Read(b)
			return err
		}, ClockBetween, 100*time.Second + 5*time.Minute + time.Minute, true},
		{"the whole call", all, func(a *Attempt) error {
			a.Answered()
			_, err := io.ReadAll(a.Body(&silent{a.Context(), 50 * time.Second, 1000}))
			return err
		}, ClockCall, 10 * time.Minute, true},
		{"only the call", model.Timeouts{Call: time.Second}, func(a *Attempt) error {
			<-a.Context().Done()
			return a.Context().Err()
		}, ClockCall, time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				a := Begin(context.Background(), c.t)
				defer a.End()
				e := a.Failed("calling x", c.do(a))
				if took := time.Since(start); took != c.after {
					t.Errorf("fired after %v, want %v", took, c.after)
				}
				got := model.Error{Class: e.Class, Clock: e.Clock, Lost: e.Lost}
				if diff := cmp.Diff(model.Error{Class: loop.ClassTransient, Clock: c.clock, Lost: c.lost}, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestNoClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		a := Begin(ctx, model.Timeouts{})
		a.Answered()
		time.AfterFunc(100*time.Hour, cancel)
		_, err := io.ReadAll(a.Body(&silent{a.Context(), time.Hour, 1 << 20}))
		e := a.Failed("calling x", err)
		if e.Clock != "" || !errors.Is(e, context.Canceled) || !e.Lost {
			t.Errorf("%#v", e)
		}
		a.End()
		a.End()
	})
}

func TestFailedKeepsWhatIsKnown(t *testing.T) {
	a := Begin(context.Background(), model.Timeouts{})
	defer a.End()
	known := &model.Error{Class: loop.ClassFatal, Code: "x"}
	if got := a.Failed("calling x", known); got != known {
		t.Errorf("got %v", got)
	}
	if got := a.Failed("calling x", io.ErrUnexpectedEOF); got.Class != loop.ClassTransient || got.Lost {
		t.Errorf("before anything was sent: %#v", got)
	}
	a.Answered()
	if got := a.Failed("calling x", io.ErrUnexpectedEOF); got.Class != loop.ClassTransient || !got.Lost {
		t.Errorf("cut: %#v", got)
	}
}
