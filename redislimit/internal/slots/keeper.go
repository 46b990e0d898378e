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

// How often the leases of reservations are renewed. A failed renewal is repeated sooner.
const (
	RenewEvery = 10 * time.Second // or a third of the lease, if that is shorter
	retryEvery = time.Second      // or a tenth of that
)

// kept is the slots of one decision on one key. It renews their lease. If their release fails, it repeats that until the
// lease ends. Reservations of a decision that was repeated share it.
type kept struct {
	keeper *Keeper
	part   wire.Part // the slots; its cost is their number

	mu      sync.Mutex
	timer   *time.Timer // runs tick
	ends    time.Time   // by the clock of this process, at the earliest
	state   keptState
	asking  bool
	partial int       // records in flight that give some of the slots back
	lost    []*signal // one for each reservation, until it is settled
}

type keptState uint8

const (
	renewing keptState = iota
	releasing
	over
)

// signal is a channel that closes once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) close() { s.once.Do(func() { close(s.c) }) }

// slotName names slots: by their key and the identity that holds them.
type slotName struct {
	key   string
	lease uint64
}

// NewKeeper returns the keeper of an engine that makes its calls by these lanes.
func NewKeeper(l *calls.Lanes) *Keeper { return &Keeper{lanes: l} }

// Keeper has the slots that an engine renews or releases.
type Keeper struct {
	lanes *calls.Lanes

	mu     sync.Mutex
	all    map[slotName]*kept
	closed bool
}

func (k *Keeper) find(p *wire.Part) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[slotName{p.Key, p.Lease}]
}

// Number returns how many there are.
func (k *Keeper) Number() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// start adds slots whose first tick is due at an instant, unless they are kept or the engine was closed.
func (k *Keeper) start(x *kept, due time.Time) bool {
	x.mu.Lock() // until x has its timer
	defer x.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	name := slotName{x.part.Key, x.part.Lease}
	if k.closed || k.all[name] != nil {
		return false
	}
	if k.all == nil {
		k.all = map[slotName]*kept{}
	}
	k.all[name] = x
	x.timer = time.AfterFunc(time.Until(due), x.tick)
	return true
}

func (k *Keeper) remove(x *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name := (slotName{x.part.Key, x.part.Lease}); k.all[name] == x {
		delete(k.all, name)
	}
}

// RenewAll renews at once the leases that are renewed anyway, on the lanes that picks chooses.
func (k *Keeper) RenewAll(picks func(lane int) bool) {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.all))
	k.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		if x.state == renewing && picks(x.part.Lane) {
			x.at(time.Now())
		}
		x.mu.Unlock()
	}
}

// KeepSlots renews the leases of slots that were taken after since, until release is called. It closes lost when Redis no longer
// has a slot, when no renewal succeeds in time, and when the engine is closed.
func (k *Keeper) KeepSlots(since time.Time, slots []wire.Part) (lost <-chan struct{}, release func()) {
	told := &signal{c: make(chan struct{})}
	var all []*kept
	for _, p := range slots {
		x := &kept{keeper: k, part: p, lost: []*signal{told}}
		x.ends = since.Add(x.lasts())
		if k.start(x, x.next(since)) {
			all = append(all, x)
		} else if x = k.find(&p); x != nil && x.join(told) {
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
func (k *kept) join(told *signal) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == renewing {
		k.lost = append(k.lost, told)
		return true
	}
	return false
}

// lasts returns the length of the lease, and renewal how often it is renewed.
func (k *kept) lasts() time.Duration   { return stored.Duration(k.part.Limit.Period) }
func (k *kept) renewal() time.Duration { return min(RenewEvery, k.lasts()/3) }
func (k *kept) retry() time.Duration   { return max(min(retryEvery, k.renewal()/10), time.Millisecond) }

// tick renews or releases the slots, or ends with the lease.
func (k *kept) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.state == over:
	case !time.Now().Before(k.ends):
		k.end(k.state == renewing)
	case k.asking:
		k.at(k.ends)
	default:
		k.ask()
		k.at(k.ends)
	}
}

// at makes the next tick due at an instant. The caller holds the lock.
func (k *kept) at(due time.Time) { k.timer.Reset(time.Until(due)) }

