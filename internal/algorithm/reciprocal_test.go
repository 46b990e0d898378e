package algorithm

import (
	"math/rand/v2"
	"testing"
)

// TestAReciprocalDividesExactly looks at the multiples of random divisors and at the times beside them.
func TestAReciprocalDividesExactly(t *testing.T) {
	const longestTime = 1<<wordTime - 1
	random := rand.New(rand.NewPCG(7, 7))
	divisors := []int64{1, 2, 3, 5, 6, 7, 10, 63, 64, 65, 1e9, longestTime - 1, longestTime, longestTime + 1}
	for range 20_000 {
		near := int64(1) << random.IntN(wordTime)
		divisors = append(divisors, 1+random.Int64N(near), near+random.Int64N(3))
	}
	for _, d := range divisors {
		r := newReciprocal(d)
		check := func(time int64) {
			if got := r.quotient(time); got != time/d {
				t.Fatalf("%d divided by %d is %d, want %d", time, d, got, time/d)
			}
		}
		check(0)
		check(longestTime)
		for range 20 {
			multiple := random.Int64N(longestTime/d+1) * d
			check(multiple)
			check(max(multiple-1, 0))
			check(min(multiple+d-1, longestTime))
		}
		last := (longestTime + 1) / d * d // the hardest times are just below the largest multiples
		check(min(last, longestTime))
		check(max(last-1, 0))
	}
}

// An engine that counts microseconds makes the bucket of a finer rate before it refuses the rate.
func TestABucketWithoutAUnitIsMade(t *testing.T) {
	if b := NewTokenBucket(1, 0, 1); b.whole != -1 {
		t.Errorf("its words would last %d", b.whole)
	}
}
