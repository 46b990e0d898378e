package algorithm

// restless is an Algorithm whose idle states differ from a new one, so that an eviction can change an answer. It is for
// one subject in process, or for the keys of an owner that keeps them.
type restless interface {
	// Start returns the state of a subject that begins now.
	Start(now int64) State
	// PerKey returns the same limit for keys: each begins at its first use.
	PerKey() Algorithm
	// Rested reports whether s answers like a new key from now on.
	Rested(s State, now int64) bool
	// Spare reports whether a new key is admitted no more than s from now on.
	Spare(s State, now int64) bool
}

// Restless reports whether idle states of the limit can differ from a new one.
func Restless(a Algorithm) bool { return is[restless](a) }

// Start returns the state of a subject that begins now.
func Start(a Algorithm, now int64) State {
	if r, ok := a.(restless); ok {
		return r.Start(now)
	}
	return a.Fresh()
}

// PerKey returns the limit for keys, which begin at their first use.
func PerKey(a Algorithm) Algorithm {
	if r, ok := a.(restless); ok {
		return r.PerKey()
	}
	return a
}

// Idle reports whether s answers like a fresh state from now on, so that it may be evicted. A promised instant ahead
// counts even without units used: a change of the rate keeps it.
func Idle(a Algorithm, s State, now int64) bool {
	if r, ok := a.(restless); ok {
		return r.Rested(s, now)
	}
	if Converts(a) && s.Promised > now {
		return false
	}
	return Keep(a, s, now) == 0
}

// keeper is an Algorithm whose states count for other limits after they are idle for itself.
type keeper interface {
	// Keep returns the time until s is idle for all limits that read it.
	Keep(s State, now int64) int64
}

// Keep returns the time until s answers like a fresh state under every limit that reads it. Then it may be evicted.
func Keep(a Algorithm, s State, now int64) int64 {
	if k, ok := a.(keeper); ok {
		return k.Keep(s, now)
	}
	return a.Wait(s, now, a.Capacity())
}

// Spare reports whether s may be evicted where keys have no room: its owner is admitted no more than before, but
// perhaps less.
func Spare(a Algorithm, s State, now int64) bool {
	if r, ok := a.(restless); ok {
		return r.Spare(s, now)
	}
	return Idle(a, s, now)
}
