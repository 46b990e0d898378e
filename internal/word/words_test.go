package word

import (
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// TestWordsDecideLikeStates draws rates, bursts, costs, keys and steps of the clock. Every answer and every word must
// be that of the functions of 128 bits.
func TestWordsDecideLikeStates(t *testing.T) {
	const opsOfSeed = 5000
	ops, decided, together := 0, 0, 0
	for seed := range randtest.Seeds(t, 20, 20) {
		j := newJudge(seed)
		for range opsOfSeed {
			if err := j.step(); err != nil {
				t.Fatal(err)
			}
		}
		ops, decided, together = ops+j.ops, decided+j.decided, together+j.together
	}
	t.Logf("%d operations, %d of them on words", ops, decided)
	if decided < ops/4 || together < ops/20 {
		t.Errorf("of %d operations, only %d were decided on words, %d of them of two keys", ops, decided, together)
	}
}
