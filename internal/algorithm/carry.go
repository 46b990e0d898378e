package algorithm

// carrier is an Algorithm that reads the states of another limit of its kind as
// something other than what they are. Before is of the same type.
type carrier interface {
	Carry(before Algorithm, s State, now int64) State
}

// Carry is the state under another limit of the same kind that keeps the units
// used: counts and entries stay what they are unless the limit is a carrier.
func Carry(from, to Algorithm, s State, now int64) State {
	if c, ok := to.(carrier); ok {
		return c.Carry(from, s, now)
	}
	return s
}
