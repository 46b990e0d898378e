package algorithm_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// pair is an algorithm and its model. Both must give the same answers to any operations.
type pair struct {
	name  string
	state algorithm.State
	// written is the instant of the last take, by the algorithm.
	written int64
	algorithm.Algorithm
	*model

	between func() // if not nil, runs before each operation
	change  func() // if not nil, changes the limit now and then
}

// kinds makes a pair of each algorithm from random parameters.
var kinds = map[string]func(*source) *pair{
	"TokenBucket": func(s *source) *pair {
		rate, period := s.rate()
		burst := s.burst(rate)
		return newPair(fmt.Sprintf("token bucket %d/%d burst %d", rate, period, burst),
			algorithm.NewTokenBucket(rate, period, burst), newBucketModel(rate, period, burst))
	},
	"LeakyBucket": func(s *source) *pair {
		rate, period := s.rate()
		queue := s.burst(rate) - 1
		noDelay := s.upTo(queue)
		return newPair(fmt.Sprintf("leaky bucket %d/%d queue %d nodelay %d", rate, period, queue, noDelay),
			algorithm.NewLeakyBucket(rate, period, queue, noDelay), newQueueModel(rate, period, queue, noDelay))
	},
	"ChangingTokenBucket": func(s *source) *pair {
		p := newPair("changing token bucket", algorithm.NewTokenBucket(1, 1, 1), newBucketModel(1, 1, 1))
		p.change = func() {
			rate, period := s.anyRate()
			burst := s.burst(rate)
			p.name += fmt.Sprintf(", %d/%d burst %d", rate, period, burst)
			p.Algorithm = algorithm.NewTokenBucket(rate, period, burst)
			p.model.change(rate, period, burst, 0)
		}
		return p
	},
	"ChangingLeakyBucket": func(s *source) *pair {
		p := newPair("changing leaky bucket", algorithm.NewLeakyBucket(1, 1, 0, 0), newQueueModel(1, 1, 0, 0))
		p.change = func() {
			rate, period := s.anyRate()
			queue := s.burst(rate) - 1
			noDelay := s.upTo(queue)
			p.name += fmt.Sprintf(", %d/%d queue %d nodelay %d", rate, period, queue, noDelay)
			p.Algorithm = algorithm.NewLeakyBucket(rate, period, queue, noDelay)
			p.model.change(rate, period, queue+1, noDelay)
		}
		return p
	},
	"FixedWindow": func(s *source) *pair {
		limit, period := s.rate()
		return newPair(fmt.Sprintf("fixed window %d/%d", limit, period),
			algorithm.NewFixedWindow(limit, period), newWindowModel(limit, period, false))
	},
	"FirstWindow": func(s *source) *pair {
		limit, period := s.rate()
		return newPair(fmt.Sprintf("first window %d/%d", limit, period),
			algorithm.NewFirstWindow(limit, period), newFirstModel(limit, period))
	},
	"SlidingWindow": func(s *source) *pair {
		limit, period := s.rate()
		return newPair(fmt.Sprintf("sliding window %d/%d", limit, period),
			algorithm.NewSlidingWindow(limit, period), newWindowModel(limit, period, true))
	},
	"SlidingLog": func(s *source) *pair {
		limit, period := s.rate()
		gap, denied := s.upTo(period)*s.upTo(1), s.upTo(1) == 1
		return newPair(fmt.Sprintf("sliding log %d/%d gap %d denied %t", limit, period, gap, denied),
			algorithm.NewSlidingLog(limit, period, gap, denied), newLogModel(limit, period, gap, denied))
	},
	"RateGate": func(s *source) *pair {
		limit, period := s.rate()
		return newPair(fmt.Sprintf("rate gate %d/%d", limit, period),
			algorithm.NewRateGate(limit, period), newGateModel(limit, period))
	},
	"Cycle": func(s *source) *pair {
		limit, period := s.rate()
		origin := s.of(0, 7, -s.upTo(mostPeriod), s.upTo(math.MaxInt64))
		return newPair(fmt.Sprintf("cycle %d/%d origin %d", limit, period, origin),
			algorithm.NewCycle(limit, period, origin), newCycleModel(limit, period, origin))
	},
	"Concurrency": func(s *source) *pair {
		slots := s.of(1, 2, 3, 5, 20, maxCount, 1+s.upTo(maxCount-1))
		lease := s.of(0, 10, second, mostPeriod, 1+s.upTo(mostPeriod-1))
		return newPair(fmt.Sprintf("concurrency %d lease %d", slots, lease),
			algorithm.NewConcurrency(slots, lease), newLeaseModel(slots, lease))
	},
}

