package algorithm

// Carry is the state under another limit of the same kind that keeps the units
// used: counts and entries stay what they are, the TAT of a bucket moves, and a
// store of permits stays as full as it was.
func Carry(from, to Algorithm, s State, now int64) State {
	if old, ok := bucket(from); ok {
		if b, ok := bucket(to); ok {
			return b.rescaled(old, s, now)
		}
	}
	if old, ok := from.(*Cycle); ok {
		return old.at(s, now) // what earlier cycles brought, under the limit they had
	}
	if old, ok := from.(*Guava); ok {
		if g, ok := to.(*Guava); ok {
			return g.rescaled(old, s, now)
		}
	}
	return s
}

func bucket(a Algorithm) (*TokenBucket, bool) {
	switch b := a.(type) {
	case *TokenBucket:
		return b, true
	case *LeakyBucket:
		return &b.TokenBucket, true
	}
	return nil, false
}
