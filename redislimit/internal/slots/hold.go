// Package slots renews and releases the leases of slots that reservations hold.
package slots

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// How the leases of reservations are renewed. A renewal that failed is repeated sooner.
const (
	RenewEvery = 10 * time.Second // or a third of the lease, if that is shorter
	retryEvery = time.Second      // or a tenth of that
)

// hold is the slots of one decision on one key. It renews their lease. If their release fails, it repeats that until the
// lease ends. Reservations of a decision that was repeated share it.
type hold struct {
	holds *Holds
	part  wire.Part // the slots; its cost is their number

	mu      sync.Mutex
	timer   *time.Timer // runs tick
	ends    time.Time   // by the clock of this process, at the earliest
	state   holdState
	asking  bool
	partial int       // records in flight that give some of the slots back
	lost    []*signal // of the reservations, until they are settled
}

type holdState uint8

const (
	renewing holdState = iota
	releasing
	over
)

// signal is a channel that closes once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) close() { s.once.Do(func() { close(s.c) }) }

// holder names slots: by their key and the identity that holds them.
type holder struct {
	key   string
	lease uint64
}

// NewHolds returns the slots of an engine that makes its calls by these lanes.
func NewHolds(l *calls.Lanes) *Holds { return &Holds{lanes: l} }

// Holds are the slots that an engine renews or releases.
type Holds struct {
	lanes *calls.Lanes

	mu     sync.Mutex
	all    map[holder]*hold
	closed bool
}

func (h *Holds) find(p *wire.Part) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[holder{p.Key, p.Lease}]
}

// Number returns how many there are.
func (h *Holds) Number() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// start adds a hold whose first tick is due at an instant, unless there is one of the same slots or the engine was closed.
func (h *Holds) start(x *hold, due time.Time) bool {
	x.mu.Lock() // until x has its timer
	defer x.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	name := holder{x.part.Key, x.part.Lease}
	if h.closed || h.all[name] != nil {
		return false
	}
	if h.all == nil {
		h.all = map[holder]*hold{}
	}
	h.all[name] = x
	x.timer = time.AfterFunc(time.Until(due), x.tick)
	return true
}

func (h *Holds) remove(x *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name := (holder{x.part.Key, x.part.Lease}); h.all[name] == x {
		delete(h.all, name)
	}
}

// RenewAll renews at once the leases that are renewed anyway, on the lanes that picks chooses.
func (h *Holds) RenewAll(picks func(lane int) bool) {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.all))
	h.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		if x.state == renewing && picks(x.part.Lane) {
			x.at(time.Now())
		}
		x.mu.Unlock()
	}
}

// Hold renews the leases of slots that were taken after since, until release is called. It closes lost when Redis no longer
// has a slot, when no renewal succeeds in time, and when the holds are lost.
func (h *Holds) Hold(since time.Time, slots []wire.Part) (lost <-chan struct{}, release func()) {
	told := &signal{c: make(chan struct{})}
	var all []*hold
	for _, p := range slots {
		x := &hold{holds: h, part: p, lost: []*signal{told}}
		x.ends = since.Add(x.lasts())
		if h.start(x, x.next(since)) {
			all = append(all, x)
		} else if x = h.find(&p); x != nil && x.join(told) {
			all = append(all, x)
		} else { // just released or lost, or the engine was closed
			told.close()
		}
	}
	return told.c, func() {
		for _, x := range all {
			x.stop(told)
		}
	}
}

// join adds a reservation of the same slots, if they are still held.
func (h *hold) join(told *signal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == renewing {
		h.lost = append(h.lost, told)
		return true
	}
	return false
}

// lasts returns the length of the lease, and renewal how often it is renewed.
func (h *hold) lasts() time.Duration   { return stored.Duration(h.part.Limit.Period) }
func (h *hold) renewal() time.Duration { return min(RenewEvery, h.lasts()/3) }
func (h *hold) retry() time.Duration   { return max(min(retryEvery, h.renewal()/10), time.Millisecond) }

// tick renews or releases the slots, or ends the hold with the lease.
func (h *hold) tick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.state == over:
	case !time.Now().Before(h.ends):
		h.end(h.state == renewing)
	case h.asking:
		h.at(h.ends)
	default:
		h.ask()
		h.at(h.ends)
	}
}

// at makes the next tick due at an instant. The caller holds the lock.
func (h *hold) at(due time.Time) { h.timer.Reset(time.Until(due)) }

