package redislimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// bookable returns a rule that can be booked. Units take whole microseconds, so both engines round alike.
func bookable(t *testing.T, random *rand.Rand) *weir.Rule {
	t.Helper()
	rate := func() weir.Rate {
		count := 1 + random.Int64N(6)
		return weir.Per(count, time.Duration(count*(1+random.Int64N(2000)))*time.Millisecond)
	}
	limit := func() weir.Limit {
		switch r := rate(); random.IntN(3) {
		case 0:
			return weir.TokenBucket{Rate: r, Burst: 1 + random.Int64N(8)}
		case 1:
			return weir.RateGate{Rate: r}
		default:
			return weir.Cycle{Rate: r, Origin: time.Duration(random.Int64N(1000)) * time.Millisecond}
		}
	}
	if random.IntN(6) == 0 {
		queue := random.Int64N(6)
		return newRule(t, "r", weir.LeakyBucket{Rate: rate(), Queue: queue, NoDelay: random.Int64N(queue + 1)})
	}
	limits := []weir.Limit{limit()}
	for len(limits) < 3 && random.IntN(2) == 0 {
		limits = append(limits, limit())
	}
	return newRule(t, "r", limits...)
}

// bookingDuel books on both engines and compares the answers.
type bookingDuel struct {
	*testing.T
	now           int64 // us
	beat          int64 // us; the clock moves on by multiples of it
	memory, redis weir.Engine
	booked        [][2]*weir.Reservation
	history       string
	delayed       int // bookings for a later instant
}

func (d *bookingDuel) same(what string, a, b any) {
	d.Helper()
	d.history += fmt.Sprintf("%d: %s: %+v\n", d.now, what, a)
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		d.Fatalf("%s differs:\nmemory %+v\nredis  %+v\nafter\n%s", what, a, b, d.history)
	}
}

func (d *bookingDuel) book(longest time.Duration, q weir.Request) {
	var of [2]*weir.Reservation
	for i, e := range []weir.Engine{d.memory, d.redis} {
		r, err := weir.ReserveAhead(d.Context(), e, longest, q)
		if err != nil {
			d.Fatalf("Book(%v, %+v): %v after\n%s", longest, q, err, d.history)
		}
		of[i] = r
	}
	d.same(fmt.Sprintf("book %d within %v", q.Cost, longest), of[0].Decision, of[1].Decision)
	if of[0].Decision.Allowed {
		d.booked = append(d.booked, of)
		if of[0].Decision.Delay > 0 {
			d.delayed++
		}
	}
}

func (d *bookingDuel) settle(i int, actual int64) {
	d.history += fmt.Sprintf("%d: settle %d at %d\n", d.now, i, actual)
	for _, r := range d.booked[i] {
		if err := r.Settle(d.Context(), actual); err != nil {
			d.Fatalf("Settle: %v after\n%s", err, d.history)
		}
	}
}

func (d *bookingDuel) step(random *rand.Rand, rule *weir.Rule) {
	q := rule.For(strconv.Itoa(random.IntN(2)), 1+random.Int64N(4))
	switch random.IntN(8) {
	case 0, 1, 2:
		longest := []time.Duration{time.Hour, weir.Never, time.Duration(random.Int64N(5000)) * time.Millisecond}[random.IntN(3)]
		d.book(longest, q)
	case 3:
		if n := len(d.booked); n > 0 {
			i := n - 1 - random.IntN(min(n, 3))
			d.settle(i, min(random.Int64N(3), random.Int64N(3))*random.Int64N(3))
		}
	case 4:
		d.now += random.Int64N(3000) * 1000 / d.beat * d.beat
	case 5:
		a, err := d.memory.Take(d.Context(), q)
		b, other := d.redis.Take(d.Context(), q)
		d.same("take", fmt.Sprint(a, err), fmt.Sprint(b, other))
	case 6:
		a, err := d.memory.Record(d.Context(), q)
		b, other := d.redis.Record(d.Context(), q)
		d.same("record", fmt.Sprint(a, err), fmt.Sprint(b, other))
	}
	a, _ := d.memory.Peek(d.Context(), q)
	b, _ := d.redis.Peek(d.Context(), q)
	d.same(fmt.Sprintf("peek %d", q.Cost), a, b)
}

