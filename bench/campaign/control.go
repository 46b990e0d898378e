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

// punctually makes a call with a deadline and notes if it took longer.
func (c *caller) punctually(verb string, i int, timeout time.Duration, call func(context.Context) error) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := call(ctx)
	took, allowed := time.Since(began), timeout+grace(verb)
	if took >= timeout {
		c.count(passedDeadlines)
	}
	if took > allowed+slack {
		sent := began.UnixMicro()
		c.process.journal.write(record{Kind: recordLate, World: c.world.number, Subject: i, Process: c.process.number, What: verb,
			Sent: sent, Answered: sent + took.Microseconds(), Deadline: allowed.Microseconds()})
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

// slack is by how much a call may exceed its deadline on an idle machine.
const slack = 50 * time.Millisecond
