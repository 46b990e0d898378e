package weir_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// Random schedules of arrivals, cancels, records, resets and changes of the limit run in virtual time. Every release
// is compared with that of a slow model below, to the nanosecond.
func TestReleasesEqualThoseOfTheSlowModel(t *testing.T) {
	for name, family := range slowFamilies {
		t.Run(name, func(t *testing.T) {
			for seed := range randtest.Seeds(t, 80, 8) {
				compareWithSlowModel(t, family, seed)
			}
		})
	}
}

// event is one step of a schedule.
type event struct {
	at    int64 // ns since the start
	verb  string
	n     int64
	id    int           // arrive: its number; cancel: the caller's
	max   time.Duration // arrive: the bound on the wait
	limit weir.Limit    // set
}

func (e event) String() string {
	switch e.verb {
	case "arrive":
		return fmt.Sprintf("{%d arrive %d n=%d max=%d}", e.at, e.id, e.n, e.max)
	case "cancel":
		return fmt.Sprintf("{%d cancel %d}", e.at, e.id)
	case "set":
		return fmt.Sprintf("{%d set %v}", e.at, e.limit)
	}
	return fmt.Sprintf("{%d %s %d}", e.at, e.verb, e.n)
}

// schedule returns random events over about the time that the limit needs for them.
func schedule(r *rand.Rand, family slowFamily, limit weir.Limit, unit int64) []event {
	var events []event
	arrivals := 0
	verbs := []string{"arrive", "arrive", "arrive", "arrive", "arrive", "arrive", "cancel", "cancel", "allow", "record", "give", "reset", "set"}
	now := int64(0)
	for range 5 + r.IntN(60) {
		if r.IntN(3) > 0 {
			now += r.Int64N(2*unit) + r.Int64N(2)
		}
		e := event{at: now, verb: verbs[r.IntN(len(verbs))], n: 1 + r.Int64N(3), max: weir.Never}
		switch e.verb {
		case "arrive":
			e.id = arrivals
			arrivals++
			if r.IntN(4) == 0 {
				e.n = 1 + r.Int64N(12)
			}
			if r.IntN(3) == 0 {
				e.max = time.Duration(r.Int64N(8 * unit))
			}
		case "cancel":
			e.id = r.IntN(max(arrivals, 1))
		case "reset":
			if r.IntN(4) > 0 {
				continue
			}
		case "set":
			e.limit = family.change(r, limit)
			limit = e.limit
		}
		events = append(events, e)
	}
	return events
}

// played is the outcome of a schedule: for each arrival the release time or the error, and each answer of Allow.
type played struct {
	outcome map[int]string
	allowed []bool
	moved   []moved // by each released or allowed caller, of the Limiter only
}

func compareWithSlowModel(t *testing.T, family slowFamily, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	limit, unit := family.draw(r)
	events := schedule(r, family, limit, unit)
	compare := func(events []event) (differs string) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(seed % 1e12)) // windows begin anywhere in the schedule
			start := time.Now()
			got := playOnLimiter(t, limit, events)
			differs = got.differs(playOnModel(family, limit, events, start.UnixNano()))
		})
		return differs
	}
	if compare(events) != "" {
		events = shortest(events, func(e []event) bool { return compare(e) != "" })
		t.Errorf("%v: %s after %v", limit, compare(events), events)
	}
}

// differs describes the first difference from the wanted outcome.
func (p played) differs(want played) string {
	for _, id := range slices.Sorted(maps.Keys(want.outcome)) {
		if p.outcome[id] != want.outcome[id] {
			return fmt.Sprintf("waiter %d: got %q, want %q", id, p.outcome[id], want.outcome[id])
		}
	}
	if !slices.Equal(p.allowed, want.allowed) {
		return fmt.Sprintf("Allow: got %v, want %v", p.allowed, want.allowed)
	}
	return ""
}

// shortest removes events while the schedule still fails without them.
func shortest(events []event, fails func([]event) bool) []event {
	for i := 0; i < len(events); {
		if less := slices.Delete(slices.Clone(events), i, i+1); fails(less) {
			events = less
		} else {
			i++
		}
	}
	return events
}

// endOfSchedule is when a schedule is over: callers that still wait then would wait permanently.
const endOfSchedule = 1000 * time.Hour

