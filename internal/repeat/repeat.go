// Package repeat makes a call again until it is answered, or until its answer can no longer matter. It repeats failed
// settlements, releases and undos, so that a caller never waits for them. Each owner has a Repeater of its own.
package repeat

import (
	"context"
	"sync"
	"time"
)

// Outcome is how the repetitions of a call ended.
type Outcome uint8

const (
	Done    Outcome = iota // it was answered
	Full                   // it was never made: as many calls as the Repeater has room for were being repeated
	Expired                // the next repetition would have come too late
	Closed                 // the Repeater was closed
	outcomes
)

// Options configure a Repeater.
type Options struct {
	Most         int           // calls that are repeated at a time
	Pause        time.Duration // between the first two tries; it doubles
	LongestPause time.Duration
}

// Repeater repeats calls. A call that waits for its next try costs a timer, and no goroutine. It is safe for concurrent use.
type Repeater struct {
	options Options

	mu     sync.Mutex
	ended  [outcomes]uint64
	all    map[*attempt]bool
	idle   chan struct{} // closed when the last call ends; nil if no caller waits for that
	closed bool
}

// New returns a Repeater.
func New(o Options) *Repeater { return &Repeater{options: o, all: map[*attempt]bool{}} }

// Try makes one try. It calls answered once, then or later: done says that no further try is needed.
type Try func(answered func(done bool))

// Blocking returns a Try that waits for its answer, within a time. A panic ends the repetitions.
func Blocking(within time.Duration, call func(ctx context.Context) (done bool)) Try {
	return func(answered func(done bool)) {
		done := true
		defer func() {
			_ = recover()
			answered(done)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		done = call(ctx)
	}
}

// attempt is a call that is being repeated.
type attempt struct {
	call  Try
	until time.Time
	pause time.Duration
	timer *time.Timer // fires at the next try; nil during one
	end   func(Outcome)
}

// Try makes a call after a time, and again after growing pauses until one is done or the next one would come after until. Then it
// calls end, unless that is nil. After no time the caller makes the first try itself.
func (r *Repeater) Try(after time.Duration, until time.Time, call Try, end func(Outcome)) {
	if end == nil {
		end = func(Outcome) {}
	}
	a := &attempt{call, until, max(r.options.Pause, 2*after), nil, end}
	r.mu.Lock()
	outcome := Done
	switch {
	case r.closed:
		outcome = Closed
	case len(r.all) >= r.options.Most:
		outcome = Full
	default:
		if r.all[a] = true; after > 0 {
			a.timer = time.AfterFunc(after, func() { r.try(a) })
		}
	}
	if outcome != Done {
		r.ended[outcome]++
	}
	r.mu.Unlock()
	switch {
	case outcome != Done:
		end(outcome)
	case after <= 0:
		r.try(a)
	}
}

func (r *Repeater) try(a *attempt) {
	r.mu.Lock()
	live := r.all[a]
	a.timer = nil
	if live && r.closed {
		r.endLocked(a, Closed)
	}
	closed := r.closed
	r.mu.Unlock()
	switch {
	case !live:
	case closed:
		a.end(Closed)
	default:
		a.call(func(done bool) { r.answered(a, done) })
	}
}

func (r *Repeater) answered(a *attempt, done bool) {
	r.mu.Lock()
	pause := a.pause
	a.pause = min(2*pause, r.options.LongestPause)
	outcome := Done
	switch {
	case done:
	case r.closed:
		outcome = Closed
	case time.Now().Add(pause).After(a.until):
		outcome = Expired
	default:
		a.timer = time.AfterFunc(pause, func() { r.try(a) })
		r.mu.Unlock()
		return
	}
	r.endLocked(a, outcome)
	r.mu.Unlock()
	a.end(outcome)
}

func (r *Repeater) endLocked(a *attempt, o Outcome) {
	r.ended[o]++
	if delete(r.all, a); len(r.all) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// Flush waits until no call is being repeated, or for the context.
func (r *Repeater) Flush(ctx context.Context) error {
	for {
		r.mu.Lock()
		if len(r.all) == 0 {
			r.mu.Unlock()
			return nil
		}
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle := r.idle
		r.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the calls that wait for their next try. A try under way is the last one of its call.
func (r *Repeater) Close() {
	r.mu.Lock()
	r.closed = true
	var ended []*attempt
	for a := range r.all {
		if a.timer != nil && a.timer.Stop() {
			r.endLocked(a, Closed)
			ended = append(ended, a)
		}
	}
	r.mu.Unlock()
	for _, a := range ended {
		a.end(Closed)
	}
}

// Stats counts calls.
type Stats struct {
	Pending                     int
	Done, Full, Expired, Closed uint64
}

// Stats returns how many calls are being repeated, and how the others ended.
func (r *Repeater) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{len(r.all), r.ended[Done], r.ended[Full], r.ended[Expired], r.ended[Closed]}
}
