package weir_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
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
