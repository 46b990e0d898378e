package waittest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// World holds what the processes of a schedule share.
type World struct {
	Connect   func(Network) weir.Engine // the engine of another process
	Sees      weir.Engine               // decides without a network
	Processes int                       // at most
	Asks      bool                      // the queues book nothing
}

const (
	troubled = 3 * time.Second // calls are late and fail, answers and signals are lost, and a process may die
	calm     = 15 * time.Second
	patience = 10 * time.Second // longer than callers of one key wait, and those of any key once no other asks again
	// Short leases end before the schedule does, also those of a process that dies. Units with long leases all have to be
	// released.
	short, long = 2 * time.Second, time.Minute
)

// Schedule has callers of several processes wait again and again: for slots, rates or both, of one key or several, with costs
// and in flows, and some leave or make requests that can never be admitted. At first the network is bad, and a process
// may die. Then every caller of one key that stays goes within a bound, every caller goes once no other asks again, and
// at rest no slot is taken. No limit is ever exceeded. Across processes, the wait of a caller for several units has no
// bound. Repeated calls end a minute and a half later.
func Schedule(t *testing.T, seed uint64, w World) {
	s := &schedule{T: t, random: rand.New(rand.NewPCG(seed, 0)), world: w, held: map[string]int64{}}
	s.faults.Store(true)
	ends := time.Now().Add(troubled)
	s.stops = ends.Add(calm)
	n := 1 + s.random.IntN(w.Processes)
	s.several = n > 1
	dies := s.several && s.random.IntN(3) == 0
	if s.rules(short); !dies && s.random.IntN(2) == 0 {
		s.rules(long)
	}
	var callers sync.WaitGroup
	var all []*worker
	for range n {
		all = append(all, s.start(&callers))
	}
	if dies {
		time.Sleep(time.Duration(s.random.Int64N(int64(troubled))))
		all[0].die()
	}
	time.Sleep(time.Until(ends))
	s.faults.Store(false)
	callers.Wait()
	s.atRest(all)
}

// schedule is one run.
type schedule struct {
	*testing.T
	random  *rand.Rand
	world   World
	several bool // processes
	faults  atomic.Bool
	stops   time.Time    // no caller asks again
	slots   []*weir.Rule // that callers ask for alone and together
	rates   []*weir.Rule // that callers of several keys ask for
	alone   *weir.Rule

	mu   sync.Mutex
	held map[string]int64 // by rule
}

func (s *schedule) rules(lease time.Duration) {
	s.slots = nil
	for i := range 2 {
		s.slots = append(s.slots, s.rule(fmt.Sprint("slots", i), fmt.Sprintf("concurrency %d lease %v", 2+s.random.IntN(3), lease)))
	}
	s.rates = []*weir.Rule{s.rule("bucket", "token bucket 100/s burst 5"), s.rule("window", "fixed window 20/100ms")}
	limits := []string{"token bucket 50/s burst 3", "cycle 20/200ms", "rate gate 20/200ms", "sliding log 20/200ms", "leaky bucket 50/s queue 20"}
	s.alone = s.rule("alone", limits[s.random.IntN(len(limits))])
}

func (s *schedule) rule(name, limits string) *weir.Rule {
	s.Helper()
	r, err := weir.ParseRule(name + "=" + limits)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// chance reports true in n of a hundred cases, while there are faults.
func (s *schedule) chance(n int) func() bool {
	own := randtest.New(s.random.Uint64())
	return func() bool { return s.faults.Load() && own.IntN(100) < n }
}

// network returns a bad one, whose calls at times take a third of a second.
func (s *schedule) network() Network {
	way, late := Between(randtest.New(s.random.Uint64()), 0, time.Duration(1+s.random.IntN(3))*time.Millisecond), s.chance(1)
	return Network{Lose: s.chance(10), Down: s.chance(10), Deaf: s.chance(30 + 70*s.random.IntN(2)), Way: func() time.Duration {
		if late() {
			return way() + time.Second/3
		}
		return way()
	}}
}

// requests returns the requests of a caller.
func (s *schedule) requests() (requests []weir.Request) {
	for _, r := range s.slots {
		if s.random.IntN(2) == 0 {
			requests = append(requests, r.For("k", 1+s.random.Int64N(2)))
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
		requests = append(requests, s.alone.For("k", 1+s.random.Int64N(2)))
	}
	return requests
}

// atRest waits until what is repeated has ended, and finds every slot free and no process with waiting callers.
func (s *schedule) atRest(all []*worker) {
	for _, p := range all {
		if err := p.queue.Flush(s.Context()); err != nil || p.queue.Waiting() > 0 {
			s.Errorf("%d callers wait at the end (%v)", p.queue.Waiting(), err)
		}
	}
	time.Sleep(patience) // a release is repeated
	for _, r := range s.slots {
		if d, err := s.world.Sees.Peek(context.Background(), r.For("k", 0)); err != nil || d.Remaining != d.Limit {
			s.Errorf("%d of %d units of %v are free at rest (%v)", d.Remaining, d.Limit, r, err)
		}
	}
}
