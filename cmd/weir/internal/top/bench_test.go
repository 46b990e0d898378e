package top

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/promlimit"
)

// BenchmarkDecisionWithFullestKeys compares a decision in memory on two rules with the takes of each rule, its fullest keys and the
// peeks at them, and without these: with metrics and the lists of busy keys alone. Both decide in turn, in 2,001 windows; the medians
// count.
//
//	go test -run '^$' -bench DecisionWithFullestKeys -benchtime 1x ./cmd/weir/internal/top
func BenchmarkDecisionWithFullestKeys(b *testing.B) {
	with, without := New(), New()
	ctx, end := context.WithCancel(b.Context())
	defer end()
	engines := [2]weir.Engine{}
	for i, sample := range []func(layer.Observation) bool{without.listsAlone, with.Sample} {
		counts, memory := promlimit.New(), weir.NewMemory(weir.MemoryOptions{})
		decided := func(ctx context.Context, o layer.Observation) {
			counts.Decided(ctx, o)
			sample(o)
		}
		var err error
		if engines[i], err = layer.Observe(memory, layer.ObserveOptions{Decided: decided}); err != nil {
			b.Fatal(err)
		}
		if i == 1 {
			go with.Peek(ctx, memory, func() bool { return false })
		}
	}
	requests := requestsOfTwoRules(b)
	costs := [2][]time.Duration{}
	for b.Loop() {
		for range 2001 {
			for i, e := range engines {
				began := time.Now()
				for _, q := range requests {
					if d, err := e.Take(ctx, q...); err != nil || !d.Allowed {
						b.Fatalf("got %+v, %v, want an admission", d, err)
					}
				}
				costs[i] = append(costs[i], time.Since(began)/time.Duration(len(requests)))
			}
		}
	}
	var medians [2]float64
	for i := range costs {
		slices.Sort(costs[i])
		medians[i] = float64(costs[i][len(costs[i])/2])
	}
	b.ReportMetric(medians[0], "without-ns/decision")
	b.ReportMetric(medians[1], "with-ns/decision")
	b.ReportMetric(medians[1]/medians[0], "with/without")
}

func requestsOfTwoRules(b *testing.B) (all [512][]weir.Request) {
	binds, err := weir.ParseRule("binds=1000000/s burst 1000000")
	if err != nil {
		b.Fatal(err)
	}
	other, err := weir.ParseRule("other=fixed window 1000000000/d")
	if err != nil {
		b.Fatal(err)
	}
	for i := range all {
		all[i] = []weir.Request{binds.For(fmt.Sprint(i%64), 1), other.For(fmt.Sprint(i), 1)}
	}
	return all
}

// listsAlone samples for the lists of busy keys, each rule by a random number of its own, and counts nothing else.
func (k *Keys) listsAlone(o layer.Observation) bool {
	for i := range o.Requests {
		r := k.ruleKeys(o.Requests[i].Rule.Name())
		if gap := r.by[Taken].sample(); gap > 0 {
			k.draw(r, Taken, gap, o.Requests[i].Key)
		}
	}
	return false
}
