package algorithm

// This file decides which units of a settled take come back: only its own units that still count. So a late settlement
// adds nothing to a later window. Buckets and slots are no undoers: a bucket gets its units back whole, capped at full,
// and slots are released by identity.

// undoer is an Algorithm that tells the units of a take from others by the instant of the take.
type undoer interface {
	// TakenAt returns the instant of the take that has just written s. It is now, unless time has run back.
	TakenAt(s State, now int64) int64
	// Undo returns the state after up to n units that were taken at an instant came back.
	Undo(s State, taken, now, n int64) State
}

// TakenAt returns the instant for undoing a take that has just written s at now.
func TakenAt(a Algorithm, s State, now int64) int64 {
	if u, ok := a.(undoer); ok {
		return u.TakenAt(s, now)
	}
	return now
}

// SameState reports whether two limits read one state, so that a take under one can be undone under the other. Those with
// entries have instants or identities to tell.
func SameState(a, b Algorithm) bool {
	switch x := a.(type) {
	case *FixedWindow:
		y, ok := b.(*FixedWindow)
		return ok && x.period == y.period
	case *FirstWindow:
		y, ok := b.(*FirstWindow)
		return ok && x.period == y.period
	case *SlidingWindow:
		y, ok := b.(*SlidingWindow)
		return ok && x.period == y.period
	case *Cycle:
		y, ok := b.(*Cycle)
		return ok && x.period == y.period && x.origin == y.origin
	case *Quota:
		y, ok := b.(*Quota)
		return ok && x.calendar.Unit == y.calendar.Unit
	case *TokenBucket:
		return is[*TokenBucket](b)
	case *LeakyBucket:
		return is[*LeakyBucket](b)
	case *Guava:
		return is[*Guava](b)
	}
	return true
}

// Undo gives back the units of every part, whose cost is negative, that still count for the take at Part.Taken.
func Undo(parts []Part, now int64) Answer {
	for i := range parts {
		if p := &parts[i]; p.Cost < 0 && p.ban() == nil {
			p.State, p.Changed = p.undone(now, -max(p.Cost, -Never)), true
		}
	}
	answer := describe(parts, now, 0, -1)
	answer.Changed = true
	return answer
}

// undone returns the state after n units came back.
func (p *Part) undone(now, n int64) State {
	if u, ok := p.Algorithm.(undoer); ok {
		return u.Undo(p.State, p.Taken, now, n)
	}
	return p.give(now, n)
}

// TakenAt returns the start of the stored window if now is before it.
func (f *FixedWindow) TakenAt(s State, now int64) int64 { return inWindow(s.A, f.period, 0, now) }

// Undo subtracts n from the count if the current window is that of the take.
func (f *FixedWindow) Undo(s State, taken, now, n int64) State {
	s = f.at(s, now)
	if window, _ := floorDivMod(taken, f.period); window == s.A {
		s.B = max(s.B-n, 0)
	}
	return s
}

// TakenAt returns the start of the stored window if now is before it.
func (l *SlidingWindow) TakenAt(s State, now int64) int64 { return inWindow(s.A, l.period, 0, now) }

// Undo subtracts n from the count of the window of the take, if that is the current or the previous one.
func (l *SlidingWindow) Undo(s State, taken, now, n int64) State {
	s, _ = l.at(s, now)
	switch window, _ := floorDivMod(taken, l.period); window {
	case s.A:
		s.B = max(s.B-n, 0)
	case s.A - 1:
		s.C = max(s.C-n, 0)
	}
	return s
}

// TakenAt returns the start of the stored cycle if now is before it.
func (c *Cycle) TakenAt(s State, now int64) int64 { return inWindow(s.A, c.period, c.origin, now) }

// Undo returns n permits if the current cycle is that of the take. While permits of later cycles are used, nothing comes
// back: a caller may have been given the start of one.
func (c *Cycle) Undo(s State, taken, now, n int64) State {
	s = c.at(s, now)
	if c.number(taken) == s.A && s.B <= c.limit {
		s.B = max(s.B-n, 0)
	}
	return s
}

// inWindow returns the later of now and the start of a window or cycle.
func inWindow(number, period, origin, now int64) int64 {
	start := mul(number, period).add(mul(origin, 1))
	if ahead := start.sub(mul(now, 1)); ahead.positive() {
		return AddSaturating(now, ahead.ceilDiv(1))
	}
	return now
}

// TakenAt returns the instant of the last write.
func (l *SlidingLog) TakenAt(s State, now int64) int64 { return max(now, s.A) }

// Undo removes up to n units that were taken at an instant.
func (l *SlidingLog) Undo(s State, taken, now, n int64) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return s
	}
	q.A = max(now, q.A)
	q.cutAt(taken, n)
	return s
}

// TakenAt returns the newest instant, which may lie ahead.
func (g *RateGate) TakenAt(s State, now int64) int64 { return g.log.TakenAt(s, now) }

// Undo removes up to n units that were taken at an instant.
func (g *RateGate) Undo(s State, taken, _, n int64) State {
	q := (*log)(&s)
	if q.length() == 0 {
		return s
	}
	q.cutAt(taken, n)
	return g.known(s)
}

// cutAt removes up to n units of the entry of an instant.
func (l *log) cutAt(at, n int64) {
	if i := l.until(at) - 1; i >= 0 && l.at(i) == at {
		l.cut(i, min(n, l.total(i+1)-l.total(i)))
	}
}
