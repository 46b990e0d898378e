package algorithm

import "slices"

// Part is one limit of a decision: the algorithm, the state of the key under it, and the cost, at least 0. Take and
// Record store the new state in it.
type Part struct {
	Algorithm Algorithm
	State     State
	Cost      int64
	Lease     uint64 // identity of the units, for a leaser
	Taken     int64  // for Undo: when the units were taken
	Request   uint8  // parts of one rule have the same, and stand side by side
	Changed   bool   // the verb wrote State
	Spared    bool   // for a Ban: no refusal is a strike, because the caller waits
	NoRoom    bool   // for a Ban: no refusal is a strike, for lack of room for the state or because keys share one of the rule
	Missed    bool   // for a Ban: the refusal would have been a strike, with room
	Banned    bool   // the ban of the rule refuses everything: see noteBans
	Begun     bool   // for a Ban: the verb began it
}

// Answer is the result of a verb. Durations are in nanoseconds and may be Never.
type Answer struct {
	Allowed bool
	// Unrecorded is true if Record wrote nothing, because a log would have too many entries.
	Unrecorded bool
	// Changed is true if the verb wrote states.
	Changed bool
	// ByGap is true if the binding part refuses because of its gap: its wait is the rest of it.
	ByGap bool
	// ByBan is true if the binding part is a ban. Beside is then the distance to the part that LimitReset describes: the
	// tightest of the other limits of its rule.
	ByBan  bool
	Beside int8
	// Begun is true if the verb began that ban.
	Begun bool
	// Ordinal is that of the binding limit in its rule; the engine that lays out the parts sets it.
	Ordinal uint8
	// Binding is the index of the part that a refusal names: the refusing part with the longest wait. If allowed, it
	// is the tightest part.
	Binding    int
	Limit      int64 // capacity of the tightest part: the first with the least room
	Remaining  int64 // room of the tightest part
	RetryAfter int64 // the largest wait of the parts; 0 if allowed
	ResetAfter int64 // until all parts are fresh again
	LimitReset int64 // until the binding part is
	Delay      int64 // before the caller may go ahead
}

// Take admits the cost of every part, or of none. It only describes parts with a cost of 0.
func Take(parts []Part, now int64) (answer Answer) {
	if len(parts) == 1 {
		p := &parts[0]
		TakeOne(p.Algorithm, &p.State, now, p.Cost, p.Lease, &answer)
		p.Changed = answer.Changed
		return answer
	}
	wait, binding := longestWait(parts, now)
	if wait == 0 {
		changed := take(parts, now)
		answer = describe(parts, now, 0, -1)
		answer.Changed = changed
		return answer
	}
	struck, begun := false, false
	for i := range parts {
		if _, bans := parts[i].Algorithm.(*Ban); bans {
			if struck, begun = strike(parts, now); begun {
				wait, binding = longestWait(parts, now)
			}
			break
		}
	}
	answer = describe(parts, now, wait, binding)
	answer.Changed = refuseAll(parts, now) || struck
	return answer
}

// TakeOne decides like Take on one state, in place. Solitary limits decide only here. The answer must be zero.
func TakeOne(a Algorithm, s *State, now, n int64, lease uint64, answer *Answer) {
	wait := waitOf(a, s, now, n)
	switch {
	case n <= 0:
		describeOne(a, s, now, 0, answer)
	case wait == 0:
		TakeFor(a, s, now, n, lease)
		answer.Changed = true
		if d, ok := a.(delayer); ok {
			answer.Delay = d.Delay(*s, now)
			*s = promise(*s, now, answer.Delay)
		}
		describeOne(a, s, now, 0, answer)
	case n <= a.Capacity() && a.CountsDenied():
		TakeFor(a, s, now, n, lease)
		answer.Changed = true
		describeOne(a, s, now, waitOf(a, s, now, n), answer)
	default:
		describeOne(a, s, now, wait, answer)
		answer.Changed = convertRefused(a, s, now, n)
	}
}

