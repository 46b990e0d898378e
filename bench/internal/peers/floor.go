package peers

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// loop measures the loop, the call and reading the key.
func loop(Limit) (Limiter, error) {
	return Limiter{Take: func(key string) (bool, error) { return key[len(key)-1] != 0, nil }}, nil
}

// newGCRAFloor does the least work of an exact limiter with a full-precision clock: one time.Since and one
// compare-and-swap.
func newGCRAFloor(l Limit) (Limiter, error) {
	base, word, gcra := time.Now(), new(atomic.Int64), newGCRA(l)
	return Limiter{Take: func(string) (bool, error) { return gcra.take(word, int64(time.Since(base))), nil }}, nil
}

// gcra is a token bucket that stores the instant at which it is full again.
type gcra struct{ unit, most int64 }

func newGCRA(l Limit) gcra {
	return gcra{unit: int64(l.Refill), most: int64(l.Refill) * l.Burst}
}

func (g gcra) take(word *atomic.Int64, now int64) bool {
	for {
		old := word.Load()
		next := max(old, now) + g.unit
		if next-now > g.most {
			return false
		}
		if word.CompareAndSwap(old, next) {
			return true
		}
	}
}

// floorSlots is the fixed size of a floor table.
const floorSlots = 1 << 22

const slotsAPage = 4096 / 16

type floorSlot struct {
	hash atomic.Uint64
	word atomic.Int64
}

// newTableFloor does the least work of an exact keyed limiter: a clock, a hash, a probe of a fixed open-addressed table
// and a compare-and-swap. It evicts nothing and cannot hold more keys than slots.
func newTableFloor(l Limit) (Limiter, error) {
	base, seed, slots, gcra := time.Now(), maphash.MakeSeed(), make([]floorSlot, floorSlots), newGCRA(l)
	for i := 0; i < floorSlots; i += slotsAPage {
		slots[i].word.Store(0) // touches the memory before the first decision
	}
	return Limiter{Take: func(key string) (bool, error) {
		now := int64(time.Since(base))
		hash := maphash.String(seed, key) | 1
		for i := range uint64(len(slots)) {
			slot := &slots[(hash>>1+i)%floorSlots]
			found := slot.hash.Load()
			if found == 0 && slot.hash.CompareAndSwap(0, hash) {
				found = hash
			}
			if found == hash || found == 0 && slot.hash.Load() == hash {
				return gcra.take(&slot.word, now), nil
			}
		}
		return false, errors.New("floor table: all slots are taken")
	}}, nil
}
