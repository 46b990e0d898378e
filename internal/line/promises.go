package line

import "github.com/weirflow/weir/internal/algorithm"

// placeBookings finds the places of the bookings after a change. A booking goes at its promised instant in any case, so its
// units have to be taken then, and not after those of a waiter that the change has delayed. A waiter that came before a
// booking also goes before it as long as that leaves the bookings their units. Limits that do not plan keep the order of arrival.
func (l *line) placeBookings(now int64) {
	if l.bookings == 0 {
		return
	}
	waiters, bookings := l.apart()
	ordered := make([]*Waiter, 0, l.length)
	var p plan
	p.begin(l, now)
	p.at = max(p.at, now)
	for i, booking := range bookings {
		for len(waiters) > 0 && waiters[0].number < booking.number {
			next := p
			if next.add(l, waiters[0]); !next.leaves(l, bookings[i:min(i+lookAhead, len(bookings))]) {
				break
			}
			p, ordered, waiters = next, append(ordered, waiters[0]), waiters[1:]
		}
		p.add(l, booking)
		ordered = append(ordered, booking)
	}
	l.moved = len(waiters) > 0 && waiters[0].number < bookings[len(bookings)-1].number
	for i := 1; i < len(ordered) && !l.moved; i++ {
		l.moved = ordered[i].number < ordered[i-1].number
	}
	l.order.arrange(append(ordered, waiters...))
}

// lookAhead is the number of bookings that a waiter before them must leave their units. The costs of others behind these would
// have to differ a lot for a waiter to take theirs.
const lookAhead = 8

// apart returns the waiters and the bookings, each in order of arrival.
func (l *line) apart() (waiters, bookings []*Waiter) {
	for w := range l.order.all {
		if w.isBooking() {
			bookings = append(bookings, w)
		} else {
			waiters = append(waiters, w)
		}
	}
	return waiters, bookings
}

// leaves reports whether the plan leaves bookings the units that they need by their promised instants.
func (p plan) leaves(l *line, bookings []*Waiter) bool {
	a := l.subject.algorithm
	if !algorithm.Planned(a) {
		return true
	}
	for _, b := range bookings {
		if algorithm.AddSaturating(p.at, algorithm.Hold(a, p.state, p.at, b.n)) > b.promised {
			return false
		}
		p.add(l, b)
	}
	return true
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
