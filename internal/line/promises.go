package line

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
)

// span sums up consecutive bookings, each with the waiters that arrived between the previous booking and itself. The spans
// of a line form a tree, so that tail does not walk through the line.
//
// If the limit is full at the instant of a booking, nothing before it delays the end of the line. Otherwise all costs add
// up, as in a line without bookings.
type span struct {
	units int64 // the costs
	// full is the only booking at whose instant the limit can be full, and since the costs from it on.
	full  *Booking
	since int64
	// tight is the booking that can bear the least delay, and through the costs up to it, its own among them.
	tight   *Booking
	through int64
	late    bool // in order of arrival, a booking behind another one comes after its promised instant
}

// before returns the span of s and next.
func (s span) before(next span, a algorithm.Algorithm) span {
	switch {
	case s.full == nil:
		return next
	case next.full == nil:
		return s
	}
	// refills reports whether a limit that is full at the instant of b is full at that of c if n units are taken.
	refills := func(b, c *Booking, n int64) bool {
		return a.Wait(a.Take(a.Fresh(), b.promised, n), c.promised, a.Capacity()) == 0
	}
	s.late = s.late || next.late || next.delayed(a, a.Fresh(), s.full.spentAt(a), s.since)
	if !refills(s.tight, next.tight, s.units-s.through+next.through) {
		s.tight, s.through = next.tight, s.units+next.through
	}
	s.units, s.since = s.units+next.units, s.since+next.units
	if refills(s.full, next.full, s.since-next.since) {
		s.full, s.since = next.full, next.since
	}
	return s
}

// delayed reports whether, in order of arrival, a booking comes after its promised instant if n units are taken from a state
// first.
func (s span) delayed(a algorithm.Algorithm, state algorithm.State, from, n int64) bool {
	return algorithm.AddSaturating(from, algorithm.UntilDue(a, state, from, n+s.through)) > s.tight.promised
}

// bookingsAddUp reports whether a line with bookings is summable: no waiter yields to a booking, or any two costs
// fit into the limit together, which is then not full meanwhile.
func (l *line) bookingsAddUp(from int64) bool {
	a, state, all := l.subject.algorithm, l.subject.State, l.promises()
	twoFit := algorithm.UntilDue(a, a.Fresh(), from, 2*l.largest) == 0
	return a.AddsUp(state, from, all.units+l.queue.Units()) && (twoFit || !all.late && !all.delayed(a, state, from, 0))
}

// promises returns the span of all bookings. A new tree has room for a quarter more of them.
func (l *line) promises() span {
	if l.spans == nil {
		l.spans, l.gone = make([]span, 1<<bits.Len(uint(len(l.bookings)*5/4+1))), 0
		for i := len(l.spans) - 1; i > 0; i-- {
			l.join(i)
		}
	}
	return l.spans[1]
}

// join makes a span of its halves.
func (l *line) join(i int) { l.spans[i] = l.span(2*i).before(l.span(2*i+1), l.subject.algorithm) }

// span returns a span of the tree, or that of one booking.
func (l *line) span(i int) span {
	if i < len(l.spans) {
		return l.spans[i]
	}
	if i -= len(l.spans) + l.gone; i < 0 || i >= len(l.bookings) {
		return span{}
	}
	b := l.bookings[i]
	n := b.between + b.Cost
	return span{units: n, full: b, since: b.Cost, tight: b, through: n}
}

// changed updates the spans after the i-th booking has come, changed or gone.
func (l *line) changed(i int) {
	if i += l.gone + len(l.spans); i >= 2*len(l.spans) {
		l.spans = nil
		return
	}
	for i /= 2; i > 0; i /= 2 {
		l.join(i)
	}
}

// left updates the spans after w has left the line.
func (l *line) left(w *Waiter) {
	i, _ := slices.BinarySearchFunc(l.bookings, w.Arrival, func(b *Booking, arrival uint64) int { return cmp.Compare(b.arrival, arrival) })
	if i < len(l.bookings) {
		l.bookings[i].between -= w.Cost
		l.between -= w.Cost
		l.changed(i)
	}
}
