package decide

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// flaky is an engine on a bad network. It notes what really happens to the units of each hold.
type flaky struct {
	weir.Engine
	draw *rand.Rand

	mu                    sync.Mutex
	outage, dead, healthy bool
	holds                 map[uint64]*lent // by the lease
}

// lent are the units of a hold.
type lent struct {
	taken, back int64
	unknown     bool // a call of it or of its marks was lost, so that nobody can repeat it
	refused     bool // it was to be given back, and the reservation repeats that
}

// of returns the hold of a call or of its mark, whose key begins with the lease, or nil.
func (f *flaky) of(c *weir.Call) (h *lent, isMark bool) {
	lease := c.Lease
	if q := c.Requests[0]; strings.HasPrefix(q.Rule.Name(), "~") {
		lease, isMark = 0, true
		if len(q.Key) > 0 {
			lease, _ = strconv.ParseUint(q.Key[:len(q.Key)-1], 36, 64)
		}
	}
	if h = f.holds[lease]; h == nil && lease != 0 {
		h = &lent{}
		f.holds[lease] = h
	}
	return h, isMark
}

type fault struct{ counted weir.Counted }

func (fault) Error() string              { return "the network failed" }
func (fault) Unavailable() bool          { return true }
func (f fault) WasCounted() weir.Counted { return f.counted }

func (f *flaky) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *flaky) around(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
	if c.Op == weir.OpReserve {
		return weir.Kit.Reserve(ctx, f, c) // so that settlements pass here
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, isMark := f.of(&c)
	if f.dead || !f.healthy && (f.outage || f.draw.IntN(6) == 0) {
		if h != nil && !isMark && c.Op == weir.OpReturn {
			h.refused = true
		}
		return weir.Answer{}, fault{weir.CountedNo}
	}
	lost := !f.healthy && f.draw.IntN(12) == 0
	if lost && h != nil {
		h.unknown = true
	}
	if lost && f.draw.IntN(2) == 0 { // on its way to the engine
		return weir.Answer{}, fault{weir.CountedUnknown}
	}
	a, err := next(ctx, c)
	switch {
	case h == nil || isMark || err != nil:
	case c.Op == weir.OpTake && a.Decision.Allowed:
		h.taken += c.Requests[0].Cost
	case c.Op == weir.OpReturn:
		h.back += c.Requests[0].Cost
	}
	if lost { // on its way back
		return weir.Answer{}, fault{weir.CountedUnknown}
	}
	return a, err
}

// What nobody commits comes back once at most, over a bad network, too. What does not come back is counted by its reason: a call was
// lost, or the repetitions have expired. After a kill, what was held is lost at most.
func TestHoldsComeBackOnceOrAreLostForAReason(t *testing.T) {
	var back, unknown, expired, killed int64
	for seed := range randtest.Seeds(t, 200, 40) {
		synctest.Test(t, func(t *testing.T) {
			f, d := runHolds(t, randtest.New(seed))
			s, lapsed := d.returns.Stats(), uint64(0)
			for _, h := range f.holds {
				lost := h.taken - h.back
				switch back += h.back; {
				case lost < 0:
					t.Errorf("%d units of a hold of %d came back", h.back, h.taken)
				case lost == 0:
				case f.dead:
					killed += lost
				case h.unknown:
					unknown += lost
				case h.refused:
					expired += lost
				default:
					lapsed++
					expired += lost
				}
			}
			if s.Pending != 0 || lapsed > s.Expired {
				t.Errorf("%d holds are lost for no reason, of %+v", lapsed, s)
			}
		})
	}
	if t.Logf("%d came back, %d lost with a call, %d expired, %d killed", back, unknown, expired, killed); back == 0 || unknown == 0 || expired == 0 || killed == 0 {
		t.Error("the campaign has not met everything")
	}
}

// runHolds holds and commits over a bad network, and waits until everything has ended.
func runHolds(t *testing.T, draw *rand.Rand) (*flaky, *holding) {
	f := &flaky{draw: draw, holds: map[uint64]*lent{}}
	f.Engine = weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), f.around)
	d := newHolding(t, f, "fixed window 1000000/366d")
	kill, quiet, ids := draw.IntN(4) == 0, draw.IntN(2) == 0, []string(nil)
	for step := range 60 {
		switch p := draw.IntN(10); {
		case p < 5:
			d.o.Life = time.Duration(1+draw.IntN(60)) * time.Second
			if id, err := d.Hold(context.Background(), domain, d.asks(1+draw.Int64N(9)), d.o); err == nil && id != "" {
				ids = append(ids, id)
			}
		case p == 5 && len(ids) > 0:
			id := ids[draw.IntN(len(ids))]
			_, err := d.Commit(context.Background(), domain, id, d.asks(draw.Int64N(9)))
			if h := holdIn([]byte("secret"), id); h != nil && weir.WasCounted(err) != weir.CountedNo { // the record was lost
				f.set(func() { f.holds[h.Lease].unknown = true })
			}
		case p == 6:
			f.set(func() { f.outage = !f.outage && draw.IntN(2) == 0 })
		default:
			time.Sleep(time.Duration(draw.Int64N(int64(30 * time.Second))))
		}
		f.set(func() { f.dead = f.dead || kill && step > 40 && draw.IntN(10) == 0 })
	}
	f.set(func() { f.outage = true })
	if quiet { // for longer than a hold is remembered
		time.Sleep(5 * time.Minute)
	}
	f.set(func() { f.healthy = true })
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	return f, d
}
