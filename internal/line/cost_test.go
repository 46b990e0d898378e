package line

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/randtest"
)

// joinFlow adds a caller of a flow with a bound on its wait, so that its turn has to be known.
func (c *crowd) joinFlow(n int64, flow Flow, weight int64) {
	w, err := c.lines.Join(c.t.Context(), &c.subject, c.now, Turn{Cost: n, Flow: flow, Weight: weight, Longest: algorithm.Never - 1})
	if err != nil {
		c.t.Fatal(err)
	}
	if w != nil && w.Queued() {
		c.waiters = append(c.waiters, w)
	}
}

// A newcomer of a flow is never refused because of a turn that would come in time. Under costs of 1 its turn is known.
func TestTheTurnOfANewcomerIsNotLaterThanItComes(t *testing.T) {
	known := 0
	for seed := range randtest.Seeds(t, 300, 300) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			c := &crowd{late: newLate(t, algorithm.NewTokenBucket(1+r.Int64N(7), second, 1+r.Int64N(9)))}
			if r.IntN(3) == 0 {
				c.lines.Weights = []int64{1, 3, 1000}
			}
			c.subject.Record(c.now, c.subject.algorithm.Capacity()+r.Int64N(50))
			costs, flows := 1+r.Int64N(c.subject.algorithm.Capacity()), 1+r.IntN(6)
			flow := func() (Flow, int64) {
				if c.lines.Weights != nil {
					return Flow{Class: r.IntN(3)}, 0
				}
				i := r.IntN(flows)
				return Flow{Name: strconv.Itoa(i)}, int64(1 + i*i)
			}
			for range 100 + r.IntN(300) {
				switch pick := r.IntN(10); {
				case pick < 6:
					name, weight := flow()
					c.joinFlow(1+r.Int64N(costs), name, weight)
				case pick < 8 && len(c.waiters) > 0:
					c.withdraw(r.IntN(len(c.waiters)))
				case pick == 8:
					c.now += r.Int64N(2 * second)
					c.subject.advance(c.now)
				}
			}
			if l := c.subject.line; l == nil || l.length() == 0 {
				return
			}
			name, weight := flow()
			turn := Turn{Cost: 1, Flow: name, Weight: weight}
			wait, _ := c.subject.turnIn(c.now, turn)
			began, others := c.now, len(c.waiters)
			c.joinFlow(1, name, weight)
			if len(c.waiters) == others {
				return
			}
			w := c.waiters[others]
			for w.Queued() {
				_, _, c.now = c.subject.line.next(c.now)
				c.subject.advance(c.now)
			}
			took := c.now - began
			if wait > took || costs == 1 && wait < took {
				t.Fatalf("seed %d: a newcomer of %v went after %d ns, and the line said %d", seed, name, took, wait)
			}
			if costs == 1 {
				known++
			}
			c.subject.Close(c.now)
		})
		if t.Failed() {
			return
		}
	}
	if known == 0 {
		t.Error("no costs of 1 were drawn")
	}
}