func newBookingDuel(t *testing.T, client rueidis.Client, now, beat int64) *bookingDuel {
	d := &bookingDuel{T: t, now: now, beat: beat}
	clock := func() int64 { return d.now * 1000 }
	d.memory = weir.NewMemory(weir.MemoryOptions{Clock: clock})
	d.redis = newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock, Linger: time.Hour})
	return d
}

func TestMemoryAndRedisBookAlike(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	client, delayed := dial(t, redistest.Start(t)), 0
	n := randtest.Rounds(t, 200, 66)
	for range n {
		d := newBookingDuel(t, client, 1_700_000_000_000_000+random.Int64N(1e9)*1000, 1000)
		rule := bookable(t, random)
		d.history = fmt.Sprintln(rule)
		for range 50 {
			d.step(random, rule)
		}
		delayed += d.delayed
	}
	if delayed < 2*n {
		t.Errorf("%d bookings for a later instant: they prove little", delayed)
	}
}

// All times are multiples of so high a power of 2 us that no conversion rounds.
func TestMemoryAndRedisBookAlikeUnderALimitThatChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(randtest.Seed(t), 1))
	client := dial(t, redistest.Start(t))
	for range randtest.Rounds(t, 200, 66) {
		d := newBookingDuel(t, client, 1<<50, 1<<20)
		bucket := func() weir.Limit {
			return weir.TokenBucket{Rate: weir.Per(1, time.Microsecond<<(17+random.IntN(4))), Burst: 1 + random.Int64N(8)}
		}
		thrice := weir.Per(3, time.Microsecond<<23)
		kinds := []func() []weir.Limit{
			func() []weir.Limit { return []weir.Limit{bucket()} },
			func() []weir.Limit { return []weir.Limit{bucket(), bucket()} },
			func() []weir.Limit {
				return []weir.Limit{bucket(), weir.Cycle{Rate: thrice}, weir.RateGate{Rate: thrice}}
			},
			func() []weir.Limit {
				b := bucket().(weir.TokenBucket)
				return []weir.Limit{weir.LeakyBucket{Rate: b.Rate, Queue: b.Burst}}
			},
		}
		limits := kinds[random.IntN(len(kinds))]
		for range 5 {
			rule := newRule(t, "r", limits()...)
			d.history += fmt.Sprintln(rule)
			d.booked = nil // Redis cancels exactly what was converted to another rate and back, too
			for range 12 {
				d.step(random, rule)
			}
		}
	}
}

// A booking under a rule whose limits have changed places asks each limit about its own state.
func TestABookingFindsTheStatesOfLimitsThatChangedPlaces(t *testing.T) {
	server := redistest.Start(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	engine := newEngine(t, dial(t, server), redislimit.Options{Clock: func() int64 { return now.UnixNano() }})
	bucket, cycle := weir.TokenBucket{Rate: weir.Per(1, 360*24*time.Hour), Burst: 10}, weir.Cycle{Rate: weir.Per(5, time.Hour)}
	before, after := newRule(t, "r", cycle, bucket), newRule(t, "r", bucket, cycle)
	if d, err := engine.Take(t.Context(), before.For("k", 1)); err != nil || !d.Allowed {
		t.Fatalf("Take: %+v and %v", d, err)
	}
	r, err := weir.ReserveAhead(t.Context(), engine, time.Minute, after.For("k", 1))
	if err != nil || !r.Decision.Allowed || r.Decision.Delay != 0 {
		t.Errorf("Book: %+v and %v, want the next unit at once", r, err)
	}
}
