package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
	"github.com/weirflow/weir/simulate"
)

// badExample is a limiter that people write, with its fault.
type badExample struct {
	name, note string
	begin      func(start int64) admits // a fresh one
}

// admits reports whether a request goes ahead at an instant in nanoseconds, which never decreases.
type admits func(now int64) bool

func (e badExample) subject() simulate.Subject {
	s := simulate.SubjectFunc(e.name, func(start time.Time) func(time.Time) bool {
		admits := e.begin(start.UnixNano())
		return func(now time.Time) bool { return admits(now.UnixNano()) }
	})
	s.Note = e.note
	return s
}

// badExamples returns limiters for a rate of n per second and a burst of n, for comparison only. The delays of timers, threads and
// actions are constants of this file.
func badExamples(n int64) (subjects []simulate.Subject) {
	gap := time.Second / time.Duration(n)
	late := onTick(gap)
	for _, e := range []badExample{
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
	} {
		subjects = append(subjects, e.subject())
	}
	return subjects
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
func refilled(name string, n, gain int64, every time.Duration, note string) badExample {
	return badExample{name, note, func(start int64) admits {
		units, next := n, start+int64(every)
		return func(now int64) bool {
			for ; next <= now; next += int64(every) {
				units = min(n, units+gain)
			}
			if units == 0 {
				return false
			}
			units--
			return true
		}
	}}
}

// spaced admits one request, and the next one after the gap.
func spaced(name string, gap time.Duration, note string) badExample {
	return badExample{name, note, func(start int64) admits {
		free := start
		return func(now int64) bool {
			if now < free {
				return false
			}
			free = now + int64(gap)
			return true
		}
	}}
}

// lossyRefill returns a bucket of n units, refilled at n per second, that adds only whole units and forgets the rest. It
// begins to wait for the next unit at each call, or only at a call that adds units.
func lossyRefill(n int64, eachCall bool) badExample {
	gap := time.Second / time.Duration(n)
	name, note := "lazy refill that drops fractions", "A call that adds units drops the fraction of a unit, so up to half of the refill is lost. It depends on the time between calls."
	if eachCall {
		name, note = "lazy refill at each call", fmt.Sprintf("A call before %v is over adds nothing and starts the wait again. Frequent retries stop the refill.", gap)
	}
	return badExample{name, note, func(start int64) admits {
		units, last := n, start
		return func(now int64) bool {
			gained := int64(float64(n) * time.Duration(now-last).Seconds())
			if eachCall || gained > 0 {
				units, last = min(n, units+gained), now
			}
			if units == 0 {
				return false
			}
			units--
			return true
		}
	}}
}

// countedRefusals is a sliding window of n per second over two counters, which count every attempt before they compare.
func countedRefusals(n int64) badExample {
	note := "Refused attempts count in the window, so a caller that retries faster than the limit is never admitted again."
	return badExample{"sliding window that counts refusals", note, func(start int64) admits {
		const length = int64(time.Second)
		window, current, before := start/length, int64(0), int64(0)
		return func(now int64) bool {
			switch at := now / length; at - window {
			case 0:
			case 1:
				window, before, current = at, current, 0
			default:
				window, before, current = at, 0, 0
			}
			current++
			return before*(length-now%length)+current*length <= n*length
		}
	}}
}

// wholeMilliseconds keeps requests 1000/n milliseconds apart, rounded down.
func wholeMilliseconds(n int64) badExample {
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
		bad   badExample
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
		right, err := weir.New(f.right)
		if err != nil {
			return nil, err
		}
		due := func(now int64) bool { return right.AllowAt(time.Unix(0, now), 1) }
		reports[i] = PollReport{Name: f.bad.name, PerSecond: f.right.Rate.Count, Every: f.every, Over: time.Duration(f.times) * f.every,
			Admitted: poll(f.bad.begin(tape.Start), f.every, f.times), Due: poll(due, f.every, f.times)}
	}
	return reports, nil
}

// poll asks a fresh limiter at regular instants, at each of them until it refuses, and counts admitted requests. It must refuse at
// some point.
func poll(admits admits, every time.Duration, times int) (admitted int64) {
	now := tape.Start
	for range times {
		for admits(now) {
			admitted++
		}
		now += int64(every)
	}
	return admitted
}
