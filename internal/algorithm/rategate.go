package algorithm

import "math"

// RateGate lets at most limit units pass in any interval of period ns, in order of arrival. It stores the instant of
// each unit. A unit may be booked for a later instant, and no unit overtakes it. State: that of a log, whose newest
// entry may lie ahead of now.
//
// A gate keeps every unit until now has passed it by a period, because a later limit may be larger. It keeps up to
// three times limit units without looking at their age, so that a booking can be undone exactly.
type RateGate struct {
	Plain
	log SlidingLog // the same window, without clamping and bookings
}

// NewRateGate returns a gate of limit units in any interval of period ns.
func NewRateGate(limit, period int64) *RateGate {
	return &RateGate{log: SlidingLog{limit: limit, period: period}}
}

// Wait returns the time until the newest unit has passed and enough of the oldest have left the window for n to fit.
func (g *RateGate) Wait(s State, now, n int64) int64 {
	q := (*log)(&s)
	if q.length() == 0 {
		return 0
	}
	return max(subSat(q.newest(), now), g.log.wait(q, now, n))
}

// Take logs n units, at the newest instant if that lies ahead, and drops units that are older than a period.
func (g *RateGate) Take(s State, now, n int64) State {
	at, q := now, (*log)(&s)
	if q.length() > 0 {
		at = max(at, q.newest())
		q.drop(q.before(now, g.log.period))
	}
	g.push(q, now, at, n)
	return s
}

// Records reports whether a record of units leaves a state of bounded size.
func (g *RateGate) Records(s State, now int64) bool {
	return (*log)(&s).records(now, g.log.period, g.log.limit)
}

// Give removes the oldest n units that still count. It keeps older ones, in case time runs back.
func (g *RateGate) Give(s State, now, n int64) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return s
	}
	q.cut(q.before(max(now, q.newest()), g.log.period), n)
	return g.known(s)
}

// Room returns the units that the window leaves, or 0 before the newest unit has passed.
func (g *RateGate) Room(s State, now int64) int64 {
	q := (*log)(&s)
	if q.length() > 0 && q.newest() > now {
		return 0
	}
	return g.log.room(q, now)
}

// Fresh returns an empty log.
func (g *RateGate) Fresh() State { return freshLog() }

// Capacity returns the limit.
func (g *RateGate) Capacity() int64 { return g.log.limit }

// Backlog returns the time until n more units may be booked. At most twice the limit may lie ahead of now, which
// bounds the log. No unit is booked beyond the end of time.
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

// Book logs n units at their booked instant.
func (g *RateGate) Book(s State, now, n int64) State {
	g.push((*log)(&s), now, AddSaturating(now, g.Wait(s, now, n)), n)
	return s
}

// Unbook removes the newest n units, which are in one entry.
func (g *RateGate) Unbook(_, after State, n int64) State {
	if q := (*log)(&after); q.length() > 0 {
		q.cut(q.length()-1, n)
	}
	return g.known(after)
}

// push logs n units at an instant that is not before the newest. If they are many, it drops those that now has passed
// by a period.
func (g *RateGate) push(q *log, now, at, n int64) {
	most := min(g.log.limit, maxUnits) * 3
	if q.units() > most-min(n, most) {
		q.drop(q.before(now, g.log.period))
	}
	q.add(at, n, most, max(most, maxUnits))
}

// known returns s with the clock of the log at its newest entry.
func (g *RateGate) known(s State) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return freshLog()
	}
	q.A = q.newest()
	return s
}

// Rebook keeps the given units at their instant; they are in the newest entry.
func (g *RateGate) Rebook(_, after State, _, n, keep int64) State {
	return g.Unbook(State{}, after, n-keep)
}

// AppendState appends the log.
func (g *RateGate) AppendState(into []int64, s State) []int64 { return (*log)(&s).appendTo(into) }

// RestoreState refuses numbers that are not a log.
func (g *RateGate) RestoreState(numbers []int64) (State, bool) {
	return restoreLog(numbers, 3*maxUnits)
}
