package repeat

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/randtest"
)

var options = Options{Most: 3, Pause: 50 * time.Millisecond, LongestPause: time.Second}

func failing(tries *atomic.Int64, succeeds int64) Try {
	return Blocking(time.Second, func(context.Context) bool { return tries.Add(1) >= succeeds })
}

func TestACallIsRepeatedUntilItIsAnsweredOrExpires(t *testing.T) {
	for _, test := range []struct {
		name     string
		succeeds int64
		until    time.Duration
		tries    int64
		ends     time.Duration
		want     Outcome
	}{
		{"at once", 1, time.Minute, 1, 0, Done},
		{"at the third try", 3, time.Minute, 3, 150 * time.Millisecond, Done},
		{"in growing pauses up to the longest", 8, time.Minute, 8, 3550 * time.Millisecond, Done},
		{"until it would come too late", 100, 400 * time.Millisecond, 4, 350 * time.Millisecond, Expired},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, tries, began := New(options), atomic.Int64{}, time.Now()
			ended := make(chan Outcome, 1)
			r.Try(0, began.Add(test.until), failing(&tries, test.succeeds), func(o Outcome) { ended <- o })
			if got := <-ended; got != test.want || tries.Load() != test.tries || time.Since(began) != test.ends {
				t.Errorf("%s: outcome %d after %d tries and %v, want %d, %d, %v", test.name, got, tries.Load(), time.Since(began), test.want, test.tries, test.ends)
			}
		})
	}
}

func TestAPanicEndsTheRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(options)
		r.Try(0, time.Now().Add(time.Minute), Blocking(time.Second, func(context.Context) bool { panic("engine") }), nil)
		synctest.Wait()
		if s := r.Stats(); s != (Stats{Done: 1}) {
			t.Errorf("got %+v", s)
		}
	})
}

// Whatever the calls answer, and whenever the Repeater is closed, each call ends once, counted by its reason, and a closed Repeater
// makes no further try.
func TestEveryCallEndsOnceAndIsCounted(t *testing.T) {
	for seed := range randtest.Seeds(t, 50, 500) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			r, calls, late := New(options), 1+rng.IntN(12), atomic.Int64{}
			var ends [outcomes]atomic.Int64
			var closed atomic.Bool
			for range calls {
				succeeds, answer, life := int64(1+rng.IntN(6)), time.Duration(rng.IntN(300))*time.Millisecond, time.Duration(rng.IntN(2000))*time.Millisecond
				var tries atomic.Int64
				r.Try(time.Duration(rng.IntN(200))*time.Millisecond, time.Now().Add(life), func(answered func(bool)) {
					if closed.Load() {
						late.Add(1)
					}
					time.AfterFunc(answer, func() { answered(tries.Add(1) >= succeeds) })
				}, func(o Outcome) { ends[o].Add(1) })
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			}
			if rng.IntN(2) == 0 {
				r.Close()
				closed.Store(true)
			}
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			s, sum := r.Stats(), int64(0)
			for o := range outcomes {
				sum += ends[o].Load()
			}
			if sum != int64(calls) || s.Pending != 0 || late.Load() > 0 ||
				s.Done != uint64(ends[Done].Load()) || s.Full != uint64(ends[Full].Load()) || s.Expired != uint64(ends[Expired].Load()) || s.Closed != uint64(ends[Closed].Load()) {
				t.Errorf("seed %d: %d calls ended %d times, %d were made after the end: %+v", seed, calls, sum, late.Load(), s)
			}
		})
	}
}

func TestFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(options)
		var tries atomic.Int64
		r.Try(0, time.Now().Add(time.Minute), failing(&tries, 1000), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Flush(ctx); err == nil {
			t.Error("a flush ended before its calls")
		}
		r.Close()
	})
}
