package main

import "fmt"

// exchange is an honest request with its answer. The daemon decided at some
// instant from sent to received, which are nanoseconds since the run began.
type exchange struct {
	sent, received int64
	cost           int64
	answer         answer
	// loose is by how many nanoseconds more the daemon's clock may have moved
	// since the last exchange: after a restart it is another process's.
	loose int64
}

// watch follows one key that a single client asks with takes.
type watch interface {
	// check says what is wrong with an answer, given those before.
	check(e exchange) error
	// missed tells of a request without an answer, which may have been counted.
	missed(e exchange)
}

// bucketWatch follows a token bucket. The answer tells after how long the bucket
// is full again, so each answer follows from the last one up to the uncertainty
// of when it was decided.
type bucketWatch struct {
	count, period, burst int64
	seen                 bool
	full                 int64 // how long until it is full, at the last answer
	sent, received       int64 // of the last answer
	open                 int64 // units of requests without an answer since then
	bound                bound
}

// rounding is by how much two durations that were rounded up may differ.
const rounding = 2

func newBucketWatch(count, period, burst int64) *bucketWatch {
	return &bucketWatch{count: count, period: period, burst: burst, bound: bound{count: count, period: period, burst: burst}}
}

// time returns how long units take to flow back.
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
	after := before + b.time(e.cost) // full in this time, were the cost taken
	room := b.time(b.burst)
	switch {
	case before < least-rounding:
		return fmt.Errorf("the bucket lacks %d ns, and at least %d ns follow from the answer before: something that was admitted was not counted", before, least)
	case before > most+rounding:
		return fmt.Errorf("the bucket lacks %d ns, and at most %d ns follow from the answer before: something was counted that nobody asked for, or twice", before, most)
	case a.Allowed && after > room+rounding:
		return fmt.Errorf("%d units were admitted %d ns before there was room for them", e.cost, after-room)
	case !a.Allowed && after < room-rounding:
		return fmt.Errorf("%d units were refused although there was room for them", e.cost)
	case !a.Allowed && abs(a.RetryAfter-(after-room)) > rounding:
		return fmt.Errorf("a refusal tells to come back after %d ns, and there is room after %d ns", a.RetryAfter, after-room)
	case a.Allowed:
		return b.bound.admit(e)
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// bound holds what is admitted to burst + rate x time in every window. A client
// sees a window that is at least as long as the daemon's, so what is above its
// bound is certainly above that of the daemon.
type bound struct {
	count, period, burst int64
	units                int64 // admitted so far
	least                int64 // of units before a request x period - count x its time
	begun                bool
}

func (b *bound) admit(e exchange) error {
	if start := b.units*b.period - b.count*e.sent; !b.begun || start < b.least {
		b.least, b.begun = start, true
	}
	b.units += e.cost
	if over := b.units*b.period - b.count*e.received - b.least - b.burst*b.period; over > 0 {
		return fmt.Errorf("within some window that ends here %d/%d units more were admitted than burst %d and rate %d in %d ns allow", over, b.period, b.burst, b.count, b.period)
	}
	return nil
}

// windowWatch follows a fixed window, whose answers tell what is left of it and
// when it ends.
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
	same := w.seen && w.ends > 0 && e.sent-w.received-e.loose < w.ends              // it may be the window of the answer before
	other := !w.seen || w.ends == 0 || e.received-w.sent+e.loose >= w.ends-rounding // it may be a later one
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

// logWatch holds what is admitted to count in every stretch of a period. It
// serves for a sliding log, and with twice the count for a fixed window.
type logWatch struct {
	count, period int64
	admitted      []admission // the last ones, in order
	units         int64       // of all of them
}

type admission struct{ sent, units int64 }

func (l *logWatch) missed(exchange) {}

func (l *logWatch) check(e exchange) error {
	if !e.answer.Allowed {
		return nil
	}
	l.admitted = append(l.admitted, admission{e.sent, e.cost})
	l.units += e.cost
	for len(l.admitted) > 0 && e.received-l.admitted[0].sent+e.loose >= l.period {
		l.units -= l.admitted[0].units
		l.admitted = l.admitted[1:]
	}
	if l.units > l.count {
		return fmt.Errorf("%d units were admitted within less than %d ns, which may have %d", l.units, l.period, l.count)
	}
	return nil
}

// boundWatch is a bucket beside another limit: its answers may be the other's.
type boundWatch struct{ bound }

func (*boundWatch) missed(exchange) {}

func (b *boundWatch) check(e exchange) error {
	if !e.answer.Allowed {
		return nil
	}
	return b.admit(e)
}

// watches are several, for a rule of several limits.
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
