package algorithm

// carrier is an Algorithm that converts the states of another limit of its kind. before has the same type as the
// carrier.
type carrier interface {
	Carry(before Algorithm, s State, now int64) State
}

// Carry returns the state under another limit of the same kind. It keeps the units used: counts and entries stay
// unchanged unless the limit is a carrier.
func Carry(from, to Algorithm, s State, now int64) State {
	if c, ok := to.(carrier); ok {
		return c.Carry(from, s, now)
	}
	return s
}
