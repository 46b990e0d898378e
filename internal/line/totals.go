package line

import (
	"math"

	"github.com/weirflow/weir/internal/algorithm"
)

// totals are figures about all waiters of a line.
type totals struct {
	length            int
	bookings          int
	arrived           uint64 // waiters so far
	smallest, largest int64  // the costs since the line began
	newest            int64  // the latest arrival since the line began
	ranBack           bool   // the time ran back behind an arrival
}

// hugeCost is a cost above which sums could overflow.
const hugeCost = 1 << 32

func newTotals() totals { return totals{smallest: math.MaxInt64, newest: math.MinInt64} }

func (t *totals) add(w *Waiter) {
	t.length++
	t.arrived++
	w.Arrival = t.arrived
	if w.isBooking() {
		t.bookings++
	}
	t.smallest, t.largest, t.newest = min(t.smallest, w.Cost), max(t.largest, w.Cost), max(t.newest, w.arrived)
}

func (t *totals) remove(w *Waiter) {
	t.length--
	if w.isBooking() {
		t.bookings--
	}
}

// inTurn reports whether all waiters arrived before the head of the line is due and none has a promised instant. Then
// only the costs determine the releases.
func (t *totals) inTurn() bool { return t.bookings == 0 && !t.ranBack }

// summable reports whether the costs of the line add up under its limit, as of an instant.
func (l *line) summable() (from int64, ok bool) {
	s, head := l.subject, l.queue.First()
	if head == nil || !l.inTurn() || l.largest > min(hugeCost, s.algorithm.Capacity()) {
		return 0, false
	}
	from = max(head.arrived, l.since)
	return from, algorithm.AddsUp(s.algorithm, s.State, from, l.queue.Units())
}

// summed plans in one step the release of the first waiters of a summable line, whose costs are units.
func (l *line) summed(from, units int64) (state algorithm.State, at int64) {
	s := l.subject
	if units == 0 {
		return s.State, l.since
	}
	at = algorithm.AddSaturating(from, algorithm.Hold(s.algorithm, s.State, from, units))
	return s.algorithm.Take(s.State, from, units), at
}
