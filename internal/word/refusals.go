package word

import (
	"math"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// refusals remember until when a state that is a list refuses every unit, so that a flood of refusals needs no lock. Only a
// write lets units go earlier, and every write borrows the state first. At an earlier time a list refuses as well: none
// admits more when time runs back.
type refusals struct {
	list  algorithm.Algorithm // nil for a limit with words
	until atomic.Int64
	seen  [3]int64 // the state at the last Return, under the owner's lock
}

// refuses reports whether the state is known to refuse a unit at now.
func (r *refusals) refuses(now int64) bool { return r.list != nil && now < r.until.Load() }

// forget forgets what is known, before a write. An atomic store costs as much as a lock, and mostly nothing is known.
func (r *refusals) forget() {
	if r.list != nil && r.until.Load() != math.MinInt64 {
		r.until.Store(math.MinInt64)
	}
}

// note remembers until when the state refuses a unit, if it is that of the last note: an admission writes, and whoever is
// admitted does not pay for the question.
func (r *refusals) note(state *algorithm.State, now int64) {
	seen := [3]int64{state.A, state.B, state.C}
	if seen != r.seen {
		r.seen = seen
		return
	}
	if wait := r.list.Wait(*state, now, 1); wait > 0 {
		r.until.Store(algorithm.AddSaturating(now, wait))
	}
}

// KeyRefusals remember the same of many keys, those that were refused last: a key takes the place of another. The owner of
// the keys has a lock under which it writes. The zero KeyRefusals remember nothing.
type KeyRefusals struct {
	places atomic.Pointer[[refusedKeys]keyRefusal]
}

const refusedKeys = 256

// keyRefusal holds the end of a refusal, and check is the key's hash XOR that end. Two reads that belong to different
// writes do not fit together, except with odds of 2^-64.
type keyRefusal struct{ check, until atomic.Uint64 }

func (r *KeyRefusals) place(h table.Hash) *keyRefusal {
	if places := r.places.Load(); places != nil {
		return &places[h/table.Shards%refusedKeys]
	}
	return nil
}

func (k *keyRefusal) isOf(h table.Hash) (until int64, ok bool) {
	u := k.until.Load()
	return int64(u), k.check.Load() == u^uint64(h)
}

func (k *keyRefusal) set(h table.Hash, until int64) {
	k.until.Store(uint64(until))
	k.check.Store(uint64(until) ^ uint64(h))
}

// Refuses reports whether the key of a hash is known to be refused a unit at now.
func (r *KeyRefusals) Refuses(h table.Hash, now int64) bool {
	if k := r.place(h); k != nil {
		until, ok := k.isOf(h)
		return ok && now < until
	}
	return false
}

// Forget forgets what is known of a key, before a write.
func (r *KeyRefusals) Forget(h table.Hash) {
	if k := r.place(h); k != nil {
		if until, ok := k.isOf(h); ok && until != math.MinInt64 {
			k.set(h, math.MinInt64)
		}
	}
}

// ForgetAll forgets all keys.
func (r *KeyRefusals) ForgetAll() { r.places.Store(nil) }

// Note remembers until when the state of a key under the limit, which RefusesQuietly, refuses a unit.
func (r *KeyRefusals) Note(h table.Hash, limit algorithm.Algorithm, state *algorithm.State, now int64) {
	wait := limit.Wait(*state, now, 1)
	if wait <= 0 {
		return
	}
	if r.places.Load() == nil {
		r.places.Store(new([refusedKeys]keyRefusal))
	}
	r.place(h).set(h, algorithm.AddSaturating(now, wait))
}
