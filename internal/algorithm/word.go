package algorithm

// Worder is an Algorithm most of whose states fit one word, so that they can be
// kept in a table and changed by compare-and-swap. Times in words count from a
// base that the keeper of the words chooses; they reach nine years from it.
// What does not fit is not wrong, only to be kept elsewhere: every function
// then says so.
//
// The word 0 is a key never seen. No word is as large as the two largest.
type Worder interface {
	Algorithm
	// AlignWords is the base near to one that the other functions are to be
	// called with.
	AlignWords(base int64) int64
	// Pack is s as a word.
	Pack(s State, base int64) (word uint64, ok bool)
	// Unpack is the state of a word.
	Unpack(word uint64, base int64) State
	// IdleWord is Idle of the state of a word.
	IdleWord(word uint64, base, now int64) bool
	// TakeWord is Take of one part: the word after, and the answer. The word
	// has changed if the answer says so.
	TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool)
	// AllowWord is Allow of one part.
	AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool)
}

// wordTime is how many bits a time in ns has in a word: nine years.
const wordTime = 58

// relative is t as time in a word: 1 to 2^58 - 2.
func relative(t, base int64) (int64, bool) {
	r := t - base
	return r, t >= base && r > 0 && r < 1<<wordTime-2
}

// takeWord and allowWord decide on the state of a word, the slow way.
func takeWord(a Worder, word uint64, base, now, n int64) (uint64, Answer, bool) {
	parts := [1]Part{{Algorithm: a, State: a.Unpack(word, base), Cost: n}}
	answer := Take(parts[:], now)
	if !answer.Changed {
		return word, answer, true
	}
	next, ok := a.Pack(parts[0].State, base)
	return next, answer, ok
}

func allowWord(a Worder, word uint64, base, now, n int64) (uint64, bool, bool) {
	part := Part{Algorithm: a, State: a.Unpack(word, base), Cost: n}
	if !Allow(&part, now) {
		return word, false, true
	}
	if n == 0 {
		return word, true, true
	}
	next, ok := a.Pack(part.State, base)
	return next, true, ok
}
