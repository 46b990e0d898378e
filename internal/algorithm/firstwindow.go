package algorithm

import "math"

// FirstWindow counts the units of a window that begins with its first use. State: A is the start of the window, B its
// count. A state without units is fresh. Times before the start are clamped to it.
type FirstWindow struct {
	Plain
	limit, period int64
}

// NewFirstWindow returns a limit of limit units in the period ns that follow the first of them.
func NewFirstWindow(limit, period int64) *FirstWindow {
	return &FirstWindow{limit: limit, period: period}
}

// Wait returns the time to the end of the window, unless n fits now.
func (f *FirstWindow) Wait(s State, now, n int64) int64 {
	left := f.left(s, now)
	if left == 0 || s.B+n <= f.limit {
		return 0
	}
	return left
}

// Take adds n to the count of the window, or begins one now.
func (f *FirstWindow) Take(s State, now, n int64) State {
	if f.left(s, now) == 0 {
		s = State{A: now}
	}
	s.B = min(s.B+min(n, maxUnits), maxUnits)
	return s
}

// Give subtracts n from the count of the open window.
func (f *FirstWindow) Give(s State, now, n int64) State {
	switch {
	case f.left(s, now) == 0:
		return s
	case n >= s.B:
		return f.Fresh()
	}
	s.B -= n
	return s
}

// Room returns the units that the count leaves.
func (f *FirstWindow) Room(s State, now int64) int64 {
	if f.left(s, now) == 0 {
		return f.limit
	}
	return max(f.limit-s.B, 0)
}

// Fresh returns a state without units.
func (f *FirstWindow) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the limit.
func (f *FirstWindow) Capacity() int64 { return f.limit }

// TakenAt returns the start of the window if now is before it.
func (f *FirstWindow) TakenAt(s State, now int64) int64 { return max(now, s.A) }

// Undo subtracts n from the count if the open window is that of the take.
func (f *FirstWindow) Undo(s State, taken, now, n int64) State {
	if f.left(s, now) == 0 || taken < s.A || !f.opens(s.A, taken) {
		return s
	}
	return f.Give(s, now, n)
}

// left returns the time to the end of the open window, which saturates. It is 0 if there is none.
func (f *FirstWindow) left(s State, now int64) int64 {
	switch {
	case s.B == 0:
		return 0
	case now < s.A:
		return AddSaturating(subSat(s.A, now), f.period)
	case !f.opens(s.A, now):
		return 0
	}
	return f.period - (now - s.A)
}

// opens reports whether a window from start is open at a later instant.
func (f *FirstWindow) opens(start, at int64) bool { return uint64(at)-uint64(start) < uint64(f.period) }

// AppendState appends the start of the window and its count.
func (f *FirstWindow) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 2) }

// RestoreState refuses a count that no window has. A state without units is the fresh one.
func (f *FirstWindow) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 2)
	return s, ok && isCount(s.B) && (s.B > 0 || s == f.Fresh())
}