// playOnLimiter runs the schedule on a real Limiter. It takes endOfSchedule of virtual time.
func playOnLimiter(t *testing.T, limit weir.Limit, events []event) played {
	lim := mustNew(t, limit)
	start := time.Now()
	p := played{outcome: map[int]string{}}
	cancels := map[int]context.CancelFunc{}
	done := make(chan func(), 1000)
	for _, e := range events {
		time.Sleep(time.Until(start.Add(time.Duration(e.at))))
		synctest.Wait()
		collect(done)
		switch e.verb {
		case "arrive":
			ctx, cancel := context.WithCancel(t.Context())
			cancels[e.id] = cancel
			go func() {
				err := lim.WaitMax(ctx, e.n, e.max)
				at := time.Since(start)
				done <- func() {
					p.outcome[e.id] = outcome(err, at)
					if err == nil {
						p.moved = append(p.moved, moved{int64(at), e.n})
					}
				}
			}()
		case "cancel":
			if cancel := cancels[e.id]; cancel != nil {
				cancel()
			}
		case "allow":
			allowed := lim.AllowN(e.n)
			p.allowed = append(p.allowed, allowed)
			if allowed {
				p.moved = append(p.moved, moved{e.at, e.n})
			}
		case "record":
			lim.Record(e.n)
		case "give":
			lim.Return(e.n)
		case "reset":
			lim.Reset()
		case "set":
			if err := lim.SetLimit(e.limit); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		collect(done)
	}
	time.Sleep(time.Until(start.Add(endOfSchedule)))
	synctest.Wait()
	collect(done)
	lim.Close()
	synctest.Wait()
	collect(done)
	for _, cancel := range cancels {
		cancel()
	}
	return p
}

func collect(done chan func()) {
	for len(done) > 0 {
		(<-done)()
	}
}

// outcome describes when and how a wait ended.
func outcome(err error, at time.Duration) string {
	var long *weir.WaitError
	switch {
	case err == nil:
		return fmt.Sprintf("released at %d", at)
	case errors.As(err, &long):
		return fmt.Sprintf("refused: would take %d", long.Need)
	case errors.Is(err, context.Canceled):
		return fmt.Sprintf("cancelled at %d", at)
	case errors.Is(err, weir.ErrNever):
		return fmt.Sprintf("can never be released, refused at %d", at)
	case errors.Is(err, weir.ErrQueueFull):
		return fmt.Sprintf("queue full at %d", at)
	case errors.Is(err, weir.ErrClosed):
		return "never released"
	}
	return err.Error()
}

const (
	stressWaiters = 10_000
	stressRate    = 20_000 // a second
	stressUnit    = time.Second / stressRate
)

// Ten thousand callers wait on the real clock while others are cancelled, refused and recorded. No caller is
// forgotten, no caller overtakes, and the state accounts for every unit. If the machine is too busy to disturb them
// before they are released, the test tries again and leaves itself more time.
func TestTenThousandWaitersUnderStress(t *testing.T) {
	for run := range 20 {
		if stressOnce(t, time.Duration(run+1)*50*time.Millisecond) || t.Failed() {
			return
		}
	}
	t.Error("no contention in 20 runs")
}

func stressOnce(t *testing.T, before time.Duration) (contended bool) {
	const debt = 30 * stressRate // no release before all have come
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(stressRate), Burst: 1})
	began := time.Now()
	lim.RecordAt(began, debt)

	s := &stress{lim: lim, cancels: make([]context.CancelFunc, stressWaiters)}
	s.join(t)
	// Give back nearly all of the debt: the first is released in about that time.
	back := int64((debt*stressUnit - time.Since(began) - before) / stressUnit)
	lim.Return(back)
	recorded := s.disturb(t)
	whole := lim.WaitStats().Waiting > 0
	s.finish(t)

	admitted, cancelled := s.admitted.Load(), s.cancelled.Load()
	if admitted+cancelled != stressWaiters || s.failed.Load() > 0 {
		t.Errorf("%d released and %d cancelled of %d, %d failed", admitted, cancelled, stressWaiters, s.failed.Load())
	}
	want := time.Duration(debt-back+recorded+admitted) * stressUnit
	if got := lim.PeekAt(began, 0).ResetAfter; whole && got != want {
		t.Errorf("the state accounts for %d units, want %d", got/stressUnit, want/stressUnit)
	}
	if n := s.overtaken.Load(); n > 0 {
		t.Errorf("%d were released while more callers waited than had arrived after them", n)
	}
	t.Logf("%d released, %d cancelled, %d too late, %d recorded, %d refused, in %v", admitted, cancelled, s.late.Load(), recorded, s.refused.Load(), time.Since(began))
	return whole && cancelled > 0 && s.refused.Load() > 0
}

