package algorithm

import "math"

// FixedWindow counts the units of the current window. Windows are aligned to the epoch. State: A is the number of the
// window, B its count. Times before the stored window are clamped to its start.
type FixedWindow struct {
	Plain
	limit, period int64
	layout        windowLayout
}

// NewFixedWindow returns a limit of limit units in each window of period ns.
func NewFixedWindow(limit, period int64) *FixedWindow {
	return &FixedWindow{limit: limit, period: period, layout: layoutOf(period)}
}

// Wait returns the time to the next window, unless n fits now.
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

// Give subtracts n from the count of the current window, even if the units were taken in an earlier one.
func (f *FixedWindow) Give(s State, now, n int64) State {
	s = f.at(s, now)
	s.B = max(s.B-n, 0)
	return s
}

// Room returns the units that the count leaves.
func (f *FixedWindow) Room(s State, now int64) int64 {
	return max(f.limit-f.at(s, now).B, 0)
}

// Fresh returns an empty window before all others.
func (f *FixedWindow) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the limit.
func (f *FixedWindow) Capacity() int64 { return f.limit }

// at returns the state as of now, without the count of an earlier window.
func (f *FixedWindow) at(s State, now int64) State {
	if window, _ := floorDivMod(now, f.period); window > s.A {
		return State{A: window}
	}
	return s
}

// until returns the time from now to the instant elapsed after the start of a window. The instant is not before now
// and may lie beyond the range of the type.
func until(window, elapsed, now, period int64) int64 {
	start := mul(window, period)
	return start.add(mul(elapsed, 1)).sub(mul(now, 1)).ceilDiv(1)
}

// AppendState appends the window and its count.
func (f *FixedWindow) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 2) }

// RestoreState refuses numbers that are not the count of a window.
func (f *FixedWindow) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 2)
	return s, ok && isCount(s.B) && isWindow(s, f.period, 0)
}
