package algorithm

// Constant gives every key the same answer: it admits every cost up to its capacity. A capacity of 0 admits nothing.
type Constant struct {
	Plain
	capacity int64
}

// NewUnlimited returns a limit that admits every cost up to the largest capacity of any limit.
func NewUnlimited() Constant { return Constant{capacity: maxUnits} }

// NewDenyAll returns a limit that admits nothing.
func NewDenyAll() Constant { return Constant{} }

// Wait returns 0 for a cost up to the capacity, and otherwise Never.
func (c Constant) Wait(_ State, _, n int64) int64 {
	if n > c.capacity {
		return Never
	}
	return 0
}

// Take returns s unchanged.
func (c Constant) Take(s State, _, _ int64) State { return s }

// Give returns s unchanged.
func (c Constant) Give(s State, _, _ int64) State { return s }

// Room returns the capacity.
func (c Constant) Room(State, int64) int64 { return c.capacity }

// Fresh returns the only state.
func (c Constant) Fresh() State { return State{} }

// Capacity returns the largest admitted cost.
func (c Constant) Capacity() int64 { return c.capacity }

// AppendState appends nothing, because a state has no numbers.
func (c Constant) AppendState(into []int64, _ State) []int64 { return into }

// RestoreState accepts only an empty list.
func (c Constant) RestoreState(numbers []int64) (State, bool) { return State{}, len(numbers) == 0 }

// AlignWords returns the base unchanged.
func (c Constant) AlignWords(base int64) int64 { return base }

// Pack returns the word of a new key.
func (c Constant) Pack(State, int64) (word uint64, ok bool) { return 0, true }

// Unpack returns the only state.
func (c Constant) Unpack(uint64, int64) State { return State{} }

// ResetWord returns 0.
func (c Constant) ResetWord(uint64, int64, int64) (reset int64, ok bool) { return 0, true }
