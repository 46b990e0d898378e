package algorithm

import "math"

// This file holds the bookings of an engine: all limits of one rule and key together. R, the booked instant, is the
// latest of the limits' own instants. A limit whose own instant is R is booked as if it were alone. The others take
// their units at R.

// aheader is a booker that can also take units for a later instant than its own, and give those of a booking back.
type aheader interface {
	booker
	// BookAt returns the state after n units were booked for the instant due, which is after the limit's own.
	BookAt(s State, now, due, n int64) State
	// Withdraw returns the state after n units of a booking came back.
	Withdraw(s State, b *Booked, now, n int64) State
}

// Bookable reports whether an engine can book units of the limit for a later instant.
func Bookable(a Algorithm) bool {
	_, ok := a.(aheader)
	return ok || Stateless(a)
}

// BookAhead takes the cost of every part for the earliest instant when all parts admit it, if that is at most longest
// away, or takes nothing. The Delay of the answer is the time until that instant. Every limit must be Bookable.
func BookAhead(parts []Part, now, longest int64) Answer {
	for i := range parts {
		if parts[i].Cost > parts[i].Algorithm.Capacity() {
			return describe(parts, now, Never, i)
		}
	}
	wait, binding, until := bookingWait(parts, now, longest)
	if wait > 0 {
		answer := describe(parts, now, wait, binding)
		answer.Changed = refuseBooking(parts, now)
		return answer
	}
	changed := BookFor(parts, now, until)
	answer := describe(parts, now, 0, -1)
	answer.Changed, answer.Delay = changed, until
	return answer
}

// bookingWait returns the time until the parts can be booked, the part that waits longest, and the time until their
// instant.
func bookingWait(parts []Part, now, longest int64) (wait int64, binding int, until int64) {
	binding = -1
	for i := range parts {
		own := parts[i].UntilDue(now)
		w := max(subSat(own, longest), parts[i].backlog(now))
		if own == Never {
			w = max(w, 1)
		}
		if w > wait {
			wait, binding = w, i
		}
		until = max(until, own)
	}
	return wait, binding, until
}

// refuseBooking converts, like a refused Take, the states that delay the booking under a faster rate than the one that wrote
// them, so that the units drain as the answer says. A leaky bucket may delay it with room left.
func refuseBooking(parts []Part, now int64) (changed bool) {
	for i := range parts {
		if p := &parts[i]; p.UntilDue(now) > 0 {
			p.Changed = convertRefused(p.Algorithm, &p.State, now, p.Cost)
			changed = changed || p.Changed
		}
	}
	return changed
}

// UntilDue returns the time until the part's own instant.
func (p *Part) UntilDue(now int64) int64 {
	if p.Cost == 0 || Stateless(p.Algorithm) {
		return 0
	}
	return max(UntilDue(p.Algorithm, p.owned(now), now, p.Cost), 0)
}

// backlog returns the time until the limit has space for another booking.
func (p *Part) backlog(now int64) int64 {
	if p.Cost == 0 {
		return 0
	}
	wait := p.Algorithm.Backlog(p.State, now, p.Cost)
	if Delays(p.Algorithm) {
		wait = max(wait, p.Algorithm.Wait(p.owned(now), now, p.Cost))
	}
	return wait
}

// owned returns the state as the limit would have written it. A booking converts the state of another rate.
func (p *Part) owned(now int64) State {
	if p.Algorithm.Owns(p.State) {
		return p.State
	}
	return p.Algorithm.Carry(p.Algorithm, p.State, now)
}

// BookFor takes the cost of every part for now + until.
func BookFor(parts []Part, now, until int64) (changed bool) {
	for i := range parts {
		p := &parts[i]
		a, ok := p.Algorithm.(aheader)
		if !ok || p.Cost == 0 {
			continue
		}
		late := p.UntilDue(now) < until
		p.State = p.owned(now)
		if late {
			p.State = a.BookAt(p.State, now, AddSaturating(now, until), p.Cost)
		} else {
			p.State = a.Book(p.State, now, p.Cost)
		}
		p.Changed, changed = true, true
	}
	return changed
}

// Booked is the record of a booking in one limit, so that its units can come back.
type Booked struct {
	Before, After State // around the booking; zero for a limit with entries
	Due           int64 // the booked instant
	Cost          int64
}

// newest reports whether the booking lies ahead and is the newest that wrote s.
func (b *Booked) newest(s State, now int64) bool { return b.Due > now && same(s, b.After) }

// Withdraw returns the state after n units of a booking came back. All units of the newest booking come back exactly.
// Before a promised instant, other units come back only behind it, or not at all.
func Withdraw(a Algorithm, s State, b *Booked, now, n int64) State {
	if w, ok := a.(aheader); ok {
		return w.Withdraw(s, b, now, n)
	}
	return s
}

// same reports whether two states without entries are equal.
func same(a, b State) bool {
	return a.A == b.A && a.B == b.B && a.C == b.C && a.Unit == b.Unit && a.Converted == b.Converted && a.Promised == b.Promised
}

// BookAt takes n units at a promised instant.
func (b *TokenBucket) BookAt(s State, now, due, n int64) State {
	return promise(b.Take(s, due, n), now, due-now)
}

// Withdraw restores the state before the newest booking. Other units come back behind the promised instants.
func (b *TokenBucket) Withdraw(s State, k *Booked, now, n int64) State {
	if n == k.Cost && k.newest(s, now) {
		return k.Before
	}
	return b.Give(s, now, n)
}

// Withdraw restores the state before the newest booking. While a promised release lies ahead, nothing else comes back.
func (b *LeakyBucket) Withdraw(s State, k *Booked, now, n int64) State {
	switch {
	case n == k.Cost && k.newest(s, now):
		return k.Before
	case s.Promised > now:
		return s
	}
	return b.Give(s, now, n)
}

// BookAt takes n permits in the cycle of an instant.
func (c *Cycle) BookAt(s State, _, due, n int64) State { return c.Take(s, due, n) }

// Withdraw returns permits of the newest booking, and of another one in its own cycle. While permits of later cycles are
// booked, nothing else comes back, and the state stays as the newest booking left it.
func (c *Cycle) Withdraw(s State, k *Booked, now, n int64) State {
	switch {
	case n == k.Cost && k.newest(s, now):
		return k.Before
	case k.newest(s, now):
		return State{A: s.A, B: s.B - n}
	case c.ahead(s, now), c.at(s, now).B > c.limit:
		return s
	}
	return c.Undo(s, k.Due, now, n)
}

// ahead reports whether the stored cycle begins after now.
func (c *Cycle) ahead(s State, now int64) bool { return s.A > c.at(State{A: math.MinInt64}, now).A }

// BookAt logs n units at an instant.
func (g *RateGate) BookAt(s State, now, due, n int64) State {
	g.push((*log)(&s), now, due, n)
	return s
}

// Withdraw removes units of the booked instant. While a later instant lies ahead, nothing comes back.
func (g *RateGate) Withdraw(s State, k *Booked, now, n int64) State {
	q := (*log)(&s)
	switch {
	case q.length() == 0:
		return s
	case k.Due > now && q.newest() == k.Due:
		return g.Unbook(State{}, s, n)
	case q.newest() > now:
		return s
	}
	return g.Undo(s, k.Due, now, n)
}
