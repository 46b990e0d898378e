package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
)

// twin is a key of a single worker and a Limiter that gets the same calls at the same instants. All answers must be
// equal. The Limiter has no table, bound, snapshot or eviction that could fail.
type twin struct {
	rule    *rule
	key     string
	limiter *weir.Limiter
}

// twinsOf makes a twin for each rule with one limit.
func twinsOf(w *world, rules []*rule, worker, generation int) (twins []*twin) {
	for _, r := range rules {
		if len(r.limits) != 1 {
			continue
		}
		limiter, err := weir.New(r.limits[0])
		if err != nil {
			w.violated("a limiter of %s: %v", r, err)
			continue
		}
		twins = append(twins, &twin{rule: r, key: fmt.Sprintf("twin %d of worker %d", generation, worker), limiter: limiter})
	}
	return twins
}

// ask makes the same call on both.
func (t *twin) ask(w *world, random *rand.Rand) {
	now := time.Unix(0, w.now.Load())
	cost := random.Int64N(5)
	q := t.rule.For(t.key, cost)
	var got, want weir.Decision
	var verb string
	ok := false
	switch pick := random.IntN(20); {
	case pick < 11:
		verb = "take"
		got, ok = w.take(q)
		want = t.limiter.TakeAt(now, cost)
	case pick < 15:
		verb = "peek"
		got, ok = w.peek(q)
		want = t.limiter.PeekAt(now, cost)
	case pick < 19:
		verb = "record"
		q.Cost = cost - 2
		got, ok = w.record(q)
		if want = t.limiter.RecordAt(now, max(cost-2, 0)); cost < 2 {
			want = t.limiter.ReturnAt(now, 2-cost)
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
