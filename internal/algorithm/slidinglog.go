package algorithm

import "math"

// SlidingLog remembers when each unit was taken. A unit taken at s counts until
// just before s + period, and attempts may have to keep a least gap. Only the
// newest limit units can matter to any answer, so no more are kept. Time behind
// the last write is taken as that instant. State: Log, nil while fresh.
type SlidingLog struct {
	limit, period, gap int64
	countDenied        bool
}

// NewSlidingLog makes a limit of so many units in any stretch of period ns.
func NewSlidingLog(limit, period, gap int64, countDenied bool) *SlidingLog {
	return &SlidingLog{limit: limit, period: period, gap: gap, countDenied: countDenied}
}

// Wait is the time until so many of the oldest units are gone that n fit, and
// until the gap has passed.
func (l *SlidingLog) Wait(s State, now, n int64) int64 {
	log := s.Log
	if log.empty() {
		return 0
	}
	newest, e := log.newest(), max(now, log.last)
	var wait int64
	if uint64(e-newest) < uint64(l.gap) {
		wait = addSat(subSat(newest, now), l.gap)
	}
	gone := log.before(e, l.period)
	if over := log.since(gone) + n - l.limit; over > 0 {
		last := log.unitFrom(gone, over)
		wait = max(wait, addSat(subSat(last, now), l.period))
	}
	return wait
}

// Take logs n units and forgets what cannot matter any more.
func (l *SlidingLog) Take(s State, now, n int64) State {
	e := now
	if s.Log == nil {
		s.Log = &Log{}
	} else {
		e = max(now, s.Log.last)
		s.Log.drop(s.Log.before(e, l.period))
	}
	n = min(n, l.limit)
	s.Log.keepNewest(l.limit - n)
	s.Log.push(e, n, l.limit)
	return s
}

// Give lets the oldest n units that still count leave. An empty log still knows
// its last instant: what it has forgotten must not be missed if time runs back.
func (l *SlidingLog) Give(s State, now, n int64) State {
	if s.Log.empty() {
		return s
	}
	s.Log.last = max(now, s.Log.last)
	s.Log.drop(s.Log.before(s.Log.last, l.period))
	s.Log.keepNewest(s.Log.units() - min(n, s.Log.units()))
	return s
}

// Room is what the window leaves, and nothing within a gap.
func (l *SlidingLog) Room(s State, now int64) int64 {
	log := s.Log
	if log.empty() {
		return l.limit
	}
	e := max(now, log.last)
	if uint64(e-log.newest()) < uint64(l.gap) {
		return 0
	}
	return max(l.limit-log.since(log.before(e, l.period)), 0)
}

// Fresh is an empty log.
func (l *SlidingLog) Fresh() State { return State{} }

// Capacity is the limit.
func (l *SlidingLog) Capacity() int64 { return l.limit }

// CountsDenied says that refused attempts are logged as well.
func (l *SlidingLog) CountsDenied() bool { return l.countDenied }

// Solitary is true where refusals are written: another limit's refusal would
// be logged too.
func (l *SlidingLog) Solitary() bool { return l.countDenied }

// Log is a queue of entries, oldest first, in a ring that grows as needed. The
// units taken at one instant are one entry. Counts are kept as running totals,
// so that the unit which has to leave is found by bisection; they may wrap, and
// only their differences are used.
type Log struct {
	ring    []entry
	head    int    // index of the oldest entry
	length  int    // entries in use
	dropped uint64 // total of the units that have left
	last    int64  // the instant of the last write, at or after the newest entry

	leases []lease // of Concurrency, which has no ring
}

type entry struct {
	at    int64
	total uint64 // units ever logged, up to and with this entry
}

func (l *Log) empty() bool { return l == nil || l.length == 0 }

// Len is how many entries the log has room for, to measure what it costs.
func (l *Log) Len() int { return len(l.ring) }

func (l *Log) entry(i int) *entry {
	i += l.head
	if i >= len(l.ring) {
		i -= len(l.ring)
	}
	return &l.ring[i]
}

func (l *Log) newest() int64 { return l.entry(l.length - 1).at }

// total is the running total before the i-th entry.
func (l *Log) total(i int) uint64 {
	if i == 0 {
		return l.dropped
	}
	return l.entry(i - 1).total
}

func (l *Log) units() int64 { return l.since(0) }

// since is the units of the i-th entry and all newer ones.
func (l *Log) since(i int) int64 { return int64(l.total(l.length) - l.total(i)) }

// before is how many entries no longer count at e: those with at + period <= e.
func (l *Log) before(e, period int64) int {
	if e < math.MinInt64+period {
		return 0
	}
	return l.search(0, func(x *entry) bool { return x.at > e-period })
}

// unitFrom is the instant of the n-th unit, counted from the i-th entry on.
func (l *Log) unitFrom(i int, n int64) int64 {
	from := l.total(i)
	return l.entry(l.search(i, func(x *entry) bool { return x.total-from >= uint64(n) })).at
}

// search is the first entry from i on for which found is true; it stays true
// for all newer ones. The oldest entry is the likely answer and is tried first.
func (l *Log) search(i int, found func(*entry) bool) int {
	if i < l.length && found(l.entry(i)) {
		return i
	}
	low, high := i, l.length
	for low < high {
		mid := int(uint(low+high) / 2)
		if found(l.entry(mid)) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// drop forgets the n oldest entries.
func (l *Log) drop(n int) {
	if n == 0 {
		return
	}
	l.dropped = l.total(n)
	l.head = (l.head + n) % len(l.ring)
	l.length -= n
}

// keepNewest forgets the oldest units until at most n are left.
func (l *Log) keepNewest(n int64) {
	over := l.units() - n
	if over <= 0 {
		return
	}
	dropped := l.dropped + uint64(over)
	l.drop(l.search(0, func(x *entry) bool { return int64(x.total-dropped) > 0 }))
	l.dropped = dropped
}

// push logs n units at an instant that is not behind the newest. There are
// never more entries than most.
func (l *Log) push(at, n, most int64) {
	total := l.total(l.length) + uint64(n)
	l.last = at
	if l.length > 0 && l.newest() == at {
		l.entry(l.length - 1).total = total
		return
	}
	if l.length == len(l.ring) {
		l.grow(most)
	}
	l.length++
	*l.entry(l.length - 1) = entry{at: at, total: total}
}

func (l *Log) grow(most int64) {
	ring := make([]entry, min(int64(max(4, 2*len(l.ring))), most))
	for i := range l.length {
		ring[i] = *l.entry(i)
	}
	l.ring, l.head = ring, 0
}
