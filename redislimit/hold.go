package redislimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// DefaultLease is the lease of a [weir.Concurrency] without one. On Redis every slot has a lease, so that no fault can
// hold it permanently.
const DefaultLease = 30 * time.Second

// How the leases of reservations are renewed. A renewal that failed is repeated sooner.
const (
	renewEvery = 10 * time.Second // or a third of the lease, if that is shorter
	retryEvery = time.Second      // or a tenth of that
)

// hold is the slots of one decision on one key. It renews their lease. If their release fails, it repeats that until the
// lease ends. Reservations of a decision that was repeated share it.
type hold struct {
	engine *Engine
	part   part // the slots; its cost is their number
	task   task

	mu       sync.Mutex
	ends     time.Time // by the clock of this process, at the earliest
	state    holdState
	asking   bool
	releases int       // successful ones that are still wanted: see Drop
	partial  int       // records in flight that give some of the slots back
	lost     []*signal // of the reservations, until they are settled
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

// holds are the slots that an engine renews or releases.
type holds struct {
	mu     sync.Mutex
	all    map[holder]*hold
	closed bool
}

func (h *holds) find(p *part) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[holder{p.key, p.lease}]
}

func (h *holds) number() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// add adds a hold, unless there is one of the same slots or the engine was closed.
func (h *holds) add(x *hold) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := holder{x.part.key, x.part.lease}
	if h.closed || h.all[name] != nil {
		return false
	}
	if h.all == nil {
		h.all = map[holder]*hold{}
	}
	h.all[name] = x
	return true
}

func (h *holds) remove(x *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name := (holder{x.part.key, x.part.lease}); h.all[name] == x {
		delete(h.all, name)
	}
}

// renewAll renews at once the leases that are renewed anyway and that picks chooses.
func (h *holds) renewAll(picks func(*hold) bool) {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.all))
	h.mu.Unlock()
	now := time.Now()
	for _, x := range all {
		x.mu.Lock()
		if x.state == renewing && picks(x) {
			x.engine.background.at(now, &x.task)
		}
		x.mu.Unlock()
	}
}

// Hold renews the leases of slots that were taken after since, until release is called. It closes lost when Redis no
// longer has a slot, when no renewal succeeds in time, and when the engine is closed.
func (e *Engine) Hold(since time.Time, slots weir.Call) (lost <-chan struct{}, release func()) {
	told := &signal{c: make(chan struct{})}
	var all []*hold
	for _, p := range e.slots(slots) {
		h := &hold{engine: e, part: p, lost: []*signal{told}, ends: since.Add(p.lasts())}
		h.task.run = h.tick
		if e.holds.add(h) {
			e.background.at(h.next(since), &h.task)
		} else if h = e.holds.find(&p); h == nil || !h.join(told) { // just released or lost, or the engine was closed
			told.close()
			continue
		}
		all = append(all, h)
	}
	return told.c, func() {
		for _, h := range all {
			h.stop(told)
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

// checkLeases refuses slots that no caller could release or renew: units taken without an identity under a limit without
// a lease.
func checkLeases(o op, parts []part, requests []weir.Request) error {
	if o != opTake && o != opRecord {
		return nil
	}
	for i := range parts {
		if p := &parts[i]; p.limit.leaseless && p.lease == 0 && p.cost > 0 {
			return &weir.RequestError{Op: o.String(), Rule: requests[p.request].Rule.Name(), Field: "lease",
				Reason: fmt.Sprintf("is missing: on Redis use Reserve, which renews a lease of %v, or give the limit a lease, such as concurrency %d lease 30s", DefaultLease, p.limit.capacity)}
		}
	}
	return nil
}

// slots returns the parts of a call that hold slots under an identity.
func (e *Engine) slots(c weir.Call) (held []part) {
	merged, err := enginekit.Merge(weir.OpTake, c.Requests)
	if err != nil {
		return nil
	}
	parts, _, err := e.parts(nil, merged, c.Lease)
	if err != nil {
		return nil
	}
	for _, p := range parts {
		if p.isHeld() {
			held = append(held, p)
		}
	}
	return held
}

// isHeld reports whether the part is slots under an identity.
func (p *part) isHeld() bool { return p.limit.kind == kindSlots && p.lease != 0 && p.cost > 0 }

// lasts returns the length of the part's lease, and renewal how often the lease is renewed.
func (p *part) lasts() time.Duration   { return duration(p.limit.period) }
func (p *part) renewal() time.Duration { return min(renewEvery, p.lasts()/3) }
func (p *part) retry() time.Duration   { return max(min(retryEvery, p.renewal()/10), time.Millisecond) }

// tick renews or releases the slots, or ends the hold with the lease.
func (h *hold) tick(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.state == over:
	case !now.Before(h.ends):
		h.end(h.state == renewing)
	case h.asking:
		h.engine.background.at(h.ends, &h.task)
	default:
		h.ask()
		h.engine.background.at(h.ends, &h.task)
	}
}

// ask sends a renewal or a release. The caller holds the lock.
func (h *hold) ask() {
	h.asking = true
	s := &submission{done: make(chan struct{}, 1), decisions: []decision{{op: opRenew, parts: []part{h.part}}}}
	if h.state == releasing {
		s.decisions[0].op = opRecord
		s.decisions[0].parts[0].cost *= -1
	}
	sent := time.Now()
	s.after = func() { h.answered(s, sent) }
	h.engine.committer(h.part.lane).send(s)
}

// answered reads the answer to what was sent.
func (h *hold) answered(s *submission, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking = false
	d, err := &s.decisions[0], cmp.Or(s.err, s.decisions[0].err)
	switch {
	case h.state == over:
	case errors.Is(err, errClosed):
		h.end(true)
	case err != nil, (d.op == opRecord) != (h.state == releasing):
		h.engine.background.at(earlier(time.Now().Add(h.part.retry()), h.ends), &h.task)
	case d.op == opRecord:
		if h.releases--; h.releases <= 0 {
			h.end(false)
			return
		}
		h.engine.background.at(earlier(time.Now().Add(h.part.renewal()), h.ends), &h.task)
	case !d.admitted && h.partial > 0: // it may have come after one of them
		h.engine.background.at(earlier(time.Now().Add(h.part.retry()), h.ends), &h.task)
	case !d.admitted:
		h.end(true)
	default:
		h.ends = sent.Add(h.part.lasts())
		h.engine.background.at(h.next(sent), &h.task)
	}
}

// next returns when to renew a lease that began at an instant. Leases that began at about the same time are renewed at
// the same time, so that they share calls.
func (h *hold) next(began time.Time) time.Time {
	every := h.part.renewal()
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
	h.engine.holds.remove(h)
	h.engine.background.forget(&h.task)
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
