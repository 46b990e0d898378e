package obey

import (
	"slices"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
)

// The pauses after refusals that name no time: they double from the first to the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	// longestSpread bounds what is added to a pause.
	longestSpread = time.Second
)

// refused learns from a refusal. Several requests in flight may be refused for one cause, which counts once.
func (s *State) refused(c *Config, t *Ticket, now time.Time, a announce.Announcement) {
	again := s.refusedAt.IsZero() || !t.at.Before(s.refusedAt)
	if again {
		s.refusals++
		s.refusedAt = now
	}
	s.sure = false
	until, named := s.comeBack(c, t, now, a)
	switch {
	case named:
		s.pauseUntil(c, now, until)
	case again:
		s.pauseUntil(c, now, c.bounded(max(a.LeastPause, firstPause)<<min(s.refusals-1, 6), max(a.LeastPause*8, longestPause)))
		s.slow.cut(now)
	}
}

// spent takes the Retry-After of an answer that used up a quota: it goes before the reset of the quota. Without such a quota
// the Retry-After of an admitted request is about its resource, such as that of a 202.
func (s *State) spent(c *Config, t *Ticket, now time.Time, a announce.Announcement) {
	isSpent := func(q announce.Quota) bool { return q.Remaining == 0 && q.Unit != announce.Concurrent }
	if a.RetryAfter > 0 && slices.ContainsFunc(a.Quotas, isSpent) {
		wait, _ := s.comeBack(c, t, now, a)
		s.pauseUntil(c, now, wait)
	}
}

// comeBack returns the wait that a refusal names. Retry-After is better than the reset of a quota.
func (s *State) comeBack(c *Config, t *Ticket, now time.Time, a announce.Announcement) (wait time.Duration, named bool) {
	wait, named = a.Pause()
	wait = c.bounded(wait, Never)
	for i := range s.quotas {
		if a.RetryAfter > 0 {
			s.quotas[i].comeBack(now.Add(wait), t.Need)
		}
	}
	return wait, named
}

// pauseUntil begins a pause, or makes it longer. It adds a random time, and never takes any away.
func (s *State) pauseUntil(c *Config, now time.Time, wait time.Duration) {
	end := now.Add(wait)
	if !end.After(s.pause) {
		return
	}
	s.pause = end.Add(c.Spread(min(wait/4, longestSpread)))
}
