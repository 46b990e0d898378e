package algorithm

// Constant gives every key the same answer: it admits every cost up to its
// capacity, and nothing if that is 0. It has no state.
type Constant struct{ capacity int64 }

// NewUnlimited admits every cost up to the largest that any limit admits.
func NewUnlimited() Constant { return Constant{capacity: maxUnits} }

// NewDenyAll admits nothing.
func NewDenyAll() Constant { return Constant{} }

// Stateless says that all states of the limit are one.
func Stateless(a Algorithm) bool {
	_, ok := a.(Constant)
	return ok
}

// Wait is 0 for what fits: anything else never does.
func (c Constant) Wait(_ State, _, n int64) int64 {
	if n > c.capacity {
		return Never
	}
	return 0
}

// Take changes nothing.
func (c Constant) Take(s State, _, _ int64) State { return s }

// Give changes nothing.
func (c Constant) Give(s State, _, _ int64) State { return s }

// Room is the capacity.
func (c Constant) Room(State, int64) int64 { return c.capacity }

// Fresh is the only state.
func (c Constant) Fresh() State { return State{} }

// Capacity is the largest cost that is admitted.
func (c Constant) Capacity() int64 { return c.capacity }

// Solitary is false.
func (c Constant) Solitary() bool { return false }

// AppendState appends nothing.
func (c Constant) AppendState(into []int64, _ State) []int64 { return into }

// RestoreState reads nothing.
func (c Constant) RestoreState(numbers []int64) (State, bool) { return State{}, len(numbers) == 0 }

// AlignWords is the base itself.
func (c Constant) AlignWords(base int64) int64 { return base }

// Pack is the word of a key never seen.
func (c Constant) Pack(State, int64) (word uint64, ok bool) { return 0, true }

// Unpack is the only state.
func (c Constant) Unpack(uint64, int64) State { return State{} }

// IdleWord is true.
func (c Constant) IdleWord(uint64, int64, int64) bool { return true }

// TakeWord answers and changes nothing.
func (c Constant) TakeWord(word uint64, _, _, n int64) (next uint64, a Answer, ok bool) {
	a = Answer{Allowed: n <= c.capacity, Limit: c.capacity, Remaining: c.capacity}
	if !a.Allowed {
		a.RetryAfter = Never
	}
	return word, a, true
}

// AllowWord answers and changes nothing.
func (c Constant) AllowWord(word uint64, _, _, n int64) (next uint64, allowed, ok bool) {
	return word, n <= c.capacity, true
}
