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
	e := max(now, q.A)
	gone := q.before(e, l.period)
	return max(l.gapLeft(q, e, now), l.wait(q, gone, q.since(gone), now, n))
}

// wait is that of a log without its gap, of which so many entries are gone, and
// so many units are used.
func (l *SlidingLog) wait(q *log, gone int, used, now, n int64) int64 {
	over := used + n - l.limit
	if over <= 0 {
		return 0
	}
	return AddSaturating(subSat(q.at(q.unit(gone, over)), now), l.period)
}

// gapLeft is how long the gap after the newest entry still lasts at e.
func (l *SlidingLog) gapLeft(q *log, e, now int64) int64 {
	if newest := q.newest(); uint64(e-newest) < uint64(l.gap) {
		return AddSaturating(subSat(newest, now), l.gap)
	}
	return 0
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

// decide is the verb Take of one part, in one pass over the log. It is not done
// for costs that take no decision, and where refusals are written.
func (l *SlidingLog) decide(s *State, now, n int64, a *Answer) (done bool) {
	if uint64(n-1) >= uint64(l.limit) || l.countDenied {
		return false
	}
	q := (*log)(s)
	e, gone, gap := max(now, q.A), 0, int64(0)
	if q.length() > 0 {
		gone, gap = q.before(e, l.period), l.gapLeft(q, e, now)
	}
	used := q.since(gone)
	a.RetryAfter = max(gap, l.wait(q, gone, used, now, n))
	if a.RetryAfter == 0 {
		q.drop(gone)
		q.push(e, n, l.limit)
		used, gap = used+n, l.gap
		a.Allowed, a.Changed = true, true
	}
	a.Limit = l.limit
	if gap == 0 {
		a.Remaining = max(l.limit-used, 0)
	}
	a.ResetAfter = AddSaturating(subSat(q.newest(), now), l.period) // there is one: the gap is not longer
	return true
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

// AppendState appends the log.
func (l *SlidingLog) AppendState(into []int64, s State) []int64 { return (*log)(&s).appendTo(into) }

// RestoreState refuses what is not a log.
func (l *SlidingLog) RestoreState(numbers []int64) (State, bool) { return restoreLog(numbers) }
