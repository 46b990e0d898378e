package algorithm

// SlidingLog stores the instant of each unit. A unit taken at s counts until just before s + period. A gap may
// separate attempts. Times before the last write are clamped to it. State: that of a log.
//
// A log keeps every unit that still counts, because a later limit may be larger. Refusals that count have no bound, so
// with them it keeps the newest units, as many as the largest limit: no answer depends on older ones.
type SlidingLog struct {
	Plain
	limit, period, gap int64
	countDenied        bool
}

// NewSlidingLog returns a limit of limit units in any interval of period ns.
func NewSlidingLog(limit, period, gap int64, countDenied bool) *SlidingLog {
	return &SlidingLog{limit: limit, period: period, gap: gap, countDenied: countDenied}
}

// Wait returns the time until enough of the oldest units have left for n to fit and the gap has passed.
func (l *SlidingLog) Wait(s State, now, n int64) int64 {
	wait := l.wait((*log)(&s), now, n)
	if l.gap > 0 {
		wait = max(wait, l.GapLeft(s, now))
	}
	return wait
}

// wait returns the wait without a gap.
func (l *SlidingLog) wait(q *log, now, n int64) int64 {
	if q.length() == 0 {
		return 0
	}
	gone := q.before(max(now, q.A), l.period)
	over := q.since(gone) + n - l.limit
	if over <= 0 {
		return 0
	}
	return AddSaturating(subSat(q.at(q.unit(gone, over)), now), l.period)
}

// GapLeft returns the rest of the gap after the newest entry.
func (l *SlidingLog) GapLeft(s State, now int64) int64 {
	q := (*log)(&s)
	if l.gap == 0 || q.length() == 0 {
		return 0
	}
	if newest := q.newest(); uint64(max(now, q.A)-newest) < uint64(l.gap) {
		return AddSaturating(subSat(newest, now), l.gap)
	}
	return 0
}

// Take logs n units and drops those that have left the window.
func (l *SlidingLog) Take(s State, now, n int64) State {
	q := (*log)(&s)
	e := max(now, q.A)
	q.drop(q.before(e, l.period))
	if !l.countDenied || q.length() == 0 {
		q.Unit = 0
	}
	if l.countDenied {
		q.Unit = max(q.Unit, l.limit, min(q.units(), l.limit+maxExtra)) // entries from before refusals counted stay
		n = min(n, q.Unit)
		q.keepNewest(q.Unit - n)
	}
	q.A = e
	q.add(e, n, max(l.limit, q.Unit), maxUnits)
	return s
}

// Records reports whether a record of units leaves a state of bounded size.
func (l *SlidingLog) Records(s State, now int64) bool {
	q := (*log)(&s)
	return l.countDenied || q.records(max(now, q.A), l.period, l.limit)
}

// Give removes the oldest n units that still count. An empty log keeps its last instant, because units that it has
// dropped must not be missing if time runs back.
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

// Room returns the units that the window leaves, or 0 within a gap.
func (l *SlidingLog) Room(s State, now int64) int64 {
	if l.gap > 0 && l.GapLeft(s, now) > 0 {
		return 0
	}
	return l.room((*log)(&s), now)
}

// room returns the room without a gap.
func (l *SlidingLog) room(q *log, now int64) int64 {
	return max(l.limit-q.since(q.before(max(now, q.A), l.period)), 0)
}

// Fresh returns an empty log.
func (l *SlidingLog) Fresh() State { return freshLog() }

// Capacity returns the limit.
func (l *SlidingLog) Capacity() int64 { return l.limit }

// CountsDenied reports whether the log includes refused attempts.
func (l *SlidingLog) CountsDenied() bool { return l.countDenied }

// Solitary reports whether refusals are logged: a combined limit would log the refusals of others.
func (l *SlidingLog) Solitary() bool { return l.countDenied }

// AppendState appends the log.
func (l *SlidingLog) AppendState(into []int64, s State) []int64 { return (*log)(&s).appendTo(into) }

// RestoreState refuses numbers that are not a log.
func (l *SlidingLog) RestoreState(numbers []int64) (State, bool) {
	return restoreLog(numbers, maxUnits)
}
