package api

import (
	"time"

	"github.com/weirflow/weir"
)

// leases hold the longest lease of a slot, for each rule with slots.
type leases map[*weir.Rule]time.Duration

func (l leases) add(rule *weir.Rule) {
	for _, limit := range rule.Limits() {
		slots, ok := limit.(weir.Concurrency)
		if known := l[rule]; ok && slots.Lease > 0 && (known == 0 || slots.Lease < known) {
			l[rule] = slots.Lease
		}
	}
}

// shortest returns the shortest lease of the requests, or 0 if none of them holds slots.
func (l leases) shortest(requests []weir.Request) (first time.Duration) {
	if len(l) == 0 {
		return 0
	}
	for i := range requests {
		if lease := l[requests[i].Rule]; lease > 0 && (first == 0 || lease < first) {
			first = lease
		}
	}
	return first
}
