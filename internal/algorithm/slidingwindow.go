package algorithm

import "math"

// SlidingWindow weighs the count of the previous window by the part of it that the last period still covers. State: A
// is the number of the window, B its count, C the count of the previous window. Times before the stored window are
// clamped to its start.
type SlidingWindow struct {
	limit, period int64
	layout        windowLayout
}

// NewSlidingWindow returns a limit of limit units in about any interval of period ns.
func NewSlidingWindow(limit, period int64) *SlidingWindow {
	return &SlidingWindow{limit: limit, period: period, layout: layoutOf(period)}
}

// Wait returns the time until before × (period - elapsed) + (count + n) × period <= limit × period. That is in this
// window, while the weight of the previous one falls, or in the next window, while the weight of this one falls.
func (l *SlidingWindow) Wait(s State, now, n int64) int64 {
	s, elapsed := l.at(s, now)
	if s.B+n <= l.limit {
		at := l.fits(s.C, l.limit-s.B-n)
		if elapsed >= at {
			return 0
		}
		return until(s.A, at, now, l.period)
	}
	return until(s.A, l.period+l.fits(s.B, l.limit-n), now, l.period)
}

// Take adds n to the count of the window.
func (l *SlidingWindow) Take(s State, now, n int64) State {
	s, _ = l.at(s, now)
	s.B = min(s.B+min(n, maxUnits), maxUnits)
	return s
}

// Give subtracts n from the count of the current window, even if the units were taken in an earlier one.
func (l *SlidingWindow) Give(s State, now, n int64) State {
	s, _ = l.at(s, now)
	s.B = max(s.B-n, 0)
	return s
}

// Room returns limit - count - the weighted previous count, rounded up.
func (l *SlidingWindow) Room(s State, now int64) int64 {
	s, elapsed := l.at(s, now)
	return max(l.limit-s.B-mul(s.C, l.period-elapsed).ceilDiv(l.period), 0)
}

// Fresh returns an empty window before all others.
func (l *SlidingWindow) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the limit.
func (l *SlidingWindow) Capacity() int64 { return l.limit }

func (l *SlidingWindow) Solitary() bool { return false }

// at returns the state as of now and the elapsed part of its window.
func (l *SlidingWindow) at(s State, now int64) (_ State, elapsed int64) {
	window, elapsed := floorDivMod(now, l.period)
	switch {
	case window == s.A:
		return s, elapsed
	case window < s.A:
		return s, 0
	case window-1 == s.A:
		return State{A: window, C: s.B}, elapsed
	}
	return State{A: window}, elapsed
}

// fits returns the elapsed time of a window from which before units of the previous window weigh at most room. At the
// full period they weigh nothing.
func (l *SlidingWindow) fits(before, room int64) int64 {
	if before <= room {
		return 0
	}
	return l.period - mul(room, l.period).floorDiv(before)
}

// AppendState appends the window, its count, and the count before.
func (l *SlidingWindow) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 3) }

// RestoreState refuses numbers that are not the counts of a window.
func (l *SlidingWindow) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 3)
	return s, ok && isCount(s.B) && isCount(s.C) && isWindow(s, l.period, 0)
}
