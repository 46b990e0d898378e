package pace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/linetest"
	"github.com/weirflow/weir/pace"
)

// lineSchedule is processes that wait for slots of one server, over a network that delays, loses and doubles messages, while
// processes die, are cut off and hear nothing, until faultsEnd. Afterwards every caller has to be served in time.
type lineSchedule struct {
	*testing.T
	seed   uint64
	random *rand.Rand
	server *linetest.Server
	start  time.Time

	limits  []int64
	slots   []*weir.Rule
	hosts   []*weir.Rule
	plans   []linePlan
	members [][]int // the plans of each process
	bound   time.Duration

	mu        sync.Mutex
	processes []*member
	all       sync.WaitGroup
	loss      float64
	deafness  float64 // of signals
	deaf      bool    // a process hears none
	slow      time.Duration
	longest   time.Duration // wait after the faults
	who       string        // of which caller
	waiting   map[*lineCaller]bool
	overtaken [2]time.Duration // by how much younger a caller of the same keys was that went before another one: see mostOvertaken
	byWhom    [2]string
	calls     int
	grants    int
	ended     atomic.Bool
}

// plan is callers that do the same again and again.
type linePlan struct {
	requests []weir.Request
	callers  int
	hold     time.Duration
	patience time.Duration // 0: they stay
	waits    bool          // they take no slots
}

// lineCaller is a caller that waits.
type lineCaller struct {
	plan *linePlan
	came time.Time
}

// member is a process.
type member struct {
	engine *linetest.Engine
	way    time.Duration
	cut    atomic.Bool
	deaf   bool
	ctx    context.Context
	kill   context.CancelFunc
}

const (
	faultsEnd = 3 * time.Second
	leaseTime = 2 * time.Second
	settled   = faultsEnd + leaseTime + time.Second // entries and leases of dead processes are gone
)

// mostOvertaken is a grace for a process that was called, another one for the message and the answer, and 20 ms for callers of
// one age, where all wait for slots of one key and hear signals. A process that hears none keeps the units of its first caller
// only, and callers of several keys, or of a rate, go back and forth between the limits that refuse them.
var mostOvertaken = [2]time.Duration{420 * time.Millisecond, 2 * time.Second}

// stoodStill are schedules of earlier faults. In 129 callers of two keys, of which each has one slot, are always refused by one
// of the two unless they stay.
var stoodStill = []uint64{129}

func TestEveryCallerOfARandomScheduleIsServedInTime(t *testing.T) {
	first, n := uint64(1), 50
	if testing.Short() {
		n = 15
	}
	if text := os.Getenv("WEIR_SEED"); text != "" { // WEIR_SEED=7 WEIR_TIMES=1 repeats one schedule
		first, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("WEIR_TIMES"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	calls, grants, overtaken := 0, 0, [2]time.Duration{}
	seeds := slices.Collect(func(yield func(uint64) bool) {
		for seed := first; seed < first+uint64(n) && yield(seed); seed++ {
		}
	})
	if first == 1 {
		seeds = append(seeds, stoodStill...)
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			s := newLineSchedule(t, seed)
			s.run()
			calls, grants = calls+s.calls, grants+s.grants
			for i, by := range s.overtaken {
				overtaken[i] = max(overtaken[i], by)
			}
		})
		if t.Failed() {
			return
		}
	}
	if grants < 100*n {
		t.Errorf("%d grants in %d schedules: the callers hardly contend", grants, n)
	}
	t.Logf("%d schedules, %d grants after the faults, %.2f calls a grant, overtaken by callers that came %v later at most", n, grants, float64(calls)/float64(grants), overtaken)
}

func newLineSchedule(t *testing.T, seed uint64) *lineSchedule {
	s := &lineSchedule{T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 28)), start: time.Now(), server: linetest.NewServer(weir.MemoryOptions{}), waiting: map[*lineCaller]bool{}}
	keys := 1 + s.random.IntN(3)
	for i := range keys {
		s.limits = append(s.limits, 1+s.random.Int64N(6))
		s.slots = append(s.slots, rule(t, fmt.Sprint("slots", i), fmt.Sprintf("concurrency %d lease %v", s.limits[i], leaseTime)))
	}
	wide, several := s.random.IntN(3) == 0, keys > 1 && s.random.IntN(2) == 0
	worst := time.Duration(0)
	if s.random.IntN(3) == 0 {
		per := time.Duration(5+s.random.IntN(60)) * time.Millisecond
		s.hosts = append(s.hosts, rule(t, "host", fmt.Sprintf("token bucket 1/%v burst 1", per)))
		worst = 60 * per
	}
	count := 2 + s.random.IntN(4)
	s.members = make([][]int, count)
	load := make([]time.Duration, keys)
	for i := range count * (1 + s.random.IntN(2)) {
		p := s.makeUpPlan(wide, several)
		for _, q := range p.requests {
			for k, r := range s.slots {
				if q.Rule == r {
					load[k] += time.Duration(int64(p.callers)*q.Cost) * (p.hold + 20*time.Millisecond) / time.Duration(s.limits[k])
				}
			}
		}
		s.members[i%count] = append(s.members[i%count], len(s.plans))
		s.plans = append(s.plans, p)
	}
	for _, l := range load {
		worst = max(worst, l)
	}
	if len(s.hosts) > 0 && seed%2 == 0 {
		worst += s.addWaits(rand.New(rand.NewPCG(seed, 29)))
	}
	s.bound = 4*worst + leaseTime + 1500*time.Millisecond
	return s
}

