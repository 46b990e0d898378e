package main

import (
	"time"

	"github.com/weirflow/weir"
)

// defaultLease is how long a slot is held at most, unless its rule says. Over
// HTTP a caller that dies takes what it holds with it, so that every slot has to
// come back on its own.
const defaultLease = time.Minute

// withLeases is the rule with a lease for each limit on slots.
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
