package algorithm

// SlidingLog remembers when each unit was taken. A unit taken at s counts until
// just before s + period, and attempts may have to keep a least gap. Only the
// newest limit units can matter to any answer, so no more are kept. Time behind
// the last write is taken as that instant. State: that of a log.
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
	q := (*log)(&s)
	if q.length() == 0 {
		return 0
	}
	newest, e := q.newest(), max(now, q.A)
	var wait int64
	if uint64(e-newest) < uint64(l.gap) {
		wait = addSat(subSat(newest, now), l.gap)
	}
	gone := q.before(e, l.period)
	if over := q.since(gone) + n - l.limit; over > 0 {
		last := q.at(q.unit(gone, over))
		wait = max(wait, addSat(subSat(last, now), l.period))
	}
	return wait
}

// Take logs n units and forgets what cannot matter any more.
func (l *SlidingLog) Take(s State, now, n int64) State {
	q := (*log)(&s)
	e := max(now, q.A)
	q.drop(q.before(e, l.period))
	n = min(n, l.limit)
	q.keepNewest(l.limit - n)
	q.push(e, n, l.limit)
	return s
}

// Give lets the oldest n units that still count leave. An empty log still knows
// its last instant: what it has forgotten must not be missed if time runs back.
func (l *SlidingLog) Give(s State, now, n int64) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return s
	}
	q.A = max(now, q.A)
	q.drop(q.before(q.A, l.period))
	q.keepNewest(q.units() - min(n, q.units()))
	return s
}

// Room is what the window leaves, and nothing within a gap.
func (l *SlidingLog) Room(s State, now int64) int64 {
	q := (*log)(&s)
	if q.length() == 0 {
		return l.limit
	}
	e := max(now, q.A)
	if uint64(e-q.newest()) < uint64(l.gap) {
		return 0
	}
	return max(l.limit-q.since(q.before(e, l.period)), 0)
}

// Fresh is an empty log.
func (l *SlidingLog) Fresh() State { return freshLog() }

// Capacity is the limit.
func (l *SlidingLog) Capacity() int64 { return l.limit }

// CountsDenied says that refused attempts are logged as well.
func (l *SlidingLog) CountsDenied() bool { return l.countDenied }

// Solitary is true where refusals are written: another limit's refusal would
// be logged too.
func (l *SlidingLog) Solitary() bool { return l.countDenied }