type stress struct {
	lim     *weir.Limiter
	cancels []context.CancelFunc
	all     sync.WaitGroup

	admitted, cancelled, failed atomic.Int64
	late                        atomic.Int64 // released although cancelled
	refused                     atomic.Int64 // by Allow, while others waited
	overtaken                   atomic.Int64
}

// join starts the waiters, a hundred at a time.
func (s *stress) join(t *testing.T) {
	for i := range stressWaiters {
		ctx, cancel := context.WithCancel(t.Context())
		s.cancels[i] = cancel
		s.all.Go(func() { s.wait(ctx, i) })
		for i%100 == 99 && s.lim.WaitStats().Waiting < i+1 {
			runtime.Gosched() // until they stand in line
		}
	}
}

func (s *stress) wait(ctx context.Context, i int) {
	switch err := s.lim.Wait(ctx); {
	case err == nil:
		s.admitted.Add(1)
		if ctx.Err() != nil {
			s.late.Add(1)
		}
		// The callers of earlier hundreds have returned by now.
		if i%16 == 0 && s.lim.WaitStats().Waiting > stressWaiters-i/100*100 {
			s.overtaken.Add(1)
		}
	case errors.Is(err, context.Canceled):
		s.cancelled.Add(1)
	default:
		s.failed.Add(1)
	}
}

// disturb cancels waiters at random, and records, until half are left. If the line ends before that, time has passed
// that the state cannot account for.
func (s *stress) disturb(t *testing.T) (recorded int64) {
	r := rand.New(rand.NewPCG(1, 2))
	limit := s.lim.Limit()
	for step := 0; s.lim.WaitStats().Waiting > stressWaiters/2; step++ {
		for range 8 {
			s.cancels[r.IntN(stressWaiters)]()
		}
		if !s.lim.Allow() {
			s.refused.Add(1)
		} else {
			recorded++
		}
		if step%64 == 0 {
			s.lim.Record(1)
			recorded++
		}
		if step%512 == 0 {
			if err := s.lim.SetLimit(limit); err != nil {
				t.Error(err)
			}
		}
	}
	return recorded
}

func (s *stress) finish(t *testing.T) {
	done := make(chan struct{})
	go func() { s.all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("lost wake-ups: %d released, %d cancelled, %d in line", s.admitted.Load(), s.cancelled.Load(), s.lim.WaitStats().Waiting)
	}
	for _, cancel := range s.cancels {
		cancel()
	}
}

// Many keys wait at once, each for its own time, while a flood of other keys makes the shards evict idle keys.
func TestKeysDoNotSlowOneAnotherAndNoKeyWithWaitersIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, each = 500, 4
		k := mustKeyed[int](t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		start := time.Now()
		var gone atomic.Int64
		var all sync.WaitGroup
		for key := range keys {
			for range each {
				all.Go(func() {
					if err := k.Wait(t.Context(), key); err != nil {
						t.Error(err)
					}
					if at := time.Since(start); at%time.Second != 0 || at >= each*time.Second {
						t.Errorf("key %d: released after %v, want a whole second below %d", key, at, each)
					}
					gone.Add(1)
				})
			}
		}
		for second := range int64(each) {
			synctest.Wait()
			if want := keys * (second + 1); gone.Load() != want {
				t.Errorf("after %ds: %d released, want %d", second, gone.Load(), want)
			}
			for flood := range 20_000 {
				k.Allow(1000 + flood)
			}
			if waiting := second < each-1; waiting && k.Allow(7) {
				t.Errorf("after %ds: a key with a waiting caller was evicted", second)
			}
			time.Sleep(time.Second)
		}
		all.Wait()
	})
}

func TestFullQueueRefusesAndCloseWakesEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := weir.NewKeyedWith[int](weir.FixedWindow{Rate: weir.PerDay(1)}, weir.Options{Queue: 2})
		if err != nil {
			t.Fatal(err)
		}
		var closed atomic.Int64
		for key := range 50 {
			k.Allow(key)
			for range 2 {
				go func() {
					if err := k.Wait(t.Context(), key); errors.Is(err, weir.ErrClosed) {
						closed.Add(1)
					}
				}()
			}
		}
		synctest.Wait()
		if err := k.Wait(t.Context(), 7); !errors.Is(err, weir.ErrQueueFull) {
			t.Errorf("a third waiter of two: %v, want ErrQueueFull", err)
		}
		k.Close()
		synctest.Wait()
		if closed.Load() != 100 {
			t.Errorf("Close woke %d of 100", closed.Load())
		}
		if err := k.Wait(t.Context(), 1000); !errors.Is(err, weir.ErrClosed) {
			t.Errorf("a wait after Close: %v, want ErrClosed", err)
		}
	})
}

// Close also wakes a caller that begins to wait while Close runs. The test uses the real clock, because it tries a
// race.
func TestCloseWakesCallersThatAreJustArriving(t *testing.T) {
	for range 200 {
		k := mustKeyed[int](t, weir.FixedWindow{Rate: weir.PerDay(1)})
		var all sync.WaitGroup
		for key := range 8 {
			k.Allow(key)
			all.Go(func() {
				if err := k.Wait(t.Context(), key); !errors.Is(err, weir.ErrClosed) {
					t.Errorf("got %v, want ErrClosed", err)
				}
			})
		}
		k.Close()
		all.Wait()
	}
}

// The slow model has a queue as a slice, and each limit as its definition in rationals, without regard for speed. It
// shares no code with the package.

// slowState is the state of one limit.
type slowState interface {
	capacity() int64
	// earliest returns the exact instant from now on at which n may go ahead.
	earliest(from, n int64) *big.Rat
	// take spends n at that instant.
	take(from int64, at *big.Rat, n int64)
	give(now, n int64)
	set(now int64, limit weir.Limit)
	clone() slowState
}

// slowFamily is one kind of limit: how to draw one, the time of one unit, and how to change a limit.
type slowFamily struct {
	draw   func(*rand.Rand) (limit weir.Limit, unit int64)
	change func(*rand.Rand, weir.Limit) weir.Limit
	state  func(weir.Limit) slowState
}

type slowWaiter struct {
	id         int
	n, arrived int64
	max        time.Duration
}

// slowLine is a limit and its waiting callers.
type slowLine struct {
	family slowFamily
	limit  weir.Limit
	state  slowState
	queue  []slowWaiter
	since  int64 // the last change of the state
}

// advance releases the callers whose turn comes until now, and reports each with its time.
func (l *slowLine) advance(now int64, report func(id int, at int64, fits bool)) {
	for len(l.queue) > 0 {
		w := l.queue[0]
		if w.n > l.state.capacity() {
			l.queue = l.queue[1:]
			report(w.id, max(w.arrived, l.since), false)
			continue
		}
		from := max(w.arrived, l.since)
		exact := l.state.earliest(from, w.n)
		at := ceilRat(exact)
		if at > now {
			return
		}
		l.state.take(from, exact, w.n)
		l.since = at
		l.queue = l.queue[1:]
		report(w.id, at, true)
	}
}

// need returns how long a newcomer would wait if no other caller came.
func (l *slowLine) need(now, n int64) (need int64) {
	ahead := slowLine{state: l.state.clone(), queue: slices.Clone(l.queue), since: l.since}
	ahead.queue = append(ahead.queue, slowWaiter{id: -1, n: n, arrived: now})
	ahead.advance(1<<62, func(id int, at int64, _ bool) {
		if id == -1 {
			need = at - now
		}
	})
	return need
}

// room reports whether a leaky bucket takes n more behind its waiting callers.
func (l *slowLine) room(now, n int64) bool {
	if _, leaky := l.state.(*slowLeaky); !leaky {
		return true
	}
	tail := slowLine{state: l.state.clone(), queue: slices.Clone(l.queue), since: l.since}
	tail.advance(1<<62, func(int, int64, bool) {})
	return tail.state.(*slowLeaky).room(now, n)
}

