package weir

import (
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/word"
)

// everyIdentity returns limits of each kind, with periods in every form of text.
func everyIdentity() (limits []Limit) {
	for _, period := range []time.Duration{1, 999, time.Millisecond, 1500 * time.Millisecond, time.Second, 61 * time.Second, 90 * time.Minute,
		time.Hour + time.Second, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour, 10 * 24 * time.Hour, 25*time.Hour + 1, MaxPeriod} {
		rate := Rate{Count: min(3, int64(period)), Period: period}
		limits = append(limits,
			TokenBucket{Rate: rate}, TokenBucket{Rate: rate, Burst: MaxCount}, LeakyBucket{Rate: rate, Queue: 5}, FixedWindow{Rate: rate},
			SlidingWindow{Rate: rate}, SlidingLog{Rate: rate, Gap: period / 2}, SlidingLog{Rate: rate, CountDenied: true}, RateGate{Rate: rate},
			Cycle{Rate: rate}, Cycle{Rate: rate, Origin: period / 3}, Cycle{Rate: rate, Origin: -1},
			Concurrency{Slots: 3}, Concurrency{Slots: 3, Lease: period})
	}
	return limits
}

// This test compares a limit with the limit made from its identity: name, capacity, and when states are idle.
func TestLimitsOfOneIdentityAreIdleAtTheSameTime(t *testing.T) {
	for _, limit := range everyIdentity() {
		a := limit.algorithm(nanoseconds)
		again, err := limitOf(identity(limit), a.Capacity())
		if err != nil || identity(again) != identity(limit) {
			t.Fatalf("%s: %q makes %v and error %v", limit, identity(limit), again, err)
		}
		b := again.algorithm(nanoseconds)
		now := int64(1_700_000_000_123_456_789)
		for _, n := range []int64{1, a.Capacity(), 3 * min(a.Capacity(), MaxCount/3)} {
			state := a.Take(a.Fresh(), now, n)
			left := a.Wait(state, now, a.Capacity()) // until it is idle
			for _, at := range []int64{now, algorithm.AddSaturating(now, left-1), algorithm.AddSaturating(now, left), algorithm.AddSaturating(now, algorithm.AddSaturating(left, 1))} {
				if got, want := algorithm.Idle(b, state, at), algorithm.Idle(a, state, at); got != want {
					t.Fatalf("%s after %d, %d ns later: %s finds it idle: %v, want %v", limit, n, at-now, again, got, want)
				}
			}
			wordsAreIdleAlike(t, limit, a, state, now, left)
		}
	}
}

// wordsAreIdleAlike does the same with words, which do not contain the capacity.
func wordsAreIdleAlike(t *testing.T, limit Limit, a algorithm.Algorithm, state algorithm.State, now, left int64) {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return
	}
	one, err := limitOf(identity(limit), 1)
	if err != nil {
		t.Fatalf("%s: %v", limit, err)
	}
	other := one.algorithm(nanoseconds).(algorithm.Worder)
	base := now - word.Slack
	word, ok := words.Pack(state, base)
	if !ok {
		return
	}
	if cycle, ok := other.(*algorithm.Cycle); ok { // whose words are those of one number of permits
		other, _ = algorithm.WithRate(cycle, algorithm.RateOf(words))
	}
	for _, at := range []int64{now, algorithm.AddSaturating(now, left-1), algorithm.AddSaturating(now, left)} {
		if got, want := other.IdleWord(word, base, at), words.IdleWord(word, base, at); got != want {
			t.Fatalf("%s, %d ns later: %s finds word %#x idle: %v, want %v", limit, at-now, one, word, got, want)
		}
	}
	other, ok = algorithm.WithRate(other, algorithm.RateOf(words))
	if again, fits := other.Pack(other.Unpack(word, base), base); !ok || !fits || again != word {
		t.Fatalf("%s: word %#x is %#x under %s", limit, word, again, one)
	}
}

func TestIdentitiesOfNoLimitAreRefused(t *testing.T) {
	for _, identity := range []string{
		"", "bursty", "warm up", "token bucket/s", "fixed window", "fixed window/", "fixed window/1s", "fixed window/60s", "fixed window/-1s",
		"sliding window/s+1ms", "cycle/s+0s", "cycle/s+2s", "cycle/s+", "rate gate/9999w", "concurrency/s", "sliding log/x",
	} {
		if limit, err := limitOf(identity, 1); err == nil {
			t.Errorf("%q makes %s, want an error", identity, limit)
		}
	}
	for _, capacity := range []int64{0, -1, MaxCount + 1} {
		for _, limit := range everyIdentity()[:13] {
			if got, err := limitOf(identity(limit), capacity); err == nil {
				t.Errorf("%q with a capacity of %d makes %s, want an error", identity(limit), capacity, got)
			}
		}
	}
}
