package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// Driver offers requests to subjects in virtual time. In each phase it offers requests at a steady rate to a fresh
// state. A refused caller retries until it is admitted. Callers are served in order of arrival: a request comes at
// its own instant, or as soon as the request before it is admitted, if that is later.
type Driver struct {
	Phases []Phase
	// Retry is the time between two attempts of a refused caller, up to weir.MaxPeriod.
	Retry time.Duration
	// Patience is how long a caller tries before it gives up, up to weir.MaxPeriod. The phase then ends without the
	// remaining requests.
	Patience time.Duration
}

// Phase is a number of requests and the rate that they are offered at.
type Phase struct {
	Requests  int64
	PerSecond int64
}

// PhaseReport is the result of one phase for one subject. `weir simulate --format json` prints it as JSON.
type PhaseReport struct {
	Algorithm string  `json:"algorithm"`
	Offered   int64   `json:"offered"`  // requests offered per second
	Requests  int64   `json:"requests"` // requests offered
	Seconds   float64 `json:"seconds"`  // until the offer ends, or until the last request goes ahead or is given up, if that is later
	Rate      float64 `json:"rate"`     // admitted requests per second
	Ended     bool    `json:"ended"`    // every request was admitted; otherwise a caller gave up
	Admitted  int64   `json:"admitted"`
	Most      int64   `json:"most_in_1s"` // the largest number that went ahead within any second
}

// ClassicDriver returns the driver of `weir simulate`: 10 to 1000 requests, each phase offered within 10 seconds. A
// refused caller retries every 10 ms, and gives up after a minute.
func ClassicDriver() Driver {
	d := Driver{Retry: 10 * time.Millisecond, Patience: time.Minute}
	for _, rate := range []int64{1, 2, 5, 10, 20, 25, 50, 100} {
		d.Phases = append(d.Phases, Phase{Requests: 10 * rate, PerSecond: rate})
	}
	return d
}

// Run drives every subject through every phase. The reports are in the order of the subjects.
func (d Driver) Run(subjects ...Subject) ([]PhaseReport, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	reports := make([]PhaseReport, 0, len(subjects)*len(d.Phases))
	for _, s := range subjects {
		if s.begin == nil {
			return nil, fmt.Errorf("simulate: drive: the subject %q decides nothing: make it with NewSubject or SubjectFunc", s.Name)
		}
		for _, p := range d.Phases {
			r, err := d.drive(s, p)
			if err != nil {
				return nil, err
			}
			reports = append(reports, r.report(s, p))
		}
	}
	return reports, nil
}

func (d Driver) check() error {
	if d.Retry <= 0 || d.Patience <= 0 || max(d.Retry, d.Patience) > weir.MaxPeriod {
		return fmt.Errorf("simulate: drive: retry %v, patience %v: want more than 0 and at most %d days", d.Retry, d.Patience, weir.MaxPeriod/(24*time.Hour))
	}
	for _, p := range d.Phases {
		if p.Requests < 1 || p.PerSecond < 1 || p.PerSecond > int64(time.Second) || p.Requests > maxOffered {
			return fmt.Errorf("simulate: drive: %d requests at %d/s: want 1 to %d requests at 1 to 1000000000/s", p.Requests, p.PerSecond, maxOffered)
		}
	}
	if len(d.Phases) == 0 {
		return errors.New("simulate: drive: no phases")
	}
	return nil
}

// driven is the result of one phase for one subject.
type driven struct {
	starts []time.Duration // when admitted requests went ahead, after the start
	end    time.Duration   // when the last request was asked for, or went ahead
	ended  bool            // no caller gave up
}

// drive runs one phase on a fresh state.
func (d Driver) drive(s Subject, p Phase) (r driven, err error) {
	now := tape.Start
	take, err := s.begin(&now)
	if err != nil {
		return r, err
	}
	for i := range p.Requests {
		now = max(now, tape.Start+int64(p.at(i)))
		delay, admitted := d.retry(take, &now)
		r.end = max(r.end, time.Duration(now-tape.Start)+delay)
		if !admitted {
			return r, nil
		}
		r.starts = append(r.starts, r.end)
	}
	r.ended = true
	return r, nil
}

// retry asks until the request is admitted or its caller gives up. It moves the clock.
func (d Driver) retry(take attempt, now *int64) (delay time.Duration, admitted bool) {
	for end := *now + int64(d.Patience); *now <= end; *now += int64(d.Retry) {
		if admitted, delay := take(); admitted {
			return delay, true
		}
	}
	return 0, false
}

// at returns the instant of request i: i / rate.
func (p Phase) at(i int64) time.Duration {
	return time.Duration(i/p.PerSecond)*time.Second + time.Duration(i%p.PerSecond)*time.Second/time.Duration(p.PerSecond)
}

func (r driven) report(s Subject, p Phase) PhaseReport {
	admitted, seconds := int64(len(r.starts)), max(r.end, p.at(p.Requests)).Seconds()
	return PhaseReport{
		Algorithm: s.Name, Offered: p.PerSecond, Requests: p.Requests, Admitted: admitted, Ended: r.ended,
		Seconds: seconds, Rate: float64(admitted) / seconds, Most: mostWithin(time.Second, r.starts),
	}
}

// mostWithin returns the largest number of instants in any half-open stretch of the length. The instants are in order.
func mostWithin(length time.Duration, instants []time.Duration) (most int64) {
	first := 0
	for i, at := range instants {
		for at-instants[first] >= length {
			first++
		}
		most = max(most, int64(i-first+1))
	}
	return most
}

// Subject decides on requests in virtual time: a limit of package weir, one of the [BadExamples], or a limiter of one's
// own.
type Subject struct {
	Name string // a limit as text, or the name of another limiter
	Note string // what to know about its figures; empty if they need no explanation

	// begin returns a fresh state that reads the time from *now.
	begin func(now *int64) (attempt, error)
}

// attempt decides on one request of cost 1 at the current time. An admitted request goes ahead after the delay.
type attempt func() (admitted bool, delay time.Duration)

// NewSubject returns a Subject that decides with a [weir.Limiter].
func NewSubject(limit weir.Limit) (Subject, error) {
	if _, err := weir.New(limit); err != nil {
		return Subject{}, fmt.Errorf("simulate: subject: %w", err)
	}
	return Subject{Name: limit.String(), begin: func(now *int64) (attempt, error) {
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

// SubjectFunc returns a Subject that decides with any limiter. For each phase the driver calls begin, which returns a
// fresh limiter: a function that reports whether one request is admitted at a time. The times never decrease.
func SubjectFunc(name string, begin func(start time.Time) func(now time.Time) bool) Subject {
	if begin == nil {
		return Subject{Name: name}
	}
	return Subject{Name: name, begin: func(now *int64) (attempt, error) {
		admits := begin(time.Unix(0, *now))
		if admits == nil {
			return nil, fmt.Errorf("simulate: subject %q begins with no function", name)
		}
		return func() (bool, time.Duration) { return admits(time.Unix(0, *now)), 0 }, nil
	}}
}
