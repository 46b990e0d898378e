package fetch

import (
	"container/heap"
	"time"
)

// step is what a dispatcher does next: send a request, report a result, or wait.
type step struct {
	turn   *turn
	result *Result
	wait   time.Duration // 0 means until it is woken
	done   bool
}

// next decides what happens at an instant. The caller must use a turn that it returns.
func (f *frontier) next(now time.Time) step {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.later.sites) > 0 && !now.Before(f.later.sites[0].next) {
		heap.Push(&f.due, heap.Pop(&f.later))
	}
	switch {
	case f.ended && f.waiting == 0 && f.inFlight == 0 && len(f.due.sites)+len(f.later.sites) == 0:
		return step{done: true}
	case f.inFlight >= maxInFlight, len(f.due.sites)+len(f.later.sites) == 0:
		return step{}
	case len(f.due.sites) == 0:
		return step{wait: f.later.sites[0].next.Sub(now)}
	}
	s := f.due.sites[0]
	if result := f.unsent(s, now); result != nil {
		f.reschedule(s)
		return step{result: result}
	}
	if d := f.total.TakeAt(now, 1); !d.Allowed {
		return step{wait: d.RetryAfter}
	}
	return step{turn: f.start(s, now)}
}

// unsent removes the first task of a site if it is not sent at all, and returns its result.
func (f *frontier) unsent(s *site, now time.Time) *Result {
	if len(s.urgent) > 0 {
		return nil
	}
	o := s.choose()
	outcome, reason, err := Failed, s.shut, error(nil)
	if reason == "" || !now.Before(s.until) {
		s.shut = ""
		if !o.knows(now) {
			return nil
		}
		if outcome, reason, err = o.verdict(o.pages[0].url); reason == "" {
			return nil
		}
	}
	f.waiting--
	f.room.Signal()
	result := o.pop().result(outcome, reason)
	result.Err, result.Started = err, now
	return &result
}

// knows reports whether the rules of the origin are known and fresh.
func (o *origin) knows(now time.Time) bool {
	return (o.robots != nil || o.why != "") && now.Before(o.expires)
}

// start takes the turn of a site for its first task.
func (f *frontier) start(s *site, now time.Time) *turn {
	t := &turn{f.take(s, now), s}
	f.turns++
	s.served = f.turns
	s.next = now.Add(s.gap)
	s.sending = t
	s.busy++
	f.inFlight++
	f.reschedule(s)
	return t
}

// take removes the first task of the site, or makes one for the robots.txt of its origin.
func (f *frontier) take(s *site, now time.Time) *task {
	if len(s.urgent) > 0 {
		t := s.urgent[0]
		s.urgent = s.urgent[1:]
		return t
	}
	o := s.choose()
	if !o.knows(now) {
		o.asking = true
		at := *o.pages[0].url
		at.Path, at.RawPath, at.RawQuery, at.ForceQuery = "/robots.txt", "", "", false
		return &task{url: &at, robots: o}
	}
	o.served = f.turns + 1
	f.waiting--
	f.room.Signal()
	return o.pop()
}

// written says that a request has been written to its connection. The next one of the site follows no sooner than a
// gap after it.
func (f *frontier) written(t *turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.site.wrote = time.Now()
	t.site.pause(t.site.wrote.Add(t.site.gap))
	f.sent(t)
}

// sent lets the site send its next request, with the lock held.
func (f *frontier) sent(t *turn) {
	if t.site.sending == t {
		t.site.sending = nil
		f.reschedule(t.site)
		f.wakeUp()
	}
}

// finish ends a turn.
func (f *frontier) finish(t *turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := t.site
	f.sent(t)
	s.busy--
	f.inFlight--
	f.reschedule(s)
	f.wakeUp()
}
