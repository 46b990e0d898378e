package limittest

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// walk drives a key through takes, refusals, records and idle times chosen by its answers, and calls visit at each
// step. It is shorter with -short.
func (f *fixture) walk(rule *weir.Rule, key string, visit func(step int)) {
	costs := []int64{1, 2, 5, 1, 3, 4, 1, 1, 6, 2}
	steps := 60
	if testing.Short() {
		steps = 20
	}
	for step := range steps {
		d := f.take(rule.For(key, costs[step%len(costs)]))
		visit(step)
		switch step % 7 {
		case 0, 3: // stay
		case 1:
			f.clock.advance(time.Duration(1+step) * 7919 * time.Microsecond)
		case 2:
			f.clock.advance(min(d.RetryAfter, time.Hour))
		case 4:
			if n := 2 - int64(step%5); n < 0 {
				f.giveBack(rule.For(key, -n))
			} else {
				f.record(rule.For(key, n))
			}
			visit(step)
		case 5:
			f.clock.advance(d.ResetAfter / 2)
		case 6:
			f.clock.advance(d.ResetAfter)
		}
	}
}

func retryIsExact(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		refusals := 0
		f.walk(rule, "k", func(step int) {
			for cost := int64(1); cost <= 5; cost++ {
				q := rule.For("k", cost)
				d := f.peek(q)
				if d.Allowed {
					continue
				}
				refusals++
				retry, reset := d.RetryAfter, d.ResetAfter
				if retry <= 0 || retry > reset {
					f.Errorf("%s step %d cost %d: got RetryAfter %v with ResetAfter %v, want 0 < RetryAfter <= ResetAfter", rule, step, cost, retry, reset)
				}
				if early := f.peekAfter(retry-f.tick, q); early.Allowed {
					f.Errorf("%s step %d cost %d: admitted %v before RetryAfter %v", rule, step, cost, f.tick, retry)
				}
				for _, late := range []time.Duration{0, f.tick, time.Millisecond, time.Second, time.Hour} {
					if d := f.peekAfter(retry+late, q); !d.Allowed {
						f.Errorf("%s step %d cost %d: refused %v after RetryAfter %v: %+v", rule, step, cost, late, retry, d)
					}
				}
			}
		})
		if refusals < 10 {
			f.Errorf("%s: the walk met %d refusals, want at least 10: it proves nothing", rule, refusals)
		}
	})
}

func remainingIsExact(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.walk(rule, "k", func(step int) {
			d := f.peek(rule.For("k", 0))
			if d.Limit != 5 || d.Remaining < 0 || d.Remaining > d.Limit {
				f.Errorf("%s step %d: got %d of %d remaining, want 0 to 5 of 5", rule, step, d.Remaining, d.Limit)
			}
			if !f.peek(rule.For("k", d.Remaining)).Allowed {
				f.Errorf("%s step %d: Remaining %d is refused", rule, step, d.Remaining)
			}
			if f.peek(rule.For("k", d.Remaining+1)).Allowed {
				f.Errorf("%s step %d: one more than Remaining %d is admitted", rule, step, d.Remaining)
			}
			if (d.Remaining == d.Limit) != (d.ResetAfter == 0) {
				f.Errorf("%s step %d: got %d of %d remaining and ResetAfter %v, want all remaining exactly when it is 0", rule, step, d.Remaining, d.Limit, d.ResetAfter)
			}
		})
	})
}

func resetIsExact(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.walk(rule, "k", func(step int) {
			reset := f.peek(rule.For("k", 0)).ResetAfter
			if reset > 0 && f.peekAfter(reset-f.tick, rule.For("k", 5)).Allowed {
				f.Errorf("%s step %d: the capacity is admitted %v before ResetAfter %v", rule, step, f.tick, reset)
			}
			for _, late := range []time.Duration{0, f.tick, time.Second} {
				var requests []weir.Request
				for cost := range int64(7) {
					requests = append(requests, rule.For("k", cost), rule.For("never seen", cost))
				}
				back := f.clock.at(reset + late)
				answers := f.each(weir.OpPeek, requests)
				back()
				for i := 0; i < len(answers); i += 2 {
					got, want := answers[i], answers[i+1]
					want.Key = "k"
					if got != want {
						f.Errorf("%s step %d cost %d: %v after ResetAfter %v: got %+v, want that of a fresh key, %+v", rule, step, requests[i].Cost, late, reset, got, want)
					}
				}
			}
		})
	})
}

// backwardsAddsNothing tests that an earlier clock never finds more room than the key had at its last decision.
func backwardsAddsNothing(f *fixture) {
	f.ofEveryLimit(func(f *fixture, rule *weir.Rule) {
		f.walk(rule, "k", func(step int) {
			room := f.peek(rule.For("k", 0)).Remaining
			for _, back := range []time.Duration{f.tick, time.Millisecond, time.Second, time.Hour, 1000 * time.Hour} {
				if d := f.peekAfter(-back, rule.For("k", room+1)); d.Allowed {
					f.Errorf("%s step %d: %v earlier %d units are admitted, where %d remained", rule, step, back, room+1, room)
				}
			}
		})
	})
}
