package algorithm

import "math"

// A state is saved as numbers: A, B and C, and then 0, or 1 and what is in Log:
// the last instant, how many entries, each as its instant and units, how many
// leases, each as its end, identity and units. Of a log, A, B and C are 0; of
// leases the last instant is.

// AppendSaved appends a state of a as numbers.
func AppendSaved(into []int64, a Algorithm, s State) []int64 {
	switch a.(type) {
	case *SlidingLog, *RateGate:
		return appendLog(append(into, 0, 0, 0), (*log)(&s))
	}
	into = append(into, s.A, s.B, s.C)
	if len(s.Log) == 0 {
		return append(into, 0)
	}
	into = append(into, 1, 0, 0, int64(leases(s.Log).len()))
	return append(into, s.Log...)
}

func appendLog(into []int64, l *log) []int64 {
	length := l.length()
	if length == 0 && l.A == math.MinInt64 {
		return append(into, 0)
	}
	into = append(into, 1, l.A, int64(length))
	for i := range length {
		into = append(into, l.at(i), l.total(i+1)-l.total(i))
	}
	return append(into, 0)
}

// Saved is the state of numbers, and whether they are one that a can have: what
// is not could make it loop or point outside of a log.
func Saved(a Algorithm, numbers []int64) (s State, ok bool) {
	r := reader{numbers: numbers}
	s = State{A: r.next(), B: r.next(), C: r.next()}
	l := r.log()
	if r.broken || len(r.numbers) > 0 {
		return State{}, false
	}
	switch a.(type) {
	case *TokenBucket, *LeakyBucket:
		return s, s.C >= 1 && !l.kept
	case *FixedWindow:
		return s, isCount(s.B) && s.C == 0 && !l.kept
	case *SlidingWindow:
		return s, isCount(s.B) && isCount(s.C) && !l.kept
	case *Cycle:
		return s, s.B >= 0 && s.B <= 2*maxUnits && s.C == 0 && !l.kept
	case *SlidingLog, *RateGate:
		return l.state(), s.A == 0 && s.B == 0 && s.C == 0 && l.leases.len() == 0
	case *Concurrency:
		sound := isCount(s.B) && s.C == 0 && len(l.entries) == 0 && l.leases.units() == s.B
		s.Log = l.leases
		return s, sound && l.kept == (len(s.Log) > 0)
	}
	return State{}, false
}

func isCount(n int64) bool { return n >= 0 && n <= maxUnits }

// savedLog is what a state keeps in Log.
type savedLog struct {
	kept    bool // is there anything
	last    int64
	entries []int64 // pairs of an instant and the total up to it
	leases  leases
}

// state is that of a log.
func (l *savedLog) state() State {
	s := freshLog()
	if !l.kept {
		return s
	}
	s.A = l.last
	if len(l.entries) == 2 {
		s.C, s.B = l.entries[0], l.entries[1]
	} else {
		s.Log = l.entries
	}
	return s
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

func (r *reader) log() (l savedLog) {
	switch r.next() {
	case 0:
		return l
	case 1:
		l.kept, l.last = true, r.next()
		l.entries = r.entries(l.last)
		l.leases = r.leases()
	default:
		r.broken = true
	}
	return l
}

// entries reads those of a log whose last instant is not behind them.
func (r *reader) entries(last int64) []int64 {
	count := r.count(2)
	entries := make([]int64, 0, 2*count)
	var total int64
	for range count {
		at, units := r.next(), r.next()
		if units < 1 || units > 3*maxUnits-total || at > last || total > 0 && at <= entries[len(entries)-2] {
			r.broken = true
			return nil
		}
		total += units
		entries = append(entries, at, total)
	}
	return entries
}

func (r *reader) leases() (l leases) {
	var total int64
	for range r.count(leaseNumbers) {
		x := lease{end: r.next(), identity: uint64(r.next()), units: r.next()}
		if x.units < 1 || x.units > maxUnits-total || l.len() > 0 && l.at(l.len()-1).compare(x) >= 0 {
			r.broken = true
			return nil
		}
		total += x.units
		l = append(l, x.end, int64(x.identity), x.units)
	}
	return l
}
