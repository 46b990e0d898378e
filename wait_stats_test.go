package weir_test

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
)

// counted is what a Limiter and a Keyed of one key have in common.
type counted interface {
	WaitTurn(ctx context.Context, turn weir.Turn) error
	Close()
	WaitStats() weir.WaitStats
}

// countedKeys is a Keyed whose callers each name a key in turn.
type countedKeys struct {
	*weir.Keyed[int]
	calls *atomic.Int64
	keys  int64
}

func (c countedKeys) WaitTurn(ctx context.Context, turn weir.Turn) error {
	return c.Keyed.WaitTurn(ctx, int(c.calls.Add(1)%c.keys), turn)
}

func countedOf(t *testing.T, options weir.Options, keys int64) map[string]counted {
	limit := weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}
	return map[string]counted{
		"Limiter": mustNew(t, limit, options),
		"Keyed":   countedKeys{mustKeyed[int](t, limit, options), new(atomic.Int64), keys},
	}
}

func wantStats(t *testing.T, name, when string, c counted, want weir.WaitStats) {
	t.Helper()
	synctest.Wait()
	if got := c.WaitStats(); got != want {
		t.Errorf("%s, %s: got %+v, want %+v", name, when, got, want)
	}
}

func TestWaitStatsCountTheCallersThatWaitAndTheRefusalsByReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range countedOf(t, weir.Options{Queue: 3}, 1) {
			turn := weir.Turn{Cost: 1}
			wait := func(ctx context.Context, turn weir.Turn) { _ = c.WaitTurn(ctx, turn) }
			wait(t.Context(), turn)
			wantStats(t, name, "after a turn without a wait", c, weir.WaitStats{})
			wait(t.Context(), weir.Turn{Cost: 1, Max: time.Millisecond})
			wait(t.Context(), weir.Turn{Cost: 2})
			short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			wait(short, turn)
			cancel()
			wait(short, turn)
			want := weir.WaitStats{Late: 2, Left: 1, Never: 1}
			wantStats(t, name, "after refusals without a line", c, want)

			ctx, leave := context.WithCancel(t.Context())
			go wait(t.Context(), turn)
			time.Sleep(100 * time.Millisecond)
			go wait(ctx, turn)
			go wait(t.Context(), turn)
			synctest.Wait()
			wait(t.Context(), turn)
			want.Waiting, want.Oldest, want.Full = 3, 100*time.Millisecond, 1
			time.Sleep(100 * time.Millisecond)
			want.Oldest += 100 * time.Millisecond
			wantStats(t, name, "with a full line", c, want)

			leave()
			want.Left, want.Waiting = 2, 2
			wantStats(t, name, "after one has left", c, want)
			time.Sleep(800 * time.Millisecond)
			want.Waiting, want.Granted, want.Oldest = 1, 1, 900*time.Millisecond
			wantStats(t, name, "after a grant", c, want)
			c.Close()
			wait(t.Context(), turn)
			want.Waiting, want.Oldest, want.Closed = 0, 0, 2
			wantStats(t, name, "after Close", c, want)
		}
	})
}

func TestTheOldestCallerIsThatOfAnyFlowOrKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range countedOf(t, weir.Options{}, 2) {
			_ = c.WaitTurn(t.Context(), weir.Turn{Cost: 1})
			if name == "Keyed" {
				_ = c.WaitTurn(t.Context(), weir.Turn{Cost: 1}) // the other key
			}
			ctx, leave := context.WithCancel(t.Context())
			for _, flow := range []string{"a", "b", "a"} {
				go func() { _ = c.WaitTurn(ctx, weir.Turn{Cost: 1, Flow: flow}) }()
				synctest.Wait()
				time.Sleep(time.Millisecond)
			}
			wantStats(t, name, "with two flows", c, weir.WaitStats{Waiting: 3, Oldest: 3 * time.Millisecond})
			leave()
			wantStats(t, name, "after all have left", c, weir.WaitStats{Left: 3})
		}
	})
}

func TestAReservationInLineIsNoWaitingCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		ctx, leave := context.WithCancel(t.Context())
		go func() { _ = lim.Wait(ctx) }()
		synctest.Wait()
		if r, err := lim.Reserve(1, weir.Never); err != nil || r.Decision.Delay != 2*time.Second {
			t.Fatal(r, err)
		}
		time.Sleep(time.Millisecond)
		go func() { _ = lim.Wait(t.Context()) }()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		wantStats(t, "Limiter", "with a reservation in line", lim, weir.WaitStats{Waiting: 2, Oldest: 2 * time.Millisecond})
		leave()
		wantStats(t, "Limiter", "with a reservation at the head", lim, weir.WaitStats{Waiting: 1, Oldest: time.Millisecond, Left: 1})
		lim.Close()
	})
}

func TestWaitStatsLoseNoCallerUnderContention(t *testing.T) {
	random := randtest.New(randtest.Seed(t))
	synctest.Test(t, func(t *testing.T) {
		for name, c := range countedOf(t, weir.Options{Queue: 20}, 3) {
			var granted, late, left, full atomic.Uint64
			var callers sync.WaitGroup
			for range 200 {
				callers.Go(func() {
					time.Sleep(time.Duration(random.Int64N(10e9)))
					ctx, cancel := context.WithCancel(t.Context())
					defer time.AfterFunc(time.Duration(random.Int64N(20e9)), cancel).Stop()
					began := time.Now()
					switch err := c.WaitTurn(ctx, weir.Turn{Cost: 1, Max: 15 * time.Second}); {
					case err == nil && time.Since(began) > 0:
						granted.Add(1)
					case errors.Is(err, weir.ErrWait):
						late.Add(1)
					case errors.Is(err, weir.ErrQueueFull):
						full.Add(1)
					case err != nil:
						left.Add(1)
					}
				})
			}
			callers.Wait()
			want := weir.WaitStats{Granted: granted.Load(), Late: late.Load(), Left: left.Load(), Full: full.Load()}
			if want.Granted == 0 || want.Late == 0 || want.Left == 0 || want.Full+want.Late == 0 {
				t.Errorf("%s: the callers had the ends %+v, want some of each", name, want)
			}
			wantStats(t, name, "at the end", c, want)
		}
	})
}