// addWaits adds callers of the rate of the others: some book it, some ask for another rate, too. It returns how much longer
// the others wait.
func (s *lineSchedule) addWaits(random *rand.Rand) (longer time.Duration) {
	other := rule(s.T, "other", "token bucket 1/2ms burst 1")
	for i := range s.members {
		p := linePlan{waits: true, callers: 1 + random.IntN(4), hold: time.Duration(random.IntN(60)) * time.Millisecond, requests: []weir.Request{s.hosts[0].For("h", 1)}}
		if random.IntN(3) == 0 {
			p.requests = append(p.requests, other.For("o", 1))
		}
		if random.IntN(3) == 0 {
			p.patience = time.Duration(20+random.IntN(300)) * time.Millisecond
		}
		longer += time.Duration(p.callers) * s.hosts[0].Limits()[0].(weir.TokenBucket).Rate.Of(1)
		s.members[i] = append(s.members[i], len(s.plans))
		s.plans = append(s.plans, p)
	}
	return longer
}

func (s *lineSchedule) makeUpPlan(wide, several bool) linePlan {
	n := len(s.slots)
	k := s.random.IntN(n)
	p := linePlan{callers: 1 + s.random.IntN(6), hold: time.Duration(2+s.random.IntN(60)) * time.Millisecond}
	cost := int64(1)
	switch {
	case several && s.random.IntN(2) == 0:
		p.requests = append(p.requests, s.slots[(k+1+s.random.IntN(n-1))%n].For("k", 1))
	case wide && s.random.IntN(2) == 0:
		cost = 1 + s.random.Int64N(s.limits[k])
	case len(s.hosts) > 0 && s.random.IntN(2) == 0:
		p.requests = append(p.requests, s.hosts[0].For("h", 1))
	}
	p.requests = append(p.requests, s.slots[k].For("k", cost))
	if s.random.IntN(4) == 0 {
		p.patience = time.Duration(20+s.random.IntN(300)) * time.Millisecond
	}
	return p
}

func (s *lineSchedule) run() {
	for range s.n(14) {
		at := 200*time.Millisecond + s.upTo(faultsEnd-300*time.Millisecond)
		i, kind, long := s.n(len(s.members)), s.n(7), time.Duration(20+s.n(2000))*time.Millisecond
		time.AfterFunc(at, func() { s.fault(i, kind, min(long, faultsEnd-time.Since(s.start))) })
	}
	for i := range s.members {
		p := s.begin(i)
		s.set(func() { s.processes = append(s.processes, p) })
	}
	time.Sleep(settled)
	calls, grants := s.server.Counts()
	time.Sleep(s.bound + time.Second)
	s.calls, s.grants = s.server.Counts()
	s.calls, s.grants = s.calls-calls, s.grants-grants
	s.ended.Store(true)
	s.mu.Lock()
	for _, p := range s.processes {
		p.kill()
	}
	s.mu.Unlock()
	s.all.Wait()
	time.Sleep(5 * time.Second) // until nothing is left in the background
	if s.longest > s.bound {
		s.Errorf("seed %d: a caller %s waited for %v after the faults, want at most %v", s.seed, s.who, s.longest, s.bound)
	}
	for i, by := range s.overtaken {
		if by > mostOvertaken[i] {
			s.Errorf("seed %d: a caller was overtaken by one that came %v later: %s", s.seed, by, s.byWhom[i])
		}
	}
}

