package limittest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
)

// bookable returns rules that can be booked, with room for two units of cost 1 and then one each 10 s or more. An
// engine that books nothing has none.
func (f *fixture) bookable() []*weir.Rule {
	if !reservesAhead(f.engine) {
		return nil
	}
	bucket := weir.TokenBucket{Rate: weir.Per(1, 10*time.Second), Burst: 2}
	gate, cycle := weir.RateGate{Rate: weir.Per(2, 30*time.Second)}, weir.Cycle{Rate: weir.Per(2, 40*time.Second)}
	var rules []*weir.Rule
	for _, limits := range [][]weir.Limit{{bucket}, {gate}, {cycle}, {bucket, gate}, {bucket, gate, cycle}} {
		rule := f.rule("book", limits...)
		rules = append(rules, f.rule("book "+rule.String()[5:], limits...))
	}
	return rules
}

// reservesAhead reports whether an engine can reserve a later instant.
func reservesAhead(e weir.Engine) bool {
	_, err := weir.ReserveAhead(context.Background(), e, 0, weir.Request{})
	return !errors.Is(err, errors.ErrUnsupported)
}

func (f *fixture) book(longest time.Duration, q weir.Request) *weir.Reservation {
	f.Helper()
	r, err := weir.ReserveAhead(f.Context(), f.engine, longest, q)
	f.decided("ReserveAhead", []weir.Request{q}, err)
	return r
}

// bookedInstants tests that bookings get instants in order, that nothing is admitted before the newest, and that a
// booking that would take too long takes nothing.
func bookedInstants(f *fixture) {
	for _, rule := range f.bookable() {
		q, last := rule.For("k", 1), time.Duration(0)
		for i := range 6 {
			d := f.book(weir.Never, q).Decision
			if !d.Allowed || d.Delay < last || i < 2 && d.Delay != 0 || i > 1 && d.Delay == 0 {
				f.Fatalf("%s: booking %d: got %+v after one in %v", rule, i, d, last)
			}
			last = d.Delay
		}
		before := f.peek(q)
		if before.Allowed || before.RetryAfter < last {
			f.Errorf("%s: after a booking in %v: got %+v, want nothing admitted before", rule, last, before)
		}
		if d := f.book(last-f.tick, q).Decision; d.Allowed || d.RetryAfter == 0 {
			f.Errorf("%s: a booking within %v: got %+v, want a refusal", rule, last-f.tick, d)
		}
		if after := f.peek(q); after != before {
			f.Errorf("%s: a refused booking wrote: got %+v, want %+v", rule, after, before)
		}
		f.clock.advance(last - f.tick)
		if d := f.take(q); d.Allowed {
			f.Errorf("%s: a tick before the newest instant: got %+v, want a refusal", rule, d)
		}
		f.clock.advance(f.tick)
	}
}

// newestBooking tests that bookings that are cancelled from the newest on leave no trace, and that cancelling an
// earlier one moves no later one.
func newestBooking(f *fixture) {
	for _, rule := range f.bookable() {
		q := rule.For("k", 1)
		var booked []*weir.Reservation
		var before []weir.Decision
		for range 6 {
			before = append(before, f.peek(q))
			booked = append(booked, f.book(weir.Never, q))
		}
		for i := 5; i >= 0; i-- {
			f.cancel(booked[i])
			if after := f.peek(q); after != before[i] {
				f.Errorf("%s: booking %d cancelled: got %+v, want %+v", rule, i, after, before[i])
			}
		}
		for range 6 {
			booked = append(booked, f.book(weir.Never, q))
		}
		last := booked[len(booked)-1].Decision.Delay
		f.cancel(booked[8])
		if d := f.peek(q); d.Allowed || d.RetryAfter < last {
			f.Errorf("%s: an earlier booking cancelled: got %+v, want nothing before %v", rule, d, last)
		}
	}
}

// newestCycle tests that an earlier booking of a cycle which gives nothing back, because permits of a later cycle are
// used, does not keep the newest from being cancelled exactly.
func newestCycle(f *fixture) {
	if !reservesAhead(f.engine) {
		return
	}
	q := f.rule("book", weir.Cycle{Rate: weir.Per(1, 10*time.Second)}).For("k", 1)
	f.book(weir.Never, q)
	earlier, newest := f.book(weir.Never, q), f.book(weir.Never, q)
	f.clock.advance(earlier.Decision.Delay)
	f.cancel(earlier)
	f.cancel(newest)
	if d := f.peek(q); d.RetryAfter != 10*time.Second {
		f.Errorf("the newest booking cancelled: got %+v, want the next permit in 10s", d)
	}
}

// raisedBooking tests that a booking which is refused under a faster rate than that of the take before is admitted at
// RetryAfter, and not before, although only such bookings ask for the key.
func raisedBooking(f *fixture) {
	if !reservesAhead(f.engine) {
		return
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 60 {
		slow, fast := time.Duration(r.Int64N(3600)+30)*time.Second, time.Duration(r.Int64N(20)+1)*time.Second
		longest, taken, cost := time.Duration(r.Int64N(900))*time.Millisecond, int64(3), 1+r.Int64N(3)
		if i%3 == 2 { // units of one cost delay each other, however empty a leaky bucket is
			taken, cost = 1, 1
		}
		limits := func(unit time.Duration) []weir.Limit {
			bucket := weir.TokenBucket{Rate: weir.Per(1, unit), Burst: 3}
			switch i % 3 {
			case 0:
				return []weir.Limit{bucket}
			case 1:
				return []weir.Limit{bucket, weir.Cycle{Rate: weir.Per(9, time.Second)}}
			}
			return []weir.Limit{weir.LeakyBucket{Rate: weir.Per(1, unit), Queue: 3}}
		}
		name := fmt.Sprint("raised ", i)
		before, after := f.rule(name, limits(slow)...), f.rule(name, limits(fast)...)
		f.take(before.For("k", taken))
		f.refusedUntil(longest, after.For("k", cost), time.Duration(cost)*fast-longest)
	}
}

// refusedUntil tests that a booking within longest is refused for retry.
func (f *fixture) refusedUntil(longest time.Duration, q weir.Request, retry time.Duration) {
	f.Helper()
	if d := f.book(longest, q).Decision; d.Allowed || d.RetryAfter != retry {
		f.Fatalf("%s: %d within %v: got %+v, want a refusal for %v", q.Rule, q.Cost, longest, d, retry)
	}
	f.clock.advance(retry - f.tick)
	if d := f.book(longest, q).Decision; d.Allowed || d.RetryAfter != f.tick {
		f.Errorf("%s: %d within %v, %v before RetryAfter %v: got %+v", q.Rule, q.Cost, longest, f.tick, retry, d)
	}
	f.clock.advance(f.tick)
	if d := f.book(longest, q).Decision; !d.Allowed || d.Delay != longest {
		f.Errorf("%s: %d within %v, at RetryAfter %v: got %+v", q.Rule, q.Cost, longest, retry, d)
	}
}
