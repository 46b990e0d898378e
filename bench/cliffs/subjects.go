package main

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/workload"
)

// subject decides on keys. decide takes one unit of each rule for the key at a place of a sequence.
type subject struct {
	decide func(keys *workload.Sequence, at int)
}

// column is a kind of subject. It makes no decisions for a row that it cannot hold. The first one is measured. The others
// are on each of several keys apart, and use up all units: a key that was only asked for beside exhausted ones has not
// been taken from.
type column struct {
	name string
	make func(r row, admit bool) []decision
}

// decision is one on the key, or keys, at a place of a sequence.
type decision func(keys *workload.Sequence, at int) (allowed bool)

var columns = []column{{"Limiter", limiter}, {"Keyed", keyed}, {"Memory", memory}}

// clockOf returns the default clock, or for refusals one that stands, so that no unit comes back.
func clockOf(admit bool) func() int64 {
	if admit {
		return nil
	}
	return func() int64 { return 1_700_000_000_000_000_000 }
}

func limiter(r row, admit bool) []decision {
	if len(r.rules) != 1 || len(r.rules[0]) != 1 || r.plans > 0 {
		return nil
	}
	l := must(weir.NewWith(r.rules[0][0](admit), weir.Options{Clock: clockOf(admit)}))
	return []decision{func(*workload.Sequence, int) bool { return l.Allow() }}
}

func keyed(r row, admit bool) []decision {
	if len(r.rules) != 1 || len(r.rules[0]) != 1 {
		return nil
	}
	options := weir.Options{Clock: clockOf(admit)}
	var k *weir.Keyed[string]
	if r.plans == 0 {
		k = must(weir.NewKeyedWith[string](r.rules[0][0](admit), options))
	} else {
		plans, seed := r.planned(admit), maphash.MakeSeed()
		k = must(weir.NewKeyedFunc(func(key string) weir.Limit {
			return plans[maphash.String(seed, key)%uint64(len(plans))]
		}, options))
	}
	return []decision{func(keys *workload.Sequence, at int) bool { return k.Allow(keys.Key(at)) }}
}

// planned returns the limits of the plans, each with a rate of its own.
func (r row) planned(admit bool) []weir.Limit {
	plans := make([]weir.Limit, r.plans)
	for i := range plans {
		plans[i] = bucket(weir.PerSecond(int64(10 + i)))(admit)
	}
	return plans
}

func memory(r row, admit bool) []decision {
	m, ctx := weir.NewMemory(weir.MemoryOptions{Clock: clockOf(admit)}), context.Background()
	if r.plans > 0 {
		return nil
	}
	rules := make([]*weir.Rule, len(r.rules))
	for i, limits := range r.rules {
		all := make([]weir.Limit, len(limits))
		for j, limit := range limits {
			all[j] = limit(admit)
		}
		rules[i] = must(weir.NewRule(fmt.Sprint("rule ", i), all...))
	}
	first := func(keys *workload.Sequence, at int) bool {
		d, err := m.Take(ctx, rules[0].For(keys.Key(at), 1))
		return err == nil && d.Allowed
	}
	if len(rules) == 1 {
		return []decision{first}
	}
	second := func(keys *workload.Sequence, at int) bool {
		d, err := m.Take(ctx, rules[1].For(keys.Key(at), 1))
		return err == nil && d.Allowed
	}
	both := func(keys *workload.Sequence, at int) bool {
		d, err := m.Take(ctx, rules[0].For(keys.Key(at), 1), rules[1].For(keys.Key(keys.Len()-1-at), 1))
		return err == nil && d.Allowed
	}
	return []decision{both, first, second}
}

// newSubject returns a subject that knows all keys of a mix and has used up their units if it is to refuse. It returns
// nil if the column cannot hold the row.
func newSubject(c column, r row, m *mix, admit bool) *subject {
	all := c.make(r, admit)
	if all == nil {
		return nil
	}
	take := all[0]
	for range m.rounds(admit) {
		for _, keys := range m.Sequences() {
			for at := range keys.Len() {
				for _, decide := range all {
					decide(keys, at)
				}
			}
		}
	}
	return &subject{func(keys *workload.Sequence, at int) {
		if take(keys, at) != admit {
			panic(fmt.Sprintf("cliffs: %s of %s, admitted: %v: a decision was the opposite", c.name, r.name, admit))
		}
	}}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