func (l *slowLine) cancel(id int, now int64) (found bool) {
	for i, w := range l.queue {
		if w.id == id {
			l.queue = slices.Delete(l.queue, i, i+1)
			if i == 0 {
				l.since = now
			}
			return true
		}
	}
	return false
}

// advanceAll works like advance, and callers whose longest wait ends until now leave.
func (l *slowLine) advanceAll(now int64, p *played, report func(id int, at int64, fits bool)) {
	for {
		ends := now + 1
		var first slowWaiter
		for _, w := range l.queue {
			if w.max < time.Duration(ends-w.arrived) {
				ends, first = w.arrived+int64(w.max), w
			}
		}
		l.advance(min(now, ends), report)
		if ends > now {
			return
		}
		if l.cancel(first.id, ends) {
			p.outcome[first.id] = outcome(&weir.WaitError{Need: weir.Never}, 0)
			l.advance(ends, report)
		}
	}
}

// playOnModel is playOnLimiter on the model.
func playOnModel(family slowFamily, limit weir.Limit, events []event, start int64) played {
	l := &slowLine{family: family, limit: limit, state: family.state(limit)}
	p := played{outcome: map[int]string{}}
	report := func(id int, at int64, fits bool) {
		if p.outcome[id] = outcome(nil, time.Duration(at-start)); !fits {
			p.outcome[id] = outcome(weir.ErrNever, time.Duration(at-start))
		}
	}
	for _, e := range events {
		now := start + e.at
		l.advanceAll(now, &p, report)
		l.do(e, now, &p)
		l.advanceAll(now, &p, report)
	}
	l.advanceAll(start+int64(endOfSchedule)-1, &p, report)
	for _, w := range l.queue {
		p.outcome[w.id] = outcome(weir.ErrClosed, 0)
	}
	return p
}

func (l *slowLine) do(e event, now int64, p *played) {
	at := time.Duration(e.at)
	switch e.verb {
	case "arrive":
		if err := l.refuse(e, now); err != nil {
			p.outcome[e.id] = outcome(err, at)
			return
		}
		l.queue = append(l.queue, slowWaiter{e.id, e.n, now, e.max})
	case "cancel":
		if l.cancel(e.id, now) {
			p.outcome[e.id] = outcome(errCancelled, at)
		}
	case "allow":
		allowed := len(l.queue) == 0 && e.n <= l.state.capacity() &&
			l.state.earliest(now, e.n).Cmp(whole(now)) == 0
		if allowed {
			l.state.take(now, whole(now), e.n)
		}
		p.allowed = append(p.allowed, allowed)
	case "record":
		l.state.take(now, whole(now), e.n)
		l.since = now
	case "give":
		l.state.give(now, e.n)
		l.since = now
	case "reset":
		l.state = l.family.state(l.limit)
		l.since = now
	case "set":
		l.state.set(now, e.limit)
		l.limit = e.limit
		l.since = now
	}
}

