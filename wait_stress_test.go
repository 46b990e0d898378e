package weir_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

const (
	stressWaiters = 10_000
	stressRate    = 20_000 // a second
	stressUnit    = time.Second / stressRate
)

// Ten thousand callers wait on the real clock while others are cancelled, refused and recorded. No caller is
// forgotten, no caller overtakes, and the state accounts for every unit. A debt keeps the line until many have been disturbed, so
// that they are on a busy machine, too; then they are released meanwhile.
func TestTenThousandWaitersUnderStress(t *testing.T) {
	const debt = 3600 * stressRate
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(stressRate), Burst: 1})
	began := time.Now()
	lim.RecordAt(began, debt)

	s := &stress{lim: lim, cancels: make([]context.CancelFunc, stressWaiters), random: rand.New(rand.NewPCG(1, 2))}
	s.join(t)
	s.disturb(t, stressWaiters*3/4)
	back := int64((debt*stressUnit - time.Since(began)) / stressUnit) // the rest is released now
	lim.Return(back)
	s.disturb(t, stressWaiters/2)
	whole := lim.WaitStats().Waiting > 0
	s.finish(t)

	admitted, cancelled := s.admitted.Load(), s.cancelled.Load()
	if admitted+cancelled != stressWaiters || s.failed.Load() > 0 {
		t.Errorf("%d released and %d cancelled of %d, %d failed", admitted, cancelled, stressWaiters, s.failed.Load())
	}
	if admitted == 0 || cancelled == 0 || s.refused == 0 {
		t.Errorf("%d released, %d cancelled, %d refused, want some of each", admitted, cancelled, s.refused)
	}
	want := time.Duration(debt-back+s.recorded+admitted) * stressUnit
	if got := lim.PeekAt(began, 0).ResetAfter; whole && got != want {
		t.Errorf("the state accounts for %d units, want %d", got/stressUnit, want/stressUnit)
	}
	if n := s.overtaken.Load(); n > 0 {
		t.Errorf("%d were released while more callers waited than had arrived after them", n)
	}
	t.Logf("%d released, %d cancelled, %d too late, %d recorded, %d refused, in %v", admitted, cancelled, s.late.Load(), s.recorded, s.refused, time.Since(began))
}

type stress struct {
	lim     *weir.Limiter
	cancels []context.CancelFunc
	all     sync.WaitGroup

	admitted, cancelled, failed atomic.Int64
	late                        atomic.Int64 // released although cancelled
	overtaken                   atomic.Int64

	random            *rand.Rand
	recorded, refused int64 // by Record, and by Allow while others waited
}

// join starts the waiters, a hundred at a time.
func (s *stress) join(t *testing.T) {
	for i := range stressWaiters {
		ctx, cancel := context.WithCancel(t.Context())
		s.cancels[i] = cancel
		s.all.Go(func() { s.wait(ctx, i) })
		for i%100 == 99 && s.lim.WaitStats().Waiting < i+1 {
			runtime.Gosched() // until they stand in line
		}
	}
}

func (s *stress) wait(ctx context.Context, i int) {
	switch err := s.lim.Wait(ctx); {
	case err == nil:
		s.admitted.Add(1)
		if ctx.Err() != nil {
			s.late.Add(1)
		}
		// The callers of earlier hundreds have returned by now.
		if i%16 == 0 && s.lim.WaitStats().Waiting > stressWaiters-i/100*100 {
			s.overtaken.Add(1)
		}
	case errors.Is(err, context.Canceled):
		s.cancelled.Add(1)
	default:
		s.failed.Add(1)
	}
}

// disturb cancels waiters at random, and records, until so many are left. If the line ends, time passes that the state cannot
// account for.
func (s *stress) disturb(t *testing.T, left int) {
	limit := s.lim.Limit()
	for step := 0; s.lim.WaitStats().Waiting > left; step++ {
		for range 8 {
			s.cancels[s.random.IntN(stressWaiters)]()
		}
		if !s.lim.Allow() {
			s.refused++
		} else {
			s.recorded++
		}
		if step%64 == 0 {
			s.lim.Record(1)
			s.recorded++
		}
		if step%512 == 0 {
			if err := s.lim.SetLimit(limit); err != nil {
				t.Error(err)
			}
		}
	}
}

func (s *stress) finish(t *testing.T) {
	done := make(chan struct{})
	go func() { s.all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("lost wake-ups: %d released, %d cancelled, %d in line", s.admitted.Load(), s.cancelled.Load(), s.lim.WaitStats().Waiting)
	}
	for _, cancel := range s.cancels {
		cancel()
	}
}

// Many keys wait at once, each for its own time, while a flood of other keys makes the shards evict idle keys.
func TestKeysDoNotSlowOneAnotherAndNoKeyWithWaitersIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, each = 500, 4
		k := mustKeyed[int](t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		start := time.Now()
		var gone atomic.Int64
		var all sync.WaitGroup
		for key := range keys {
			for range each {
				all.Go(func() {
					if err := k.Wait(t.Context(), key); err != nil {
						t.Error(err)
					}
					if at := time.Since(start); at%time.Second != 0 || at >= each*time.Second {
						t.Errorf("key %d: released after %v, want a whole second below %d", key, at, each)
					}
					gone.Add(1)
				})
			}
		}
		for second := range int64(each) {
			synctest.Wait()
			if want := keys * (second + 1); gone.Load() != want {
				t.Errorf("after %ds: %d released, want %d", second, gone.Load(), want)
			}
			for flood := range 20_000 {
				k.Allow(1000 + flood)
			}
			if waiting := second < each-1; waiting && k.Allow(7) {
				t.Errorf("after %ds: a key with a waiting caller was evicted", second)
			}
			time.Sleep(time.Second)
		}
		all.Wait()
	})
}

func TestFullQueueRefusesAndCloseWakesEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := weir.NewKeyedWith[int](weir.FixedWindow{Rate: weir.PerDay(1)}, weir.Options{Queue: 2})
		if err != nil {
			t.Fatal(err)
		}
		var closed atomic.Int64
		for key := range 50 {
			k.Allow(key)
			for range 2 {
				go func() {
					if err := k.Wait(t.Context(), key); errors.Is(err, weir.ErrClosed) {
						closed.Add(1)
					}
				}()
			}
		}
		synctest.Wait()
		if err := k.Wait(t.Context(), 7); !errors.Is(err, weir.ErrQueueFull) {
			t.Errorf("a third waiter of two: %v, want ErrQueueFull", err)
		}
		k.Close()
		synctest.Wait()
		if closed.Load() != 100 {
			t.Errorf("Close woke %d of 100", closed.Load())
		}
		if err := k.Wait(t.Context(), 1000); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("a wait after Close: %v, want ErrClosed", err)
		}
	})
}

// Close also wakes a caller that begins to wait while Close runs. The test uses the real clock, because it tries a
// race.
func TestCloseWakesCallersThatAreJustArriving(t *testing.T) {
	for range 200 {
		k := mustKeyed[int](t, weir.FixedWindow{Rate: weir.PerDay(1)})
		var all sync.WaitGroup
		for key := range 8 {
			k.Allow(key)
			all.Go(func() {
				if err := k.Wait(t.Context(), key); !errors.Is(err, weir.ErrClosed) {
					t.Errorf("got %v, want ErrClosed", err)
				}
			})
		}
		k.Close()
		all.Wait()
	}
}
