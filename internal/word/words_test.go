package word

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"
)

var (
	opsFlag  = flag.Int("ops", 100_000, "operations of TestWordsDecideLikeStates")
	seedFlag = flag.Uint64("seed", 0, "first seed of TestWordsDecideLikeStates; 0 takes another one each time")
)

// opsOfSeed is the number of operations of one seed, which another run can repeat alone.
const opsOfSeed = 5_000

const seedsAtOnce = 2

func (j *judge) runs(t *testing.T, seed uint64) {
	for range opsOfSeed {
		if err := j.step(); err != nil {
			t.Errorf("%v\nrepeat with: go test ./internal/word -run %s -seed %d -ops 1", err, t.Name(), seed)
			return
		}
	}
}

// TestWordsDecideLikeStates draws rates, bursts, costs, keys and steps of the clock. Every answer and every word must
// be that of the functions of 128 bits.
func TestWordsDecideLikeStates(t *testing.T) {
	first := *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	ops, decided, shown := 0, 0, time.Now()
	for seed := first; ops < *opsFlag && !t.Failed(); seed += seedsAtOnce {
		judges := [seedsAtOnce]*judge{}
		var workers sync.WaitGroup
		for i := range judges {
			judges[i] = newJudge(seed + uint64(i))
			workers.Go(func() { judges[i].runs(t, seed+uint64(i)) })
		}
		workers.Wait()
		for _, j := range judges {
			ops, decided = ops+j.ops, decided+j.decided
		}
		if time.Since(shown) > 10*time.Second {
			shown = time.Now()
			fmt.Printf("%d operations, %d of them on words; continue with -seed %d -ops %d\n", ops, decided, seed+seedsAtOnce, *opsFlag-ops)
		}
	}
	t.Logf("%d operations from seed %d, %d of them on words", ops, first, decided)
	if decided < ops/4 {
		t.Errorf("only %d of %d operations were decided on words", decided, ops)
	}
}
