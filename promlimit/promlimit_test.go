package promlimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/promlimit"
)

// counted returns an engine whose decisions are metrics of the registry.
func counted(engine weir.Engine, registry *prometheus.Registry) (weir.Engine, error) {
	metrics := promlimit.New()
	registry.MustRegister(metrics)
	return metrics.Observe(engine)
}

func mustRule(t *testing.T, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDecisionsAreMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	e, err := counted(weir.NewMemory(weir.MemoryOptions{}), registry)
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		_, _ = e.Take(t.Context(), mustRule(t, "login=fixed window 10/366d").For("alice", 1))
		_, _ = e.Peek(t.Context(), mustRule(t, "login=fixed window 10/366d").For("alice", 1)) // decides nothing
	}
	const want = `
# HELP weir_decisions_total Decisions by result (admitted, refused, away, left or error) and by the reason of a refusal.
# TYPE weir_decisions_total counter
weir_decisions_total{reason="",result="admitted",rule="login"} 10
weir_decisions_total{reason="count",result="refused",rule="login"} 2
# HELP weir_refusals_total Refusals by the limit that refused.
# TYPE weir_refusals_total counter
weir_refusals_total{limit="fixed window 10/366d",rule="login"} 2
# HELP weir_thresholds_total Decisions by which a key reached 80 or 100 per cent of a limit.
# TYPE weir_thresholds_total counter
weir_thresholds_total{percent="100",rule="login"} 3
weir_thresholds_total{percent="80",rule="login"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "weir_decisions_total", "weir_refusals_total", "weir_thresholds_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "weir_decision_duration_seconds"); err != nil || n != 1 {
		t.Errorf("got %d histograms and %v, want one", n, err)
	}
}

func TestEveryLayerHasMetrics(t *testing.T) {
	memory, fails := weir.NewMemory(weir.MemoryOptions{}), atomic.Bool{}
	remote := weir.Kit.EngineOf(func(ctx context.Context, call weir.Call) (weir.Answer, error) {
		if fails.Load() {
			return weir.Answer{}, errors.New("connection refused")
		}
		return memory.Do(ctx, call)
	}, memory.Check)
	guard, err := layer.Guard(remote, layer.GuardOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	prefetched, err := layer.Prefetch(guard, layer.PrefetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer prefetched.Close()
	denier, err := layer.DenyUntil(prefetched, layer.DenyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := layer.Shadow(denier, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"r": mustRule(t, "r=1/1h")}})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	e, err := counted(shadow, registry)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_, _ = e.Take(t.Context(), mustRule(t, "r=10/1h").For("alice", 1))
	}
	fails.Store(true)
	for range 6 {
		_, _ = e.Take(t.Context(), mustRule(t, "s=100/1h").For("alice", 1))
	}
	for name, want := range map[string]int{
		"weir_guard_away": 1, "weir_guard_outages_total": 1, "weir_guard_failures_total": 1, "weir_guard_answers_total": 3, "weir_guard_hanging": 1,
		"weir_guard_owed_keys": 1, "weir_guard_queued": 1, "weir_guard_recorded_units_total": 1, "weir_guard_lost_units_total": 1,
		"weir_guard_round_trip_seconds": 1, "weir_guard_deadline_too_short": 1, "weir_prefetch_units": 1, "weir_prefetch_keys": 1, "weir_prefetch_takes_total": 2,
		"weir_prefetch_returned_units_total": 1, "weir_prefetch_lost_units_total": 1, "weir_deny_until_refusals_total": 1,
		"weir_shadow_errors_total": 1, "weir_shadow_dropped_total": 1,
	} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != want {
			t.Errorf("%s has %d values and %v, want %d", name, n, err, want)
		}
	}
	if !guard.Stats().Away || denier.Refused() != 9 {
		t.Errorf("got %+v and %d repeated refusals, want the engine away and 9", guard.Stats(), denier.Refused())
	}
}

func TestNamesAreBounded(t *testing.T) {
	registry, metrics := prometheus.NewPedanticRegistry(), promlimit.New()
	registry.MustRegister(metrics)
	e, err := metrics.Observe(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	decide := func(from, to int) {
		for i := from; i < to; i++ {
			_, _ = e.Take(t.Context(), mustRule(t, fmt.Sprintf("plan%d=1/1h", i)).For("k", 1))
		}
	}
	want := func(metric string, want int) {
		t.Helper()
		if n, err := testutil.GatherAndCount(registry, metric); err != nil || n != want {
			t.Errorf("%s: got %d values and %v, want %d", metric, n, err, want)
		}
	}
	decide(0, 1500)
	want("weir_decisions_total", 1001) // and the others
	metrics.Forget("plan7")
	metrics.Forget("plan1400") // one of the others
	metrics.Forget("unknown")
	want("weir_decisions_total", 1000)
	decide(2000, 2002)
	want("weir_decisions_total", 1001)
	for i := range 100 { // a rule whose limits come from its callers
		_, _ = e.Take(t.Context(), mustRule(t, fmt.Sprintf("plan1=%d/2h", i+1)).For("j", 1000))
	}
	want("weir_refusals_total", 33)
}

func TestDecisionsWithoutAnEngineAreMetrics(t *testing.T) {
	registry, metrics := prometheus.NewPedanticRegistry(), promlimit.New()
	registry.MustRegister(metrics)
	metrics.Judged("ban", false, "rule")
	metrics.Judged("", true, "default")
	const want = `
# HELP weir_decisions_total Decisions by result (admitted, refused, away, left or error) and by the reason of a refusal.
# TYPE weir_decisions_total counter
weir_decisions_total{reason="default",result="admitted",rule=""} 1
weir_decisions_total{reason="rule",result="refused",rule="ban"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "weir_decisions_total"); err != nil {
		t.Error(err)
	}
}

// BenchmarkDecided measures what the metrics add to a decision in memory.
func BenchmarkDecided(b *testing.B) {
	rule, err := weir.ParseRule("r=1000000000/s")
	if err != nil {
		b.Fatal(err)
	}
	memory := weir.NewMemory(weir.MemoryOptions{})
	metrics := promlimit.New()
	counted, err := metrics.Observe(memory)
	if err != nil {
		b.Fatal(err)
	}
	for name, e := range map[string]weir.Engine{"without": memory, "with": counted} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = e.Take(b.Context(), rule.For("k", 1))
			}
		})
	}
}
