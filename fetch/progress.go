package fetch

import (
	"math"
	"sync/atomic"
	"time"
)

// Progress estimates how long a run takes. Its zero value is ready for Options.Progress. It is safe for concurrent use.
type Progress struct{ frontier atomic.Pointer[frontier] }

// Left estimates the time until the last of the URLs that wait now is requested: that of the slowest domain, or that of
// all URLs at the total rate. It assumes that each domain keeps its pace so far. It is 0 if no URL waits.
func (p *Progress) Left() time.Duration {
	f := p.frontier.Load()
	if f == nil {
		return 0
	}
	return f.left(time.Now())
}

func (f *frontier) left(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	slowest, requests := time.Duration(0), 0
	for _, s := range f.sites {
		n := s.requests(now)
		if requests += n; n > 0 {
			slowest = max(slowest, max(s.next.Sub(now), 0)+times(n-1, s.interval()))
		}
	}
	return max(slowest, times(requests, gapOf(f.o.Total)))
}

// requests returns the number of requests that wait, with those for rules that are not known.
func (s *site) requests(now time.Time) int {
	n := s.waiting + len(s.urgent) + len(s.guests)
	for _, o := range s.ready.items {
		if !o.knows(now) {
			n++
		}
	}
	return n
}

// count counts a request that is sent.
func (s *site) count(now time.Time) {
	if s.sent++; s.sent > 1 {
		s.apart += s.due.Sub(s.began)
	}
	s.began, s.due = now, time.Time{}
}

// interval returns the mean time between two requests of the site, without waits for the total, and at least its gap.
func (s *site) interval() time.Duration {
	return max(s.gap, s.apart/time.Duration(max(s.sent-1, 1)))
}

// times multiplies, up to the longest time.
func times(n int, d time.Duration) time.Duration {
	return time.Duration(min(float64(n)*float64(d), math.MaxInt64/2))
}
