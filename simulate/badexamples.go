package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// classicRate is the rate, per second, and the burst of every subject of `weir simulate`.
const classicRate = 10

// ClassicSubjects returns every limit that has a rate, at 10 requests per second with a burst of 10.
func ClassicSubjects() ([]Subject, error) {
	rate := weir.PerSecond(classicRate)
	limits := []weir.Limit{
		weir.TokenBucket{Rate: rate, Burst: classicRate},
		weir.LeakyBucket{Rate: rate, Queue: classicRate - 1},
		weir.FixedWindow{Rate: rate},
		weir.SlidingWindow{Rate: rate},
		weir.SlidingLog{Rate: rate},
		weir.SlidingLog{Rate: rate, CountDenied: true},
		weir.RateGate{Rate: rate},
		weir.Cycle{Rate: rate},
		weir.Bursty{Rate: rate, Over: time.Second},
		weir.WarmUp{Rate: rate, Over: time.Second},
		weir.NginxLimitReq{Rate: rate, Burst: classicRate - 1, NoDelay: true},
	}
	subjects := make([]Subject, len(limits))
	for i, limit := range limits {
		s, err := NewSubject(limit)
		if err != nil {
			return nil, err
		}
		s.Note = weir.Describe(limit).Note
		subjects[i] = s
	}
	return subjects, nil
}

// BadExamples returns limiters that people write, each with its fault, for a rate of n per second and a burst of n.
// They are for comparison only. The delays of timers, threads and actions are constants of this file.
func BadExamples(n int64) ([]Subject, error) {
	if n < 1 || n > int64(time.Second) {
		return nil, fmt.Errorf("simulate: bad examples: a rate of %d/s is not within 1/s and 1000000000/s", n)
	}
	gap := time.Second / time.Duration(n)
	late := onTick(gap)
	return []Subject{
		refilled("bucket refilled by a timer", n, 1, late,
			fmt.Sprintf("The timer fires at a tick of the system's clock, every %v. %v becomes %v.", timerTick, gap, late)),
		refilled("bucket refilled by a thread", n, 1, gap+wakeDelay,
			fmt.Sprintf("The thread sleeps %v and wakes up %v late. The delays add up.", gap, wakeDelay)),
		refilled("semaphore released by a thread", n, n, time.Second+wakeDelay,
			fmt.Sprintf("The thread returns all permits every second, %v late. Up to twice the burst goes ahead around that instant.", wakeDelay)),
		spaced("fixed sleep, too slow", gap+slowAction,
			fmt.Sprintf("The caller sleeps %v after each action, and the action takes %v.", gap, slowAction)),
		spaced("fixed sleep, too fast", max(0, gap-slowAction)+fastAction,
			fmt.Sprintf("The caller sleeps %v, because an action took %v once. Now it takes %v.", max(0, gap-slowAction), slowAction, fastAction)),
		lossyRefill(n, true),
		lossyRefill(n, false),
		wholeMilliseconds(n),
		countedRefusals(n),
	}, nil
}

const (
	timerTick  = time.Second / 64 // 15.625 ms, the clock of Windows
	wakeDelay  = time.Millisecond
	slowAction = 20 * time.Millisecond
	fastAction = 10 * time.Millisecond
)

// onTick rounds a wait up to ticks of the system's clock.
func onTick(wait time.Duration) time.Duration {
	return (wait + timerTick - 1) / timerTick * timerTick
}

// refilled returns a bucket of n units that gets up to gain units back at fixed intervals.
func refilled(name string, n, gain int64, every time.Duration, note string) Subject {
	return Subject{Name: name, Note: note, begin: func(now *int64) (attempt, error) {
		units, next := n, *now+int64(every)
		return func() (bool, time.Duration) {
			for ; next <= *now; next += int64(every) {
				units = min(n, units+gain)
			}
			if units == 0 {
				return false, 0
			}
			units--
			return true, 0
		}, nil
	}}
}

// spaced admits one request, and the next one after the gap.
func spaced(name string, gap time.Duration, note string) Subject {
	return Subject{Name: name, Note: note, begin: func(now *int64) (attempt, error) {
		free := *now
		return func() (bool, time.Duration) {
			if *now < free {
				return false, 0
			}
			free = *now + int64(gap)
			return true, 0
		}, nil
	}}
}

// lossyRefill returns a bucket of n units, refilled at n per second, that adds only whole units and forgets the rest. It
// begins to wait for the next unit at each call, or only at a call that adds units.
func lossyRefill(n int64, eachCall bool) Subject {
	gap := time.Second / time.Duration(n)
	name, note := "lazy refill that drops fractions", "A call that adds units drops the fraction of a unit, so up to half of the refill is lost. It depends on the time between calls."
	if eachCall {
		name, note = "lazy refill at each call", fmt.Sprintf("A call before %v is over adds nothing and starts the wait again. Frequent retries stop the refill.", gap)
	}
	return Subject{Name: name, Note: note, begin: func(now *int64) (attempt, error) {
		units, last := n, *now
		return func() (bool, time.Duration) {
			gained := int64(float64(n) * time.Duration(*now-last).Seconds())
			if eachCall || gained > 0 {
				units, last = min(n, units+gained), *now
			}
			if units == 0 {
				return false, 0
			}
			units--
			return true, 0
		}, nil
	}}
}

// countedRefusals is a sliding window of n per second over two counters, which count every attempt before they compare.
func countedRefusals(n int64) Subject {
	note := "Refused attempts count in the window, so a caller that retries faster than the limit is never admitted again."
	return Subject{Name: "sliding window that counts refusals", Note: note, begin: func(now *int64) (attempt, error) {
		const length = int64(time.Second)
		window, current, before := *now/length, int64(0), int64(0)
		return func() (bool, time.Duration) {
			switch at := *now / length; at - window {
			case 0:
			case 1:
				window, before, current = at, current, 0
			default:
				window, before, current = at, 0, 0
			}
			current++
			return before*(length-*now%length)+current*length <= n*length, 0
		}, nil
	}}
}

// wholeMilliseconds keeps requests 1000/n milliseconds apart, rounded down.
func wholeMilliseconds(n int64) Subject {
	return spaced("interval of 1000/max milliseconds", time.Duration(1000/n)*time.Millisecond,
		fmt.Sprintf("No burst, and the interval is rounded down: %d ms for %d/s, but 3 ms for 300/s, and 0 ms above 1000/s, which limits nothing.", 1000/n, n))
}

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
