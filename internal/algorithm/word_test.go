package algorithm

import (
	"math/rand/v2"
	"testing"
)

// worders are limits whose words are tight in one way or another: fractions of
// a nanosecond, counts at the end of their bits, denominators no word has.
func worders() []Worder {
	const second = 1_000_000_000
	return []Worder{
		NewTokenBucket(10, second, 20), NewTokenBucket(3, second, 5), NewTokenBucket(999, second, 7),
		NewTokenBucket(1_000_000_000, second, 1<<20), NewTokenBucket(1, 30*24*3600*second, 4),
		NewLeakyBucket(7, 60*second, 3, 1), NewFixedWindow(100, 60*second), NewFixedWindow(1<<40, second),
		NewSlidingWindow(1000, 3600*second), NewSlidingWindow(60_000, second),
	}
}

// TestWordsDecideLikeStates takes at random from a word and from the state it
// stands for. What does not fit a word is decided on the state and packed again
// when it can be.
func TestWordsDecideLikeStates(t *testing.T) {
	for _, a := range worders() {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 9))
			base := a.AlignWords(1_700_000_000_123_456_789)
			now, word, s, packed := base+1, uint64(0), a.Fresh(), 0
			for op := range 300 {
				now += random.Int64N(1+int64(3e9)) - int64(random.IntN(20)/19)*2e9
				n := random.Int64N(min(a.Capacity(), 8) + 2)
				parts := []Part{{Algorithm: a, State: s, Cost: n}}
				want := Take(parts, now)
				next, got, ok := a.TakeWord(word, base, now, n)
				if ok && got != want {
					t.Fatalf("%T seed %d op %d: TakeWord(%#x, now %d, %d) = %+v, want %+v", a, seed, op, word, now-base, n, got, want)
				}
				if afterAllow, allowed, ok := a.AllowWord(word, base, now, n); ok {
					part := Part{Algorithm: a, State: s, Cost: n}
					if wanted := Allow(&part, now); allowed != wanted || allowed && want.Delay == 0 && n > 0 && afterAllow != next {
						t.Fatalf("%T seed %d op %d: AllowWord(%#x, now %d, %d) = %v, want %v", a, seed, op, word, now-base, n, allowed, wanted)
					}
				}
				s = parts[0].State
				if word, ok = a.Pack(s, base); !ok {
					s, word = a.Fresh(), 0
					continue
				}
				packed++
				if want.Changed && ok && got == want && word != next {
					t.Fatalf("%T seed %d op %d: TakeWord leaves %#x, the state packs to %#x", a, seed, op, next, word)
				}
				if idle := Idle(a, s, now); idle != a.IdleWord(word, base, now) && now > base {
					t.Fatalf("%T seed %d op %d: IdleWord(%#x) is %v, want %v", a, seed, op, word, !idle, idle)
				}
			}
			if _, tight := a.(*TokenBucket); !tight && packed == 0 {
				t.Errorf("%T: no state ever fitted a word", a)
			}
		}
	}
}

func TestWordsSayWhatInstantTheyAreUnderAnyRate(t *testing.T) {
	const base, now = 1000, 2000
	thirds := NewTokenBucket(3, 1_000_000_000, 5)
	word, ok := thirds.Pack(thirds.Take(thirds.Fresh(), now, 1), base)
	if !ok {
		t.Fatal("a third of a second does not fit a word")
	}
	whole := NewTokenBucket(1, 1_000_000_000, 5)
	if wait := whole.Wait(whole.Unpack(word, base), now, 5); wait != 333_333_334 {
		t.Errorf("under 1/s the instant is %d ns ahead, want 333333334", wait)
	}
}
