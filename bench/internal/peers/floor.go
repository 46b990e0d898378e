package peers

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// noop measures the loop, the call and reading the key.
type noop struct{}

func (noop) Take(key string) (bool, error) { return key[len(key)-1] != 0, nil }

// noopSingle measures the loop and the call.
type noopSingle struct{}

func (noopSingle) Take() (bool, error) { return true, nil }

// gcraFloor does the least work of an exact limiter with a full-precision clock: one time.Since and one
// compare-and-swap.
type gcraFloor struct {
	base time.Time
	word gcraWord
	gcra
}

func newGCRAFloor(l Limit) (Single, error) {
	return &gcraFloor{base: time.Now(), gcra: newGCRA(l)}, nil
}

func (f *gcraFloor) Take() (bool, error) {
	return f.take(&f.word, int64(time.Since(f.base))), nil
}

// gcra is a token bucket that stores the instant at which it is full again.
type gcra struct{ unit, most int64 }

type gcraWord = atomic.Int64

func newGCRA(l Limit) gcra {
	return gcra{unit: int64(l.Refill), most: int64(l.Refill) * l.Burst}
}

func (g gcra) take(word *gcraWord, now int64) bool {
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

// floorSlots is the fixed size of tableFloor.
const floorSlots = 1 << 22

const slotsAPage = 4096 / 16

// tableFloor does the least work of an exact keyed limiter: a clock, a hash, a probe of a fixed open-addressed table
// and a compare-and-swap. It evicts nothing and cannot hold more keys than slots.
type tableFloor struct {
	base  time.Time
	seed  maphash.Seed
	slots []floorSlot
	gcra
}

type floorSlot struct {
	hash atomic.Uint64
	word gcraWord
}

func newTableFloor(l Limit) (Keyed, error) {
	f := &tableFloor{base: time.Now(), seed: maphash.MakeSeed(), slots: make([]floorSlot, floorSlots), gcra: newGCRA(l)}
	for i := 0; i < floorSlots; i += slotsAPage {
		f.slots[i].word.Store(0) // touches the memory before the first decision
	}
	return f, nil
}

func (f *tableFloor) Take(key string) (bool, error) {
	now := int64(time.Since(f.base))
	hash := maphash.String(f.seed, key) | 1
	for i := range uint64(len(f.slots)) {
		slot := &f.slots[(hash>>1+i)%floorSlots]
		found := slot.hash.Load()
		if found == 0 && slot.hash.CompareAndSwap(0, hash) {
			found = hash
		}
		if found == hash || found == 0 && slot.hash.Load() == hash {
			return f.take(&slot.word, now), nil
		}
	}
	return false, errors.New("floor table: all slots are taken")
}
