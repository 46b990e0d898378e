package line

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/randtest"
)

// counted returns an algorithm that counts its takes: a plan makes one for each waiter that it considers.
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

// countedOther has none of the optional abilities of an algorithm.
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

// crowd is a line of waiters in order of arrival.
type crowd struct {
	*late
	waiters []*Waiter
	takes   int
}

func newCrowd(t testing.TB, limit algorithm.Algorithm, weights ...int64) *crowd {
	c := &crowd{late: newLate(t, limit)}
	c.lines.Weights = weights
	c.subject = NewSubject(counted(c.subject.algorithm, &c.takes), c.now)
	c.subject.Record(c.now, min(c.subject.algorithm.Capacity(), 100)) // no caller is released at once
	return c
}

func (c *crowd) join(n int64, class int) {
	w, err := c.lines.Join(c.t.Context(), &c.subject, c.now, Turn{Cost: n, Flow: Flow{Class: class}, Longest: algorithm.Never})
	if err != nil && !errors.Is(err, ErrFull) {
		c.t.Fatal(err)
	}
	if w != nil && w.Queued() {
		c.waiters = append(c.waiters, w)
	}
}

// withdraw makes the i-th waiter give up its place.
func (c *crowd) withdraw(i int) {
	w := c.waiters[i]
	c.waiters = append(c.waiters[:i], c.waiters[i+1:]...)
	if w.Queued() {
		c.subject.line.withdraw(w, c.now)
	}
}

