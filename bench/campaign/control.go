package main

import "time"

// control is a timer beside a call, with the deadline of its context. From then on it goes on with short sleeps
// until the call is over, and adds up by how much it was late. A call that exceeds its deadline by more than that was
// held up by something else than a busy machine.
type control struct {
	began time.Time
	timer *time.Timer
	over  chan struct{}
	late  chan time.Duration
}

// A sleep of a control is late from punctual on: a timer of an idle machine is late by less.
const (
	controlSleep = 10 * time.Millisecond
	punctual     = 2 * time.Millisecond
)

func startControl(began time.Time, deadline time.Duration) *control {
	c := &control{began: began, over: make(chan struct{}), late: make(chan time.Duration, 1)}
	c.timer = time.AfterFunc(deadline, func() { c.late <- c.watch(time.Since(began) - deadline) })
	return c
}

// watch returns the lateness so far and that of the sleeps until the call is over.
func (c *control) watch(late time.Duration) time.Duration {
	for {
		began, ended := time.Now(), false
		select {
		case <-c.over:
			ended = true
		case <-time.After(controlSleep):
		}
		if extra := time.Since(began) - controlSleep; extra > punctual {
			late += extra
		}
		if ended {
			return late
		}
	}
}

// end returns by how much the timer was late in all, or false if the call ended before its deadline.
func (c *control) end() (late time.Duration, passed bool) {
	close(c.over)
	if c.timer.Stop() {
		return 0, false
	}
	return <-c.late, true
}
