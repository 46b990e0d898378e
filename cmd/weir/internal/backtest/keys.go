package backtest

import (
	"math"
	"time"

	"github.com/weirflow/weir"
)

// keyring finds out which keys can refuse nothing, whenever the requests came within their bounds. Most keys of a log are so: their
// requests need no engine.
//
// A limit has room for all requests of a log that are no more than its capacity, and for those that are never more than
// half of it within the time that a key needs to become like a new one. Units come back at a rate that replaces the
// capacity in that time, or count for that time at most. The other half makes up for the rounding of a limit.
type keyring struct {
	*try
	at     int   // the number of the file
	bases  []int // of the keys of a row
	keys   []boundKey
	limits map[*weir.Rule]*facts
	quiet  []bool // by outcome: all of its keys admit
}

// boundKey is a key of a row.
type boundKey struct {
	limit   *weir.Rule // by which it is decided
	facts   *facts
	total   int64 // units of all requests
	never   bool  // it refuses and delays nothing whenever they come
	odd     bool  // its decisions are all unsure: several limits in turn, a log that counts refused attempts, or another rule in its place
	chained bool  // what it refuses may be asked of another rule
	busy    busy

	full            bool   // the strict engine has counted less than there was
	pending         int64  // units
	n               int    // pending events
	began           int64  // the earliest of them
	failed          uint32 // the last turn without room
	strict, lenient counted
}

// facts are what the limits of a rule have in common.
type facts struct {
	capacity int64         // the least of them
	reset    time.Duration // the longest time until a key is like a new one
	odd      bool          // the order of requests, or what was refused of them, makes a difference
	delays   bool          // an engine has to say how long
	bans     bool          // a refusal makes a difference
}

// mayBeBanned reports whether a ban may have begun: there is one, and a request may have been refused.
func (k *boundKey) mayBeBanned() bool { return k.failed > 0 && k.facts.bans }

// busy counts the units of a key in stretches of time. Requests that may have been decided within one reset lie in two neighbours.
type busy struct {
	spread      int64 // the longest time within which a request of the key was decided
	stretch     int64 // the number of the current one
	before, now int64 // units of the last stretch and of the current one
	most        int64 // of two neighbours
}

func (t *Traffic) newKeyring(at int) *keyring {
	b := &keyring{try: t.tries[at], at: at, limits: map[*weir.Rule]*facts{}}
	size, bases := 0, map[*numbers]int{}
	for _, row := range b.rows {
		base, known := bases[row.keys]
		if !known {
			base, bases[row.keys] = size, size
			size += len(row.keys.names)
		}
		b.bases = append(b.bases, base)
	}
	b.keys = make([]boundKey, size)
	for i := range b.keys {
		never := counted{math.MinInt64, math.MinInt64}
		b.keys[i].strict, b.keys[i].lenient, b.keys[i].busy.stretch = never, never, math.MinInt64
	}
	events, spreads := make([]int64, len(b.outcomes.kept)), make([]int64, len(b.outcomes.kept)) // with this outcome
	for i, number := range t.numbers[at] {
		events[number]++
		spreads[number] = max(spreads[number], t.events[i].to()-t.events[i].from())
	}
	for number, n := range events {
		if n > 0 { // otherwise its events were cut
			o := b.outcomes.of(uint32(number))
			b.total(&o, n, spreads[number])
		}
	}
	b.settle(func(k *boundKey) int64 { return k.total })
	for i, number := range t.numbers[at] {
		if !b.quiet[number] {
			o := b.outcomes.of(number)
			b.note(&o, t.events[i].at)
		}
	}
	b.settle(func(k *boundKey) int64 { return times(k.busy.most, 2) })
	return b
}

// total adds the units of n events to those of their keys.
func (b *keyring) total(o *outcome, n, spread int64) {
	for i := range o.asks {
		k, q := b.key(o, i), &o.requests[i]
		k.total = plus(k.total, times(q.Cost, n))
		k.busy.spread = max(k.busy.spread, spread)
		if k.limit != q.Rule {
			k.facts = b.factsOf(q.Rule)
			k.odd = k.odd || k.limit != nil || k.facts.odd
			k.limit = q.Rule
		}
		k.chained = k.chained || q.Otherwise != nil
	}
}

// note counts an event at those of its keys that have more units than fit at once.
func (b *keyring) note(o *outcome, at int64) {
	for i := range o.asks {
		k := b.key(o, i)
		if k.never || k.odd {
			continue
		}
		if k.facts.reset > math.MaxInt64/4 || k.busy.spread > math.MaxInt64/8 {
			k.busy.most = math.MaxInt64
			continue
		}
		k.busy.count(at/(int64(k.facts.reset)+2*k.busy.spread+1), max(o.requests[i].Cost, 1))
	}
}

func (b *busy) count(stretch, units int64) {
	switch {
	case stretch == b.stretch:
	case stretch == b.stretch+1:
		b.stretch, b.before, b.now = stretch, b.now, 0
	default:
		b.stretch, b.before, b.now = stretch, 0, 0
	}
	b.now = plus(b.now, units)
	b.most = max(b.most, plus(b.before, b.now))
}

// settle marks the keys that have room for a number of units, and the outcomes all of whose keys have.
func (b *keyring) settle(units func(*boundKey) int64) {
	for i := range b.keys {
		k := &b.keys[i]
		k.never = k.never || k.limit != nil && !k.odd && !k.facts.delays && k.facts.capacity >= max(units(k), 1)
	}
	b.quiet = make([]bool, len(b.outcomes.kept))
	for i := range b.outcomes.kept {
		o := b.outcomes.of(uint32(i))
		b.quiet[i] = o.fate == asked
		for j := range o.asks {
			b.quiet[i] = b.quiet[i] && b.key(&o, j).never
		}
	}
}

func (b *keyring) key(o *outcome, i int) *boundKey {
	a := &o.asks[i]
	return &b.keys[b.bases[a.row]+int(o.keys[a.key])]
}

func (b *keyring) factsOf(rule *weir.Rule) *facts {
	if f := b.limits[rule]; f != nil {
		return f
	}
	f := &facts{capacity: math.MaxInt64}
	for _, l := range rule.Limits() {
		d := weir.Describe(l)
		if d.Reset == 0 {
			d.Reset = math.MaxInt64
		}
		f.capacity, f.reset = min(f.capacity, d.Capacity), max(f.reset, d.Reset)
		f.odd, f.delays, f.bans = f.odd || d.CountsDenied || d.Gap > 0, f.delays || d.Delays, f.bans || d.Bans
	}
	b.limits[rule] = f
	return f
}

// plus and times saturate.
func plus(a, b int64) int64 { return min(a, math.MaxInt64-b) + b }

func times(a, n int64) int64 {
	if a > math.MaxInt64/n {
		return math.MaxInt64
	}
	return a * n
}
