package line

import "github.com/weirflow/weir/internal/algorithm"

// putBookingsFirst finds the places of the bookings after a change. A booking goes at its promised instant in any case, so its
// units have to be taken then, and not after those of a waiter that the change has delayed. A waiter that came before a booking
// also goes before it as long as both have their units by the promised instant.
func (l *line) putBookingsFirst(now int64) {
	if l.bookings == 0 {
		return
	}
	var waiters, bookings []*Waiter
	for w := range l.order.all {
		if w.isBooking() {
			bookings = append(bookings, w)
		} else {
			waiters = append(waiters, w)
		}
	}
	var p plan
	p.begin(l, now)
	p.at = max(p.at, now)
	ordered := make([]*Waiter, 0, l.length)
	for _, booking := range bookings {
		for len(waiters) > 0 && waiters[0].number < booking.number {
			next := p
			if next.add(l, waiters[0]); !next.leaves(l, booking) {
				break
			}
			p, ordered, waiters = next, append(ordered, waiters[0]), waiters[1:]
		}
		p.add(l, booking)
		ordered = append(ordered, booking)
	}
	l.order.arrange(append(ordered, waiters...))
}

// leaves reports whether the plan leaves a booking the units that it needs by its promised instant.
func (p *plan) leaves(l *line, booking *Waiter) bool {
	hold := algorithm.Hold(l.subject.algorithm, p.state, p.at, booking.n)
	return algorithm.AddSaturating(p.at, hold) <= booking.promised
}

// arrange puts the waiters of the only flow in another order.
func (o *order) arrange(waiters []*Waiter) {
	f := &o.own
	f.first, f.last, f.sums = nil, nil, nil
	for _, w := range waiters {
		if w.previous, w.next = f.last, nil; f.last == nil {
			f.first = w
		} else {
			f.last.next = w
		}
		f.last = w
	}
}
