package linetest

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// This file has the lines of rates: for each process the oldest caller that the rate refused, booked or not.

// next returns when the rates admit the same again; 0 if others wait for them.
func (s *Server) next(p *process, lease uint64, requests []weir.Request, now time.Time) (next time.Duration) {
	for _, r := range requests {
		rate, has := rateOf(r)
		if !has {
			continue
		}
		if others, _ := s.key(r).older(p, lease, now.Add(2*theta), now); others > 0 {
			return 0
		}
		d, _ := s.Memory.Peek(context.Background(), rate)
		next = max(next, d.RetryAfter)
	}
	return next
}

// rateOf returns a request of the limits of a rule that are no slots.
func rateOf(r weir.Request) (rate weir.Request, has bool) {
	if isSlots(&r) {
		r.Rule = r.Rule.Spent()
	}
	return r, r.Rule != nil
}

func hasRate(r *weir.Request) bool {
	_, has := rateOf(*r)
	return has
}

// rateRefuses reports whether another limit than slots refuses a caller, or an older caller keeps its next unit.
func (s *Server) rateRefuses(p *process, c *enginekit.LineCaller, now time.Time) bool {
	due, firsts := time.Duration(0), make([]time.Duration, len(c.Requests))
	for i := range c.Requests {
		if rate, has := rateOf(c.Requests[i]); has {
			d, err := s.Memory.Peek(context.Background(), rate)
			if err != nil {
				c.Err = err
				return true
			}
			if !d.Allowed {
				firsts[i] = d.RetryAfter
			}
			if firsts[i] > due {
				c.Decision, due = d, d.RetryAfter
			}
		}
	}
	first := due
	for i := range c.Requests {
		if r := &c.Requests[i]; hasRate(r) {
			if count, till := s.key(*r).older(p, leaseOf(c), c.Since, now); count > 0 { // its turn comes later, but it looks soon
				firsts[i] = max(firsts[i], min(max(due, theta)+time.Duration(count)*unitOf(r), till.Sub(now), grace))
			}
			first = max(first, firsts[i])
		}
	}
	if first == 0 {
		return false
	}
	c.Decision.Allowed, c.Decision.RetryAfter, c.Decision.Cause = false, first, weir.ByCount
	for i := range c.Requests { // not where it would bar others for long while another rate refuses it
		r := &c.Requests[i]
		if hasRate(r) && (firsts[i] == first || first <= max(unitOf(r), grace)) {
			s.key(*r).keep(p, waiting{c.Since, now.Add(first + grace/4), leaseOf(c)}, now)
		}
	}
	return true
}

// keep keeps the place of a caller that a rate refuses, unless an older one of its process has one.
func (k *key) keep(p *process, it waiting, now time.Time) {
	if w := k.rates[p]; w == nil || !now.Before(w.till) || it.arrival.Before(w.arrival) || w.of(it.lease, it.arrival) {
		k.rates[p] = &it
	}
}

// of reports whether it is the place of a caller. Callers without slots share a lease, so their age tells them apart.
func (w *waiting) of(lease uint64, arrival time.Time) bool {
	return w.lease == lease && (lease != asker || arrival.Before(w.arrival.Add(theta)))
}

// older counts the callers of other processes that a rate refused before a caller, and returns until when the place of the
// oldest is kept.
func (k *key) older(p *process, lease uint64, since, now time.Time) (count int, till time.Time) {
	var first time.Time
	for q, w := range k.rates {
		switch {
		case !now.Before(w.till):
			delete(k.rates, q)
		case (q != p || w.lease != lease) && w.arrival.Before(since.Add(-theta)):
			if count++; count == 1 || w.arrival.Before(first) {
				first, till = w.arrival, w.till
			}
		}
	}
	return count, till
}

// unitOf returns how long the cost of a request takes.
func unitOf(r *weir.Request) (most time.Duration) {
	for _, l := range r.Rule.Limits() {
		if d := weir.Describe(l); d.Bookable {
			most = max(most, d.Rate.Of(r.Cost))
		}
	}
	return most
}

// served forgets a caller that a rate refused.
func (k *key) served(p *process, lease uint64, arrival time.Time) {
	if w := k.rates[p]; w != nil && w.of(lease, arrival) {
		delete(k.rates, p)
	}
}

// book books instants for callers of a process, unless an older caller of another process was refused before.
func (s *Server) book(p *process, book *enginekit.LineBook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	now, k := time.Now(), s.key(book.Callers[0].Requests[0])
	k.served(p, booker, book.Callers[0].Since)
	for i := range book.Callers {
		c := &book.Callers[i]
		longest := book.Horizon
		ahead, _ := k.older(p, booker, c.Since, now)
		if ahead > 0 {
			longest = -1
		}
		d, withdraw, err := s.reserveAhead(max(longest, 0), c.Requests[0])
		if err == nil && !d.Allowed && d.RetryAfter == weir.Never { // a caller that can never go keeps no place
			c.Decision = d
			continue
		}
		switch {
		case longest < 0 && d.Allowed:
			_ = withdraw(context.Background(), c.Requests[0].Cost)
			d.Allowed, d.Delay, d.RetryAfter, d.Cause = false, 0, max(d.Delay, time.Microsecond), weir.ByCount
		case !d.Allowed && d.RetryAfter < weir.Never-book.Horizon:
			d.RetryAfter += max(longest, 0)
		}
		if c.Decision, c.Err, c.Withdraw = d, err, withdraw; err == nil && d.Allowed {
			s.grants++
			continue
		}
		book.Retry = max(d.RetryAfter-book.Horizon, soonest) + min(time.Duration(ahead)*unitOf(&c.Requests[0]), grace)
		k.keep(p, waiting{c.Since, now.Add(book.Retry + 50*time.Millisecond + 4*p.way), 0}, now)
		for j := i + 1; j < len(book.Callers); j++ {
			book.Callers[j].Decision = d
		}
		return
	}
}
