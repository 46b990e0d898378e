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

// column is a kind of subject. It makes none, nil, for a row that it cannot hold.
type column struct {
	name string
	make func(r row, admit bool) func(keys *workload.Sequence, at int) (allowed bool)
}

var columns = []column{{"Limiter", limiter}, {"Keyed", keyed}, {"Memory", memory}}

// clockOf returns the default clock, or for refusals one that stands, so that no unit comes back.
func clockOf(admit bool) func() int64 {
	if admit {
		return nil
	}
	return func() int64 { return 1_700_000_000_000_000_000 }
}

func limiter(r row, admit bool) func(*workload.Sequence, int) bool {
	if len(r.rules) != 1 || len(r.rules[0]) != 1 || r.plans > 0 {
		return nil
	}
	l := must(weir.NewWith(r.rules[0][0](admit), weir.Options{Clock: clockOf(admit)}))
	return func(*workload.Sequence, int) bool { return l.Allow() }
}

func keyed(r row, admit bool) func(*workload.Sequence, int) bool {
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
	return func(keys *workload.Sequence, at int) bool { return k.Allow(keys.Key(at)) }
}

// planned returns the limits of the plans, each with a rate of its own.
func (r row) planned(admit bool) []weir.Limit {
	plans := make([]weir.Limit, r.plans)
	for i := range plans {
		plans[i] = bucket(weir.PerSecond(int64(10 + i)))(admit)
	}
	return plans
}

func memory(r row, admit bool) func(*workload.Sequence, int) bool {
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
	if len(rules) == 1 {
		return func(keys *workload.Sequence, at int) bool {
			d, err := m.Take(ctx, rules[0].For(keys.Key(at), 1))
			return err == nil && d.Allowed
		}
	}
	return func(keys *workload.Sequence, at int) bool {
		d, err := m.Take(ctx, rules[0].For(keys.Key(at), 1), rules[1].For(keys.Key(keys.Len()-1-at), 1))
		return err == nil && d.Allowed
	}
}

// newSubject returns a subject that knows all keys of a mix and has used up their units if it is to refuse. It returns
// nil if the column cannot hold the row.
func newSubject(c column, r row, m *mix, admit bool) *subject {
	take := c.make(r, admit)
	if take == nil {
		return nil
	}
	for range m.rounds(admit) {
		for _, keys := range m.Sequences() {
			for at := range keys.Len() {
				take(keys, at)
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
