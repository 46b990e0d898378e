package desk

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// quotas hold the quotas of the rules in force. Rules that requests or overrides bring are not among them.
type quotas map[*weir.Rule][]quota

// quota is a quota of a rule, and its place among the limits.
type quota struct {
	at    int
	limit weir.Limit
}

func quotasOf(rule *weir.Rule) (all []quota) {
	for i, limit := range rule.Limits() {
		if weir.Describe(limit).Calendar != 0 {
			all = append(all, quota{i, limit})
		}
	}
	return all
}

func (s quotas) add(rule *weir.Rule) { s[rule] = quotasOf(rule) }

func (s quotas) of(rule *weir.Rule) []quota {
	if known, ok := s[rule]; ok {
		return known
	}
	return quotasOf(rule)
}

// QuotaEnd returns when the window of a quota ends, as a time of its zone, after a decision on requests: of the quota that
// refuses, or else of the one whose window ends last. ok is false if the limits that decided have no quota.
func (d *Desk) QuotaEnd(made weir.Decision, requests []weir.Request) (end time.Time, ok bool) {
	for _, q := range d.Overridden(requests) {
		if q.Key == made.Key && q.Rule.Name() == made.Rule {
			return quotaEnd(d.InForce().quotas.of(q.Rule), made)
		}
	}
	return end, false
}

func quotaEnd(all []quota, made weir.Decision) (end time.Time, ok bool) {
	if len(all) == 0 {
		return end, false
	}
	now := time.Now()
	for _, q := range all {
		if !made.Allowed && q.at == int(made.RefusedBy) && made.RetryAfter != weir.Never {
			return front.ResetAt(q.limit, made.RetryAfter), true
		}
		if _, last, _ := weir.CalendarWindow(q.limit, now); last.After(end) {
			end = last
		}
	}
	return end, true
}
