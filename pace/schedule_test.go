package pace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/pace"
)

// randomSchedule is processes whose callers wait again and again, for slots, rates or both, over a network that delays calls and
// loses answers and signals until the faults end. Then every caller of one key has to go again and again, every caller has to go
// once the others ask no more, no limit may ever be exceeded, and at rest no slot is taken.
type randomSchedule struct {
	*testing.T
	random  *rand.Rand
	faults  atomic.Bool
	mu      sync.Mutex
	holders map[string]int64
	slots   []*weir.Rule
	rates   []*weir.Rule // that callers of several keys use
	alone   *weir.Rule
	wide    bool      // callers may want several units: between processes nothing bounds their wait
	stops   time.Time // nobody asks anew
}

// chance reports true in n of a hundred cases, while there are faults.
func (s *randomSchedule) chance(n int) func() bool {
	own := rand.New(rand.NewPCG(s.random.Uint64(), 1))
	var mu sync.Mutex
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return s.faults.Load() && own.IntN(100) < n
	}
}

// engines returns the engines of the processes, and one that sees what they decide.
func (s *randomSchedule) engines(n int) (all []weir.Engine, sees weir.Engine) {
	switch s.random.IntN(3) {
	case 0: // a stranger's, in one process
		var mu sync.Mutex
		states := map[string]enginekit.State{}
		way := between(100*time.Microsecond, time.Millisecond)
		e := enginekit.New(func(_ context.Context, c *enginekit.Call) (weir.Decision, error) {
			time.Sleep(way())
			mu.Lock()
			defer mu.Unlock()
			for i := range c.Parts {
				if state, ok := states[c.Parts[i].StateKey()]; ok {
					c.Parts[i].State = state
				}
			}
			d := c.Decide(time.Now().UnixNano())
			for i := range c.Parts {
				if c.Parts[i].Changed {
					states[c.Parts[i].StateKey()] = c.Parts[i].State
				}
			}
			return d, nil
		}, nil)
		for range n {
			all = append(all, layertest.Around(e))
		}
		return all, e
	default:
		server := newServer(s.T)
		for range n {
			deaf := s.chance(30 + 70*s.random.IntN(2))
			all = append(all, layertest.Around(server.connect(network{
				way: between(0, time.Duration(1+s.random.IntN(3))*time.Millisecond), lose: s.chance(10), down: s.chance(10), deaf: deaf,
			})))
		}
		return all, server.memory
	}
}

// requests returns what a caller asks for, and how many slots of which key it takes.
func (s *randomSchedule) requests() (requests []weir.Request) {
	for i, r := range s.slots {
		if s.random.IntN(2) == 0 {
			cost := int64(1)
			if s.wide {
				cost += s.random.Int64N(int64(1 + i))
			}
			requests = append(requests, r.For("k", cost))
		}
	}
	for _, r := range s.rates {
		if s.random.IntN(3) == 0 {
			requests = append(requests, r.For("k", 1))
		}
	}
	if len(requests) == 1 && requests[0].Rule == s.rates[0] { // booked, it would leave little to callers that ask for it
		requests = append(requests, s.rates[1].For("k", 1))
	}
	if len(requests) == 0 {
		cost := int64(1)
		if s.wide {
			cost += s.random.Int64N(2)
		}
		requests = append(requests, s.alone.For("k", cost))
	}
	return requests
}

func (s *randomSchedule) hold(requests []weir.Request, sign int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range requests {
		if r.Rule.Held() != nil {
			name := r.Rule.Name()
			s.holders[name] += sign * r.Cost
			if n := s.holders[name]; n > r.Rule.Limits()[0].(weir.Concurrency).Slots {
				s.Errorf("%d units of %v are held", n, r.Rule)
			}
		}
	}
}

