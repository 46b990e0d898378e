package api

import (
	"slices"
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

// slotRules returns the slots alone of each rule with slots. They have the same state.
func slotRules(rules []*weir.Rule) map[*weir.Rule]*weir.Rule {
	alone := map[*weir.Rule]*weir.Rule{}
	for _, rule := range rules {
		limits := slices.DeleteFunc(rule.Limits(), func(l weir.Limit) bool { _, slots := l.(weir.Concurrency); return !slots })
		if len(limits) > 0 {
			alone[rule], _ = weir.NewRule(rule.Name(), limits...) // valid in the rule, so valid alone
		}
	}
	return alone
}