// describeOne completes the answer of a decision with the given wait.
func describeOne(a Algorithm, s *State, now, wait int64, answer *Answer) {
	capacity := a.Capacity()
	answer.Allowed, answer.RetryAfter = wait == 0, wait
	answer.Limit, answer.Remaining = capacity, a.Room(*s, now)
	answer.ResetAfter = max(a.Wait(*s, now, capacity), 0)
	answer.LimitReset = answer.ResetAfter
	answer.ByGap = ByGap(a, s, now, wait)
}

// refuseAll converts the states of parts that lack room under a faster rate than the one that wrote them, so that the
// units drain as the answer says. It writes nothing if a cost can never fit.
func refuseAll(parts []Part, now int64) (changed bool) {
	foreign := func(p Part) bool { return !p.Algorithm.Owns(p.State) }
	if !slices.ContainsFunc(parts, foreign) || slices.ContainsFunc(parts, neverFits) {
		return false
	}
	for i := range parts {
		if p := &parts[i]; p.Cost > 0 && !p.Algorithm.Owns(p.State) && p.wait(now) > 0 {
			p.Changed = convertRefused(p.Algorithm, &p.State, now, p.Cost)
			changed = changed || p.Changed
		}
	}
	return changed
}

// neverFits reports whether a part can never admit its cost.
func neverFits(p Part) bool { return p.Cost > p.Algorithm.Capacity() }

// Allow decides like Take for one limit, in place, when the caller cannot wait for a delay. It admits only a cost
// without delay, and otherwise writes what a refused Take writes.
func Allow(a Algorithm, s *State, now, n int64) (allowed, changed bool) {
	switch {
	case n <= 0:
		return true, false
	case n > a.Capacity():
		return false, false
	case a.Wait(*s, now, n) > 0:
		return false, refuse(a, s, now, n)
	}
	taken := a.Take(*s, now, n)
	if d, ok := a.(delayer); ok && d.Delay(taken, now) > 0 {
		return false, convertRefused(a, s, now, n)
	}
	*s = taken
	return true, true
}

// refuse writes what the refusal of a cost that can fit writes.
func refuse(a Algorithm, s *State, now, n int64) (changed bool) {
	if a.CountsDenied() {
		*s = a.Take(*s, now, n)
		return true
	}
	return convertRefused(a, s, now, n)
}

// convertRefused converts the state if the rate is faster than the one that wrote it.
func convertRefused(a Algorithm, s *State, now, n int64) (changed bool) {
	if n > a.Capacity() || a.Owns(*s) {
		return false
	}
	*s = a.Refused(*s, now)
	return a.Owns(*s)
}

// Peek returns the answer that Take would give, from the unchanged states.
func Peek(parts []Part, now int64) Answer {
	wait, binding := longestWait(parts, now)
	answer := describe(parts, now, wait, binding)
	if d, ok := parts[0].Algorithm.(delayer); ok && wait == 0 && parts[0].Cost > 0 {
		answer.Delay = d.Delay(parts[0].Algorithm.Take(parts[0].State, now, parts[0].Cost), now)
	}
	return answer
}

// Record counts the cost of every part even if it does not fit. A negative cost gives units back. Allowed reports
// whether all of it fitted. If not, RetryAfter is the wait of the same cost after it was counted.
//
// It refuses the record, and writes nothing, if a log would have too many entries. Then Unrecorded is true and RetryAfter is Never.
func Record(parts []Part, now int64) Answer {
	tooLong := func(p Part) bool { return p.Cost > 0 && !p.Algorithm.Records(p.State, now) }
	if full := slices.IndexFunc(parts, tooLong); full >= 0 {
		answer := describe(parts, now, Never, full)
		answer.Unrecorded = true
		return answer
	}
	wait, binding := longestWait(parts, now)
	changed := take(parts, now)
	for i := range parts {
		if p := &parts[i]; p.Cost < 0 && p.ban() == nil {
			p.State, p.Changed = p.give(now, -max(p.Cost, -Never)), true
			changed = true
		}
	}
	if wait != 0 {
		wait, _ = longestWait(parts, now)
	}
	answer := describe(parts, now, wait, binding)
	answer.Allowed = binding < 0
	answer.Changed = changed
	return answer
}

