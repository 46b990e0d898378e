package desk

import (
	"time"

	"github.com/weirflow/weir"
)

// quotas hold the quotas of each rule that has some, by their places among its limits.
type quotas map[*weir.Rule]map[int]weir.Limit

func (s quotas) add(rule *weir.Rule) {
	for i, limit := range rule.Limits() {
		if _, _, ok := weir.CalendarWindow(limit, time.Time{}); !ok {
			continue
		}
		if s[rule] == nil {
			s[rule] = map[int]weir.Limit{}
		}
		s[rule][i] = limit
	}
}

// QuotaEnd returns when the window of a quota ends that has decided, as a time of its zone: of the quota that refuses, or
// else of the one whose window ends last. ok is false without a quota.
func (f *InForce) QuotaEnd(d weir.Decision, requests []weir.Request) (end time.Time, ok bool) {
	s := f.quotas
	if len(s) == 0 {
		return end, false
	}
	for i := range requests {
		q := &requests[i]
		if len(s[q.Rule]) == 0 || q.Key != d.Key || q.Rule.Name() != d.Rule {
			continue
		}
		now := time.Now()
		if limit := s[q.Rule][int(d.RefusedBy)]; limit != nil && !d.Allowed && d.RetryAfter != weir.Never {
			_, end, ok = weir.CalendarWindow(limit, now.Add(d.RetryAfter-time.Second)) // the engine's clock may be in another window
			return end, ok
		}
		for _, limit := range s[q.Rule] {
			if _, last, _ := weir.CalendarWindow(limit, now); last.After(end) {
				end, ok = last, true
			}
		}
	}
	return end, ok
}
