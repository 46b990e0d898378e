package weir_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// restlessLimits are limits whose idle keys differ from new ones.
var restlessLimits = []weir.Limit{
	weir.Bursty{Rate: weir.PerSecond(5), Over: 2 * time.Second},
	weir.WarmUp{Rate: weir.PerSecond(5), Over: 4 * time.Second},
	weir.Cycle{Rate: weir.PerSecond(5), FromFirstUse: true},
}

// model holds a Limiter for each key, made at the first use of the key.
type model struct {
	t     *testing.T
	limit weir.Limit
	keys  map[int]*weir.Limiter
}

func (m *model) take(at time.Time, key int, n int64) weir.Decision {
	lim, ok := m.keys[key]
	if !ok {
		var err error
		now := at.UnixNano()
		if lim, err = weir.NewWith(m.limit, weir.Options{Clock: func() int64 { return now }}); err != nil {
			m.t.Fatal(err)
		}
		m.keys[key] = lim
	}
	return lim.TakeAt(at, n)
}

// Below MaxKeys no eviction changes an answer, however long keys are idle and however many others come.
func TestKeysOfRestlessLimitsAnswerAsLimitersOfTheirOwn(t *testing.T) {
	limits := append([]weir.Limit{weir.Bursty{Rate: weir.PerSecond(5)}}, restlessLimits...) // and one that stores nothing
	for _, limit := range limits {
		for seed := range uint64(4) {
			random := rand.New(rand.NewPCG(seed, 0))
			k, m := mustKeyed[int](t, limit), &model{t, limit, map[int]*weir.Limiter{}}
			at, refused := time.Unix(1_700_000_000, 0), 0
			for step := range 30_000 {
				at = at.Add(time.Duration(random.Int64N(int64(4 * time.Millisecond))))
				key, n := random.IntN(100), 1+random.Int64N(5)
				switch random.IntN(3) {
				case 0:
					key = 100 + random.IntN(3000) // returns when it is idle
				case 1:
					key = 10_000 + step // once, so that sweeps come
				}
				got, want := k.TakeAt(at, key, n), m.take(at, key, n)
				if got != want {
					t.Fatalf("%v, seed %d, step %d, key %d: got %+v, want %+v", limit, seed, step, key, got, want)
				}
				if !got.Allowed {
					refused++
				}
			}
			if refused < 1000 {
				t.Errorf("%v, seed %d: %d refused of 30000: it proves nothing", limit, seed, refused)
			}
		}
	}
}

func TestWarmUpKeysAreEvictedOnceTheyAreColdAndBurstyKeysStay(t *testing.T) {
	const keys = 100_000 // one each millisecond, in 100 s
	for i, limit := range restlessLimits {
		k := mustKeyed[int](t, limit)
		at := time.Unix(1_700_000_000, 0)
		for key := range keys {
			k.AllowAt(at.Add(time.Duration(key)*time.Millisecond), key, 1)
			k.PeekAt(at.Add(time.Duration(key)*time.Millisecond), -1-key, 1) // remembers nothing
		}
		switch n := k.Len(); i {
		case 1: // a key is cold 0.8 s after one unit
			if n < 500 || n > 10_000 {
				t.Errorf("%v: %d keys remembered where about 800 are not cold", limit, n)
			}
		default:
			if n != keys {
				t.Errorf("%v: %d keys remembered, want all %d", limit, n, keys)
			}
		}
	}
}

// At MaxKeys a key that owes nothing makes room for another, and is admitted no more than if it had stayed. A key that
// owes stays.
func TestAtMaxKeysBurstyKeysRestartWithoutStoredPermits(t *testing.T) {
	const most = 64 * 8
	for _, limit := range []weir.Limit{restlessLimits[0], restlessLimits[2]} {
		now := int64(1_700_000_000_000_000_000)
		k := cappedKeyed(t, limit, most, &now)
		cycle := limit == restlessLimits[2]
		owes := int64(500) // of a bursty limit for 100 s
		if cycle {
			owes = 5
		}
		for key := range most {
			k.AllowN(key, owes)
		}
		now += int64(time.Millisecond)
		for key := range most {
			if k.Allow(key) {
				t.Fatalf("%v: key %d owes, and another unit is admitted", limit, key)
			}
		}
		for key := range 4 * most {
			k.Allow(most + key)
		}
		if k.Len() > most || k.Overflow() == 0 {
			t.Fatalf("%v: %d keys and %d decisions on shared states, want at most %d keys, and some", limit, k.Len(), k.Overflow(), most)
		}
		now += int64(150 * time.Second) // nothing is owed
		before := k.Overflow()
		for key := range most / 16 {
			now += int64(time.Millisecond)
			k.Allow(10*most + key)
		}
		if k.Overflow() > before+uint64(most)/32 {
			t.Errorf("%v: %d of %d new keys found no room where nobody owes", limit, k.Overflow()-before, most/16)
		}
		kept, restarted := 0, 0
		for key := range most {
			left := burst(k, key)
			switch {
			case cycle && left > 5 || left > 11:
				t.Fatalf("%v: key %d gets %d at once after 150 s, want what it stored at most", limit, key, left)
			case left == 11:
				kept++
			default:
				restarted++
			}
		}
		if !cycle && (kept < most/2 || restarted == 0) {
			t.Errorf("%v: %d keys kept their permits and %d restarted, want most kept, and some restarted", limit, kept, restarted)
		}
	}
}

// burst takes single units until one is refused.
func burst(k *weir.Keyed[int], key int) (n int) {
	for k.Allow(key) {
		n++
	}
	return n
}

// SetLimit leaves a key to its next decision, also one that a Reset has put back to its beginning.
func TestAKeyThatWasResetBeginsAtItsNextUse(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	k := cappedKeyed(t, restlessLimits[0], 1000, &now)
	k.AllowN(1, 3)
	k.Reset(1)
	now += int64(time.Hour)
	if err := k.SetLimit(weir.Bursty{Rate: weir.PerSecond(1), Over: time.Minute}); err != nil {
		t.Fatal(err)
	}
	k.Peek(1, 0)
	now += int64(time.Hour)
	if got := burst(k, 1); got != 1 {
		t.Errorf("%d at once an hour after a reset, want 1: the key has not begun to store", got)
	}
}