// ask sends a renewal or a release. The caller holds the lock.
func (h *hold) ask() {
	h.asking = true
	s := calls.NewSubmission(wire.Decision{Op: wire.OpRenew, Parts: []wire.Part{h.part}})
	if h.state == releasing {
		s.Decisions[0].Op = wire.OpRecord
		s.Decisions[0].Parts[0].Cost *= -1
	}
	sent := time.Now()
	s.After = func() { h.answered(s, sent) }
	h.holds.lanes.Committer(h.part.Lane).Send(s)
}

// answered reads the answer to what was sent.
func (h *hold) answered(s *calls.Submission, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking = false
	d, err := &s.Decisions[0], cmp.Or(s.Err, s.Decisions[0].Err)
	switch {
	case h.state == over:
	case errors.Is(err, fault.ErrClosed):
		h.end(true)
	case err != nil, (d.Op == wire.OpRecord) != (h.state == releasing):
		h.at(earlier(time.Now().Add(h.retry()), h.ends))
	case d.Op == wire.OpRecord:
		h.end(false)
	case !d.Admitted && h.partial > 0: // it may have come after one of them
		h.at(earlier(time.Now().Add(h.retry()), h.ends))
	case !d.Admitted:
		h.end(true)
	default:
		h.ends = sent.Add(h.lasts())
		h.at(h.next(sent))
	}
}

// next returns when to renew a lease that began at an instant. Leases that began at about the same time are renewed at
// the same time, so that they share calls.
func (h *hold) next(began time.Time) time.Time {
	every := h.renewal()
	exact := began.Add(every)
	return exact.Add(-time.Duration(exact.UnixNano() % max(int64(every/8), 1)))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// end ends the hold. The caller holds the lock.
func (h *hold) end(lost bool) {
	h.state = over
	h.holds.remove(h)
	h.timer.Stop()
	if lost {
		h.tell()
	}
}

// tell tells all reservations that the slots are lost.
func (h *hold) tell() {
	for _, told := range h.lost {
		told.close()
	}
}

// stop ends the renewal when the last reservation of the slots was settled. A release that failed is still repeated. One
// that succeeded loses the slots of the other reservations.
func (h *hold) stop(told *signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = slices.DeleteFunc(h.lost, func(s *signal) bool { return s == told })
	switch {
	case h.state == over:
		h.tell()
	case h.state == renewing && len(h.lost) == 0:
		h.end(false)
	}
}

// release is a record in flight that gives slots of a hold back.
type release struct {
	hold  *hold
	units int64
	whole bool // all of them
}

// Releasing marks slots that a caller releases, and returns what to do with the outcome. whole reports whether the caller
// releases nothing but all slots of holds. That can be repeated, because Redis knows the slots by their leases.
func (h *Holds) Releasing(parts []wire.Part) (outcome func(succeeded bool), whole bool) {
	var all []release
	for i := range parts {
		p := &parts[i]
		if p.Limit.Kind != stored.KindSlots || p.Lease == 0 || p.Cost >= 0 {
			continue
		}
		if x := h.find(p); x != nil {
			all = append(all, x.releasing(-p.Cost))
		}
	}
	whole = len(all) == len(parts) && !slices.ContainsFunc(all, func(r release) bool { return !r.whole })
	return func(succeeded bool) {
		for _, r := range all {
			r.ended(succeeded)
		}
	}, whole
}

func (h *hold) releasing(n int64) release {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := release{hold: h, units: n, whole: n >= h.part.Cost}
	switch {
	case !r.whole:
		h.partial++
	case h.state == renewing:
		h.state = releasing
	}
	return r
}

// ended ends the hold, or repeats a failed release. After a release of some of the slots, the hold keeps the others.
func (r *release) ended(succeeded bool) {
	h := r.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if !r.whole {
		h.partial--
		if succeeded {
			h.part.Cost -= r.units
		}
	}
	switch {
	case h.state == over:
	case succeeded && (r.whole || h.part.Cost <= 0):
		h.end(true) // for the other reservations of the slots
	case r.whole:
		h.at(earlier(time.Now().Add(h.retry()), h.ends))
	}
}

// Lose tells all holders that their slots are lost, because the engine was closed.
func (h *Holds) Lose() {
	h.mu.Lock()
	all := h.all
	h.all, h.closed = nil, true
	h.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		x.end(true)
		x.mu.Unlock()
	}
}
