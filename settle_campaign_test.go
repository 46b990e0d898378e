package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/randtest"
)

// flaky is an engine on a bad network. It notes what really happens to the units of each lease.
type flaky struct {
	Engine
	memory *Memory
	draw   *rand.Rand

	mu      sync.Mutex
	outage  bool // every call is refused
	dead    bool // for good, because the process was killed
	healthy bool
	leases  map[uint64]*lent
}

// lent are the units of a lease.
type lent struct {
	held        bool  // slots, whose release can be repeated
	taken       int64 // by the engine
	back, more  int64 // given back, and recorded on top
	owed, extra int64 // that are to come back, and to be recorded, at most once
	unknown     bool  // a call was lost, and its caller was told that it may have been counted
}

type fault struct {
	counted Counted
}

func (fault) Error() string         { return "the network failed" }
func (fault) Unavailable() bool     { return true }
func (f fault) WasCounted() Counted { return f.counted }
func (f *flaky) refuses() bool      { return f.dead || !f.healthy && (f.outage || f.draw.IntN(6) == 0) }
func (f *flaky) loses(one int) bool { return !f.healthy && f.draw.IntN(one) == 0 }

func (f *flaky) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *flaky) around(ctx context.Context, c Call, next Next) (Answer, error) {
	if c.Op == OpReserve {
		return Kit.Reserve(ctx, f, c) // so that settlements pass here
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[c.Lease]
	if l == nil {
		l = &lent{held: c.Requests[0].Rule.Name() == "slots"}
		f.leases[c.Lease] = l
	}
	if f.refuses() {
		return Answer{}, fault{CountedNo}
	}
	lost := f.loses(12)
	if lost && f.loses(2) { // on its way to the engine
		l.unknown = true
		return Answer{}, fault{CountedUnknown}
	}
	a, err := next(ctx, c)
	if units := c.Requests[0].Cost; err == nil && a.Decision.Allowed {
		switch c.Op {
		case OpTake:
			l.taken += units
		case OpReturn:
			l.back += units
		case OpRecord:
			l.more += units
		}
	}
	if lost { // on its way back
		l.unknown = true
		return Answer{}, fault{CountedUnknown}
	}
	return a, err
}

// What a caller gives back over a bad network comes back once at most. What does not come back is counted by its reason: a call was
// lost and has no identity, so that nobody can repeat it, or its repetitions have expired. After a kill, what was pending is lost
// at most. Slots, whose leases are identities, all come back.
func TestUnitsComeBackOnceOrAreLostForAReason(t *testing.T) {
	var all ends
	for seed := range randtest.Seeds(t, 400, 60) {
		synctest.Test(t, func(t *testing.T) { all.add(runFlaky(t, randtest.New(seed))) })
	}
	if t.Logf("%+v", all); all.back == 0 || all.unknown == 0 || all.expired == 0 || all.killed == 0 {
		t.Errorf("the campaign has not met everything: %+v", all)
	}
}

// ends count what became of the units that should have come back or been recorded.
type ends struct{ back, unknown, expired, killed int64 }

func (e *ends) add(o ends) {
	e.back, e.unknown, e.expired, e.killed = e.back+o.back, e.unknown+o.unknown, e.expired+o.expired, e.killed+o.killed
}

func runFlaky(t *testing.T, draw *rand.Rand) ends {
	units, _ := ParseRule("units=fixed window 1000000/366d")
	slots, _ := ParseRule("slots=concurrency 1000 lease 1h")
	f := &flaky{memory: NewMemory(MemoryOptions{}), draw: draw, leases: map[uint64]*lent{}}
	f.Engine = Wrap(f.memory, f.around)
	before := settlements.Stats()
	var open []*Reservation
	var steps []string
	end := func(at int) {
		r := open[at]
		open = append(open[:at], open[at+1:]...)
		f.mu.Lock()
		l := f.leases[r.lease]
		actual := draw.Int64N(2 * l.taken)
		l.owed, l.extra = max(l.taken-actual, 0), max(actual-l.taken, 0)
		f.mu.Unlock()
		steps = append(steps, fmt.Sprintf("%v settle %d of %d: %v", l.held, actual, l.taken, r.Settle(context.Background(), actual)))
	}
	kill := draw.IntN(4) == 0
	for step := range 80 {
		switch p := draw.IntN(10); {
		case p < 4:
			q := units.For("k", 1+draw.Int64N(9))
			if draw.IntN(2) == 0 {
				q = slots.For("k", 1+draw.Int64N(3))
			}
			if r, err := f.Reserve(context.Background(), q); err == nil && r.Decision.Allowed {
				open = append(open, r)
			}
		case p < 8 && len(open) > 0:
			end(draw.IntN(len(open)))
		case p == 8:
			f.set(func() { f.outage = !f.outage && draw.IntN(2) == 0 })
		default:
			time.Sleep(time.Duration(draw.Int64N(int64(20 * time.Second))))
		}
		f.set(func() { f.dead = f.dead || kill && step > 50 && draw.IntN(10) == 0 })
	}
	for len(open) > 0 {
		end(len(open) - 1)
	}
	pending := int64(0) // slots
	f.set(func() {
		for _, l := range f.leases {
			if l.held {
				pending += max(l.taken-l.back, 0)
			}
		}
		f.healthy = true
	})
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	sum := f.check(t, settlements.Stats().Expired-before.Expired, strings.Join(steps, "\n"))
	d, err := f.memory.Peek(context.Background(), slots.For("k", 1))
	if held := 1000 - d.Remaining; err != nil || held > pending || !f.dead && held > 0 {
		t.Errorf("%d slots are held for good, and %d were pending; killed: %v, %v\n%s", held, pending, f.dead, err, strings.Join(steps, "\n"))
	}
	if f.dead {
		sum.killed += 1000 - d.Remaining
	}
	return sum
}

// check compares what should have become of the units of each lease with what has. Repetitions of so many calls have expired.
func (f *flaky) check(t *testing.T, expired uint64, steps string) (sum ends) {
	lapsed := uint64(0)
	for _, l := range f.leases {
		if l.held {
			continue
		}
		if l.back > l.owed || l.more > l.extra {
			t.Errorf("%d units came back and %d were recorded, want at most %d and %d\n%s", l.back, l.more, l.owed, l.extra, steps)
		}
		sum.back += l.back + l.more
		switch lost := l.owed - l.back + l.extra - l.more; {
		case lost == 0:
		case l.unknown:
			sum.unknown += lost
		default:
			lapsed++
			sum.expired += lost
		}
	}
	if lapsed > expired {
		t.Errorf("units of %d leases are lost though no call of them was, and the repetitions of %d have expired\n%s", lapsed, expired, steps)
	}
	return sum
}
