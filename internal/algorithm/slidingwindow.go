package algorithm

import "math"

// SlidingWindow weighs the count of the previous window by the part of it that the last period still covers. State: A
// is the number of the window, B its count, C the count of the previous window. Times before the stored window are
// clamped to its start.
type SlidingWindow struct {
	Plain
	limit, period int64
	layout        windowLayout
}

// NewSlidingWindow returns a limit of limit units in about any interval of period ns.
func NewSlidingWindow(limit, period int64) *SlidingWindow {
	return &SlidingWindow{limit: limit, period: period, layout: layoutOf(period)}
}

// Wait returns the time until before × (period - elapsed) + (count + n) × period <= limit × period.
func (l *SlidingWindow) Wait(s State, now, n int64) int64 {
	w, ahead := l.counts(s, now)
	if l.admits(&w, n) {
		return 0
	}
	return AddSaturating(l.refused(&w, n), ahead)
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
	w, _ := l.counts(s, now)
	return l.room(&w)
}

// Fresh returns an empty window before all others.
func (l *SlidingWindow) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the limit.
func (l *SlidingWindow) Capacity() int64 { return l.limit }

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

// counts returns the counts as of now, and the time until their window begins if now is before it.
func (l *SlidingWindow) counts(s State, now int64) (w windowCounts, ahead int64) {
	s, elapsed := l.at(s, now)
	if elapsed == 0 {
		ahead = until(s.A, 0, now, l.period)
	}
	return windowCounts{before: s.C, count: s.B, left: l.period - elapsed}, ahead
}

// AppendState appends the window, its count, and the count before.
func (l *SlidingWindow) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 3) }

// RestoreState refuses numbers that are not the counts of a window.
func (l *SlidingWindow) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 3)
	return s, ok && isCount(s.B) && isCount(s.C) && isWindow(s, l.period, 0)
}
