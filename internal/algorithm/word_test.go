package algorithm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirflow/weir/internal/calendar"
	"github.com/weirflow/weir/internal/randtest"
)

// worder is a limit and the longest time between two calls to it.
type worder struct {
	Worder
	apart int64
}

// worders are limits whose words have little room: fractions of a nanosecond, counts at the end of their bits,
// denominators without a word, products above 64 bits.
func worders() []worder {
	const second, year = 1_000_000_000, 366 * 24 * 3600 * 1_000_000_000
	return []worder{
		{NewTokenBucket(10, second, 20), 3 * second}, {NewTokenBucket(3, second, 5), 3 * second}, {NewTokenBucket(999, second, 7), second / 200},
		{NewTokenBucket(1_000_000_000, second, 1<<20), 3 * second}, {NewTokenBucket(1, 30*24*3600*second, 4), 3 * second},
		{NewLeakyBucket(7, 60*second, 3, 1), 20 * second}, {NewLeakyBucket(1, second, 0, 0), 2 * second}, {NewLeakyBucket(10, second, 9, 0), second},
		{NewLeakyBucket(10, second, 9, 4), second}, {NewLeakyBucket(10, second, 9, 9), second}, {NewLeakyBucket(10, second, 9, 1<<53), second},
		{NewLeakyBucket(1, year, 3, 1), year / 20}, {NewLeakyBucket(1, year, 1<<20, 3), year / 20},
		{NewFixedWindow(100, 60*second), 3 * second}, {NewFixedWindow(1<<40, second), 3 * second},
		{NewFirstWindow(100, 60*second), 3 * second}, {NewFirstWindow(1020, 7), 2}, {NewFirstWindow(1<<40, second), 3 * second}, {NewFirstWindow(5, year), year / 20},
		{NewCycle(100, 60*second, 0), 3 * second}, {NewCycle(1<<40, second, second/3), 3 * second}, {NewCycle(5, second, 7), second / 2},
		{NewCycle(7, 7, 3), 5}, {NewCycle(1, year, year-1), year / 20},
		{NewSlidingWindow(1000, 3600*second), 3 * second}, {NewSlidingWindow(60_000, second), 3 * second}, {NewSlidingWindow(5, second), second / 2},
		{NewQuota(100, second, calendar.Calendar{Unit: calendar.Day, Zone: zoneNamed("Europe/Paris"), Month: 1, Day: 1}), 3 * 3600 * second},
		{NewQuota(1<<40, second, calendar.Calendar{Unit: calendar.Month, Zone: zoneNamed("UTC"), Month: 1, Day: 31}), 3 * 86400 * second},
		{NewSlidingWindow(1, second), second}, {NewSlidingWindow(1<<29, year), year / 20}, {NewSlidingWindow(7, 7), 5}, {NewSlidingWindow(3, 1), 3},
	}
}

// later returns an instant that is usually after now.
func (a worder) later(random *rand.Rand, now int64) int64 {
	now += random.Int64N(a.apart + 1)
	if random.IntN(20) == 0 {
		now -= random.Int64N(a.apart + 1)
	}
	return now
}

// cost returns a cost that is usually small, and sometimes any cost near the capacity.
func (a worder) cost(random *rand.Rand) int64 {
	if random.IntN(4) == 0 {
		return random.Int64N(a.Capacity() + 2)
	}
	return random.Int64N(min(a.Capacity(), 8) + 2)
}

// TestWordsDecideLikeStates takes at random from a word and from its state. It decides on the state while the state
// does not fit in a word.
func TestWordsDecideLikeStates(t *testing.T) {
	for _, a := range worders() {
		name, packed, denied := fmt.Sprintf("%T of %d", a.Worder, a.Capacity()), 0, 0
		for seed := range randtest.Seeds(t, 20, 20) {
			random := rand.New(rand.NewPCG(seed, 9))
			base := a.AlignWords(1_700_000_000_123_456_789)
			now, word, s := base+1, uint64(0), a.Fresh()
			for op := range 300 {
				now = a.later(random, now)
				n := a.cost(random)
				parts := []Part{{Algorithm: a.Worder, State: s, Cost: n}}
				want := Take(parts, now)
				var got Answer
				decider := NewWordDecider(a.Worder)
				next, _, ok := decider.Decide(word, base, now, n, &got)
				if ok && got != want {
					t.Fatalf("%s seed %d op %d: Decide(%#x, now %d, %d) = %+v, want %+v", name, seed, op, word, now-base, n, got, want)
				}
				if afterAllow, allowed, ok := decider.Decide(word, base, now, n, nil); ok {
					after := s
					if wanted, _ := Allow(a.Worder, &after, now, n); allowed != wanted || allowed && want.Delay == 0 && n > 0 && afterAllow != next {
						t.Fatalf("%s seed %d op %d: Decide without an answer(%#x, now %d, %d) = %v, want %v", name, seed, op, word, now-base, n, allowed, wanted)
					}
				}
				if !want.Allowed && want.RetryAfter != Never {
					denied++
				}
				s = parts[0].State
				if word, ok = a.Pack(s, base); !ok {
					s, word = a.Fresh(), 0
					continue
				}
				packed++
				if want.Changed && ok && got == want && word != next {
					t.Fatalf("%s seed %d op %d: Decide leaves %#x, the state packs to %#x", name, seed, op, next, word)
				}
				earlier := now - min(now-base, a.later(random, now)-now)
				for _, at := range []int64{earlier, now, a.later(random, now)} {
					if idle := Idle(a, s, at); idle != IdleWord(a, word, base, at) && at > base {
						t.Fatalf("%s seed %d op %d: IdleWord(%#x, now %d) is %v, want %v", name, seed, op, word, at-base, !idle, idle)
					}
				}
			}
		}
		if _, tight := a.Worder.(*TokenBucket); !tight && (packed == 0 || denied == 0 && a.Capacity() < 1<<20) {
			t.Errorf("%s: %d states fitted a word, and %d calls were refused", name, packed, denied)
		}
	}
}

func TestWordsAreOfTheRateThatWroteThem(t *testing.T) {
	const base, now = 1000, 2000
	thirds, whole := NewTokenBucket(3, 1_000_000_000, 5), NewTokenBucket(1, 1_000_000_000, 5)
	s := thirds.Take(thirds.Fresh(), now, 1)
	word, ok := thirds.Pack(s, base)
	if !ok {
		t.Fatal("a third of a second does not fit a word")
	}
	if wait := whole.Wait(thirds.Unpack(word, base), now, 5); wait != 333_333_334 {
		t.Errorf("the unit is back after %d ns, want 333333334: its writer's rate decides the wait", wait)
	}
	if word, ok := whole.Pack(s, base); ok {
		t.Errorf("the state is the word %#x of another rate", word)
	}
	if word, ok := whole.Pack(whole.Take(s, now, 1), base); !ok || whole.Wait(whole.Unpack(word, base), now, 5) != 2_000_000_000 {
		t.Errorf("after a take the state is the word %#x, %v, want two units of a second", word, ok)
	}
	if RateOf(thirds) != RateOf(NewTokenBucket(6, 2_000_000_000, 1)) {
		t.Error("words of one rate are not the same")
	}
	if RateOf(thirds) == RateOf(whole) || RateOf(NewLeakyBucket(1, 1, 1, 0)) == RateOf(NewLeakyBucket(1, 1, 1, 1)) {
		t.Error("words of different rates are the same")
	}
}
