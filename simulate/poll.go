package simulate

import (
	"errors"
	"time"

	"github.com/weirflow/weir"
)

// PollReport compares a bad example with a token bucket of the same rate. One caller polls both at regular instants.
type PollReport struct {
	Name      string
	PerSecond int64         // the rate of both
	Every     time.Duration // between two polls
	Over      time.Duration // the length of the run
	Admitted  int64
	Due       int64 // admitted by the token bucket
}

// RoundingFaults returns faults that depend on the rate or on the time between polls: two refills that drop fractions, and
// an interval of whole milliseconds.
func RoundingFaults() ([]PollReport, error) {
	ten := weir.TokenBucket{Rate: weir.PerSecond(classicRate), Burst: classicRate}
	faults := []struct {
		bad   Subject
		right weir.TokenBucket
		every time.Duration
		times int
	}{
		{lossyRefill(classicRate, true), ten, 10 * time.Millisecond, 10_000},
		{lossyRefill(classicRate, true), ten, 190 * time.Millisecond, 1000},
		{lossyRefill(classicRate, false), ten, 10 * time.Millisecond, 10_000},
		{lossyRefill(classicRate, false), ten, 190 * time.Millisecond, 1000},
		{wholeMilliseconds(300), weir.TokenBucket{Rate: weir.PerSecond(300), Burst: 2}, time.Millisecond, 9000},
	}
	reports := make([]PollReport, len(faults))
	for i, f := range faults {
		right, err := NewSubject(f.right)
		if err != nil {
			return nil, err
		}
		bad, err := poll(f.bad, f.every, f.times)
		due, err2 := poll(right, f.every, f.times)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		reports[i] = PollReport{Name: f.bad.Name, PerSecond: f.right.Rate.Count, Every: f.every,
			Over: time.Duration(f.times) * f.every, Admitted: bad, Due: due}
	}
	return reports, nil
}

// poll asks a fresh subject at regular instants, at each of them until it refuses, and counts admitted requests. The
// subject must refuse at some point.
func poll(s Subject, every time.Duration, times int) (admitted int64, err error) {
	now := virtualStart
	take, err := s.begin(&now)
	if err != nil {
		return 0, err
	}
	for range times {
		for {
			if ok, _ := take(); !ok {
				break
			}
			admitted++
		}
		now += int64(every)
	}
	return admitted, nil
}
