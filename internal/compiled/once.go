package compiled

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Once makes a value for each key, and finds it again. Keys are comparable values in an interface; equal keys share a
// value. It keeps up to MaxOnce values. Use NewOnce.
type Once[V any] struct {
	fill   func(key any, into *V)
	made   sync.Map // key to its *once[V]
	count  atomic.Int64
	recent [recentSlots]atomic.Pointer[once[V]]
}

// MaxOnce is the number of values that a Once keeps. Above it, each Of makes a new value.
const MaxOnce = 4096

// recentSlots is a power of 2, and larger than MaxOnce so that few keys have the same slot.
const (
	recentBits  = 13
	recentSlots = 1 << recentBits
	leastSize   = 16 // of most keys, in bytes
)

// once begins with the key, so that it shares a cache line with the first fields of the value.
type once[V any] struct {
	key   any
	value V
}

// NewOnce returns a Once without values. fill must make equal values for equal keys.
func NewOnce[V any](fill func(key any, into *V)) *Once[V] { return &Once[V]{fill: fill} }

// Of returns the value of a key. It looks first in the slot of the address where the interface keeps the key: callers
// mostly pass values that they keep. That costs less than a search by the key's hash.
func (o *Once[V]) Of(key any) *V {
	slot := &o.recent[slotOf(key)]
	if found := slot.Load(); found != nil && (sameAddress(found.key, key) || found.key == key) {
		return &found.value
	}
	found := o.find(key)
	slot.Store(found)
	return &found.value
}

// sameAddress reports whether two interfaces are of one type and keep their values at one address. As an interface never
// changes a value that it keeps, they are then equal.
func sameAddress(a, b any) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// slotOf returns the slot of the address in an interface. Values that lie side by side have slots side by side, which are
// few cache lines. The address is only a number here: a key is compared before its value is used.
func slotOf(key any) uint64 {
	at := uint64((*[2]uintptr)(unsafe.Pointer(&key))[1]) / leastSize
	return (at + at>>recentBits*0x9e3779b97f4a7c15>>(64-recentBits)) % recentSlots
}

// find returns the value of a key from among all, and makes it if it is new.
func (o *Once[V]) find(key any) *once[V] {
	if found, ok := o.made.Load(key); ok {
		return found.(*once[V])
	}
	found := &once[V]{key: key}
	o.fill(key, &found.value)
	if o.count.Load() >= MaxOnce {
		return found
	}
	known, loaded := o.made.LoadOrStore(key, found)
	if !loaded {
		o.count.Add(1)
	}
	return known.(*once[V])
}
