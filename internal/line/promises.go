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
		for len(waiters) > 0 && waiters[0].Arrival < booking.Arrival {
			next := p
			if next.add(l, waiters[0]); !next.leaves(l, bookings[i:min(i+lookAhead, len(bookings))]) {
				break
			}
			p, ordered, waiters = next, append(ordered, waiters[0]), waiters[1:]
		}
		p.add(l, booking)
		ordered = append(ordered, booking)
	}
	l.moved = len(waiters) > 0 && waiters[0].Arrival < bookings[len(bookings)-1].Arrival
	for i := 1; i < len(ordered) && !l.moved; i++ {
		l.moved = ordered[i].Arrival < ordered[i-1].Arrival
	}
	for _, w := range append(ordered, waiters...) {
		l.toEnd(w, w.Cost)
	}
}

// toEnd moves a waiter of the only flow to its end, with another cost.
func (l *line) toEnd(w *Waiter, cost int64) {
	l.queue.Remove(&w.Node)
	w.Cost = cost
	l.queue.Push(w, &w.Node, l.queue.Own(), 1)
}

// lookAhead is the number of bookings that a waiter before them must leave their units. The costs of others behind these would
// have to differ a lot for a waiter to take theirs.
const lookAhead = 8

// apart returns the waiters and the bookings, each in order of arrival.
func (l *line) apart() (waiters, bookings []*Waiter) {
	for w := range l.queue.All {
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
		if algorithm.AddSaturating(p.at, algorithm.Hold(a, p.state, p.at, b.Cost)) > b.promised {
			return false
		}
		p.add(l, b)
	}
	return true
}
