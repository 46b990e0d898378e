package algorithm

import "math"

// RateGate lets at most limit units go ahead in any stretch of period ns, first
// come, first served. It remembers the instant of each unit; units may be told
// to go at an instant to come, and nobody overtakes them. State: that of a
// log, whose newest entry may lie ahead of now.
//
// No answer looks at more than the newest limit units. Three times as many are
// kept, so that a booking can be undone exactly.
type RateGate struct {
	log SlidingLog // the same window, without clamping and bookings
}

// NewRateGate makes a gate of so many units in any stretch of period ns.
func NewRateGate(limit, period int64) *RateGate {
	return &RateGate{log: SlidingLog{limit: limit, period: period}}
}

// Wait is the time until the newest unit has gone and so many of the oldest
// have left the window that n fit.
func (g *RateGate) Wait(s State, now, n int64) int64 {
	q := (*log)(&s)
	if q.length() == 0 {
		return 0
	}
	return max(subSat(q.newest(), now), g.log.Wait(s, now, n))
}

// Take logs n units, at the newest instant if that lies ahead, and forgets what
// now has passed by a period.
func (g *RateGate) Take(s State, now, n int64) State {
	at, q := now, (*log)(&s)
	if q.length() > 0 {
		at = max(at, q.newest())
		q.drop(q.before(now, g.log.period))
	}
	return g.push(s, at, n)
}

// Give lets the oldest n units that still count leave. The older ones stay, in
// case that time runs back.
func (g *RateGate) Give(s State, now, n int64) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return s
	}
	q.cut(q.before(max(now, q.newest()), g.log.period), n)
	return g.known(s)
}

// Room is what the window leaves, and nothing while the newest unit has yet to
// go.
func (g *RateGate) Room(s State, now int64) int64 {
	if q := (*log)(&s); q.length() > 0 && q.newest() > now {
		return 0
	}
	return max(g.log.Room(s, now), 0)
}

// Fresh is an empty log.
func (g *RateGate) Fresh() State { return freshLog() }

// Capacity is the limit.
func (g *RateGate) Capacity() int64 { return g.log.limit }

// Solitary is false.
func (g *RateGate) Solitary() bool { return false }

// Backlog is the time until n more units may be told an instant to come: at most
// twice the limit may lie ahead of now, which bounds the log. An instant behind
// the end of time is never told.
func (g *RateGate) Backlog(s State, now, n int64) int64 {
	if g.Wait(s, now, n) > subSat(math.MaxInt64, now) {
		return Never
	}
	q := (*log)(&s)
	if q.length() == 0 || q.newest() <= now {
		return 0
	}
	ahead := q.until(now)
	if over := q.since(ahead) + n - 2*g.log.limit; over > 0 {
		return subSat(q.at(q.unit(ahead, over)), now)
	}
	return 0
}

// Book logs n units at the instant they were told. It forgets nothing for its
// age: who knows whether it will be undone.
func (g *RateGate) Book(s State, now, n int64) State {
	return g.push(s, AddSaturating(now, g.Wait(s, now, n)), n)
}

// Unbook takes the newest n units out of the log: they are of one entry.
func (g *RateGate) Unbook(_, after State, n int64) State {
	if q := (*log)(&after); q.length() > 0 {
		q.cut(q.length()-1, n)
	}
	return g.known(after)
}

// push logs n units at an instant that is not behind the newest.
func (g *RateGate) push(s State, at, n int64) State {
	q, most := (*log)(&s), min(g.log.limit, maxUnits)*3
	n = min(n, most)
	q.keepNewest(most - n)
	q.push(at, n, most)
	return s
}

// known is s with the clock of the log at its newest entry.
func (g *RateGate) known(s State) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return freshLog()
	}
	q.A = q.newest()
	return s
}

// Rebook leaves keep units where they were booked: they are of the newest
// entry.
func (g *RateGate) Rebook(_, after State, _, n, keep int64) State {
	return g.Unbook(State{}, after, n-keep)
}

// AppendState appends the log.
func (g *RateGate) AppendState(into []int64, s State) []int64 { return (*log)(&s).appendTo(into) }

// RestoreState refuses what is not a log.
func (g *RateGate) RestoreState(numbers []int64) (State, bool) { return restoreLog(numbers) }
