package pace_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

// onBookingAndAsking runs a test in virtual time on a server whose processes book, and on one whose processes only ask.
func onBookingAndAsking(t *testing.T, test func(t *testing.T, s *waittest.Server, queue func() *pace.Queue)) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			test(t, s, func() *pace.Queue {
				q, err := pace.NewQueue(s.Connect(waittest.Network{}), pace.QueueOptions{NoBooking: asks})
				if err != nil {
					t.Fatal(err)
				}
				return q
			})
		})
	}
}

// A caller that is refused at once, leaves or dies delays no caller of another process.
func TestACallerThatIsRefusedAtOnceDelaysNobody(t *testing.T) {
	onBookingAndAsking(t, func(t *testing.T, s *waittest.Server, queue func() *pace.Queue) {
		tokens, slots := rule(t, "tokens", "token bucket 300/m burst 60"), rule(t, "slots", "concurrency 5 lease 30s")
		if d, err := s.Memory.Take(t.Context(), tokens.For("k", 60)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, requests := range [][]weir.Request{{tokens.For("k", 50)}, {tokens.For("k", 50), slots.For("k", 1)}} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := queue().Acquire(ctx, requests...)
			cancel()
			if !errors.As(err, new(*weir.WaitError)) {
				t.Fatalf("a caller of 50 units that has a second: %v, want a WaitError", err)
			}
		}
		start := time.Now()
		if _, err := queue().Wait(t.Context(), tokens.For("k", 1)); err != nil || time.Since(start) > 500*time.Millisecond {
			t.Errorf("the caller of another process went after %v (%v), want the 200 ms of a unit and 300 at most", time.Since(start), err)
		}
	})
}

// One client that retries a large cost leaves the small callers of another process the rate.
func TestACallerThatRetriesALargeCostLeavesOthersTheRate(t *testing.T) {
	onBookingAndAsking(t, func(t *testing.T, s *waittest.Server, queue func() *pace.Queue) {
		tokens := rule(t, "tokens", "token bucket 20/s burst 60")
		_, _ = s.Memory.Take(t.Context(), tokens.For("k", 60))
		large, small := queue(), queue()
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var granted atomic.Int64
		all.Go(func() {
			for ctx.Err() == nil {
				own, cancel := context.WithTimeout(ctx, time.Second)
				_, _ = large.Wait(own, tokens.For("k", 50))
				cancel()
				time.Sleep(20 * time.Millisecond)
			}
		})
		for range 5 {
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := small.Wait(ctx, tokens.For("k", 1)); err == nil {
						granted.Add(1)
					}
				}
			})
		}
		time.Sleep(30 * time.Second)
		if n := granted.Load(); n < 510 {
			t.Errorf("%d grants of 600 in 30 s beside a client that is refused at once, want 85 %%", n)
		}
		stop()
		all.Wait()
		time.Sleep(time.Second)
	})
}

// Units that come back early go to a waiting caller within a second.
func TestUnitsThatComeBackEarlyAreFoundWithinASecond(t *testing.T) {
	onBookingAndAsking(t, func(t *testing.T, s *waittest.Server, queue func() *pace.Queue) {
		tokens := rule(t, "tokens", "token bucket 3/m burst 3")
		_, _ = s.Memory.Take(t.Context(), tokens.For("k", 3))
		start, q := time.Now(), queue()
		time.AfterFunc(time.Second, func() { _, _ = s.Memory.Return(context.Background(), tokens.For("k", 1)) })
		if _, err := q.Wait(t.Context(), tokens.For("k", 1)); err != nil || time.Since(start) > 2500*time.Millisecond {
			t.Errorf("the caller went after %v (%v), want a unit that came back after 1 s within 1.5 s", time.Since(start), err)
		}
	})
}

// A limit that is raised is in force for waiting callers: at once where the program says so, and within a second elsewhere.
func TestARaisedLimitIsInForceForWaitingCallers(t *testing.T) {
	for _, told := range []bool{true, false} {
		for name, engine := range map[string]func(t *testing.T) weir.Engine{
			"memory":  func(t *testing.T) weir.Engine { return mustMemory(t) },
			"asking":  func(t *testing.T) weir.Engine { return newRemote(t) },
			"booking": func(t *testing.T) weir.Engine { return newServer(t).Connect(waittest.Network{}) },
		} {
			if name == "memory" && !told { // its queue asks nothing in between
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				var now atomic.Pointer[weir.Rule]
				now.Store(rule(t, "api", "token bucket 1/h burst 1"))
				q, err := pace.NewQueue(engine(t), pace.QueueOptions{Resolve: func(r weir.Request) weir.Request {
					r.Rule = now.Load()
					return r
				}})
				if err != nil {
					t.Fatal(err)
				}
				old := now.Load()
				var all sync.WaitGroup
				var raised time.Time
				for i := range 10 {
					all.Go(func() {
						if _, err := q.Wait(t.Context(), old.For("alice", 1)); err != nil {
							t.Error(name, err)
						}
						if took := time.Since(raised); i > 0 && took > 1500*time.Millisecond {
							t.Errorf("%s: caller %d went %v after the limit was raised", name, i, took)
						}
					})
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				raised = time.Now()
				now.Store(rule(t, "api", "token bucket 1000/s burst 100"))
				if told {
					q.Changed()
				}
				all.Wait()
			})
		}
	}
}

// A caller under new limits does not wait behind one under those of the past, though nobody tells the queue.
func TestACallerUnderANewLimitDoesNotWaitBehindTheOldOne(t *testing.T) {
	onAll(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, old, raised := mustQueue(t, engine), rule(t, "api", "1/h"), rule(t, "api", "unlimited")
		if _, err := q.Wait(t.Context(), old.For("alice", 1)); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		go q.Wait(ctx, old.For("alice", 1))
		synctest.Wait()
		start := time.Now()
		if _, err := q.Wait(t.Context(), raised.For("alice", 1)); err != nil || time.Since(start) > 0 {
			t.Errorf("the caller went after %v (%v), want at once", time.Since(start), err)
		}
		leave()
		synctest.Wait()
	})
}

// A caller of two keys of slots whose answers are lost never holds them beside another one.
func TestLostAnswersOfTwoKeysAdmitNoSecondHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var lose atomic.Int64
		process := s.Connect(waittest.Network{Way: waittest.Between(randtest.New(randtest.Seed(t)), 0, 2*time.Millisecond), Lose: func() bool { return lose.Add(1)%3 == 0 }})
		a, b := rule(t, "a", "concurrency 1 lease 2s"), rule(t, "b", "concurrency 1 lease 2s")
		queues := []*pace.Queue{mustQueue(t, process), mustQueue(t, s.Connect(waittest.Network{}))}
		var holders, grants atomic.Int64
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				for range 20 {
					both, err := queues[i%2].Acquire(t.Context(), a.For("k", 1), b.For("k", 1))
					if err != nil {
						t.Error(err)
						return
					}
					if n := holders.Add(1); n > 1 {
						t.Errorf("%d holders of one slot", n)
					}
					grants.Add(1)
					time.Sleep(10 * time.Millisecond)
					holders.Add(-1)
					_ = both.Done(context.Background())
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		if d, err := s.Memory.Peek(t.Context(), a.For("k", 0), b.For("k", 0)); err != nil || d.Remaining != 1 {
			t.Errorf("%d slots are free at rest (%v), want 1", d.Remaining, err)
		}
	})
}
