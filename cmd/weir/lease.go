package main

import (
	"time"

	"github.com/weirflow/weir"
)

// defaultLease bounds the time that a slot is held, unless its rule has a lease. An HTTP client that dies cannot
// release its slots, so every slot must expire.
const defaultLease = time.Minute

// withLeases returns the rule with a lease on each limit on slots.
func withLeases(rule *weir.Rule) (*weir.Rule, error) {
	limits := rule.Limits()
	for i, limit := range limits {
		if slots, ok := limit.(weir.Concurrency); ok && slots.Lease == 0 {
			slots.Lease = defaultLease
			limits[i] = slots
		}
	}
	return weir.NewRule(rule.Name(), limits...)
}
