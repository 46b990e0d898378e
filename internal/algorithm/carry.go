package algorithm

import "math"

// carrier is an Algorithm that converts the states of another limit of its kind. before has the same type as the
// carrier.
type carrier interface {
	Carry(before Algorithm, s State, now int64) State
}

// Carry returns the state under another limit of the same kind, converted at once. It keeps the units used: counts
// and entries stay unchanged unless the limit is a carrier.
func Carry(from, to Algorithm, s State, now int64) State {
	if c, ok := to.(carrier); ok {
		return c.Carry(from, s, now)
	}
	return s
}

// converter is an Algorithm whose states mean something else under another rate. It decides on states of all rates.
type converter interface {
	// Owns reports whether the rate of the limit wrote s.
	Owns(s State) bool
	// Refused returns the state after a cost was refused for lack of room: converted, if the limit is faster.
	Refused(s State, now int64) State
	// SpendAt returns the instant at which a waiting caller takes its units.
	SpendAt(s State, from, hold int64) int64
	// Settled reports whether a word of s holds all of it, except for the last conversion.
	Settled(s State, now int64) bool
}

// Converts reports whether the limit converts states of other rates when it writes them.
func Converts(a Algorithm) bool {
	_, ok := a.(converter)
	return ok
}

// Owns reports whether s can be read like a state that the limit wrote itself. Only a converter writes a den and a unit.
func Owns(a Algorithm, s State) bool {
	if s.Unit == 0 || s.C == 0 {
		return true
	}
	c, ok := a.(converter)
	return !ok || c.Owns(s)
}

// Refused returns the state after cost n was refused for lack of room.
func Refused(a Algorithm, s State, now, n int64) State {
	if c, ok := a.(converter); ok && n <= a.Capacity() {
		return c.Refused(s, now)
	}
	return s
}

// SpendAt returns the instant at which a waiting caller takes its units, if it must be held from an instant on. The
// limit is planned.
func SpendAt(a Algorithm, s State, from, hold int64) int64 {
	if c, ok := a.(converter); ok {
		return c.SpendAt(s, from, hold)
	}
	return from
}

// keepConverted is how long the instant of a conversion is kept: as long as an earlier take may be undone.
const keepConverted = int64(60e9)

// JustConverted reports whether the instant of the last conversion still matters.
func JustConverted(a Algorithm, s State, now int64) bool {
	_, converts := a.(converter)
	return converts && s.Converted != math.MinInt64 && subSat(now, s.Converted) < keepConverted
}

// IsSettled reports whether words of s hold all of it, except for the last conversion. They do not while a promised
// instant lies ahead that they do not hold.
func IsSettled(a Algorithm, s State, now int64) bool {
	c, converts := a.(converter)
	return !converts || c.Settled(s, now)
}
