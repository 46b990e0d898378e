package envoyproxy

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// The bounds on names of statistics, because detailed_metric and limits in calls take them from calls.
const (
	maxStats   = 50_000
	maxDomains = 1000 // without rules
	maxName    = 512  // bytes
)

// Stats are the statistics of the service, by the names of envoyproxy/ratelimit. They outlive a reload.
type Stats struct {
	loaded, failed atomic.Uint64
	// Refused counts calls that cannot be decided, Undecided those that the engine could not decide, and Shadowed the
	// refusals that SHADOW_MODE turned into admissions.
	Refused, Undecided, Shadowed atomic.Uint64

	mu      sync.RWMutex
	rules   map[string]*Counts
	domains atomic.Int64 // without rules that have a name
}

// Counts are the statistics of one name.
type Counts struct {
	Total, Over, Near, Within, Shadow, Negative atomic.Uint64
	// NotFound counts calls of a domain without rules.
	NotFound atomic.Uint64
}

var address = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)

// statName makes a path a name of statistics as envoyproxy/ratelimit does: dots separate levels, so addresses have none.
func statName(path string) string {
	path = strings.NewReplacer(":", "_", "|", "_").Replace(path)
	return address.ReplaceAllStringFunc(path, func(a string) string { return strings.ReplaceAll(a, ".", "_") })
}

// Of returns the statistics of a path. Paths beyond the bounds share one.
func (s *Stats) Of(path string) *Counts {
	if len(path) > maxName {
		path = "other"
	}
	s.mu.RLock()
	c := s.rules[path]
	s.mu.RUnlock()
	if c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == nil {
		s.rules = map[string]*Counts{}
	}
	if len(s.rules) >= maxStats && s.rules[path] == nil {
		path = "other"
	}
	if s.rules[path] == nil {
		s.rules[path] = &Counts{}
	}
	return s.rules[path]
}

// NotFound counts a call of a domain without rules. Few such domains have a name of their own, which leaves room for rules.
func (s *Stats) NotFound(domain string) {
	s.mu.RLock()
	known := s.rules[domain] != nil
	s.mu.RUnlock()
	if !known && s.domains.Add(1) > maxDomains {
		domain = "other"
	}
	s.Of(domain).NotFound.Add(1)
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
		"ratelimit.service.global_shadow_mode":                   s.Shadowed.Load(),
	}
	s.mu.RLock()
	for path, c := range s.rules {
		name, unknown := statName(path), c.NotFound.Load()
		if unknown > 0 {
			lines["ratelimit.service.rate_limit."+name+".domain_not_found"] += unknown
		}
		for stat, n := range map[string]*atomic.Uint64{
			"total_hits": &c.Total, "over_limit": &c.Over, "near_limit": &c.Near, "within_limit": &c.Within, "shadow_mode": &c.Shadow, "total_negative_hits": &c.Negative,
		} {
			if count := n.Load(); count > 0 || unknown == 0 {
				lines["ratelimit.service.rate_limit."+name+"."+stat] += count
			}
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