// A verb that needs the end of the line right after a waiter has left must not go through the whole line again. It
// does not matter which waiter left: the first, as with one timeout for all, the last, as in a retry, or any.
func TestWaiterThatLeavesDoesNotCostAPlanOfTheWholeLine(t *testing.T) {
	const length, leaves, most = 20_000, 100, 400 // takes for each that leaves
	for _, tt := range []struct {
		name    string
		limit   algorithm.Algorithm
		costs   int64 // up to
		weights []int64
	}{
		{"token bucket", algorithm.NewTokenBucket(1, hour, 9), 1, nil},
		{"token bucket", algorithm.NewTokenBucket(1, hour, 9), 9, nil},
		{"token bucket", algorithm.NewTokenBucket(1, hour, 9), 9, []int64{1, 3}},
		{"leaky bucket", algorithm.NewLeakyBucket(1, hour, 1<<20, 0), 1, nil},
		{"leaky bucket", algorithm.NewLeakyBucket(1, hour, 1<<20, 0), 9, nil},
		{"rate gate", algorithm.NewRateGate(100, day), 1, nil},
		{"fixed window", algorithm.NewFixedWindow(100, day), 1, nil},
		{"sliding window", algorithm.NewSlidingWindow(100, day), 1, nil},
		{"sliding log", algorithm.NewSlidingLog(100, day, 0, false), 1, nil},
		{"cycle", algorithm.NewCycle(100, day, 0), 1, nil},
	} {
		for which, pick := range map[string]func(*rand.Rand, int) int{
			"first": func(*rand.Rand, int) int { return 0 },
			"last":  func(_ *rand.Rand, n int) int { return n - 1 },
			"any":   func(r *rand.Rand, n int) int { return r.IntN(n) },
		} {
			t.Run(fmt.Sprintf("%s, costs to %d, %d weights/%s", tt.name, tt.costs, len(tt.weights), which), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 1))
					c := newCrowd(t, tt.limit, tt.weights...)
					for i := range length {
						c.join(1+r.Int64N(tt.costs), i%max(1, len(tt.weights)))
					}
					c.subject.Take(c.now, 1)
					c.takes = 0
					for range leaves {
						c.withdraw(pick(r, len(c.waiters)))
						if c.subject.Take(c.now, 1).Allowed {
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

// fresh returns the refusal by a plan made from the start, waiter by waiter.
func (c *crowd) fresh(n int64) algorithm.Answer {
	l := c.subject.line
	kept, ranBack := l.plan, l.ranBack
	l.plan, l.ranBack = nil, true // which takes no shortcut
	defer func() { l.plan, l.ranBack = kept, ranBack }()
	return l.refusal(c.now, n)
}

// After any arrival, departure, booking, record or change, and any step of the clock, the answers beside a line are
// those of a plan made from the start. After late releases of a strict limit, the waits of a long line may be shorter.
func TestPlanOfALineIsAlwaysThatMadeFromTheStart(t *testing.T) {
	limits := []func(*rand.Rand) algorithm.Algorithm{
		func(r *rand.Rand) algorithm.Algorithm {
			return algorithm.NewTokenBucket(1+r.Int64N(7), second, 1+r.Int64N(9))
		},
		func(r *rand.Rand) algorithm.Algorithm {
			return algorithm.NewLeakyBucket(1+r.Int64N(7), second, 300+r.Int64N(300), r.Int64N(3))
		},
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewRateGate(3+r.Int64N(7), second) },
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewFixedWindow(3+r.Int64N(7), second) },
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewSlidingWindow(3+r.Int64N(7), second) },
		func(r *rand.Rand) algorithm.Algorithm {
			return algorithm.NewSlidingLog(3+r.Int64N(7), second, second/11, false)
		},
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewCycle(3+r.Int64N(7), second, 0) },
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewBursty(float64(3+r.Int64N(7)), 1) },
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewWarmUp(float64(3+r.Int64N(7)), 1e6, 3) },
		func(r *rand.Rand) algorithm.Algorithm { return algorithm.NewConcurrency(3+r.Int64N(7), second) },
	}
	shorter := 0
	for seed := range randtest.Seeds(t, 300, 50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			draw := limits[seed%uint64(len(limits))]
			c := &crowd{late: newLate(t, draw(r))}
			if r.IntN(4) == 0 {
				c.lines.Weights = []int64{1, 3}
			}
			c.subject.Record(c.now, min(c.subject.algorithm.Capacity(), 50))
			costs := 1 + r.Int64N(3)*r.Int64N(2)
			for range 300 + r.IntN(600) {
				c.anything(r, draw, costs)
				if l := c.subject.line; l != nil && l.length() > 0 && r.IntN(3) == 0 {
					n := 1 + r.Int64N(3)
					got, want := l.refusal(c.now, n), c.fresh(n)
					if l.plan != nil && l.plan.late > 0 && got.RetryAfter <= want.RetryAfter && got.ResetAfter <= want.ResetAfter {
						got.RetryAfter, got.ResetAfter, got.LimitReset, got.ByGap = want.RetryAfter, want.ResetAfter, want.LimitReset, want.ByGap
						shorter++
					}
					if got != want {
						t.Fatalf("seed %d, %T, %d in line: got %+v, want %+v", seed, draw(r), l.length(), got, want)
					}
				}
			}
			c.subject.Close(c.now)
		})
		if t.Failed() {
			return
		}
	}
	if t.Logf("%d answers were shorter", shorter); shorter == 0 {
		t.Error("no plan outlived a late release")
	}
}

// A booking settled for less counts for less, even when it leaves.
func TestPlanForgetsABookingThatBecameCheaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, algorithm.NewTokenBucket(1, second, 9))
		c.join(1, 0)
		b := &Booking{Cost: 5, Identity: 1}
		answer, err := c.subject.Book(b, c.now, algorithm.Never)
		if err != nil || !b.inLine {
			t.Fatalf("booking behind a waiter: %+v, %v", answer, err)
		}
		c.subject.Settle(b, c.now, 2)
		for range 8 {
			c.join(1, 0)
		}
		c.now += answer.Delay
		c.subject.advance(c.now)
		if l := c.subject.line; b.inLine || l.length() == 0 {
			t.Fatalf("%d in line, the booking among them: %v", l.length(), b.inLine)
		} else if got, want := l.refusal(c.now, 1), c.fresh(1); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		c.subject.Close(c.now)
	})
}

