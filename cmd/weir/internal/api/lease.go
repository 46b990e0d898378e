package api

import (
	"time"

	"github.com/weirflow/weir"
)

// leases tell how long slots of the rules that have some are held at most.
type leases map[*weir.Rule]time.Duration

func (l leases) add(rule *weir.Rule) {
	for _, limit := range rule.Limits() {
		slots, ok := limit.(weir.Concurrency)
		if known := l[rule]; ok && slots.Lease > 0 && (known == 0 || slots.Lease < known) {
			l[rule] = slots.Lease
		}
	}
}

// shortest is the lease of what the requests hold that ends first; 0 if none of
// them holds slots.
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
