package rondatest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestClockMovesWhenEveryDriverWaits(t *testing.T) {
	c := NewClock(start)
	leave := c.Enter()
	var order []string
	fired := make(chan struct{})
	c.AfterFunc(2*time.Second, func() { order = append(order, "two"); close(fired) })
	c.AfterFunc(time.Second, func() { order = append(order, "one") })
	stop := c.AfterFunc(1500*time.Millisecond, func() { order = append(order, "stopped") })
	if !stop() || stop() {
		t.Error("a timer is stopped once")
	}
	slept := make(chan struct{})
	go func() { _ = c.Sleep(context.Background(), 3*time.Second); close(slept) }()
	awake := c.Waiting(1) // one piece of work: the sleeper
	<-fired
	<-slept
	awake()
	leave()
	if diff := cmp.Diff([]string{"one", "two"}, order); diff != "" || c.Now().Sub(start) != 3*time.Second {
		t.Errorf("at %v: %s", c.Now().Sub(start), diff)
	}
}

func TestClockStandsWhileWorkIsAwake(t *testing.T) {
	c := NewClock(start)
	defer c.Enter()()
	c.AfterFunc(time.Second, func() { t.Error("fired though work is awake") })
	awake := c.Waiting(1)
	if now := c.Now(); !now.Equal(start) {
		t.Errorf("time moved to %v", now)
	}
	awake()
}

func TestSleepEndsWithItsContext(t *testing.T) {
	c := NewClock(start)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.Hang(ctx) }()
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if len(c.sleepers) != 0 {
		t.Error("the sleeper is still there")
	}
}

func TestAdvance(t *testing.T) {
	c := NewClock(start)
	var at []time.Duration
	c.AfterFunc(time.Second, func() {
		at = append(at, c.Now().Sub(start))
		c.AfterFunc(time.Second, func() { at = append(at, c.Now().Sub(start)) })
	})
	c.Advance(5 * time.Second)
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second}, at); diff != "" || c.Now().Sub(start) != 5*time.Second {
		t.Error(diff, c.Now().Sub(start))
	}
}