func newPair(name string, a algorithm.Algorithm, m *model) *pair {
	return &pair{name: name, state: a.Fresh(), Algorithm: a, model: m}
}

// source makes choices from the bytes of a fuzz input. Without bytes left, every choice is the first.
type source struct{ bytes []byte }

func (s *source) upTo(most int64) int64 {
	if most < 256 {
		if len(s.bytes) == 0 || most <= 0 {
			return 0
		}
		b := s.bytes[0]
		s.bytes = s.bytes[1:]
		return int64(b) % (most + 1)
	}
	var word [8]byte
	s.bytes = s.bytes[copy(word[:], s.bytes):]
	n := binary.LittleEndian.Uint64(word[:])
	if uint64(most) == math.MaxUint64 {
		return int64(n)
	}
	return int64(n % (uint64(most) + 1))
}

func (s *source) of(choices ...int64) int64 { return choices[s.upTo(int64(len(choices)-1))] }

const (
	second     = 1_000_000_000
	mostPeriod = 366 * 86400 * second
	maxCount   = 1 << 53
)

// rate returns count per period, at most one unit per nanosecond.
func (s *source) rate() (count, period int64) {
	common := [][2]int64{
		{5, 10}, {3, second}, {7, 60 * second}, {999, second}, {second, second}, {1, 30 * 86400 * second}, {1, 1},
		{60, 60 * second}, {maxCount, mostPeriod}, {1, mostPeriod}, {5, second}, {2, 7},
	}
	i := s.upTo(int64(len(common) + 1))
	if i < int64(len(common)) {
		return common[i][0], common[i][1]
	}
	period = 1 + s.upTo(s.of(100, second, mostPeriod-1))
	return 1 + s.upTo(min(period, s.of(10, 1000, maxCount))-1), period
}

// anyRate returns a rate from the whole range that is allowed, often with a fine fraction.
func (s *source) anyRate() (count, period int64) {
	if s.upTo(1) == 0 {
		return s.rate()
	}
	period = 1 + s.upTo(1<<(1+s.upTo(53)))
	count = 1 + s.upTo(1<<(1+s.upTo(52)))
	period = min(max(period, count), mostPeriod)
	return min(count, period), period
}

func (s *source) burst(count int64) int64 {
	return s.of(5, count, 1, 2, 20, maxCount, 1+s.upTo(maxCount-1))
}

// step is one operation for both.
type step struct {
	verb string
	now  int64
	cost int64
	most int64 // longest wait of a reserve

	identity uint64 // of a lease
	taken    int64  // of an undo
}

// plays runs random operations on both and compares every field of every answer. It chooses times and costs near the
// edges of the answers.
func (p *pair) plays(t *testing.T, s *source) {
	t.Helper()
	now := s.of(0, 1_700_000_000_123_456_789, -1, -86400*second, math.MinInt64, math.MaxInt64, math.MaxInt64-second, s.upTo(math.MaxInt64))
	var past []step
	var takes []int64
	last := algorithm.Answer{Remaining: p.Capacity()}
	for len(s.bytes) > 0 && len(past) < 100 {
		if p.change != nil && s.upTo(3) == 0 {
			p.change()
		}
		now = s.later(now, last, p)
		next := step{
			verb: []string{"take", "take", "peek", "record", "give", "allow", "reserve", "book", "undo"}[s.upTo(8)],
			now:  now,
			cost: s.of(1, 1, 2, 3, 0, last.Remaining, last.Remaining+1, p.Capacity(), p.Capacity()/2, p.Capacity()+1, math.MaxInt64, s.upTo(maxCount)),
			most: s.of(0, last.RetryAfter, math.MaxInt64-1, s.upTo(math.MaxInt64-1)),
		}
		if m, ok := p.definition.(*leaseModel); ok {
			if next.verb != "allow" { // its units have no identity
				next.identity = uint64(s.upTo(2))
			}
			m.identity = next.identity
		}
		takes = append(takes, now)
		next.taken = s.of(takes[s.upTo(int64(len(takes)-1))], now, p.written, s.upTo(math.MaxInt64))
		past = append(past, next)
		if p.between != nil {
			p.between()
		}
		got, want := p.both(next)
		if got != want {
			t.Fatalf("%s: after %+v\n%+v:\ngot  %+v\nwant %+v", p.name, past[:len(past)-1], next, got, want)
		}
		last = got
	}
}

