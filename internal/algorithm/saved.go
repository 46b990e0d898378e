package algorithm

import "math"

// A state is saved as numbers: A, B and C, and of one with a log 1, the last
// instant, how many entries, each as its instant and units, how many leases,
// each as its end, identity and units; 0 stands for no log.

// AppendSaved appends a state as numbers.
func AppendSaved(into []int64, s State) []int64 {
	into = append(into, s.A, s.B, s.C)
	if s.Log == nil {
		return append(into, 0)
	}
	l := s.Log
	into = append(into, 1, l.last, int64(l.length))
	for i := range l.length {
		into = append(into, l.entry(i).at, int64(l.entry(i).total-l.total(i)))
	}
	into = append(into, int64(len(l.leases)))
	for _, x := range l.leases {
		into = append(into, x.end, int64(x.identity), x.units)
	}
	return into
}

// Saved is the state of numbers, and whether they are one that a can have: what
// is not could make it loop or point outside of a log.
func Saved(a Algorithm, numbers []int64) (s State, ok bool) {
	r := reader{numbers: numbers}
	s = State{A: r.next(), B: r.next(), C: r.next()}
	switch r.next() {
	case 0:
	case 1:
		s.Log = r.log()
	default:
		return State{}, false
	}
	return s, !r.broken && len(r.numbers) == 0 && sound(a, s)
}

// sound says that a can have a state whose log is in order.
func sound(a Algorithm, s State) bool {
	entries, leases := s.Log != nil && s.Log.length > 0, s.Log != nil && len(s.Log.leases) > 0
	switch a.(type) {
	case *TokenBucket, *LeakyBucket:
		return s.C >= 1 && s.Log == nil
	case *FixedWindow:
		return isCount(s.B) && s.C == 0 && s.Log == nil
	case *SlidingWindow:
		return isCount(s.B) && isCount(s.C) && s.Log == nil
	case *Cycle:
		return s.B >= 0 && s.B <= 2*maxUnits && s.C == 0 && s.Log == nil
	case *SlidingLog, *RateGate:
		return s.A == 0 && s.B == 0 && s.C == 0 && !leases
	case *Concurrency:
		return isCount(s.B) && s.C == 0 && !entries && s.Log.held() == s.B && leases == (s.Log != nil)
	}
	return false
}

func isCount(n int64) bool { return n >= 0 && n <= maxUnits }

// held is the units of all leases.
func (l *Log) held() (units int64) {
	if l != nil {
		for _, x := range l.leases {
			units += x.units
		}
	}
	return units
}

// reader takes numbers off a slice.
type reader struct {
	numbers []int64
	broken  bool // there were too few, or wrong ones
}

func (r *reader) next() int64 {
	if len(r.numbers) == 0 {
		r.broken = true
		return 0
	}
	n := r.numbers[0]
	r.numbers = r.numbers[1:]
	return n
}

// count is how many records of so many numbers follow.
func (r *reader) count(numbers int) int {
	n := r.next()
	if n < 0 || n > int64(len(r.numbers)/numbers) {
		r.broken = true
		return 0
	}
	return int(n)
}

func (r *reader) log() *Log {
	l := &Log{last: r.next()}
	l.length = r.count(2)
	l.ring = make([]entry, l.length)
	var total int64
	at := int64(math.MinInt64)
	for i := range l.ring {
		x := entry{at: r.next()}
		units := r.next()
		if units < 1 || units > 3*maxUnits-total || i > 0 && x.at <= at {
			r.broken = true
			return nil
		}
		at, total = x.at, total+units
		x.total = uint64(total)
		l.ring[i] = x
	}
	if l.length > 0 && l.last < at {
		r.broken = true
	}
	l.leases = r.leases()
	return l
}

func (r *reader) leases() []lease {
	leases := make([]lease, r.count(3))
	var total int64
	for i := range leases {
		x := lease{end: r.next(), identity: uint64(r.next()), units: r.next()}
		if x.units < 1 || x.units > maxUnits-total || i > 0 && leases[i-1].compare(x) >= 0 {
			r.broken = true
			return nil
		}
		total += x.units
		leases[i] = x
	}
	return leases
}
