package weir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// counted is an algorithm that counts its takes: a plan makes one for each
// waiter that it looks at.
func counted(a algorithm.Algorithm, takes *int) algorithm.Algorithm {
	switch a := a.(type) {
	case *algorithm.TokenBucket:
		return countedBucket{a, takes}
	case *algorithm.LeakyBucket:
		return countedLeaky{a, takes}
	case *algorithm.RateGate:
		return countedGate{a, takes}
	}
	return countedOther{a, takes}
}

type countedBucket struct {
	*algorithm.TokenBucket
	takes *int
}

type countedLeaky struct {
	*algorithm.LeakyBucket
	takes *int
}

type countedGate struct {
	*algorithm.RateGate
	takes *int
}

// countedOther has none of the abilities that some algorithms have besides.
type countedOther struct {
	algorithm.Algorithm
	takes *int
}

func (c countedBucket) Take(s algorithm.State, now, n int64) algorithm.State {
	*c.takes++
	return c.TokenBucket.Take(s, now, n)
}

func (c countedLeaky) Take(s algorithm.State, now, n int64) algorithm.State {
	*c.takes++
	return c.LeakyBucket.Take(s, now, n)
}

func (c countedGate) Take(s algorithm.State, now, n int64) algorithm.State {
	*c.takes++
	return c.RateGate.Take(s, now, n)
}

func (c countedOther) Take(s algorithm.State, now, n int64) algorithm.State {
	*c.takes++
	return c.Algorithm.Take(s, now, n)
}

// crowd is a line of waiters in the order in which they came.
type crowd struct {
	*late
	waiters []*waiter
	takes   int
}

func newCrowd(t testing.TB, limit Limit, options Options) *crowd {
	c := &crowd{late: newLate(t, limit)}
	c.queue.options = options
	c.subject = newSubject(counted(c.subject.algorithm, &c.takes), c.now)
	c.subject.record(c.now, min(c.subject.algorithm.Capacity(), 100)) // nobody goes at once
	return c
}

func (c *crowd) join(n int64, class int) {
	w, err := c.queue.enter(c.t.Context(), &c.subject, c.now, Turn{Cost: n, Class: class, Max: Never})
	if err != nil && !errors.Is(err, ErrQueueFull) {
		c.t.Fatal(err)
	}
	if w != nil && w.queued {
		c.waiters = append(c.waiters, w)
	}
}

// leave is the i-th waiter giving up its place.
func (c *crowd) leave(i int) {
	w := c.waiters[i]
	c.waiters = append(c.waiters[:i], c.waiters[i+1:]...)
	if w.queued {
		c.subject.line.leave(w, c.now)
	}
}

// A verb that asks for the end of the line right after a waiter has left must
// not go through the whole line again, whoever left: the first, as with one
// timeout for all, the last, as in a retry, or any.
func TestWaiterThatLeavesDoesNotCostAPlanOfTheWholeLine(t *testing.T) {
	const length, leaves, most = 20_000, 100, 400 // takes for each that leaves
	for _, tt := range []struct {
		limit   Limit
		costs   int64 // up to
		options Options
	}{
		{TokenBucket{Rate: PerHour(1), Burst: 9}, 1, Options{}},
		{TokenBucket{Rate: PerHour(1), Burst: 9}, 9, Options{}},
		{TokenBucket{Rate: PerHour(1), Burst: 9}, 9, Options{Weights: []int64{1, 3}}},
		{LeakyBucket{Rate: PerHour(1), Queue: 1 << 20}, 1, Options{}},
		{LeakyBucket{Rate: PerHour(1), Queue: 1 << 20}, 9, Options{}},
		{RateGate{Rate: Per(100, 24*time.Hour)}, 1, Options{}},
		{FixedWindow{Rate: Per(100, 24*time.Hour)}, 1, Options{}},
		{SlidingWindow{Rate: Per(100, 24*time.Hour)}, 1, Options{}},
		{SlidingLog{Rate: Per(100, 24*time.Hour)}, 1, Options{}},
		{Cycle{Rate: Per(100, 24*time.Hour)}, 1, Options{}},
	} {
		for who, pick := range map[string]func(*rand.Rand, int) int{
			"first": func(*rand.Rand, int) int { return 0 },
			"last":  func(_ *rand.Rand, n int) int { return n - 1 },
			"any":   func(r *rand.Rand, n int) int { return r.IntN(n) },
		} {
			t.Run(fmt.Sprintf("%v, costs to %d, %d weights/%s", tt.limit, tt.costs, len(tt.options.Weights), who), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 1))
					c := newCrowd(t, tt.limit, tt.options)
					for i := range length {
						c.join(1+r.Int64N(tt.costs), i%max(1, len(tt.options.Weights)))
					}
					c.subject.take(c.now, 1)
					c.takes = 0
					for range leaves {
						c.leave(pick(r, len(c.waiters)))
						if c.subject.take(c.now, 1).Allowed {
							t.Fatal("allowed beside a line")
						}
					}
					if got := c.takes / leaves; got > most {
						t.Errorf("%d planning steps for each that left a line of %d, want at most %d", got, length, most)
					}
				})
			})
		}
	}
}