// caller waits again and again until the schedule stops. It returns when it went last.
func (s *randomSchedule) caller(ctx context.Context, q *pace.Queue, requests []weir.Request, leaves, holds time.Duration) (last time.Time) {
	for time.Now().Before(s.stops) {
		own, cancel := ctx, context.CancelFunc(func() {})
		if leaves > 0 {
			own, cancel = context.WithTimeout(ctx, leaves)
		}
		a, err := q.Acquire(own, requests...)
		cancel()
		if err != nil {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("a caller of %v: %v", texts(requests), err)
				return last
			}
			if ctx.Err() != nil {
				s.Errorf("a caller of %v still waits when no other has asked for %v", texts(requests), time.Since(s.stops))
			}
			time.Sleep(time.Millisecond) // it was refused at once
			continue
		}
		last = time.Now()
		s.hold(requests, 1)
		time.Sleep(holds)
		s.hold(requests, -1)
		_ = a.Done(context.Background()) // a lost one is repeated
	}
	return last
}

func runSchedule(t *testing.T, seed uint64) {
	s := &randomSchedule{T: t, random: rand.New(rand.NewPCG(seed, 0)), holders: map[string]int64{}}
	s.faults.Store(true)
	for i := range 2 {
		s.slots = append(s.slots, rule(t, fmt.Sprint("slots", i), fmt.Sprintf("concurrency %d lease 2s", 2+s.random.IntN(3))))
	}
	s.rates = []*weir.Rule{rule(t, "bucket", "token bucket 100/s burst 5"), rule(t, "window", "fixed window 20/100ms")}
	s.alone = rule(t, "alone", []string{"token bucket 50/s burst 3", "cycle 20/200ms", "rate gate 20/200ms", "sliding log 20/200ms"}[s.random.IntN(4)])
	engines, sees := s.engines(1 + s.random.IntN(4))
	s.wide = len(engines) == 1
	ends := time.Now().Add(3 * time.Second)
	s.stops = ends.Add(15 * time.Second)
	ctx, stop := context.WithDeadline(t.Context(), s.stops.Add(10*time.Second))
	defer stop()
	var all sync.WaitGroup
	var queues []*pace.Queue
	for _, e := range engines {
		q, err := pace.NewQueue(e, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		queues = append(queues, q)
		for range 1 + s.random.IntN(4) {
			requests, holds, leaves := s.requests(), time.Duration(s.random.IntN(40))*time.Millisecond, time.Duration(0)
			if s.random.IntN(4) == 0 {
				leaves = time.Duration(1+s.random.IntN(300)) * time.Millisecond
			}
			all.Go(func() {
				last := s.caller(ctx, q, requests, leaves, holds)
				if len(requests) == 1 && leaves == 0 && last.Before(s.stops.Add(-10*time.Second)) {
					t.Errorf("seed %d: a caller of %v went %v before the end for the last time", seed, texts(requests), s.stops.Sub(last))
				}
			})
		}
	}
	time.Sleep(time.Until(ends))
	s.faults.Store(false)
	all.Wait()
	for _, q := range queues {
		if err := q.Flush(t.Context()); err != nil || q.Waiting() > 0 {
			t.Errorf("seed %d: %d callers wait at the end (%v)", seed, q.Waiting(), err)
		}
	}
	time.Sleep(5 * time.Second) // what is repeated ends
	for _, r := range s.slots {
		if d, err := sees.Peek(context.Background(), r.For("k", 0)); err != nil || d.Remaining != d.Limit {
			t.Errorf("seed %d: %d of %d units of %v are free at rest (%v)", seed, d.Remaining, d.Limit, r, err)
		}
	}
}

// WEIR_SEED and WEIR_TIMES choose other schedules than the fixed ones.
func TestEveryCallerOfARandomScheduleGoesAndNoLimitIsExceeded(t *testing.T) {
	first, times := uint64(1), 30
	if text := os.Getenv("WEIR_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
	}
	if n, err := strconv.Atoi(os.Getenv("WEIR_TIMES")); err == nil {
		times = n
	}
	for i := range times {
		synctest.Test(t, func(t *testing.T) { runSchedule(t, first+uint64(i)) })
		if t.Failed() {
			return
		}
	}
}