// begin starts a process with the callers of its plans.
func (s *lineSchedule) begin(i int) *member {
	ways := []time.Duration{100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond}
	p := &member{way: ways[s.n(len(ways))], deaf: s.n(5) == 0}
	s.set(func() { s.deaf = s.deaf || p.deaf })
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.engine = s.server.Connect(linetest.Network{
		Delay: func() time.Duration { return p.way/2 + s.upTo(p.way) + s.delay() },
		Lost:  func() bool { return p.cut.Load() || s.chance(func() float64 { return s.loss }) },
		Twice: func() bool { return s.chance(func() float64 { return s.loss / 2 }) },
		Mute:  func() bool { return s.chance(func() float64 { return s.deafness }) },
		Deaf:  func() bool { return p.deaf },
	})
	q := mustQueue(s.T, p.engine)
	for _, at := range s.members[i] {
		for range s.plans[at].callers {
			s.all.Go(func() { s.callers(p, q, &s.plans[at]) })
		}
	}
	return p
}

// callers is callers that come one after the other.
func (s *lineSchedule) callers(p *member, q *pace.Queue, plan *linePlan) {
	time.Sleep(s.upTo(20 * time.Millisecond))
	for p.ctx.Err() == nil {
		ctx, cancel := p.ctx, context.CancelFunc(func() {})
		if plan.patience > 0 {
			ctx, cancel = context.WithTimeout(p.ctx, s.upTo(2*plan.patience))
		}
		c := &lineCaller{plan, time.Now()}
		s.set(func() { s.waiting[c] = true })
		done, err := plan.wait(ctx, q)
		s.went(p, c, err)
		cancel()
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("seed %d: %v", s.seed, err)
			}
			time.Sleep(time.Millisecond) // it may have been refused at once
			continue
		}
		time.Sleep(plan.hold)
		for p.ctx.Err() == nil && done(context.Background()) != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// wait waits for a caller of a plan.
func (plan *linePlan) wait(ctx context.Context, q *pace.Queue) (done func(context.Context) error, err error) {
	if plan.waits {
		_, err = q.Wait(ctx, plan.requests...)
		return func(context.Context) error { return nil }, err
	}
	a, err := q.Acquire(ctx, plan.requests...)
	if err != nil {
		return nil, err
	}
	return a.Done, nil
}

// went notes how long a caller waited after the faults, and whom it overtook.
func (s *lineSchedule) went(p *member, c *lineCaller, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, c)
	came := c.came
	if end := s.start.Add(faultsEnd); came.Before(end) {
		came = end
	}
	if p.ctx.Err() != nil && !s.ended.Load() {
		return
	}
	if wait := time.Since(came); wait > s.longest {
		s.longest, s.who = wait, fmt.Sprintf("of %v, which came at %v", texts(c.plan.requests), c.came.Sub(s.start))
	}
	kind := 0
	if c.plan.waits || len(c.plan.requests) > 1 || s.deaf {
		kind = 1
	}
	for e := range s.waiting {
		by := c.came.Sub(e.came)
		if err == nil && time.Since(s.start) > settled && by > s.overtaken[kind] && slices.Equal(e.plan.requests, c.plan.requests) {
			s.overtaken[kind], s.byWhom[kind] = by, fmt.Sprintf("%v, came at %v, at %v", texts(c.plan.requests), e.came.Sub(s.start), time.Since(s.start))
		}
	}
}

func (s *lineSchedule) fault(i, kind int, long time.Duration) {
	s.mu.Lock()
	p := s.processes[i]
	s.mu.Unlock()
	undo := func(f func()) { time.AfterFunc(long, f) }
	switch kind {
	case 0, 1: // it dies, and another one takes its place
		p.engine.Kill()
		p.kill()
		fresh := s.begin(i)
		s.mu.Lock()
		s.processes[i] = fresh
		s.mu.Unlock()
	case 2, 3: // it is cut off
		p.cut.Store(true)
		undo(func() { p.cut.Store(false) })
	case 4:
		s.set(func() { s.loss, s.deafness = s.random.Float64()*0.3, s.random.Float64() })
		undo(func() { s.set(func() { s.loss, s.deafness = 0, 0 }) })
	case 5:
		s.set(func() { s.slow = time.Duration(s.random.IntN(600)) * time.Millisecond })
		undo(func() { s.set(func() { s.slow = 0 }) })
	case 6: // signals are lost, and nobody notices
		s.set(func() { s.deafness = 1 })
		undo(func() { s.set(func() { s.deafness = 0 }) })
	}
}

func (s *lineSchedule) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *lineSchedule) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(max(n, 1))
}

func (s *lineSchedule) upTo(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(max(int64(d), 1)))
}

func (s *lineSchedule) chance(of func() float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := of()
	return p > 0 && s.random.Float64() < p
}

// delay is a further delay of every fourth message, while the network is slow.
func (s *lineSchedule) delay() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow == 0 || s.random.IntN(4) > 0 {
		return 0
	}
	return time.Duration(s.random.Int64N(int64(s.slow)))
}