// ask sends a renewal or a release. The caller holds the lock.
func (k *kept) ask() {
	k.asking = true
	s := calls.NewSubmission(wire.Decision{Op: wire.OpRenew, Parts: []wire.Part{k.part}})
	if k.state == releasing {
		s.Decisions[0].Op = wire.OpRecord
		s.Decisions[0].Parts[0].Cost *= -1
	}
	sent := time.Now()
	s.After = func() { k.answered(s, sent) }
	k.keeper.lanes.Committer(k.part.Lane).Send(s)
}

// answered reads the answer to a renewal or a release.
func (k *kept) answered(s *calls.Submission, sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking = false
	d, err := &s.Decisions[0], cmp.Or(s.Err, s.Decisions[0].Err)
	switch {
	case k.state == over:
	case errors.Is(err, fault.ErrClosed):
		k.end(true)
	case err != nil, (d.Op == wire.OpRecord) != (k.state == releasing):
		k.at(earlier(time.Now().Add(k.retry()), k.ends))
	case d.Op == wire.OpRecord:
		k.end(false)
	case !d.Admitted && k.partial > 0: // it may have come after one of them
		k.at(earlier(time.Now().Add(k.retry()), k.ends))
	case !d.Admitted:
		k.end(true)
	default:
		k.ends = sent.Add(k.lasts())
		k.at(k.next(sent))
	}
}

// next returns when to renew a lease that began at an instant. Leases that began at about the same time are renewed at
// the same time, so that they share calls.
func (k *kept) next(began time.Time) time.Time {
	every := k.renewal()
	exact := began.Add(every)
	return exact.Add(-time.Duration(exact.UnixNano() % max(int64(every/8), 1)))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// end ends the keeping. The caller holds the lock.
func (k *kept) end(lost bool) {
	k.state = over
	k.keeper.remove(k)
	k.timer.Stop()
	if lost {
		k.tell()
	}
}

// tell tells all reservations that the slots are lost.
func (k *kept) tell() {
	for _, told := range k.lost {
		told.close()
	}
}

// stop ends the renewal when the last reservation of the slots was settled. A release that failed is still repeated. One
// that succeeded loses the slots of the other reservations.
func (k *kept) stop(told *signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lost = slices.DeleteFunc(k.lost, func(s *signal) bool { return s == told })
	switch {
	case k.state == over:
		k.tell()
	case k.state == renewing && len(k.lost) == 0:
		k.end(false)
	}
}

// release is a record in flight that gives kept slots back.
type release struct {
	kept  *kept
	units int64
	whole bool // all of them
}

// Releasing marks slots that a caller releases, and returns a function to call with the outcome. whole reports whether
// the caller releases nothing but all slots that are kept. That can be repeated, because Redis knows the slots by their
// leases.
func (k *Keeper) Releasing(parts []wire.Part) (outcome func(succeeded bool), whole bool) {
	var all []release
	bans := 0
	for i := range parts {
		p := &parts[i]
		if p.Limit.Kind == stored.KindBan { // which a release leaves as it is
			bans++
		}
		if p.Limit.Kind != stored.KindSlots || p.Lease == 0 || p.Cost >= 0 {
			continue
		}
		if x := k.find(p); x != nil {
			all = append(all, x.releasing(-p.Cost))
		}
	}
	whole = len(all) == len(parts)-bans && !slices.ContainsFunc(all, func(r release) bool { return !r.whole })
	return func(succeeded bool) {
		for _, r := range all {
			r.ended(succeeded)
		}
	}, whole
}

func (k *kept) releasing(n int64) release {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := release{kept: k, units: n, whole: n >= k.part.Cost}
	switch {
	case !r.whole:
		k.partial++
	case k.state == renewing:
		k.state = releasing
	}
	return r
}

// ended ends the keeping, or repeats a failed release. After a release of some of the slots, the others are kept.
func (r *release) ended(succeeded bool) {
	k := r.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if !r.whole {
		k.partial--
		if succeeded {
			k.part.Cost -= r.units
		}
	}
	switch {
	case k.state == over:
	case succeeded && (r.whole || k.part.Cost <= 0):
		k.end(true) // for the other reservations of the slots
	case r.whole:
		k.at(earlier(time.Now().Add(k.retry()), k.ends))
	}
}

// Lose tells all reservations that their slots are lost, because the engine was closed.
func (k *Keeper) Lose() {
	k.mu.Lock()
	all := k.all
	k.all, k.closed = nil, true
	k.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		x.end(true)
		x.mu.Unlock()
	}
}