func (l *slowLine) refuse(e event, now int64) error {
	switch {
	case e.n > l.state.capacity():
		return weir.ErrNever
	case !l.room(now, e.n):
		return weir.ErrQueueFull
	}
	if need := time.Duration(l.need(now, e.n)); need > e.max {
		return &weir.WaitError{Need: need, Bound: e.max}
	}
	return nil
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func frac(a, b int64) *big.Rat { return big.NewRat(a, b) }

func sum(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func less(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func later(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// ceilRat returns r rounded up; r is positive.
func ceilRat(r *big.Rat) int64 {
	num := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return num.Quo(num, r.Denom()).Int64()
}

var errCancelled = context.Canceled

var slowFamilies = map[string]slowFamily{
	"TokenBucket": {
		draw: func(r *rand.Rand) (weir.Limit, int64) {
			rate := drawRate(r)
			return weir.TokenBucket{Rate: rate, Burst: 1 + r.Int64N(12)}, unitOf(rate)
		},
		change: func(r *rand.Rand, l weir.Limit) weir.Limit {
			return weir.TokenBucket{Rate: drawRate(r), Burst: 1 + r.Int64N(12)}
		},
		state: func(l weir.Limit) slowState {
			b := l.(weir.TokenBucket)
			return &slowBucket{limit: b, tokens: whole(b.Burst), at: new(big.Rat)}
		},
	},
	"LeakyBucket": {
		draw: func(r *rand.Rand) (weir.Limit, int64) {
			rate := drawRate(r)
			return drawLeaky(r, rate), unitOf(rate)
		},
		change: func(r *rand.Rand, l weir.Limit) weir.Limit { return drawLeaky(r, drawRate(r)) },
		state: func(l weir.Limit) slowState {
			return &slowLeaky{limit: l.(weir.LeakyBucket), free: new(big.Rat)}
		},
	},
	"FixedWindow": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.FixedWindow{Rate: rate} },
		func(l weir.Limit) slowState { return &slowWindow{rate: l.(weir.FixedWindow).Rate} }),
	"SlidingWindow": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.SlidingWindow{Rate: rate} },
		func(l weir.Limit) slowState {
			return &slowWindow{rate: l.(weir.SlidingWindow).Rate, sliding: true}
		}),
	"Cycle": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.Cycle{Rate: rate} },
		func(l weir.Limit) slowState { return &slowCycle{rate: l.(weir.Cycle).Rate} }),
	"SlidingLog": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit {
			return weir.SlidingLog{Rate: rate, Gap: time.Duration(max(0, r.Int64N(int64(rate.Period))-int64(rate.Period)/2))}
		},
		func(l weir.Limit) slowState {
			log := l.(weir.SlidingLog)
			return &slowLog{rate: log.Rate, gap: int64(log.Gap)}
		}),
	"RateGate": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.RateGate{Rate: rate} },
		func(l weir.Limit) slowState { return &slowLog{rate: l.(weir.RateGate).Rate} }),
}

func drawRate(r *rand.Rand) weir.Rate {
	return weir.Per(1+r.Int64N(12), time.Duration(1000+r.Int64N(1e10)))
}

func drawLeaky(r *rand.Rand, rate weir.Rate) weir.LeakyBucket {
	queue := r.Int64N(12)
	return weir.LeakyBucket{Rate: rate, Queue: queue, NoDelay: r.Int64N(queue + 1)}
}

func unitOf(rate weir.Rate) int64 { return max(1, int64(rate.Period)/rate.Count) }

// windows is a family of limits that keep their state as long as the period stays the same.
func windows(limit func(*rand.Rand, weir.Rate) weir.Limit, state func(weir.Limit) slowState) slowFamily {
	return slowFamily{
		draw: func(r *rand.Rand) (weir.Limit, int64) {
			rate := drawRate(r)
			return limit(r, rate), unitOf(rate)
		},
		change: func(r *rand.Rand, l weir.Limit) weir.Limit {
			rate := drawRate(r)
			if r.IntN(4) > 0 {
				rate.Period = periodOf(l)
			}
			return limit(r, rate)
		},
		state: state,
	}
}

func periodOf(l weir.Limit) time.Duration { return rateOf(l).Period }

func rateOf(l weir.Limit) weir.Rate {
	switch l := l.(type) {
	case weir.TokenBucket:
		return l.Rate
	case weir.LeakyBucket:
		return l.Rate
	case weir.FixedWindow:
		return l.Rate
	case weir.SlidingWindow:
		return l.Rate
	case weir.SlidingLog:
		return l.Rate
	case weir.Cycle:
		return l.Rate
	case weir.RateGate:
		return l.Rate
	}
	return weir.Rate{}
}

// slowBucket holds tokens as of an instant.
type slowBucket struct {
	limit      weir.TokenBucket
	tokens, at *big.Rat
}

func perNano(rate weir.Rate) *big.Rat { return frac(rate.Count, int64(rate.Period)) }

func perUnit(rate weir.Rate) *big.Rat { return frac(int64(rate.Period), rate.Count) }

func (b *slowBucket) flow(at *big.Rat) {
	b.tokens = sum(b.tokens, times(less(at, b.at), perNano(b.limit.Rate)))
	if full := whole(b.limit.Burst); b.tokens.Cmp(full) > 0 {
		b.tokens = full
	}
	b.at = at
}

