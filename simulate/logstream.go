package simulate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// logStream offers the events of an access log.
type logStream struct {
	name    string
	share   float64 // of the requests that remain
	speed   float64 // how many times faster than recorded
	traffic *Traffic
}

// Logs returns the names of the logs in the text, which must be read and passed to UseLog.
func (p Pattern) Logs() (names []string) {
	for _, s := range p.streams {
		if s.log != nil && !slices.Contains(names, s.log.name) {
			names = append(names, s.log.name)
		}
	}
	return names
}

// UseLog makes the traffic the content of the named log. Each key is a client. It refuses an unknown name and a log
// without events.
func (p Pattern) UseLog(name string, traffic *Traffic) error {
	found := false
	for i := range p.streams {
		if log := p.streams[i].log; log != nil && log.name == name {
			log.traffic, found = traffic, true
		}
	}
	switch {
	case !found:
		return fmt.Errorf("simulate: traffic %q: it has no log %s", p.text, name)
	case traffic == nil || traffic.events.count == 0:
		return fmt.Errorf("simulate: traffic %q: no line of the log %s counts", p.text, name)
	}
	return nil
}

// Length returns the time that the longest log of the pattern takes, or 0 without a log.
func (p Pattern) Length() (longest time.Duration) {
	for _, s := range p.streams {
		if s.log != nil && s.log.traffic != nil {
			first, last := s.log.traffic.span()
			longest = max(longest, time.Duration(later(int64(s.log.after(first, last)), 1)))
		}
	}
	return longest
}

// begin returns when the traffic begins. A log alone, at its own speed, begins when it began, so that windows lie as
// they do on the clock.
func (p Pattern) begin() int64 {
	if len(p.streams) != 1 || p.streams[0].log == nil || p.streams[0].log.speed != 1 {
		return virtualStart
	}
	first, _ := p.streams[0].log.traffic.span()
	return first
}

// after returns when an event comes, after the start of the log. It is exact at the log's own speed.
func (l *logStream) after(first, t int64) time.Duration {
	if l.speed == 1 {
		return time.Duration(min(since(first, t), math.MaxInt64))
	}
	return nanoseconds(float64(since(first, t)) / l.speed)
}

// offer appends the events that remain: request i comes at (tᵢ - t₀) / speed, and each remains with the probability
// share.
func (l *logStream) offer(all []offer, length time.Duration, client uint32, random *rand.Rand) []offer {
	first, _ := l.traffic.span()
	begin := len(all)
	l.traffic.events.each(func(t int64, key, cost uint32) {
		at := l.after(first, t)
		if at < length && len(all) <= maxOffered {
			all = append(all, offer{int64(at), client + key, cost})
		}
	})
	log := all[begin:]
	slices.SortStableFunc(log, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client), cmp.Compare(a.cost, b.cost))
	})
	if l.share >= 1 {
		return all
	}
	kept := slices.DeleteFunc(log, func(offer) bool { return random.Float64() >= l.share })
	return all[:begin+len(kept)]
}
