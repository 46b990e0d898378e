package pace_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// numbers yields 0 to n-1.
func numbers(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestPacedSequenceIsABurstAndThenTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(5), Burst: 5})
		start := time.Now()
		paced, refused := pace.Seq(t.Context(), lim, numbers(20))
		next := 0
		for i := range paced {
			want := time.Duration(max(0, i-4)) * time.Second / 5
			if at := time.Since(start); i != next || at != want {
				t.Errorf("item %d after %v, want item %d after %v", i, at, next, want)
			}
			next++
		}
		if next != 20 || refused() != nil {
			t.Errorf("%d items, %v; want 20 and no refusal", next, refused())
		}
	})
}

func TestPacedPairsAreABurstAndThenTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(5), Burst: 5})
		start := time.Now()
		paced, refused := pace.Seq2(t.Context(), lim, slices.All(slices.Collect(numbers(20))))
		got := maps.Collect(paced)
		if len(got) != 20 || time.Since(start) != 3*time.Second || refused() != nil {
			t.Errorf("%d pairs after %v, %v; want 20 after 3s", len(got), time.Since(start), refused())
		}
	})
}

func TestPacedStopsWithTheReasonWhenATurnIsRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*weir.Limiter, context.CancelFunc)
		want  error
	}{
		{"cancelled", func(_ *weir.Limiter, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"closed", func(lim *weir.Limiter, _ context.CancelFunc) { lim.Close() }, weir.ErrClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			time.AfterFunc(2500*time.Millisecond, func() { test.spoil(lim, cancel) })
			paced, refused := pace.Seq(ctx, lim, numbers(10))
			got := slices.Collect(paced)
			if !slices.Equal(got, []int{0, 1, 2}) || time.Since(start) != 2500*time.Millisecond || !errors.Is(refused(), test.want) {
				t.Errorf("%s: %v after %v, %v; want 0 to 2 after 2.5s and %v", test.name, got, time.Since(start), refused(), test.want)
			}
			time.Sleep(500 * time.Millisecond)
			if !lim.Allow() {
				t.Errorf("%s: a unit was taken for the value that was not yielded", test.name)
			}
		})
	}
}

func TestPacedIsRefusedAtOnceWhenTheDeadlineComesBeforeTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 1999*time.Millisecond)
		defer cancel()
		start := time.Now()
		paced, refused := pace.Seq(ctx, lim, numbers(10))
		got := slices.Collect(paced)
		if len(got) != 2 || time.Since(start) != time.Second || !errors.Is(refused(), context.DeadlineExceeded) {
			t.Errorf("%v after %v, %v; want two values, and DeadlineExceeded after 1s", got, time.Since(start), refused())
		}
		if ctx.Err() != nil {
			t.Error("the deadline has passed, so this tests nothing")
		}
	})
}

func TestPacedConsumerThatStopsIsNotRefused(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 5})
	paced, refused := pace.Seq(t.Context(), lim, numbers(10))
	for i := range paced {
		if i == 2 {
			break
		}
	}
	if left := lim.Peek(0).Remaining; left != 2 || refused() != nil {
		t.Errorf("%d units left, %v; want 2 of 5 and no refusal", left, refused())
	}
}

// scripted refuses the turns that have an error.
type scripted []error

func (s *scripted) WaitTurn(context.Context, weir.Turn) error {
	err := (*s)[0]
	*s = (*s)[1:]
	return err
}

func (s *scripted) Return(int64) weir.Decision { return weir.Decision{} }

func TestPacedSequenceReturnsTheReasonOfItsLastPass(t *testing.T) {
	turns := &scripted{nil, weir.ErrQueueFull, nil, nil, weir.ErrClosed}
	count := 2
	paced, refused := pace.Seq(t.Context(), turns, func(yield func(int) bool) { numbers(count)(yield) })
	for pass, want := range []error{weir.ErrQueueFull, nil, weir.ErrClosed, nil} {
		if pass == 3 {
			count = 0
		}
		for range paced {
		}
		if refused() != want {
			t.Errorf("pass %d: %v, want %v", pass, refused(), want)
		}
	}
}

// A consumer that takes chunks gets a whole chunk at once, after the wait for all of it.
func TestChunkOfPacedValuesComesWhenItsLastIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1})
		start := time.Now()
		paced, _ := pace.Seq(t.Context(), lim, numbers(100))
		if got := slices.Collect(paced); len(got) != 100 || time.Since(start) != 9900*time.Millisecond {
			t.Errorf("%d values after %v, want 100 after 9.9s", len(got), time.Since(start))
		}
	})
}

func TestPacedChannelPassesEverythingOnInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(5), Burst: 5})
		in := make(chan int)
		go func() {
			defer close(in)
			for i := range 20 {
				in <- i
			}
		}()
		start := time.Now()
		paced, refused := pace.Chan(t.Context(), lim, in)
		next := 0
		for i := range paced {
			want := time.Duration(max(0, i-4)) * time.Second / 5
			if at := time.Since(start); i != next || at != want {
				t.Errorf("value %d after %v, want value %d after %v", i, at, next, want)
			}
			next++
		}
		if next != 20 || refused() != nil {
			t.Errorf("%d values, %v; want 20 and no refusal", next, refused())
		}
	})
}

// synctest fails a test that leaves a goroutine behind. So each case shows that the goroutine of Chan has ended:
// while it waits for a value, for its turn, and for its consumer.
func TestPacedChannelLeavesNoGoroutineWhenTheContextEnds(t *testing.T) {
	for _, test := range []struct {
		name         string
		burst, spent int64
		values       int
	}{
		{"no value", 1, 0, 0},
		{"no turn", 1, 1, 1},
		{"no consumer", 1, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: test.burst})
			lim.AllowN(test.spent)
			in := make(chan int, 1)
			for range test.values {
				in <- 7
			}
			ctx, cancel := context.WithCancel(t.Context())
			paced, refused := pace.Chan(ctx, lim, in)
			synctest.Wait()
			cancel()
			synctest.Wait()
			if _, more := <-paced; more || !errors.Is(refused(), context.Canceled) {
				t.Errorf("%s: more values %v, %v; want a closed channel and Canceled", test.name, more, refused())
			}
			if left := lim.Peek(0).Remaining; left != test.burst-test.spent {
				t.Errorf("%s: %d units left, want %d: nothing was delivered", test.name, left, test.burst-test.spent)
			}
		})
	}
}

func TestPacedChannelHasOneValueReadyForAConsumerThatWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.RateGate{Rate: weir.PerSecond(1)})
		in := make(chan int, 10)
		for i := range 10 {
			in <- i
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		paced, _ := pace.Chan(ctx, lim, in)
		time.Sleep(5500 * time.Millisecond)
		start := time.Now()
		var at []time.Duration
		for range 4 {
			<-paced
			at = append(at, time.Since(start))
		}
		// The first was released at 0s and the second, which came at 5.5s, at once.
		if want := []time.Duration{0, 0, time.Second, 2 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("values came after %v, want %v", at, want)
		}
	})
}
