package compiled

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Equal keys have one value, wherever an interface keeps them, and callers at once agree on it.
func TestOnceMakesOneValueForEqualKeys(t *testing.T) {
	const keys = 3000
	var made atomic.Int64
	o := NewOnce(func(key any, into *int) { *into = key.(int) * 2; made.Add(1) })
	var first [keys]*int
	for key := range keys {
		first[key] = o.Of(any(1000 + key))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for key := range keys {
				for range 2 { // the second is found in its slot
					if again := o.Of(any(1000 + key)); again != first[key] || *again != 2*(1000+key) {
						t.Errorf("key %d: got %d at another address, or not twice the key", 1000+key, *again)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if made.Load() != keys {
		t.Errorf("made %d values, want %d", made.Load(), keys)
	}
}

// A slot may have been filled under an address that now holds another key.
func TestOnceComparesTheKeyOfASlot(t *testing.T) {
	o := NewOnce(func(key any, into *int) { *into = key.(int) })
	stale, key := any(5_000), any(6_000)
	o.recent[slotOf(key)].Store(o.find(stale))
	if got := *o.Of(key); got != 6_000 {
		t.Errorf("got the value of %d, want that of 6000", got)
	}
}

func TestOnceKeepsABoundedNumberOfValues(t *testing.T) {
	o := NewOnce(func(key any, into *int) { *into = key.(int) })
	for key := range 3 * MaxOnce {
		if got := *o.Of(key); got != key {
			t.Fatalf("got %d for key %d", got, key)
		}
	}
	kept := 0
	for range o.made.Range {
		kept++
	}
	if kept != MaxOnce {
		t.Errorf("keeps %d values, want %d", kept, MaxOnce)
	}
}
