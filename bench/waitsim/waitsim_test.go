package main

import "testing"

// Each rule stands here with a workload and a figure that is worse by a tenth or more without it.
func TestEveryRuleIsMissed(t *testing.T) {
	four := slotCase{processes: 4, callers: 10, slots: 8, hold: 40 * ms, trip: ms}
	one := slotCase{processes: 4, callers: 2, slots: 1, hold: 100 * ms, trip: ms}
	crowd := slotCase{processes: 50, callers: 10, slots: 8, hold: 40 * ms, trip: ms}
	wide := slotCase{processes: 1, callers: 20, slots: 8, hold: 40 * ms, trip: ms, wide: 8}
	quick := slotCase{processes: 1, callers: 20, slots: 8, hold: 5 * ms, trip: ms}
	idle := slotCase{processes: 1, callers: 200, slots: 200, hold: 40 * ms, trip: ms, idle: true}
	slots := func(w slotCase, without func(*askRules)) (f, g figures) {
		rules := allAskRules
		without(&rules)
		return simulateSlots(w, allAskRules, 1, length), simulateSlots(w, rules, 1, length)
	}
	near := []instant{ms, ms, ms}
	alone := manyBookers(200)
	dear := bookCase{unit: 10 * ms, burst: 100, trips: near, costs: []int64{100, 1, 1}, callers: 10}
	busy := bookCase{unit: 5 * ms, burst: 10, trips: near, costs: []int64{1, 1, 1}, callers: 40}
	books := func(w bookCase, without func(*bookRules)) (f, g figures) {
		rules := allBookRules
		without(&rules)
		return simulateBooking(w, allBookRules, 1, 2*length), simulateBooking(w, rules, 1, 2*length)
	}
	total := rateCase{processes: 1, callers: 200, count: 100, period: second, trip: ms}

	check := func(rule string, good, bad float64) {
		t.Helper()
		if bad < good*1.1 {
			t.Errorf("%s: %.3f with the rule, %.3f without: it earns less than a tenth", rule, good, bad)
		}
	}
	f, g := slots(four, func(r *askRules) { r.spread = false })
	check("spread", 1/f.least, 1/(g.least+0.001))
	f, g = slots(crowd, func(r *askRules) { r.growth = false })
	check("growth of the spread", f.calls, g.calls)
	f, g = slots(one, func(r *askRules) { r.streak = false })
	check("streak", 1/f.least, 1/(g.least+0.001))
	f, g = slots(quick, func(r *askRules) { r.more = false })
	check("one more travels, slots", f.calls, g.calls)
	f, g = slots(wide, func(r *askRules) { r.keep = false })
	check("keeping for a wide caller", float64(f.wide), float64(g.wide))
	f, g = slots(idle, func(r *askRules) { r.backoff = false })
	check("rarer asks", f.seconds, g.seconds)

	f, g = books(alone, func(r *bookRules) { r.random = false })
	check("random time", f.calls, g.calls)
	f, g = books(dear, func(r *bookRules) { r.widening = false })
	check("widening", 1/f.least, 1/(g.least+0.001))
	f, g = books(busy, func(r *bookRules) { r.mark = false })
	check("mark", f.calls, g.calls)
	f, g = books(busy, func(r *bookRules) { r.drawn = false })
	check("draw of the mark", 1/f.least, 1/g.least)

	check("one more travels, rates", simulateRate(total, allRateRules, 1, length).calls, simulateRate(total, rateRules{}, 1, length).calls)
}
