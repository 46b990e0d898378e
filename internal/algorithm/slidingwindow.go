package algorithm

import "math"

// SlidingWindow weighs the count of the window before by the part of it that
// the last period still covers. State: A is the number of the window, B its
// count, C that of the window before. Time behind the stored window is taken as
// the start of it.
type SlidingWindow struct {
	limit, period int64
	layout        windowLayout
}

// NewSlidingWindow makes a limit of so many units in about any period ns.
func NewSlidingWindow(limit, period int64) *SlidingWindow {
	return &SlidingWindow{limit: limit, period: period, layout: layoutOf(period)}
}

// Wait is the time until before × (period - elapsed) + (count + n) × period <=
// limit × period: in this window, while the weight of the one before falls, or
// in the next, while that of this one does.
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

// Give takes n off the count of the current window, whenever they were taken.
func (l *SlidingWindow) Give(s State, now, n int64) State {
	s, _ = l.at(s, now)
	s.B = max(s.B-n, 0)
	return s
}

// Room is limit - count - the weighted count before, rounded up.
func (l *SlidingWindow) Room(s State, now int64) int64 {
	s, elapsed := l.at(s, now)
	return max(l.limit-s.B-mul(s.C, l.period-elapsed).ceilDiv(l.period), 0)
}

// Fresh is an empty window before all others.
func (l *SlidingWindow) Fresh() State { return State{A: math.MinInt64} }

// Capacity is the limit.
func (l *SlidingWindow) Capacity() int64 { return l.limit }

// Solitary is false.
func (l *SlidingWindow) Solitary() bool { return false }

// at is the state as of now, and how much of its window has passed.
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

// fits is the elapsed time of a window from which on so many units of the
// window before weigh no more than room. At the full period nothing of it
// weighs any more.
func (l *SlidingWindow) fits(before, room int64) int64 {
	if before <= room {
		return 0
	}
	return l.period - mul(room, l.period).floorDiv(before)
}

// AppendState appends the window, its count, and the count before.
func (l *SlidingWindow) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 3) }

// RestoreState refuses what is not a count.
func (l *SlidingWindow) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 3)
	return s, ok && isCount(s.B) && isCount(s.C)
}
