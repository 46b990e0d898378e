package algorithm

import "math"

// FixedWindow counts the units of the current window; windows are aligned to
// the epoch. State: A is the number of the window, B its count. Time behind the
// stored window is taken as the start of it.
type FixedWindow struct {
	limit, period int64
	layout        windowLayout
}

// NewFixedWindow makes a limit of so many units in each window of period ns.
func NewFixedWindow(limit, period int64) *FixedWindow {
	return &FixedWindow{limit: limit, period: period, layout: layoutOf(period)}
}

// Wait is the time to the next window, unless n fits now.
func (f *FixedWindow) Wait(s State, now, n int64) int64 {
	s = f.at(s, now)
	if s.B+n <= f.limit {
		return 0
	}
	return until(s.A, f.period, now, f.period)
}

// Take adds n to the count of the window.
func (f *FixedWindow) Take(s State, now, n int64) State {
	s = f.at(s, now)
	s.B = min(s.B+min(n, maxUnits), maxUnits)
	return s
}

// Give takes n off the count of the current window, whenever they were taken.
func (f *FixedWindow) Give(s State, now, n int64) State {
	s = f.at(s, now)
	s.B = max(s.B-n, 0)
	return s
}

// Room is what the count leaves.
func (f *FixedWindow) Room(s State, now int64) int64 {
	return max(f.limit-f.at(s, now).B, 0)
}

// Fresh is an empty window before all others.
func (f *FixedWindow) Fresh() State { return State{A: math.MinInt64} }

// Capacity is the limit.
func (f *FixedWindow) Capacity() int64 { return f.limit }

// Solitary is false.
func (f *FixedWindow) Solitary() bool { return false }

// at is the state as of now: an earlier window no longer counts.
func (f *FixedWindow) at(s State, now int64) State {
	if window, _ := floorDivMod(now, f.period); window > s.A {
		return State{A: window}
	}
	return s
}

// until is the time from now to an instant that is not behind it: so long after
// the start of a window. The instant itself may lie beyond the end of time.
func until(window, elapsed, now, period int64) int64 {
	start := mul(window, period)
	return start.add(mul(elapsed, 1)).sub(mul(now, 1)).ceilDiv(1)
}

// AppendState appends the window and its count.
func (f *FixedWindow) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 2) }

// RestoreState refuses what is not a count.
func (f *FixedWindow) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 2)
	return s, ok && isCount(s.B)
}
