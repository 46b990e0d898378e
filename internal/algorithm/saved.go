package algorithm

import "math"

// Saver is an Algorithm whose states can be saved as numbers and restored. The numbers have a meaning only for the
// algorithm that wrote them.
type Saver interface {
	Algorithm
	// AppendState appends the numbers of s.
	AppendState(into []int64, s State) []int64
	// RestoreState returns the state of the numbers. ok is false for numbers that the algorithm cannot have written:
	// such a state could make it loop, or point outside a log.
	RestoreState(numbers []int64) (s State, ok bool)
}

// appendNumbers appends the first count of A, B and C, for states without a Log.
func appendNumbers(into []int64, s State, count int) []int64 {
	return append(into, []int64{s.A, s.B, s.C}[:count]...)
}

// restoreNumbers reads the numbers of appendNumbers.
func restoreNumbers(numbers []int64, count int) (s State, ok bool) {
	if len(numbers) != count {
		return State{}, false
	}
	var all [3]int64
	copy(all[:], numbers)
	return State{A: all[0], B: all[1], C: all[2]}, true
}

func isCount(n int64) bool { return n >= 0 && n <= maxUnits }

// isWindow reports whether a window of the state can exist: the windows of period that begin at a multiple of it, plus
// origin, hold all instants. A fresh state has a number before all of them and no units.
func isWindow(s State, period, origin int64) bool {
	if s.A == math.MinInt64 && s.B == 0 && s.C == 0 {
		return true
	}
	first, rest := floorDivMod(math.MinInt64, period)
	if rest < origin {
		first--
	}
	return s.A >= first && s.A <= math.MaxInt64/period
}

// RestoreWords returns the state of saved words: a word, or the two of a Pairer. ok is false if a writes no such words.
func RestoreWords(a Worder, words []uint64, base int64) (s State, ok bool) {
	if len(words) == 1 {
		s = a.Unpack(words[0], base)
		again, ok := a.Pack(s, base)
		return s, ok && again == words[0]
	}
	p := a.(Pairer)
	s = p.UnpackPair(words[0], words[1], base)
	first, second, ok := p.PackPair(s, uint64(RateNumber(words[0])), base)
	return s, ok && first == words[0] && second == words[1]
}
