package main

import (
	"fmt"
	"slices"
)

// target is a bound on a ratio of two cells.
type target struct {
	name       string
	ours, over id
	of         func(sample) float64
	bound      float64
	atLeast    bool
}

func perSecond(s sample) float64 { return s.perSecond }
func p50(s sample) float64       { return s.p50 }
func p99(s sample) float64       { return s.p99 }
func client(s sample) float64    { return s.client }
func redisCPU(s sample) float64  { return s.redis }
func inScript(s sample) float64  { return s.exec }

// targets returns the targets for one Redis server.
func targets() (all []target) {
	for _, keys := range []int{manyKeys, 1} {
		all = append(all, callerTargets(keys)...)
	}
	single := func(name string) id { return id{peer: name, callers: 1, keys: manyKeys, batch: 1} }
	batch := func(name string, keys int, refused bool) id {
		return id{peer: name, callers: 1, keys: keys, batch: batchSize, refused: refused}
	}
	all = append(all, target{"one goroutine, a batch of 100: decisions/s over redis_rate", batch(nameWeir, manyKeys, false), single(nameRedisRate), perSecond, 17, true})
	for _, a := range algorithms() {
		bare := batch(nameBareBatch, a.keys(), false)
		all = append(all,
			target{a.name + ", batch of 100: time in the script over a bare one", batch(a.name, a.keys(), false), bare, inScript, 1.5, false},
			target{a.name + ", the same, all refused", batch(a.name, a.keys(), true), bare, inScript, 1.5, false})
	}
	return all
}

func callerTargets(keys int) []target {
	at := func(name string, callers int) id { return id{peer: name, callers: callers, keys: keys, batch: 1} }
	where := fmt.Sprintf(", %d keys: ", keys)
	if keys == 1 {
		where = ", one key: "
	}
	make := func(callers int, what, peer string, of func(sample) float64, bound float64, atLeast bool) target {
		who := fmt.Sprintf("%d callers", callers)
		if callers == 1 {
			who = "one caller"
		}
		return target{who + where + what, at(nameWeir, callers), at(peer, callers), of, bound, atLeast}
	}
	return []target{
		make(128, "decisions/s over redis_rate", nameRedisRate, perSecond, 4, true),
		make(128, "decisions/s over bare EVALSHA (rueidis)", nameBareRueidis, perSecond, 2, true),
		make(128, "client CPU over redis_rate", nameRedisRate, client, 1.0/7, false),
		make(128, "Redis CPU over redis_rate", nameRedisRate, redisCPU, 1.0/3, false),
		make(128, "p99 over bare EVALSHA (rueidis)", nameBareRueidis, p99, 1, false),
		make(16, "decisions/s over redis_rate", nameRedisRate, perSecond, 1.6, true),
		make(1, "p50 over bare EVALSHA (rueidis)", nameBareRueidis, p50, 1.15, false),
	}
}

// ratios compares the two cells within each repetition.
func (t target) ratios(r results) (ratios []float64) {
	ours, over := r[t.ours], r[t.over]
	for i := range min(len(ours), len(over)) {
		ratios = append(ratios, t.of(ours[i])/t.of(over[i]))
	}
	return ratios
}

// verdict judges ratios. A target is missed only if no repetition reached the aim.
func (t target) verdict(ratios []float64) string {
	if len(ratios) == 0 {
		return "not measured"
	}
	reached := func(ratio float64) bool {
		if t.atLeast {
			return ratio >= t.bound
		}
		return ratio <= t.bound
	}
	switch {
	case reached(median(ratios)):
		return "reached"
	case slices.ContainsFunc(ratios, reached):
		return "within the spread"
	}
	return "**missed**"
}

func (t target) aim() string {
	if t.atLeast {
		return fmt.Sprintf("≥ %.4g ×", t.bound)
	}
	return fmt.Sprintf("≤ %.3g ×", t.bound)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
