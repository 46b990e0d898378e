package algorithm

import (
	"math"
	"sort"
)

// log is a State that holds a queue of entries, oldest first. The units taken at one instant are one entry. A is the
// instant of the last write, at or after the newest entry, and initially math.MinInt64.
//
// A single entry is C, its instant, and B, its units. A second entry moves both into a ring in Log: pairs of an
// instant and the running total of units up to it. The length of Log is the used part of the ring, and its capacity
// the size. C is then the place of the oldest entry, and B the total of the units that have left. Because of the
// totals, bisection finds the unit that has to leave. Totals may wrap, since only their differences matter.
//
// Unit is 0, or the number of units that a log of refusals keeps: the largest limit that wrote an entry which may count.
type log State

// maxExtra is the number of entries above its limit that a state may have. Only a record makes them.
const maxExtra = 1 << 16

// records reports whether a record leaves at most limit + maxExtra entries that still count at e.
func (l *log) records(e, period, limit int64) bool {
	length := l.length()
	return length == 0 || l.newest() == e || int64(length-l.before(e, period)) < limit+maxExtra
}

// freshLog returns a log that was never written.
func freshLog() State { return State{A: math.MinInt64} }

func (l *log) single() bool { return l.Log == nil }

// ring returns the whole ring.
func (l *log) ring() []int64 { return (*l.Log)[:cap(*l.Log)] }

// length returns the number of entries.
func (l *log) length() int {
	if l.single() {
		if l.B > 0 {
			return 1
		}
		return 0
	}
	return len(*l.Log) / 2
}

// at returns the instant of the i-th entry.
func (l *log) at(i int) int64 {
	if l.single() {
		return l.C
	}
	return l.ring()[l.place(i)]
}

func (l *log) newest() int64 { return l.at(l.length() - 1) }

// total returns the running total before the i-th entry.
func (l *log) total(i int) int64 {
	switch {
	case i == 0 && l.single():
		return 0
	case i == 0 || l.single():
		return l.B
	}
	return l.ring()[l.place(i-1)+1]
}

// place returns the index of the i-th entry in the ring.
func (l *log) place(i int) int {
	p := int(l.C) + 2*i
	if size := cap(*l.Log); p >= size {
		p -= size
	}
	return p
}

func (l *log) units() int64 { return l.since(0) }

// since returns the units of the i-th entry and all newer ones.
func (l *log) since(i int) int64 { return l.total(l.length()) - l.total(i) }

// before returns the number of entries that no longer count at e: those with at + period <= e.
func (l *log) before(e, period int64) int {
	if e < math.MinInt64+period {
		return 0
	}
	return l.until(e - period)
}

// until returns the number of entries at or before an instant. Most often that is none.
func (l *log) until(t int64) int {
	length := l.length()
	if length == 0 || l.at(0) > t {
		return 0
	}
	return 1 + sort.Search(length-1, func(i int) bool { return l.at(i+1) > t })
}

// unit returns the entry of the n-th unit, counted from the i-th entry. Most often that is the newest.
func (l *log) unit(i int, n int64) int {
	from, last := l.total(i), l.length()-1
	if l.total(last)-from < n {
		return last
	}
	return i + sort.Search(last-i, func(k int) bool { return l.total(i+k+1)-from >= n })
}

// setLog replaces the numbers of Log in place.
func setLog(s *State, numbers []int64) {
	if s.Log == nil {
		s.Log = new([]int64)
	}
	*s.Log = numbers
}

// drop removes the n oldest entries.
func (l *log) drop(n int) {
	switch {
	case n == 0:
	case l.single():
		l.B = 0
	default:
		left := l.total(n)
		l.C, l.B = int64(l.place(n)), left
		*l.Log = (*l.Log)[:len(*l.Log)-2*n]
	}
}

// keepNewest removes the oldest units until at most n are left.
func (l *log) keepNewest(n int64) {
	over := l.units() - n
	if over <= 0 {
		return
	}
	if l.single() {
		l.B = n
		return
	}
	left := l.B + over
	if n == 0 {
		l.drop(l.length())
	} else {
		l.drop(l.unit(0, over+1)) // the entry of the oldest unit that stays
	}
	l.B = left
}

