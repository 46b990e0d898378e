package weir_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

var waitSeed = flag.Uint64("wait.seed", 0, "repeat one random schedule of waiters instead of many")

// Random schedules of arrivals, cancels, records, resets and changes of the limit run in virtual time. Every release
// is compared with that of a slow model (wait_slow_test.go), to the nanosecond.
func TestReleasesEqualThoseOfTheSlowModel(t *testing.T) {
	for name, family := range slowFamilies {
		t.Run(name, func(t *testing.T) {
			for _, seed := range waitSeeds(400) {
				compareWithSlowModel(t, family, seed)
				if t.Failed() {
					t.Fatalf("repeat with: go test -run '%s' -wait.seed %d", t.Name(), seed)
				}
			}
		})
	}
}

func waitSeeds(count int) []uint64 {
	if *waitSeed != 0 {
		return []uint64{*waitSeed}
	}
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = rand.Uint64() | 1
	}
	return seeds
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