// fresh is a refusal by a plan that is made from the start, waiter by waiter.
func (c *crowd) fresh(n int64) Decision {
	l := c.subject.line
	kept, ranBack := l.plan, l.ranBack
	l.plan, l.ranBack = plan{}, true // which takes no shortcut
	defer func() { l.plan, l.ranBack = kept, ranBack }()
	return l.refusal(c.now, n)
}

// Whatever comes, leaves, is booked, recorded or changed, and wherever the clock
// goes, the answers beside a line are those of a plan made from the start.
func TestPlanOfALineIsAlwaysThatMadeFromTheStart(t *testing.T) {
	limits := []func(*rand.Rand) Limit{
		func(r *rand.Rand) Limit {
			return TokenBucket{Rate: Per(1+r.Int64N(7), time.Second), Burst: 1 + r.Int64N(9)}
		},
		func(r *rand.Rand) Limit {
			return LeakyBucket{Rate: Per(1+r.Int64N(7), time.Second), Queue: 300 + r.Int64N(300), NoDelay: r.Int64N(3)}
		},
		func(r *rand.Rand) Limit { return RateGate{Rate: Per(3+r.Int64N(7), time.Second)} },
		func(r *rand.Rand) Limit { return FixedWindow{Rate: Per(3+r.Int64N(7), time.Second)} },
		func(r *rand.Rand) Limit { return SlidingWindow{Rate: Per(3+r.Int64N(7), time.Second)} },
		func(r *rand.Rand) Limit {
			return SlidingLog{Rate: Per(3+r.Int64N(7), time.Second), Gap: time.Second / 11}
		},
		func(r *rand.Rand) Limit { return Cycle{Rate: Per(3+r.Int64N(7), time.Second)} },
		func(r *rand.Rand) Limit { return Bursty{Rate: Per(3+r.Int64N(7), time.Second), Over: time.Second} },
		func(r *rand.Rand) Limit { return WarmUp{Rate: Per(3+r.Int64N(7), time.Second), Over: time.Second} },
		func(r *rand.Rand) Limit { return Concurrency{Slots: 3 + r.Int64N(7), Lease: time.Second} },
	}
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			draw := limits[seed%uint64(len(limits))]
			options := Options{}
			if r.IntN(4) == 0 {
				options.Weights = []int64{1, 3}
			}
			c := &crowd{late: newLate(t, draw(r))}
			c.queue.options = options
			c.subject.record(c.now, min(c.subject.algorithm.Capacity(), 50))
			costs := 1 + r.Int64N(3)*r.Int64N(2)
			for range 300 + r.IntN(600) {
				c.anything(r, draw, costs)
				if l := c.subject.line; l != nil && l.length > 0 && r.IntN(3) == 0 {
					n := 1 + r.Int64N(3)
					if got, want := l.refusal(c.now, n), c.fresh(n); got != want {
						t.Fatalf("seed %d, %T, %d in line: got %+v, want %+v", seed, draw(r), l.length, got, want)
					}
				}
			}
			if c.subject.line != nil {
				c.subject.line.close(c.now, ErrClosed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A booking that was settled for less is counted for less, also when it goes.
func TestPlanForgetsABookingThatBecameCheaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, TokenBucket{Rate: PerSecond(1), Burst: 9}, Options{})
		c.join(1, 0)
		b := &Booking{cost: 5}
		if err := c.subject.book(b, c.now, int64(Never)); err != nil || b.waiter == nil {
			t.Fatalf("booking behind a waiter: %+v, %v", b.Decision, err)
		}
		c.subject.settle(b, c.now, 2)
		for range 8 {
			c.join(1, 0)
		}
		c.now += int64(b.Decision.Delay)
		c.subject.waiting(c.now)
		if l := c.subject.line; b.waiter.queued || l.length == 0 {
			t.Fatalf("%d in line, the booking among them: %v", l.length, b.waiter.queued)
		} else if got, want := l.refusal(c.now, 1), c.fresh(1); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		c.subject.line.close(c.now, ErrClosed)
	})
}

