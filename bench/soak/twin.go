package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/weirflow/weir"
)

// twin is a key of a single worker and a Limiter that gets the same calls at the same instants. All answers must be
// equal. The Limiter has no table, bound, snapshot or eviction that could fail.
type twin struct {
	rule    *rule
	key     string
	limiter *weir.Limiter
	now     int64 // the clock of the limiter
}

// twinsOf makes a twin for each rule with one limit.
func twinsOf(w *world, rules []*rule, worker, generation int) (twins []*twin) {
	for _, r := range rules {
		if len(r.limits) != 1 {
			continue
		}
		t := &twin{rule: r, key: fmt.Sprintf("twin %d of worker %d", generation, worker), now: w.now.Load()}
		limiter, err := weir.NewWith(r.limits[0], weir.Options{Clock: func() int64 { return t.now }})
		if err != nil {
			w.violated("a limiter of %s: %v", r, err)
			continue
		}
		t.limiter = limiter
		twins = append(twins, t)
	}
	return twins
}

// ask makes the same call on both.
func (t *twin) ask(w *world, random *rand.Rand) {
	t.now = w.now.Load()
	cost := random.Int64N(5)
	q := t.rule.For(t.key, cost)
	var got, want weir.Decision
	var verb string
	ok := false
	switch pick := random.IntN(20); {
	case pick < 11:
		verb = "take"
		got, ok = w.take(q)
		want = t.limiter.Take(cost)
	case pick < 15:
		verb = "peek"
		got, ok = w.peek(q)
		want = t.limiter.Peek(cost)
	case pick < 19:
		verb = "record"
		q.Cost = cost - 2
		got, ok = w.record(q)
		if want = t.limiter.Record(max(cost-2, 0)); cost < 2 {
			want = t.limiter.Return(2 - cost)
		}
	default:
		w.reset(q)
		t.limiter.Reset()
		return
	}
	got.Rule, got.Key = "", ""
	if ok && got != want {
		w.violated("%s %d of %s, key %q: a limiter says %+v, the engine %+v", verb, q.Cost, t.rule, t.key, want, got)
	}
}
