package main

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/trial"
)

// exchange is an honest request and its answer. The daemon decided at some instant from sent to received, in
// nanoseconds since the start of the run.
type exchange struct {
	sent, received int64
	cost           int64
	answer         answer
	// loose is the additional uncertainty of the daemon's clock since the last exchange, in nanoseconds. A restart
	// brings another process's clock, and the wall clock may have been set.
	loose int64
}

// watch checks one key that a single client uses with takes.
type watch interface {
	// check returns an error if an answer contradicts the earlier ones.
	check(e exchange) error
	// missed records a request without an answer, which may have been counted.
	missed(e exchange)
}

// bucketWatch checks a token bucket. An answer says when the bucket is full again. The next answer follows from it,
// up to the uncertainty of the instants.
type bucketWatch struct {
	count, period, burst int64
	seen                 bool
	full                 int64 // time until full, at the last answer
	sent, received       int64 // of the last answer
	open                 int64 // units of requests without an answer since then
	rounding             int64 // bounds the difference of two durations that were rounded up
}

// The bounds on the difference of two durations that an engine rounded up: to nanoseconds, or to microseconds.
const (
	memoryRounding = 2
	redisRounding  = 4000
)

func (w *world) rounding() int64 {
	if w.engine == onRedis {
		return redisRounding
	}
	return memoryRounding
}

func newBucketWatch(count, period, burst, rounding int64) *bucketWatch {
	return &bucketWatch{count: count, period: period, burst: burst, rounding: rounding}
}

// time returns the time in which units refill.
func (b *bucketWatch) time(units int64) int64 { return units * b.period / b.count }

func (b *bucketWatch) missed(e exchange) { b.open += e.cost }

func (b *bucketWatch) check(e exchange) error {
	a := e.answer
	before := a.ResetAfter
	if a.Allowed {
		before -= b.time(e.cost)
	}
	least, most := int64(0), b.time(b.open)
	if b.seen {
		least = max(b.full-(e.received-b.sent)-e.loose, 0)
		most += max(b.full-(e.sent-b.received)+e.loose, 0)
	}
	b.seen, b.full, b.sent, b.received, b.open = true, a.ResetAfter, e.sent, e.received, 0
	after := before + b.time(e.cost) // time until full if the cost was taken
	room := b.time(b.burst)
	switch {
	case before < least-b.rounding:
		return fmt.Errorf("the bucket lacks %d ns, and at least %d ns follow from the answer before: something that was admitted was not counted", before, least)
	case before > most+b.rounding:
		return fmt.Errorf("the bucket lacks %d ns, and at most %d ns follow from the answer before: the daemon counted a cost twice, or one that no client sent", before, most)
	case a.Allowed && after > room+b.rounding:
		return fmt.Errorf("%d units were admitted %d ns before there was room for them", e.cost, after-room)
	case !a.Allowed && after < room-b.rounding:
		return fmt.Errorf("%d units were refused although there was room for them", e.cost)
	case !a.Allowed && abs(a.RetryAfter-(after-room)) > b.rounding:
		return fmt.Errorf("a refusal tells to come back after %d ns, and there is room after %d ns", a.RetryAfter, after-room)
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// windowWatch checks a fixed window, whose answers say how much is left and when the window ends.
type windowWatch struct {
	count, period  int64
	seen           bool
	left, ends     int64
	sent, received int64
	open           int64
}

func (w *windowWatch) missed(e exchange) { w.open += e.cost }

func (w *windowWatch) check(e exchange) error {
	a := e.answer
	before := a.Remaining
	if a.Allowed {
		before += e.cost
	}
	same := w.seen && w.ends > 0 && e.sent-w.received-e.loose < w.ends                   // possibly the window of the previous answer
	other := !w.seen || w.ends == 0 || e.received-w.sent+e.loose >= w.ends-redisRounding // possibly a later window
	wrong := !(same && before <= w.left && before >= w.left-w.open || other && before <= w.count && before >= w.count-w.open)
	left, open := w.left, w.open
	w.seen, w.left, w.ends, w.sent, w.received, w.open = true, a.Remaining, a.ResetAfter, e.sent, e.received, 0
	switch {
	case wrong:
		return fmt.Errorf("%d units were left of the window, after %d of %d at the answer before and %d without an answer (the same window: %v, a later one: %v)", before, left, w.count, open, same, other)
	case a.Allowed != (before >= e.cost):
		return fmt.Errorf("allowed is %v for a cost of %d with %d units left", a.Allowed, e.cost, before)
	}
	return nil
}

// admitted records the units of a key for the check of its bounds at the end. What the daemon's clock was loose by is a
// relief of each bound.
type admitted struct {
	limits   []weir.Limit
	used     []trial.Span
	loosened []trial.Span // the units are nanoseconds
	lastSent int64
}

func (a *admitted) add(e exchange) {
	if e.loose > 0 {
		a.loosened = append(a.loosened, trial.Span{From: a.lastSent, To: e.received, Units: float64(e.loose)})
	}
	a.lastSent = e.sent
	if e.answer.Allowed {
		a.used = append(a.used, trial.Span{From: e.sent, To: e.received, Units: float64(e.cost)})
	}
}

// check returns an error if some window admitted more than a bound. The client's window is at least as long as the
// daemon's. Where it does not know when windows begin, two of them may meet in a stretch.
func (a *admitted) check() error {
	for i, b := range trial.Bounds(a.limits, 1) {
		if b.Kind == trial.Window {
			b.Kind, b.Units = trial.Stretch, 2*b.Units
		}
		var reliefs []trial.Span
		for _, l := range a.loosened {
			if l.Units *= b.Rate; b.Kind != trial.Rate {
				l.Units = b.Units
			}
			reliefs = append(reliefs, l)
		}
		if worst := b.Worst(a.used, reliefs); worst.Over > trial.Tolerance {
			return fmt.Errorf("%.3f units more than %s allows were admitted from %d to %d ns", worst.Over, a.limits[i], worst.From, worst.To)
		}
	}
	return nil
}

// checkBounds checks the bounds of all keys that one client uses.
func (w *world) checkBounds() {
	for _, f := range w.followers {
		if err := f.admitted.check(); err != nil {
			w.Break(promiseBounds, "%s, key %q: %v", f.rule, f.key, err)
		}
	}
}
