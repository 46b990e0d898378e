package line

import (
	"math"

	"github.com/weirflow/weir/internal/algorithm"
)

// totals are figures about all waiters of a line.
type totals struct {
	length   int
	bookings int
	huge     int   // waiters whose costs are not in units
	units    int64 // the costs of the other waiters
	largest  int64 // the largest cost since the line began
	newest   int64 // the latest arrival since the line began
	ranBack  bool  // the time ran back behind an arrival
	last     *run
	own      run // with the line, because most lines have one run at a time
}

// hugeCost is a cost above which units could overflow.
const hugeCost = 1 << 32

// run is a part of a line of one class in which all costs are equal.
type run struct {
	n              int64
	waiters        int
	previous, next *run
}

func newTotals() totals { return totals{newest: math.MinInt64} }

func (t *totals) add(w *Waiter) {
	t.length++
	if w.isBooking() {
		t.bookings++
	}
	t.charge(w.n, 1)
	t.largest, t.newest = max(t.largest, w.n), max(t.newest, w.arrived)
	if t.last == nil || t.last.n != w.n {
		r := t.newRun()
		r.n, r.previous = w.n, t.last
		if t.last != nil {
			t.last.next = r
		}
		t.last = r
	}
	w.run = t.last
	w.run.waiters++
}

// newRun returns a run without waiters.
func (t *totals) newRun() *run {
	if t.own.waiters > 0 {
		return new(run)
	}
	t.own = run{}
	return &t.own
}

func (t *totals) remove(w *Waiter) {
	t.length--
	if w.isBooking() {
		t.bookings--
	}
	t.charge(w.n, -1)
	if w.run.waiters--; w.run.waiters == 0 {
		t.unlink(w.run)
	}
	w.run = nil
}

// changeCost changes the cost of a booking. The booking stays in its run, which is not used while the line has a
// booking.
func (t *totals) changeCost(w *Waiter, n int64) {
	t.charge(w.n, -1)
	w.in.charge(w, n-w.n)
	w.n = n
	t.charge(n, 1)
}

// charge adds a cost, or subtracts it if sign is -1.
func (t *totals) charge(n int64, sign int) {
	if n > hugeCost {
		t.huge += sign
	} else {
		t.units += n * int64(sign)
	}
}

func (t *totals) unlink(r *run) {
	if r.previous != nil {
		r.previous.next = r.next
	}
	if r.next != nil {
		r.next.previous = r.previous
	} else {
		t.last = r.previous
	}
}

// behind returns the number of waiters behind a run.
func (t *totals) behind(r *run) (waiters int) {
	for u := t.last; u != r; u = u.previous {
		waiters += u.waiters
	}
	return waiters
}

// inTurn reports whether all waiters arrived before the head of the line is due and none has a promised instant. Then
// only the costs determine the releases.
func (t *totals) inTurn() bool { return t.bookings == 0 && !t.ranBack }

// summable reports whether the costs of the line add up under its limit, as of an instant.
func (l *line) summable() (from int64, ok bool) {
	s, head := l.subject, l.order.next()
	if head == nil || !l.inTurn() || l.huge > 0 || l.largest > s.algorithm.Capacity() {
		return 0, false
	}
	from = max(head.arrived, l.since)
	return from, algorithm.AddsUp(s.algorithm, s.State, from, l.units)
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
