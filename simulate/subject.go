package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Subject decides on requests in virtual time: a limit of package weir, or one of the [BadExamples].
type Subject struct {
	Name string // a limit as text, or what a bad example is
	Note string // what to know about its figures; empty if they need no explanation

	// begin returns a fresh state that reads the time from *now.
	begin func(now *int64) (take, error)
}

// take decides on one request of cost 1 at the current time. An admitted request goes ahead after the delay.
type take func() (admitted bool, delay time.Duration)

// NewSubject returns a Subject that decides with a [weir.Limiter].
func NewSubject(limit weir.Limit) (Subject, error) {
	if _, err := weir.New(limit); err != nil {
		return Subject{}, fmt.Errorf("simulate: subject: %w", err)
	}
	return Subject{Name: limit.String(), begin: func(now *int64) (take, error) {
		limiter, err := weir.NewWith(limit, weir.Options{Clock: func() int64 { return *now }})
		if err != nil {
			return nil, fmt.Errorf("simulate: subject %s: %w", limit, err)
		}
		return func() (bool, time.Duration) {
			d := limiter.Take(1)
			return d.Allowed, d.Delay
		}, nil
	}}, nil
}

// virtualStart is the first instant of made-up traffic: the start of a second, a minute, an hour and a day.
const virtualStart = int64(20_000 * 24 * time.Hour)