// Renew restarts the leases of slots. It admits if all of them are held.
func Renew(parts []Part, now int64) Answer {
	renewed := make([]State, len(parts))
	for i := range parts {
		p := &parts[i]
		if p.ban() != nil {
			continue
		}
		c, ok := p.Algorithm.(*Concurrency)
		if !ok {
			return Answer{}
		}
		if renewed[i], ok = c.Renew(p.State, now, p.Cost, p.Lease); !ok {
			return Answer{}
		}
	}
	for i := range parts {
		if parts[i].ban() == nil {
			parts[i].State, parts[i].Changed = renewed[i], true
		}
	}
	return Answer{Allowed: true, Changed: true}
}

// longestWait returns the wait until every part admits its cost, and the first part with that wait, a ban before others,
// or -1 if no part has to wait.
func longestWait(parts []Part, now int64) (wait int64, binding int) {
	binding = -1
	for i := range parts {
		if w := parts[i].wait(now); w > wait || w == wait && w > 0 && parts[i].ban() != nil {
			wait, binding = w, i
		}
	}
	return wait, binding
}

// ByGap reports whether the wait of a refused cost is the rest of the limit's gap.
func ByGap(a Algorithm, s *State, now, wait int64) bool {
	return wait > 0 && wait < Never && a.GapLeft(*s, now) >= wait
}

func (p *Part) wait(now int64) int64 { return waitOf(p.Algorithm, &p.State, now, p.Cost) }

// waitOf returns the time until the limit admits cost n, which may be any number.
func waitOf(a Algorithm, s *State, now, n int64) int64 {
	switch {
	case n <= 0:
		return 0
	case n > a.Capacity():
		return Never
	}
	return a.Wait(*s, now, n)
}

func take(parts []Part, now int64) (changed bool) {
	for i := range parts {
		p := &parts[i]
		if _, bans := p.Algorithm.(*Ban); p.Cost > 0 && !bans {
			TakeFor(p.Algorithm, &p.State, now, p.Cost, p.Lease)
			p.Changed = true
			changed = true
		}
	}
	return changed
}

// give returns the state after n units were given back.
func (p *Part) give(now, n int64) State {
	if p.Lease != 0 {
		if l, ok := p.Algorithm.(leaser); ok {
			return l.GiveLease(p.State, now, n, p.Lease)
		}
	}
	return p.Algorithm.Give(p.State, now, n)
}

// describe returns the answer of a decision with the given wait. binding is the refusing part, or -1.
func describe(parts []Part, now, wait int64, binding int) Answer {
	tightest, room := 0, int64(Never)
	var reset, limitReset int64
	for i := range parts {
		p := &parts[i]
		if _, bans := p.Algorithm.(*Ban); bans {
			return describeBeside(parts, now, wait, binding)
		}
		own := p.Algorithm.Wait(p.State, now, p.Algorithm.Capacity())
		if r := p.Algorithm.Room(p.State, now); r < room {
			if tightest, room = i, r; binding < 0 {
				limitReset = max(own, 0)
			}
		}
		if i == binding {
			limitReset = max(own, 0)
		}
		reset = max(reset, own)
	}
	byGap := false
	if binding < 0 {
		binding = tightest
	} else {
		p := &parts[binding]
		byGap = wait < Never && ByGap(p.Algorithm, &p.State, now, p.wait(now))
	}
	return Answer{
		Allowed:    wait == 0,
		ByGap:      byGap,
		Binding:    binding,
		Limit:      parts[tightest].Algorithm.Capacity(),
		Remaining:  room,
		RetryAfter: wait,
		ResetAfter: reset,
		LimitReset: limitReset,
	}
}