// later returns the time of the next operation, which rarely decreases.
func (s *source) later(now int64, last algorithm.Answer, p *pair) int64 {
	step := s.of(0, 0, 1, last.RetryAfter, last.RetryAfter-1, last.ResetAfter, last.ResetAfter-1, last.ResetAfter/2,
		-1, second, -second, s.upTo(10), s.upTo(math.MaxInt64), -s.upTo(math.MaxInt64), -last.ResetAfter, s.upTo(mostPeriod))
	switch sum := now + step; {
	case step > 0 && sum < now:
		return math.MaxInt64
	case step < 0 && sum > now:
		return math.MinInt64
	default:
		return sum
	}
}

// both runs one operation on the algorithm and on the model. It leaves out Binding and Changed, which the model does
// not have.
func (p *pair) both(op step) (got, want algorithm.Answer) {
	parts := []algorithm.Part{{Algorithm: p.Algorithm, State: p.state, Cost: op.cost, Lease: op.identity}}
	switch op.verb {
	case "take":
		got, want = algorithm.Take(parts, op.now), p.model.allow(op.now, op.cost)
	case "peek":
		got, want = algorithm.Peek(parts, op.now), p.model.peek(op.now, op.cost)
	case "record":
		got, want = algorithm.Record(parts, op.now), p.model.record(op.now, op.cost)
	case "give":
		parts[0].Cost = -op.cost
		got, want = algorithm.Record(parts, op.now), p.model.record(op.now, -op.cost)
	case "allow":
		got, want = p.allow(&parts[0], op)
	case "reserve":
		got, want = p.reserve(parts, op)
	case "undo":
		parts[0].Taken, parts[0].Cost = op.taken, -op.cost
		got, want = algorithm.Undo(parts, op.now), p.model.undo(op.now, op.taken, op.cost)
	case "book":
		p.undoes(parts, op)
		got, want = algorithm.Peek(parts, op.now), p.model.peek(op.now, op.cost)
	}
	if p.state = parts[0].State; op.verb == "take" && got.Allowed && op.cost > 0 {
		p.written = algorithm.TakenAt(p.Algorithm, p.state, op.now)
	}
	got.Binding, got.Changed = 0, false
	return got, want
}

// allow is take for a caller that cannot wait for a delay.
func (p *pair) allow(part *algorithm.Part, op step) (got, want algorithm.Answer) {
	got.Allowed, _ = algorithm.Allow(part.Algorithm, &part.State, op.now, op.cost)
	if ahead := p.model.peek(op.now, op.cost); ahead.Delay > 0 {
		p.model.view(big.NewInt(op.now)) // takes nothing
		return got, want
	}
	want.Allowed = p.model.allow(op.now, op.cost).Allowed
	return got, want
}

// reserve combines the pure functions: the delay is the wait.
func (p *pair) reserve(parts []algorithm.Part, op step) (got, want algorithm.Answer) {
	if wait, ok := p.bookable(parts, op); ok {
		got = algorithm.Answer{Allowed: true, Delay: wait}
		if op.cost > 0 {
			parts[0].State = p.book(parts[0], op)
		}
	}
	want.Delay, want.Allowed = p.model.reserve(op.now, op.cost, op.most)
	return got, want
}

// bookable returns the wait of a booking, if it is possible.
func (p *pair) bookable(parts []algorithm.Part, op step) (wait int64, ok bool) {
	asked := algorithm.Peek(parts, op.now)
	if asked.RetryAfter == algorithm.Never || asked.RetryAfter > op.most {
		return 0, false
	}
	return asked.RetryAfter, op.cost == 0 || p.Algorithm.Backlog(p.state, op.now, op.cost) == 0
}

// book books on a booker, and otherwise takes.
func (p *pair) book(part algorithm.Part, op step) algorithm.State {
	if algorithm.CanBook(p.Algorithm) {
		return algorithm.Book(p.Algorithm, part.State, op.now, op.cost)
	}
	parts := []algorithm.Part{part}
	algorithm.Record(parts, op.now)
	return parts[0].State
}

// undoes books if possible and undoes the booking, which must leave no trace.
func (p *pair) undoes(parts []algorithm.Part, op step) {
	if _, ok := p.bookable(parts, op); !ok || op.cost == 0 || !algorithm.CanBook(p.Algorithm) {
		return
	}
	if g, ok := p.definition.(*gateModel); ok && g.beyond(big.NewInt(op.cost)) {
		return // units that have passed would be dropped
	}
	before := parts[0].State
	after := algorithm.Book(p.Algorithm, before, op.now, op.cost)
	parts[0].State = algorithm.Unbook(p.Algorithm, before, after, op.cost)
}