// anything is one random event; most are arrivals.
func (c *crowd) anything(r *rand.Rand, draw func(*rand.Rand) Limit, costs int64) {
	s := &c.subject
	switch pick := r.IntN(42); {
	case pick < 26:
		if n := 1 + r.Int64N(costs); n <= s.algorithm.Capacity() {
			c.join(n, r.IntN(max(1, len(c.queue.options.Weights))))
		}
	case pick < 34 && len(c.waiters) > 0:
		c.leave([]int{0, len(c.waiters) - 1, r.IntN(len(c.waiters))}[r.IntN(3)])
	case pick < 37:
		c.now += r.Int64N(int64(time.Second))
		s.waiting(c.now)
	case pick == 37 && r.IntN(4) == 0:
		s.record(c.now, r.Int64N(7)-3)
	case pick == 38 && r.IntN(3) == 0 && algorithm.CanBook(s.algorithm):
		b := &Booking{cost: 1 + r.Int64N(costs)}
		if err := s.book(b, c.now, int64(Never)); err == nil && b.waiter != nil && r.IntN(2) == 0 {
			s.settle(b, c.now, r.Int64N(b.cost+1))
		}
	case pick == 39 && r.IntN(8) == 0:
		a, err := compile(draw(r))
		if err != nil {
			c.t.Fatal(err)
		}
		s.setAlgorithm(c.now, a, true)
	case pick == 40 && r.IntN(8) == 0:
		c.now -= r.Int64N(int64(20 * time.Second))
		s.record(c.now, -r.Int64N(30))
	}
}

// BenchmarkTakeAfterOneLeft is the refusal of a Take right after a waiter left
// the middle of a line.
func BenchmarkTakeAfterOneLeft(b *testing.B) {
	for _, tt := range []struct {
		name  string
		limit Limit
		costs int64
	}{
		{"bucket", TokenBucket{Rate: PerHour(1), Burst: 9}, 1},
		{"bucket, mixed costs", TokenBucket{Rate: PerHour(1), Burst: 9}, 9},
		{"gate", RateGate{Rate: Per(100, 24*time.Hour)}, 1},
		{"gate, mixed costs", RateGate{Rate: Per(100, 24*time.Hour)}, 9},
		{"window", FixedWindow{Rate: Per(100, 24*time.Hour)}, 1},
	} {
		for _, length := range []int{100, 1000, 10_000, 60_000} {
			b.Run(fmt.Sprintf("%s/%d", tt.name, length), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				c := newCrowd(b, tt.limit, Options{})
				for range length {
					c.join(1+r.Int64N(tt.costs), 0)
				}
				c.subject.take(c.now, 1)
				for b.Loop() {
					middle := len(c.waiters) / 2
					c.subject.line.leave(c.waiters[middle], c.now)
					c.subject.take(c.now, 1)
					b.StopTimer()
					c.waiters = append(c.waiters[:middle], c.waiters[middle+1:]...)
					c.join(1+r.Int64N(tt.costs), 0)
					c.subject.take(c.now, 1)
					b.StartTimer()
				}
			})
		}
	}
}
