package algorithm

import (
	"math"
	"sync/atomic"

	"github.com/weirflow/weir/internal/calendar"
)

// Quota counts the units of the current window of a calendar. State: A is the Unix second of the last admission, which
// never decreases, and B the count since the window of that second began. The count of a state counts if the window of
// now holds A. So limits with other zones, days or counts can take over each other's states. Boundaries are whole
// seconds, so no answer depends on a fraction of A. Times before the window of A are clamped to its start.
type Quota struct {
	Plain
	limit    int64
	second   int64 // in ticks
	calendar calendar.Calendar
	recent   atomic.Pointer[quotaWindow] // the last one that was asked for
}

// quotaWindow holds the instants from start until just before end, in ticks and in seconds. Ticks saturate.
type quotaWindow struct {
	start, end  int64
	first, next int64
}

// NewQuota returns a limit of limit units in each window of a calendar. A second has a number of ticks.
func NewQuota(limit, second int64, c calendar.Calendar) *Quota {
	return &Quota{limit: limit, second: second, calendar: c}
}

// Wait returns the time to the next window, unless n fits now.
func (q *Quota) Wait(s State, now, n int64) int64 {
	count, w := q.counted(s, now)
	if count+n <= q.limit {
		return 0
	}
	return w.left(now)
}

// Take adds n to the count of the window.
func (q *Quota) Take(s State, now, n int64) State {
	count, _ := q.counted(s, now)
	return State{A: max(s.A, q.secondOf(now)), B: min(count+min(n, maxUnits), maxUnits)}
}

// Give subtracts n from the count of the current window, even if the units were taken in an earlier one.
func (q *Quota) Give(s State, now, n int64) State {
	if count, _ := q.counted(s, now); count > 0 {
		s.B = max(count-n, 0)
	}
	return s
}

// Room returns the units that the count leaves.
func (q *Quota) Room(s State, now int64) int64 {
	count, _ := q.counted(s, now)
	return max(q.limit-count, 0)
}

// Fresh returns a count before all windows.
func (q *Quota) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the limit.
func (q *Quota) Capacity() int64 { return q.limit }

// Keep returns the time until no limit of the unit counts the state, in any zone and with any first day.
func (q *Quota) Keep(s State, now int64) int64 {
	if s.B == 0 {
		return 0
	}
	end := mul(AddSaturating(s.A, q.calendar.Unit.Longest()), q.second)
	return end.sub(mul(now, 1)).ceilDiv(1)
}

// TakenAt returns the start of the window of the state if now is before it.
func (q *Quota) TakenAt(s State, now int64) int64 {
	_, w := q.counted(s, now)
	return max(w.start, now)
}

// Undo subtracts n from the count if the current window is that of the take.
func (q *Quota) Undo(s State, taken, now, n int64) State {
	if count, w := q.counted(s, now); count > 0 && w.holds(taken) {
		s.B = max(count-n, 0)
	}
	return s
}

// Window returns the window of an instant.
func (q *Quota) Window(now int64) (start, end int64) {
	w := q.window(now)
	return w.start, w.end
}

// counted returns the count as of now, and the later of the windows of now and of the state.
func (q *Quota) counted(s State, now int64) (count int64, w *quotaWindow) {
	w = q.window(now)
	switch {
	case s.A < w.first:
		return 0, w
	case s.A >= w.next:
		w = q.find(s.A)
	}
	return s.B, w
}

// window returns the window of an instant. It is mostly the recent one.
func (q *Quota) window(now int64) *quotaWindow {
	if w := q.recent.Load(); w != nil && w.holds(now) {
		return w
	}
	w := q.find(q.secondOf(now))
	q.recent.Store(w)
	return w
}

// find computes the window of a second.
func (q *Quota) find(second int64) *quotaWindow {
	w := &quotaWindow{}
	w.first, w.next = q.calendar.Window(second)
	w.start, w.end = q.ticks(w.first), q.ticks(w.next)
	return w
}

func (q *Quota) secondOf(now int64) int64 {
	second, _ := floorDivMod(now, q.second)
	return second
}

// ticks returns the instant of a second, which saturates.
func (q *Quota) ticks(second int64) int64 {
	first, _ := floorDivMod(math.MinInt64, q.second)
	switch {
	case second <= first:
		return math.MinInt64
	case second > math.MaxInt64/q.second:
		return math.MaxInt64
	}
	return second * q.second
}

// holds reports whether the window holds an instant. One that ends after the last instant holds that, too.
func (w *quotaWindow) holds(now int64) bool {
	return w.start <= now && (now < w.end || w.end == math.MaxInt64)
}

// left returns the time to the end of the window.
func (w *quotaWindow) left(now int64) int64 { return max(subSat(w.end, now), 1) }

// AppendState appends the second and the count.
func (q *Quota) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 2) }

// RestoreState refuses numbers that are not the count of a window.
func (q *Quota) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 2)
	return s, ok && isCount(s.B)
}
