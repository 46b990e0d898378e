package weir_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// Keys never share slots without a lease: a key that has found room of its own by the time it gives its slot back
// would leave the shared slot taken. New keys are therefore refused while there is no room, and get slots when some
// come back.
func TestKeyedRefusesNewKeysWhereSlotsWithoutALeaseFillIt(t *testing.T) {
	now := time.Now().UnixNano()
	k, err := weir.NewKeyedWith[int](weir.Concurrency{Slots: 1}, weir.Options{MaxKeys: 128, Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		var held []int
		for key := range 1000 {
			if k.Allow(key + 1000*round) {
				held = append(held, key+1000*round)
			}
		}
		if len(held) < 64 || len(held) > 128 || k.Overflow() != 0 {
			t.Fatalf("round %d: %d keys hold a slot and %d decisions were shared, want up to 128 and none", round, len(held), k.Overflow())
		}
		var without int
		for key := 1000 * round; ; key++ {
			if k.Peek(key, 1).Limit == 0 { // no real decision has this limit
				without = key
				break
			}
		}
		if err := k.Wait(t.Context(), without); !errors.Is(err, weir.ErrNoRoom) {
			t.Errorf("round %d: waiting without room: got %v, want ErrNoRoom", round, err)
		}
		if _, err := k.Reserve(without, 1, 0); !errors.Is(err, weir.ErrNoRoom) {
			t.Errorf("round %d: reserving without room: got %v, want ErrNoRoom", round, err)
		}
		for _, key := range held {
			k.Return(key, 1)
		}
		now += int64(time.Second)
	}
}
