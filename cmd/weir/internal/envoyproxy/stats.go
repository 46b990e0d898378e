package envoyproxy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// maxStats bounds the names of statistics, because detailed_metric takes them from calls.
const maxStats = 50_000

// Stats are the statistics of the service, by the names of envoyproxy/ratelimit. They outlive a reload.
type Stats struct {
	loaded, failed atomic.Uint64
	// Refused counts calls that cannot be decided, Undecided those that the engine could not decide, and Overridden the
	// refusals that SHADOW_MODE turned into admissions.
	Refused, Undecided, Overridden atomic.Uint64

	mu    sync.RWMutex
	rules map[string]*Counts
}

// Counts are the statistics of one name.
type Counts struct {
	Total, Over, Near, Within, Shadow, Negative atomic.Uint64
}

// Of returns the statistics of a name. Names beyond maxStats share one.
func (s *Stats) Of(name string) *Counts {
	s.mu.RLock()
	c := s.rules[name]
	s.mu.RUnlock()
	if c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == nil {
		s.rules = map[string]*Counts{}
	}
	if len(s.rules) >= maxStats && s.rules[name] == nil {
		name = "other"
	}
	if s.rules[name] == nil {
		s.rules[name] = &Counts{}
	}
	return s.rules[name]
}

// Count counts a decision on hits: before is the count before them, up to the limit.
func (c *Counts) Count(hits, before, limit uint64, ratio float32, over, shadow bool) {
	c.Total.Add(hits)
	near := uint64(float64(float32(limit) * ratio))
	after := before + hits
	if !over {
		c.Within.Add(hits)
		if after > near {
			c.Near.Add(after - max(near, before))
		}
		return
	}
	beyond := hits
	if before < limit {
		beyond = after - min(after, limit)
		c.Near.Add(limit - max(near, before))
	}
	c.Over.Add(beyond)
	if shadow {
		c.Shadow.Add(beyond)
	}
}

// Write writes the statistics, one a line.
func (s *Stats) Write(w io.Writer) error {
	lines := map[string]uint64{
		"ratelimit.service.config_load_success":                  s.loaded.Load(),
		"ratelimit.service.config_load_error":                    s.failed.Load(),
		"ratelimit.service.call.should_rate_limit.service_error": s.Refused.Load(),
		"ratelimit.service.call.should_rate_limit.redis_error":   s.Undecided.Load(),
		"ratelimit.service.global_shadow_mode":                   s.Overridden.Load(),
	}
	s.mu.RLock()
	for name, c := range s.rules {
		for stat, n := range map[string]*atomic.Uint64{
			"total_hits": &c.Total, "over_limit": &c.Over, "near_limit": &c.Near, "within_limit": &c.Within, "shadow_mode": &c.Shadow, "total_negative_hits": &c.Negative,
		} {
			lines["ratelimit.service.rate_limit."+name+"."+stat] = n.Load()
		}
	}
	s.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if _, err := fmt.Fprintf(w, "%s: %d\n", name, lines[name]); err != nil {
			return err
		}
	}
	return nil
}
