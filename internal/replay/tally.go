package replay

import "github.com/weirflow/weir"

// Tally counts decisions in order of time, of any keys, and makes the report of one limit. Keys are numbers, from 0.
type Tally struct {
	outcome *outcome
	keys    []keyTally
}

// NewTally returns an empty Tally of traffic between two instants in nanoseconds since the Unix epoch.
func NewTally(first, last int64) *Tally { return &Tally{outcome: newOutcome(first, last)} }

// Count counts a decision on n requests, or on one of n units, at an instant, which is not before the last one.
func (t *Tally) Count(at int64, key uint32, d weir.Decision, n int64) {
	for uint32(len(t.keys)) <= key {
		t.keys = append(t.keys, keyTally{})
	}
	t.keys[key].count(at, d.Allowed, n)
	t.outcome.note(at, d, n)
}

// CountBan counts what the ban of the limits that decided, which begins after a number of refusals, makes of a decision: see
// StrikesOf.
func (t *Tally) CountBan(at int64, key uint32, d weir.Decision, after int64) {
	t.outcome.after = max(t.outcome.after, after)
	t.outcome.noteBan(at, int(key), d)
}

// Report returns what was counted. It names the keys by their numbers.
func (t *Tally) Report(limit string, keys []string, top int) LimitReport {
	return t.closed().report(limit, keys, top)
}

// Keys returns the number of keys that were counted.
func (t *Tally) Keys() (n int) {
	for i := range t.keys {
		if t.Has(uint32(i)) {
			n++
		}
	}
	return n
}

// Has reports whether anything of a key was counted.
func (t *Tally) Has(key uint32) bool {
	return uint32(len(t.keys)) > key && t.keys[key].admitted+t.keys[key].refused > 0
}

// Refuses reports whether anything of a key was refused.
func (t *Tally) Refuses(key uint32) bool { return uint32(len(t.keys)) > key && t.keys[key].refused > 0 }

// Differ compares two tallies of the same traffic.
func Differ(first, second *Tally, keys []string, top int) *Difference {
	return difference(first.closed(), second.closed(), keys, top)
}

// closed returns the outcome with the counts of each key.
func (t *Tally) closed() *outcome {
	o := *t.outcome
	for id, key := range t.keys {
		o.key = key
		o.endKey(id)
	}
	return &o
}
