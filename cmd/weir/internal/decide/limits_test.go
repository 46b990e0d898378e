package decide

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// However calls bring limits, each gets what was made of its own limit, failures are tried again, and no more than the bound
// are kept.
func TestLimitsInCallsAreMadeOnceAndBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 3))
	var kept Limits[int, int]
	made := map[int]int{}
	bad := errors.New("not held")
	newMade := func(limit int) (int, error) {
		made[limit]++
		if limit < 0 {
			return 0, bad
		}
		return 2 * limit, nil
	}
	for range 3 {
		if _, err := kept.Of(-1, newMade); err != bad {
			t.Fatalf("got %v, want %v", err, bad)
		}
	}
	if made[-1] != 3 {
		t.Errorf("a limit that cannot be made was tried %d times, want 3", made[-1])
	}
	few := func() {
		for range 10 * maxLimits {
			limit := random.IntN(maxLimits)
			if got, err := kept.Of(limit, newMade); got != 2*limit || err != nil {
				t.Fatalf("limit %d: got %d, %v", limit, got, err)
			}
		}
	}
	few()
	for limit, times := range made {
		if limit >= 0 && times != 1 {
			t.Errorf("of %d limits at most, limit %d was made %d times, want once", maxLimits, limit, times)
		}
	}
	for range 10 * maxLimits {
		limit := random.IntN(5 * maxLimits)
		if got, err := kept.Of(limit, newMade); got != 2*limit || err != nil {
			t.Fatalf("limit %d: got %d, %v", limit, got, err)
		}
		if len(kept.made) > maxLimits {
			t.Fatalf("%d limits are kept, want at most %d", len(kept.made), maxLimits)
		}
	}
	few()
}
