package algorithm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

const testRate = 5 // the number of the rate under test

// pairers are buckets and queues with random rates, mostly coprime, and bursts to 2^40.
func pairers(random *rand.Rand) []Pairer {
	const year = 366 * 24 * 3600 * 1_000_000_000
	var all []Pairer
	for range 20 {
		period := 1 + random.Int64N(int64(year)>>random.IntN(54))
		rate := 1 + random.Int64N(min(period, maxUnits)>>random.IntN(20)+1)%min(period, maxUnits)
		burst := 1 + random.Int64N(1<<40>>random.IntN(40))
		all = append(all, NewTokenBucket(rate, period, burst), NewLeakyBucket(rate, period, burst, random.Int64N(burst+1)))
	}
	for _, rate := range []int64{11, 333, 999_983, 1 << 20, 999_999_937} {
		all = append(all, NewTokenBucket(rate, 1e9, 20), NewTokenBucket(rate, 1e9, 1<<40), NewLeakyBucket(rate, 1e9, 5, 2))
	}
	return all
}

// step returns a time that is often the end of a wait, and sometimes before now.
func step(random *rand.Rand, a Pairer, now, wait int64) int64 {
	switch random.IntN(8) {
	case 0:
		return now - random.Int64N(1e6)
	case 1, 2:
		return now
	case 3, 4:
		if wait > 0 && wait < 1<<50 {
			return now + wait - random.Int64N(2)
		}
	}
	r := RateOf(a)
	return now + random.Int64N(max(r.Unit/r.Den, 1)*3>>random.IntN(4)+2)
}

// checkPairs takes at random from two words and from the state, which must agree.
func checkPairs(t *testing.T, seed uint64, ops int) (decided int) {
	random := rand.New(rand.NewPCG(seed, 11))
	for _, a := range pairers(random) {
		base := int64(1_700_000_000_123_456_789)
		now, s := base+1+random.Int64N(1e15), a.Fresh()
		var first, second uint64
		for op := range ops {
			n := random.Int64N(min(a.Capacity(), 8) + 2)
			if random.IntN(4) == 0 {
				n = random.Int64N(a.Capacity() + 2)
			}
			parts := []Part{{Algorithm: a, State: s, Cost: n}}
			want := Take(parts, now)
			var got Answer
			decider := NewWordDecider(a)
			nextFirst, nextSecond, _, ok := decider.DecidePair(first, second, testRate, base, now, n, &got)
			if ok && got != want {
				t.Fatalf("%T %+v of %d seed %d op %d: DecidePair(%#x, %#x, now %d, %d) = %+v, want %+v", a, RateOf(a), a.Capacity(), seed, op, first, second, now-base, n, got, want)
			}
			after := s
			allowed, _ := Allow(a, &after, now, n)
			if _, _, gotAllowed, ok := decider.DecidePair(first, second, testRate, base, now, n, nil); ok && n > 0 && gotAllowed != allowed {
				t.Fatalf("%T %+v of %d seed %d op %d: DecidePair(%d) without an answer is %v, want %v", a, RateOf(a), a.Capacity(), seed, op, n, gotAllowed, allowed)
			}
			s = parts[0].State
			if random.IntN(16) == 0 {
				s = a.Take(s, now, n) // a record
			}
			var fits bool
			if first, second, fits = a.PackPair(s, testRate, base); !fits {
				s, first, second = a.Fresh(), 0, 0
				continue
			}
			if again := a.UnpackPair(first, second, base); first != 0 && (again.A != s.A || again.B != s.B || again.C != s.C) {
				t.Fatalf("%T %+v: the state %+v is %+v after two words", a, RateOf(a), s, again)
			}
			if ok && want.Changed && want.Delay == 0 && first != 0 {
				decided++
				if x, y, _ := a.PackPair(parts[0].State, testRate, base); x != nextFirst || y != nextSecond {
					t.Fatalf("%T %+v op %d: DecidePair leaves %#x %#x, the state packs to %#x %#x", a, RateOf(a), op, nextFirst, nextSecond, x, y)
				}
			}
			if idle := Idle(a, s, now); idle != IdleWord(a, PairExpiry(first, second), base, now) && now > base {
				t.Fatalf("%T %+v op %d: IdleWord(%#x) is %v, want %v", a, RateOf(a), op, first, !idle, idle)
			}
			now = max(step(random, a, now, want.RetryAfter), base-5)
		}
	}
	return decided
}

func TestPairsDecideLikeStates(t *testing.T) {
	decided := 0
	for seed := range randtest.Seeds(t, 20, 20) {
		decided += checkPairs(t, seed, 200)
	}
	if decided < 10_000 {
		t.Errorf("only %d decisions were made on two words", decided)
	}
}

func FuzzPairsDecideLikeStates(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkPairs(t, seed, 300) })
}

func TestAPairOfAnotherRateIsNotDecided(t *testing.T) {
	b := NewWordDecider(NewTokenBucket(333, 1e9, 5))
	first, second, _, _ := b.DecidePair(0, 0, testRate, 1000, 5000, 1, &Answer{})
	for _, a := range []*Answer{nil, {}} {
		if _, _, _, ok := b.DecidePair(first, second, testRate+1, 1000, 5000, 1, a); ok {
			t.Error("DecidePair decided on the words of another rate")
		}
	}
	if got := RateNumber(first); got != testRate {
		t.Errorf("the words name the rate %d, want %d", got, testRate)
	}
}

// The largest words name MaxRates rates and times of nine years. The three largest words and 0 have other meanings.
func TestNoPairHasAReservedFirstWord(t *testing.T) {
	for _, whole := range []int64{0, 1, 31, 32, 1<<wordTime - 3} {
		for _, number := range []uint64{0, 1, MaxRates - 1} {
			first, second := pair(whole, 7, number)
			if first == 0 || first >= math.MaxUint64-2 {
				t.Errorf("%d ns under rate %d has the first word %#x", whole, number, first)
			}
			if again, part := unpair(first, second); again != whole || part != 7 || RateNumber(first) != int(number) {
				t.Errorf("%d ns under rate %d reads as %d ns, fraction %d, under rate %d", whole, number, again, part, RateNumber(first))
			}
		}
	}
}

func TestOneWordBecomesTwoAndOneAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 1000 {
		b := NewTokenBucket(1+random.Int64N(10), 1+random.Int64N(1e12), 1+random.Int64N(100))
		base := int64(1_700_000_000_000_000_000)
		s := b.Take(b.Fresh(), base+1+random.Int64N(1e9), 1+random.Int64N(b.burst))
		word, ok := b.Pack(s, base)
		first, second, okPair := b.PackPair(s, testRate, base)
		if !ok || !okPair {
			t.Fatalf("%+v does not fit", s)
		}
		if x, y := WidenWord(word, testRate); x != first || y != second {
			t.Errorf("%#x widens to %#x %#x, want %#x %#x", word, x, y, first, second)
		}
	}
}
