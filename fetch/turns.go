package fetch

import "time"

// step is what a dispatcher does next: ask for a verdict, send a request, or wait.
type step struct {
	judge *site
	turn  *turn
	wait  time.Duration // 0 means until it is woken
	done  bool
}

// next decides what happens at an instant. The caller must use what it returns.
func (f *frontier) next(now time.Time) step {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unjudged) > 0 {
		s := f.unjudged[0]
		f.unjudged = f.unjudged[1:]
		return step{judge: s}
	}
	for s := f.later.first(); s != nil && !now.Before(s.next); s = f.later.first() {
		f.later.remove(s)
		f.enter(&f.due, s)
		if s.due.IsZero() {
			s.due = now
		}
	}
	s := f.due.first()
	switch {
	case s == nil && f.later.first() == nil:
		return step{done: f.ended && f.waiting == 0 && f.inFlight == 0 && f.judging == 0}
	case f.inFlight >= maxInFlight:
		return step{}
	case s == nil:
		return step{wait: f.later.first().next.Sub(now)}
	}
	if d := f.total.TakeAt(now, 1); !d.Allowed {
		return step{wait: d.RetryAfter}
	}
	return step{turn: f.start(s, now)}
}

// start takes the turn of a site for its first task.
func (f *frontier) start(s *site, now time.Time) *turn {
	t := &turn{f.take(s, now), s, func() {}}
	f.turns++
	s.served = f.turns
	s.count(now)
	s.next, s.wrote = now.Add(s.gap), now
	s.sending = t
	s.busy++
	f.inFlight++
	f.reschedule(s)
	return t
}

// take removes the first task of the site, or makes one for the robots.txt of its origin.
func (f *frontier) take(s *site, now time.Time) (t *task) {
	o := s.ready.first()
	switch {
	case len(s.urgent) > 0:
		t, s.urgent = s.urgent[0], s.urgent[1:]
	case o == nil:
		t, s.guests = s.guests[0], s.guests[1:]
	case !o.knows(now):
		at := *o.pages.first().url
		at.Path, at.RawPath, at.RawQuery, at.ForceQuery = "/robots.txt", "", "", false
		t = &task{url: &at, robots: o}
		o.ask(true)
	default:
		t = o.pages.first()
		o.served = f.turns + 1
		f.waiting--
		f.room.Signal()
		o.remove(t)
	}
	return t
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