// anything is one random event; most are arrivals.
func (c *crowd) anything(r *rand.Rand, draw func(*rand.Rand) algorithm.Algorithm, costs int64) {
	s := &c.subject
	switch pick := r.IntN(42); {
	case pick < 26:
		if n := 1 + r.Int64N(costs); n <= s.algorithm.Capacity() {
			c.join(n, r.IntN(max(1, len(c.lines.Weights))))
		}
	case pick < 34 && len(c.waiters) > 0:
		c.withdraw([]int{0, len(c.waiters) - 1, r.IntN(len(c.waiters))}[r.IntN(3)])
	case pick < 37:
		c.now += r.Int64N(int64(time.Second))
		s.advance(c.now)
	case pick == 37 && r.IntN(4) == 0:
		s.Record(c.now, r.Int64N(7)-3)
	case pick == 38 && r.IntN(3) == 0 && algorithm.CanBook(s.algorithm):
		b := &Booking{Cost: 1 + r.Int64N(costs), Identity: r.Uint64() | 1}
		if _, err := s.Book(b, c.now, algorithm.Never); err == nil && b.inLine && r.IntN(2) == 0 {
			s.Settle(b, c.now, r.Int64N(b.Cost+1))
		}
	case pick == 39 && r.IntN(8) == 0:
		s.SetAlgorithm(c.now, draw(r), true)
	case pick == 40 && r.IntN(8) == 0:
		c.now -= r.Int64N(int64(20 * time.Second))
		s.Record(c.now, -r.Int64N(30))
	}
}

// BenchmarkTakeAfterOneLeft measures the refusal of a Take right after a waiter left the middle of a line.
func BenchmarkTakeAfterOneLeft(b *testing.B) {
	for _, tt := range []struct {
		name  string
		limit algorithm.Algorithm
		costs int64
	}{
		{"bucket", algorithm.NewTokenBucket(1, hour, 9), 1},
		{"bucket, mixed costs", algorithm.NewTokenBucket(1, hour, 9), 9},
		{"gate", algorithm.NewRateGate(100, day), 1},
		{"gate, mixed costs", algorithm.NewRateGate(100, day), 9},
		{"window", algorithm.NewFixedWindow(100, day), 1},
	} {
		for _, length := range []int{100, 1000, 10_000, 60_000} {
			b.Run(fmt.Sprintf("%s/%d", tt.name, length), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				c := newCrowd(b, tt.limit)
				for range length {
					c.join(1+r.Int64N(tt.costs), 0)
				}
				c.subject.Take(c.now, 1)
				for b.Loop() {
					middle := len(c.waiters) / 2
					c.subject.line.withdraw(c.waiters[middle], c.now)
					c.subject.Take(c.now, 1)
					b.StopTimer()
					c.waiters = append(c.waiters[:middle], c.waiters[middle+1:]...)
					c.join(1+r.Int64N(tt.costs), 0)
					c.subject.Take(c.now, 1)
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkTakeBesideBookings measures the refusal of a Take right after a waiter left the middle of a line with bookings,
// and right after a record.
func BenchmarkTakeBesideBookings(b *testing.B) {
	for _, burst := range []int64{1, 9} {
		for _, length := range []int{100, 50_000} {
			c := newCrowd(b, algorithm.NewTokenBucket(1, hour, burst))
			r := rand.New(rand.NewPCG(1, 1))
			behind := func() {
				c.join(1+r.Int64N(burst), 0)
				c.subject.Book(&Booking{Cost: 1 + r.Int64N(burst), Identity: r.Uint64() | 1}, c.now, algorithm.Never)
			}
			for range length / 2 {
				behind()
			}
			b.Run(fmt.Sprintf("burst %d/%d, one left", burst, length), func(b *testing.B) {
				for b.Loop() {
					middle := len(c.waiters) / 2
					c.subject.line.withdraw(c.waiters[middle], c.now)
					c.subject.Take(c.now, 1)
					b.StopTimer()
					c.waiters = append(c.waiters[:middle], c.waiters[middle+1:]...)
					c.join(1+r.Int64N(burst), 0)
					c.subject.Take(c.now, 1)
					b.StartTimer()
				}
			})
			b.Run(fmt.Sprintf("burst %d/%d, a record", burst, length), func(b *testing.B) {
				for b.Loop() {
					c.subject.Record(c.now, -1)
					c.subject.Take(c.now, 1)
				}
			})
			c.subject.Close(c.now)
		}
	}
}
