package fetch

import "time"

// judge asks the rules about the first page of a site, and reports the page if they forbid it. It is called by a
// goroutine of its own, so that a site whose rules take long holds up no other.
func (c *crawl) judge(s *site) {
	if r := c.tried(s); r != nil {
		c.report(*r)
	}
	c.judged(s)
}

// tried returns the result of the first page of a site if it is not sent. Patterns are matched without the lock.
func (f *frontier) tried(s *site) *Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, now := s.ready.first(), time.Now()
	t, rules := o.pages.first(), o.robots
	v := verdict{Failed, s.shut, nil}
	switch {
	case s.isShut(now):
	case !o.knows(now):
		return nil
	case o.why != "":
		v = verdict{o.outcome, o.why, o.err}
	default:
		s.shut = ""
		f.mu.Unlock()
		v = rules.verdict(o.name, t.url)
		f.mu.Lock()
	}
	if v.reason == "" {
		o.allowed = t
		return nil
	}
	f.waiting--
	f.room.Signal()
	o.remove(t)
	result := t.result(v.outcome, v.reason)
	result.Err, result.Started = v.err, now
	return &result
}

// judged lets the site go on.
func (f *frontier) judged(s *site) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.judging = false
	f.judging--
	f.reschedule(s)
	f.wakeUp()
}