// The number of decisions of a join with a bound, a leave and a grant does not grow with the callers of the line.
func TestTheCostOfAJoinALeaveAndAGrantDoesNotGrowWithTheLine(t *testing.T) {
	const most = 12 // decisions for one join, one leave and one grant
	flows := func(n int) func(i int) (Flow, int64) {
		return func(i int) (Flow, int64) { return Flow{Name: strconv.Itoa(i % n)}, int64(1 + i%n%3) }
	}
	for _, tt := range []struct {
		name    string
		weights []int64
		flow    func(i int) (Flow, int64)
	}{
		{"in order of arrival", nil, flows(1)},
		{"weights", []int64{1, 3}, func(i int) (Flow, int64) { return Flow{Class: i % 2}, 0 }},
		{"100 flows", nil, flows(100)},
		{"a flow for each caller", nil, flows(1 << 20)},
	} {
		for _, length := range []int{10, 1000, 20_000} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, length), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 2))
					c := newCrowd(t, algorithm.NewTokenBucket(1, second, 9), tt.weights...)
					c.lines.Capacity = 1 << 20
					join := func(i int) {
						name, weight := tt.flow(i)
						w, err := c.lines.Join(t.Context(), &c.subject, c.now, Turn{Cost: 1 + r.Int64N(9), Flow: name, Weight: weight, Longest: algorithm.Never})
						if err != nil {
							t.Fatal(err)
						}
						c.waiters = append(c.waiters, w)
					}
					for i := range length {
						join(i)
					}
					c.takes = 0
					const rounds = 100
					for i := range rounds {
						name, weight := tt.flow(length + i)
						c.joinFlow(1+r.Int64N(9), name, weight)
						c.withdraw(r.IntN(len(c.waiters)))
						c.now += int64(5 * time.Second)
						c.subject.advance(c.now)
						join(length + i)
					}
					if each := c.takes / rounds; each > most {
						t.Errorf("a join, a leave and a grant take %d decisions in a line of %d, want at most %d", each, length, most)
					}
					c.subject.Close(c.now)
				})
			})
		}
	}
}

// Each grant of a strict limit is late, and a caller with a bound joins behind it.
func TestTheCostOfAJoinBehindALateGrantDoesNotGrowWithTheLine(t *testing.T) {
	const most = markEvery + 16 // decisions for one join and one grant
	for name, limit := range map[string]algorithm.Algorithm{
		"rate gate": algorithm.NewRateGate(1, second), "sliding log": algorithm.NewSlidingLog(1, second, 0, false),
		"fixed window": algorithm.NewFixedWindow(1, second), "sliding window": algorithm.NewSlidingWindow(1, second),
	} {
		for _, length := range []int{10, 1000, 20_000} {
			t.Run(fmt.Sprintf("%s/%d", name, length), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrowd(t, limit)
					for range length {
						c.join(1, 0)
					}
					c.joinFlow(1, Flow{}, 0)
					c.takes = 0
					const rounds = 1000
					for range rounds {
						c.now += second + 1000
						c.subject.advance(c.now)
						c.joinFlow(1, Flow{}, 0)
					}
					if each := c.takes / rounds; each > most {
						t.Errorf("a join and a grant take %d decisions in a line of %d, want at most %d", each, length, most)
					}
					c.subject.Close(c.now)
				})
			})
		}
	}
}

// Costs come late or come back, the newest booking is cancelled, and callers leave. Neither that nor the refusal after it
// goes through the line.
func TestTheCostOfARecordAndALeaveBesideBookingsGrowsWithTheLogarithmOfTheLine(t *testing.T) {
	for _, tt := range []struct{ burst, costs, record int64 }{{1, 1, -1}, {9, 9, -3}, {9, 4, 3}} {
		for _, length := range []int{10, 1000, 20_000} {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 3))
				c := newCrowd(t, algorithm.NewTokenBucket(1, second, tt.burst))
				book := func() *Booking {
					b := &Booking{Cost: 1 + r.Int64N(tt.costs), Identity: r.Uint64() | 1}
					if answer, err := c.subject.Book(b, c.now, algorithm.Never); err != nil || !answer.Allowed {
						t.Fatal(answer, err)
					}
					return b
				}
				for i := range length {
					if c.join(1+r.Int64N(tt.costs), 0); i%4 == 0 {
						book()
					}
				}
				c.takes = 0
				const rounds = 8
				for range rounds {
					c.subject.Record(c.now, tt.record)
					c.subject.Take(c.now, 1)
					c.subject.Settle(book(), c.now, 0)
					c.subject.Take(c.now, 1)
					c.withdraw(r.IntN(len(c.waiters)))
					c.subject.Take(c.now, 1)
				}
				if each, most := c.takes/rounds, 24+4*bits.Len(uint(length)); each > most {
					t.Errorf("%+v: a round takes %d decisions in a line of %d, want at most %d", tt, each, length, most)
				}
				c.subject.Close(c.now)
			})
		}
	}
}