func (b *slowBucket) capacity() int64 { return b.limit.Burst }

func (b *slowBucket) earliest(from, n int64) *big.Rat {
	missing := less(whole(n), b.tokens)
	return later(whole(from), sum(b.at, times(missing, perUnit(b.limit.Rate))))
}

func (b *slowBucket) take(_ int64, at *big.Rat, n int64) {
	b.flow(at)
	b.tokens = less(b.tokens, whole(n))
}

func (b *slowBucket) give(now, n int64) {
	b.flow(whole(now))
	b.tokens = sum(b.tokens, whole(n))
	b.flow(whole(now))
}

// set keeps the units used, as a time that it rounds up to a tick.
func (b *slowBucket) set(now int64, limit weir.Limit) {
	b.flow(whole(now))
	used := less(whole(b.limit.Burst), b.tokens)
	b.limit = limit.(weir.TokenBucket)
	ahead := roundUp(times(used, perUnit(b.limit.Rate)), b.limit.Rate)
	b.tokens = less(whole(b.limit.Burst), times(ahead, perNano(b.limit.Rate)))
}

func (b *slowBucket) clone() slowState { c := *b; return &c }

// roundUp rounds up to a tick of a rate: 1 over the denominator of the time of one unit.
func roundUp(d *big.Rat, rate weir.Rate) *big.Rat {
	ticks := perUnit(rate).Denom().Int64()
	return frac(ceilRat(times(d, whole(ticks))), ticks)
}

// slowLeaky holds the next free slot.
type slowLeaky struct {
	limit weir.LeakyBucket
	free  *big.Rat
}

func (b *slowLeaky) capacity() int64 { return b.limit.Queue + 1 }

// released returns when the last of n units that come at an instant leaves.
func (b *slowLeaky) released(from, n int64) *big.Rat {
	return sum(later(b.free, whole(from)), times(whole(n-1), perUnit(b.limit.Rate)))
}

func (b *slowLeaky) room(now, n int64) bool {
	longest := times(whole(b.limit.Queue), perUnit(b.limit.Rate))
	return less(b.released(now, n), whole(now)).Cmp(longest) <= 0
}

func (b *slowLeaky) earliest(from, n int64) *big.Rat {
	early := times(whole(b.limit.NoDelay), perUnit(b.limit.Rate))
	return later(whole(from), less(b.released(from, n), early))
}

func (b *slowLeaky) take(from int64, _ *big.Rat, n int64) {
	b.free = sum(later(b.free, whole(from)), times(whole(n), perUnit(b.limit.Rate)))
}

func (b *slowLeaky) give(now, n int64) {
	b.free = later(less(later(b.free, whole(now)), times(whole(n), perUnit(b.limit.Rate))), whole(now))
}

func (b *slowLeaky) set(now int64, limit weir.Limit) {
	used := times(less(later(b.free, whole(now)), whole(now)), perNano(b.limit.Rate))
	b.limit = limit.(weir.LeakyBucket)
	b.free = sum(whole(now), roundUp(times(used, perUnit(b.limit.Rate)), b.limit.Rate))
}

func (b *slowLeaky) clone() slowState { c := *b; return &c }

// slowWindow holds the counts of all windows; sliding ones weigh the previous one.
type slowWindow struct {
	rate    weir.Rate
	sliding bool
	counts  map[int64]int64
}

func (w *slowWindow) capacity() int64 { return w.rate.Count }

func (w *slowWindow) period() int64 { return int64(w.rate.Period) }

func (w *slowWindow) fits(at, n int64) bool {
	k, elapsed := at/w.period(), at%w.period()
	used := whole(w.counts[k] + n)
	if w.sliding {
		used = sum(used, times(whole(w.counts[k-1]), frac(w.period()-elapsed, w.period())))
	}
	return used.Cmp(whole(w.rate.Count)) <= 0
}

// earliest searches this window and the next two by bisection: within a window, a cost that fits continues to fit.
func (w *slowWindow) earliest(from, n int64) *big.Rat {
	for range 3 {
		end := (from/w.period() + 1) * w.period()
		low, high := from, end
		for low < high {
			if mid := low + (high-low)/2; w.fits(mid, n) {
				high = mid
			} else {
				low = mid + 1
			}
		}
		if low < end {
			return whole(low)
		}
		from = end
	}
	return nil
}

