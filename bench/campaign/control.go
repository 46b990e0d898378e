package main

import "time"

// control is a timer beside a call, with the deadline of its context. From then on it goes on with short sleeps
// until the call is over, and adds up by how much it was late. A call that exceeds its deadline by more than that was
// held up by something else than a busy machine.
type control struct {
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
	c := &control{over: make(chan struct{}), late: make(chan time.Duration, 1)}
	c.timer = time.AfterFunc(deadline, func() { c.late <- c.watch(began.Add(deadline)) })
	return c
}

// watch returns by how much the timer and the sleeps were late until the call is over. Each sleep is measured from the
// end of the one before, so that no pause of the process falls between two of them.
func (c *control) watch(due time.Time) (late time.Duration) {
	mark := time.Now()
	late = mark.Sub(due)
	for over := false; !over; {
		select {
		case <-c.over:
			over = true
		case <-time.After(controlSleep):
		}
		ended := time.Now()
		if extra := ended.Sub(mark) - controlSleep; extra > punctual {
			late += extra
		}
		mark = ended
	}
	return late
}

// end returns by how much the timer was late in all, or false if the call ended before its deadline.
func (c *control) end() (late time.Duration, passed bool) {
	close(c.over)
	if c.timer.Stop() {
		return 0, false
	}
	return <-c.late, true
}
