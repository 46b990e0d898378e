package main

import "fmt"

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
	bound                bound
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
	return &bucketWatch{count: count, period: period, burst: burst, rounding: rounding, bound: bound{count: count, period: period, burst: burst}}
}

// time returns the time in which units refill.
func (b *bucketWatch) time(units int64) int64 { return units * b.period / b.count }

func (b *bucketWatch) missed(e exchange) { b.open += e.cost }

func (b *bucketWatch) check(e exchange) error {
	b.bound.loose += e.loose
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
	case a.Allowed:
		return b.bound.admit(e)
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// bound checks that every window admits at most burst + rate x time. The client's window is at least as long as the
// daemon's, so the daemon has certainly broken its bound if the client's is broken.
type bound struct {
	count, period, burst int64
	units                int64 // admitted in total
	least                int64 // the smallest value of units before a request x period - count x its time
	begun                bool
	loose                int64 // the additional uncertainty of all exchanges so far
}

func (b *bound) admit(e exchange) error {
	if start := b.units*b.period - b.count*(e.sent+b.loose); !b.begun || start < b.least {
		b.least, b.begun = start, true
	}
	b.units += e.cost
	if over := b.units*b.period - b.count*(e.received+b.loose) - b.least - b.burst*b.period; over > 0 {
		return fmt.Errorf("within some window that ends here %d/%d units more were admitted than burst %d and rate %d in %d ns allow", over, b.period, b.burst, b.count, b.period)
	}
	return nil
}

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

// logWatch checks that every interval of a period admits at most count. It serves sliding logs and, with twice the
// count, fixed windows.
type logWatch struct {
	count, period int64
	admitted      []admission // the latest, in order
	units         int64       // of all stored admissions
}

type admission struct{ sent, units int64 }

func (l *logWatch) missed(exchange) {}

func (l *logWatch) check(e exchange) error {
	for i := range l.admitted {
		l.admitted[i].sent -= e.loose // for the daemon they may be that much older
	}
	if !e.answer.Allowed {
		return nil
	}
	l.admitted = append(l.admitted, admission{e.sent, e.cost})
	l.units += e.cost
	for len(l.admitted) > 0 && e.received-l.admitted[0].sent >= l.period {
		l.units -= l.admitted[0].units
		l.admitted = l.admitted[1:]
	}
	if l.units > l.count {
		return fmt.Errorf("%d units were admitted within less than %d ns, which may have %d", l.units, l.period, l.count)
	}
	return nil
}

// boundWatch checks a bucket beside another limit, whose answers may be the other's.
type boundWatch struct{ bound }

func (*boundWatch) missed(exchange) {}

func (b *boundWatch) check(e exchange) error {
	b.loose += e.loose
	if !e.answer.Allowed {
		return nil
	}
	return b.admit(e)
}

// watches combines the checks of a rule with several limits.
type watches []watch

func (w watches) missed(e exchange) {
	for _, each := range w {
		each.missed(e)
	}
}

func (w watches) check(e exchange) error {
	for _, each := range w {
		if err := each.check(e); err != nil {
			return err
		}
	}
	return nil
}
