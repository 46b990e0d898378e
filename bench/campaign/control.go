package main

import (
	"context"
	"time"
)

// timed makes a call with a random deadline and returns when it was sent and answered.
func (c *caller) timed(verb string, i int, call func(ctx context.Context) error) (sent, answered int64, err error) {
	timeout := time.Duration(20+c.random.IntN(480)) * time.Millisecond
	if c.random.IntN(10) == 0 {
		timeout = time.Duration(1+c.random.IntN(20)) * time.Millisecond
	}
	sent, answered, err = c.timedFor(verb, i, timeout, call)
	c.count(verb + ": " + outcome(err))
	return sent, answered, err
}

// timedFor makes a call with a deadline.
func (c *caller) timedFor(verb string, i int, timeout time.Duration, call func(ctx context.Context) error) (sent, answered int64, err error) {
	err = c.punctually(verb, i, timeout, func(ctx context.Context) error {
		sent = now()
		err := call(ctx)
		answered = now()
		return err
	})
	return sent, answered, err
}

// passedDeadlines names the count of deadlines that passed before the end of a call.
const passedDeadlines = "deadlines: passed by calls"

// punctually makes a call with a deadline and notes if it took longer. A control timer of the same deadline and the
// kernel tell how late this process was.
func (c *caller) punctually(verb string, i int, timeout time.Duration, call func(context.Context) error) error {
	began := time.Now()
	beside := startControl(began, timeout)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := call(ctx)
	took, allowed := time.Since(began), timeout+grace(verb)
	late, passed := beside.end()
	if passed {
		c.count(passedDeadlines)
	}
	if passed && took > allowed+slack {
		sent := began.UnixMicro()
		c.process.journal.write(record{Kind: recordLate, World: c.world.number, Subject: i, Process: c.process.number, What: verb,
			Sent: sent, Answered: sent + took.Microseconds(), Deadline: allowed.Microseconds(), Control: late.Microseconds(),
			Waited: c.process.waits.since(began.Add(timeout)).Microseconds()})
	}
	return err
}

// grace is for how long a verb goes on after its context has ended: a settlement for a second.
func grace(verb string) time.Duration {
	switch verb {
	case "Settle", "Done", "Done of slots", "Cancel of slots", "Cancel of a booking":
		return time.Second
	}
	return 0
}

// slack is by how much a call may exceed its deadline, besides the lateness of a control timer.
const slack = 50 * time.Millisecond

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
