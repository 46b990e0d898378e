package algorithm

// Part is one limit of a decision: the algorithm, the state of the key under it, and the cost, at least 0. Take and
// Record store the new state in it.
type Part struct {
	Algorithm Algorithm
	State     State
	Cost      int64
	Lease     uint64 // identity of the units, for a leaser
	Changed   bool   // the verb wrote State
}

// Answer is the result of a verb. Durations are in nanoseconds and may be Never.
type Answer struct {
	Allowed bool
	// Changed is true if the verb wrote states.
	Changed bool
	// Binding is the index of the part that a refusal names: the refusing part with the longest wait. If allowed, it
	// is the tightest part.
	Binding    int
	Limit      int64 // capacity of the tightest part: the first with the least room
	Remaining  int64 // room of the tightest part
	RetryAfter int64 // the largest wait of the parts; 0 if allowed
	ResetAfter int64 // until all parts are fresh again
	Delay      int64 // before the caller may go ahead
}

// Take admits the cost of every part, or of none. It only describes parts with a cost of 0.
func Take(parts []Part, now int64) (answer Answer) {
	if len(parts) == 1 && parts[0].decide(now, &answer) {
		return answer
	}
	wait, binding := longestWait(parts, now)
	switch {
	case wait == 0:
		changed := take(parts, now)
		answer = describe(parts, now, 0, -1)
		answer.Changed = changed
		if answer.Delay = delay(parts, now); answer.Delay > 0 {
			parts[0].State = promise(parts[0].State, now, answer.Delay)
		}
		return answer
	case len(parts) == 1 && parts[0].countsDenied():
		take(parts, now)
		wait, _ = longestWait(parts, now)
		answer = describe(parts, now, wait, 0)
		answer.Changed = true
		return answer
	}
	answer = describe(parts, now, wait, binding)
	answer.Changed = refuseAll(parts, now)
	return answer
}

// refuseAll converts the states of parts that lack room under a faster rate than the one that wrote them, so that the
// units drain as the answer says. It writes nothing if a cost can never fit.
func refuseAll(parts []Part, now int64) (changed bool) {
	owned := true
	for i := range parts {
		owned = owned && Owns(parts[i].Algorithm, parts[i].State)
	}
	if owned || neverFits(parts) {
		return false
	}
	for i := range parts {
		if p := &parts[i]; p.Cost > 0 && !Owns(p.Algorithm, p.State) && p.wait(now) > 0 {
			p.Changed = convertRefused(p.Algorithm, &p.State, now, p.Cost)
			changed = changed || p.Changed
		}
	}
	return changed
}

func neverFits(parts []Part) bool {
	for i := range parts {
		if p := &parts[i]; p.Cost > p.Algorithm.Capacity() {
			return true
		}
	}
	return false
}

// decide makes the decision of Take for a part whose limit has a faster way to the same answer.
func (p *Part) decide(now int64, a *Answer) (done bool) {
	l, ok := p.Algorithm.(*SlidingLog)
	ok = ok && l.decide(&p.State, now, p.Cost, a)
	p.Changed = a.Changed
	return ok
}

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
	if d, ok := a.(deniedCounter); ok && d.CountsDenied() {
		*s = a.Take(*s, now, n)
		return true
	}
	return convertRefused(a, s, now, n)
}

// convertRefused converts the state if the rate is faster than the one that wrote it.
func convertRefused(a Algorithm, s *State, now, n int64) (changed bool) {
	if Owns(a, *s) {
		return false
	}
	*s = Refused(a, *s, now, n)
	return Owns(a, *s)
}

// Peek returns the answer that Take would give, from the unchanged states.
func Peek(parts []Part, now int64) Answer {
	wait, binding := longestWait(parts, now)
	answer := describe(parts, now, wait, binding)
	if wait == 0 && parts[0].Cost > 0 {
		answer.Delay = parts[0].delayAhead(now)
	}
	return answer
}

// Record counts the cost of every part even if it does not fit. A negative cost gives units back. Allowed reports
// whether all of it fitted. If not, RetryAfter is the wait of the same cost after it was counted.
//
// It refuses the record, and writes nothing, if a log would have too many entries. Then RetryAfter is Never.
func Record(parts []Part, now int64) Answer {
	if full := fullLog(parts, now); full >= 0 {
		return describe(parts, now, Never, full)
	}
	wait, binding := longestWait(parts, now)
	changed := take(parts, now)
	for i := range parts {
		if p := &parts[i]; p.Cost < 0 {
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

// recorder is an Algorithm that bounds what can be recorded.
type recorder interface {
	Records(s State, now int64) bool
}

// fullLog returns the index of a part that cannot record its cost, or -1.
func fullLog(parts []Part, now int64) int {
	for i := range parts {
		p := &parts[i]
		if r, ok := p.Algorithm.(recorder); ok && p.Cost > 0 && !r.Records(p.State, now) {
			return i
		}
	}
	return -1
}

// longestWait returns the wait until every part admits its cost, and the first part with that wait, or -1 if no part
// has to wait.
func longestWait(parts []Part, now int64) (wait int64, binding int) {
	binding = -1
	for i := range parts {
		if w := parts[i].wait(now); w > wait {
			wait, binding = w, i
		}
	}
	return wait, binding
}

func (p *Part) wait(now int64) int64 {
	switch {
	case p.Cost <= 0:
		return 0
	case p.Cost > p.Algorithm.Capacity():
		return Never
	}
	return p.Algorithm.Wait(p.State, now, p.Cost)
}

func take(parts []Part, now int64) (changed bool) {
	for i := range parts {
		if p := &parts[i]; p.Cost > 0 {
			p.State, p.Changed = p.taken(now), true
			changed = true
		}
	}
	return changed
}

// taken returns the state after the cost was taken.
func (p *Part) taken(now int64) State { return TakeFor(p.Algorithm, p.State, now, p.Cost, p.Lease) }

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
	var reset int64
	for i := range parts {
		p := &parts[i]
		if r := p.Algorithm.Room(p.State, now); r < room {
			tightest, room = i, r
		}
		reset = max(reset, p.Algorithm.Wait(p.State, now, p.Algorithm.Capacity()))
	}
	if binding < 0 {
		binding = tightest
	}
	return Answer{
		Allowed:    wait == 0,
		Binding:    binding,
		Limit:      parts[tightest].Algorithm.Capacity(),
		Remaining:  room,
		RetryAfter: wait,
		ResetAfter: reset,
	}
}

// delay returns the delay of a single part that has just taken. Parts with delays are never combined.
func delay(parts []Part, now int64) int64 {
	if d, ok := parts[0].Algorithm.(delayer); ok && parts[0].Cost > 0 {
		return d.Delay(parts[0].State, now)
	}
	return 0
}

// delayAhead returns the delay that a take would have.
func (p *Part) delayAhead(now int64) int64 {
	if d, ok := p.Algorithm.(delayer); ok {
		return d.Delay(p.taken(now), now)
	}
	return 0
}

// countsDenied reports whether the limit takes a refused cost. It does not take a cost that can never fit.
func (p *Part) countsDenied() bool {
	d, ok := p.Algorithm.(deniedCounter)
	return ok && d.CountsDenied() && p.Cost <= p.Algorithm.Capacity()
}