// push logs n units at an instant that is not before the newest entry. The ring grows to most entries, and above only
// for records.
func (l *log) push(at, n, most int64) {
	l.A = at
	if l.single() {
		switch {
		case l.B == 0:
			l.C, l.B = at, n
			return
		case l.C == at:
			l.B += n
			return
		}
		l.grow(most)
	}
	total, used := l.B, len(*l.Log)
	if used > 0 {
		ring, newest := l.ring(), l.place(used/2-1)
		if ring[newest] == at {
			ring[newest+1] += n
			return
		}
		total = ring[newest+1]
	}
	if used == cap(*l.Log) {
		l.grow(most)
	}
	*l.Log = (*l.Log)[:used+2]
	p, ring := l.place(used/2), l.ring()
	ring[p], ring[p+1] = at, total+n
}

// grow moves the entries to a larger ring that begins with the oldest. Each has room for about twice as many as the one
// before.
func (l *log) grow(most int64) {
	if l.single() {
		var first struct { // one allocation, and one place in memory
			ring  []int64
			space [2 * firstRing]int64
		}
		first.ring = first.space[: 2 : 2*max(min(firstRing, most), 2)] // the caller adds a second entry
		first.ring[0], first.ring[1] = l.C, l.B
		l.B, l.C, l.Log = 0, 0, &first.ring
		return
	}
	length, old := l.length(), l.ring()
	ring := make([]int64, 2*length, 2*max(min(int64(2*length+2), most), int64(length+1+length/8)))
	tail := copy(ring, old[l.C:][:min(2*length, len(old)-int(l.C))])
	copy(ring[tail:], old)
	l.C, *l.Log = 0, ring
}

const firstRing = 4 // entries

// add works like push up to full units in all.
func (l *log) add(at, n, most, full int64) {
	if n = min(n, full-l.units()); n > 0 {
		l.push(at, n, most)
	}
}

// cut removes n units from the i-th entry on and keeps the older ones.
func (l *log) cut(i int, n int64) {
	if l.single() {
		if i == 0 {
			l.B = max(l.B-n, 0)
		}
		return
	}
	ring, length := l.ring(), l.length()
	kept, previous, gone := i, l.total(i), int64(0)
	for ; i < length; i++ {
		at, total := l.at(i), l.total(i+1)
		units := total - previous
		previous = total
		out := min(units, n-gone)
		gone += out
		if units > out {
			p := l.place(kept)
			ring[p], ring[p+1] = at, total-gone
			kept++
		}
	}
	*l.Log = ring[:2*kept]
}

// appendTo appends the log as numbers: the last instant, Unit, and each entry as its instant and units. It appends
// nothing for a log that was never written.
func (l *log) appendTo(into []int64) []int64 {
	length := l.length()
	if length == 0 && l.A == math.MinInt64 {
		return into
	}
	into = append(into, l.A, l.Unit)
	for i := range length {
		into = append(into, l.at(i), l.total(i+1)-l.total(i))
	}
	return into
}

// restoreLog reads the numbers of appendTo. It refuses entries that are out of order or after the last instant, and
// more units than most.
func restoreLog(numbers []int64, most int64) (State, bool) {
	s := freshLog()
	if len(numbers) == 0 {
		return s, true
	}
	if len(numbers)%2 != 0 || !isCount(numbers[1]) || len(numbers) == 2 && numbers[0] == math.MinInt64 {
		return State{}, false
	}
	s.A, s.Unit = numbers[0], numbers[1]
	entries := make([]int64, 0, len(numbers)-2)
	var total int64
	for i := 2; i < len(numbers); i += 2 {
		at, units := numbers[i], numbers[i+1]
		if units < 1 || units > most-total || at > s.A || i > 2 && at <= numbers[i-2] {
			return State{}, false
		}
		total += units
		entries = append(entries, at, total)
	}
	if len(entries) == 2 {
		s.C, s.B = entries[0], entries[1]
	} else {
		s.Log = &entries
	}
	return s, true
}