func (w *slowWindow) take(_ int64, at *big.Rat, n int64) {
	w.counts = cloneCounts(w.counts)
	w.counts[ceilRat(at)/w.period()] += n
}

func (w *slowWindow) give(now, n int64) {
	w.counts = cloneCounts(w.counts)
	k := now / w.period()
	w.counts[k] = max(0, w.counts[k]-n)
}

func cloneCounts(counts map[int64]int64) map[int64]int64 {
	c := map[int64]int64{}
	for k, n := range counts {
		c[k] = n
	}
	return c
}

func (w *slowWindow) set(_ int64, limit weir.Limit) {
	rate := rateOf(limit)
	if rate.Period != w.rate.Period {
		w.counts = nil
	}
	w.rate = rate
}

func (w *slowWindow) clone() slowState { c := *w; return &c }

// slowCycle holds the permits used of this cycle and later ones.
type slowCycle struct {
	rate        weir.Rate
	cycle, used int64
}

func (c *slowCycle) capacity() int64 { return c.rate.Count }

func (c *slowCycle) flow(at int64) {
	for c.used > 0 && c.cycle < at/int64(c.rate.Period) {
		c.used = max(0, c.used-c.rate.Count)
		c.cycle++
	}
	c.cycle = at / int64(c.rate.Period)
}

func (c *slowCycle) earliest(from, n int64) *big.Rat {
	ahead := *c
	for ahead.flow(from); ahead.used+n > ahead.rate.Count; ahead.flow(from) {
		from = (from/int64(c.rate.Period) + 1) * int64(c.rate.Period)
	}
	return whole(from)
}

func (c *slowCycle) take(_ int64, at *big.Rat, n int64) {
	c.flow(ceilRat(at))
	c.used += n
}

func (c *slowCycle) give(now, n int64) {
	c.flow(now)
	c.used = max(0, c.used-n)
}

func (c *slowCycle) set(now int64, limit weir.Limit) {
	c.flow(now)
	rate := rateOf(limit)
	if rate.Period != c.rate.Period {
		c.cycle, c.used = 0, 0
	}
	c.rate = rate
}

func (c *slowCycle) clone() slowState { d := *c; return &d }

// slowLog holds the instant of every unit. Without bookings a gate is the same.
type slowLog struct {
	rate  weir.Rate
	gap   int64
	units []int64
}

func (l *slowLog) capacity() int64 { return l.rate.Count }

func (l *slowLog) counting(at int64) (units []int64) {
	for _, s := range l.units {
		if at < s+int64(l.rate.Period) {
			units = append(units, s)
		}
	}
	return units
}

func (l *slowLog) fits(at, n int64) bool {
	if int64(len(l.counting(at)))+n > l.rate.Count {
		return false
	}
	return len(l.units) == 0 || at >= l.units[len(l.units)-1]+l.gap
}

// earliest returns now, or the instant at which a unit leaves, or the end of the gap.
func (l *slowLog) earliest(from, n int64) *big.Rat {
	candidates := []int64{from}
	for _, s := range l.units {
		candidates = append(candidates, s+int64(l.rate.Period), s+l.gap)
	}
	slices.Sort(candidates)
	for _, at := range candidates {
		if at >= from && l.fits(at, n) {
			return whole(at)
		}
	}
	return nil
}

func (l *slowLog) take(_ int64, at *big.Rat, n int64) {
	l.units = slices.Clone(l.units)
	for range n {
		l.units = append(l.units, ceilRat(at))
	}
}

func (l *slowLog) give(now, n int64) {
	counting := l.counting(now)
	l.units = counting[min(n, int64(len(counting))):]
}

func (l *slowLog) set(_ int64, limit weir.Limit) {
	rate := rateOf(limit)
	if rate.Period != l.rate.Period {
		l.units = nil
	}
	l.rate, l.gap = rate, 0
	if log, ok := limit.(weir.SlidingLog); ok {
		l.gap = int64(log.Gap)
	}
}

func (l *slowLog) clone() slowState { c := *l; return &c }
