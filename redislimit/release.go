package redislimit

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
)

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

// releasing marks slots that a caller releases, and returns what to do with the outcome. whole reports whether the caller
// releases nothing but all slots of holds. That can be repeated, because Redis knows the slots by their leases.
func (e *Engine) releasing(parts []part) (outcome func(succeeded bool), whole bool) {
	var all []release
	for i := range parts {
		p := &parts[i]
		if p.limit.kind != kindSlots || p.lease == 0 || p.cost >= 0 {
			continue
		}
		if h := e.holds.find(p); h != nil {
			all = append(all, h.releasing(-p.cost))
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
	r := release{hold: h, units: n, whole: n >= h.part.cost}
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
			h.part.cost -= r.units
		}
	}
	switch {
	case h.state == over:
	case succeeded && (r.whole || h.part.cost <= 0):
		h.end(false)
	case r.whole:
		h.engine.background.at(earlier(time.Now().Add(h.part.retry()), h.ends), &h.task)
	}
}

// Drop releases slots whose take had no answer. Redis may carry out a release before the take, if they came on two
// connections, so Drop repeats the release, until the lease ends. It does not wait for the answers.
func (e *Engine) Drop(slots weir.Call) {
	const times = 3
	for _, p := range e.slots(slots) {
		now := time.Now()
		h := &hold{engine: e, part: p, state: releasing, releases: times, ends: now.Add(p.lasts())}
		h.task.run = h.tick
		if e.holds.number() >= mostUndoing || !e.holds.add(h) {
			continue
		}
		e.background.at(now, &h.task)
	}
}

// lose tells all holders that their slots are lost, because the engine was closed.
func (h *holds) lose() {
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
