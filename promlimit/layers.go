package promlimit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// value is a metric that is read from the counts of a layer.
type value struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) value {
	return value{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) value {
	return value{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func (v value) is(to chan<- prometheus.Metric, n float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(v.desc, v.kind, n, labels...)
}

var (
	guardAway     = gauge("weir_guard_away", "1 while the engine is away and the policy answers.")
	guardOutages  = counter("weir_guard_outages_total", "How often the engine has gone.")
	guardFailures = counter("weir_guard_failures_total", "Calls of the engine that failed.")
	guardAnswers  = counter("weir_guard_answers_total", "Calls that a policy answered.", "policy")
	guardHanging  = gauge("weir_guard_hanging", "Calls that their callers have left.")
	guardOwed     = gauge("weir_guard_owed_keys", "Keys with units to record at the engine.")
	guardQueued   = gauge("weir_guard_queued", "Settlements to make at the engine.")
	guardRecorded = counter("weir_guard_recorded_units_total", "Units granted here that the engine has recorded.")
	guardLost     = counter("weir_guard_lost_units_total", "Units that the engine could not record, or that were not given back.")
	guardTrip     = gauge("weir_guard_round_trip_seconds", "Average round trip to the engine.")
	guardHasty    = gauge("weir_guard_deadline_too_short", "1 if the deadline is below three round trips.")

	prefetchOut      = gauge("weir_prefetch_units", "Units taken ahead that are not used.")
	prefetchKeys     = gauge("weir_prefetch_keys", "Keys that are looked at.")
	prefetchTakes    = counter("weir_prefetch_takes_total", "Takes by decider: prefetch or engine.", "by")
	prefetchReturned = counter("weir_prefetch_returned_units_total", "Units taken ahead that went back.")
	prefetchLost     = counter("weir_prefetch_lost_units_total", "Units taken ahead that did not go back.")

	denied = counter("weir_deny_until_refusals_total", "Refusals that were repeated in process.")

	shadowDecisions = counter("weir_shadow_decisions_total", "Decisions of a shadow, by how it differs: same, stricter or looser.", "rule", "difference")
	shadowErrors    = counter("weir_shadow_errors_total", "Decisions of a shadow that failed.")
	shadowDropped   = counter("weir_shadow_dropped_total", "Calls without a shadow, because too many waited.")

	all = []value{guardAway, guardOutages, guardFailures, guardAnswers, guardHanging, guardOwed, guardQueued, guardRecorded, guardLost, guardTrip, guardHasty,
		prefetchOut, prefetchKeys, prefetchTakes, prefetchReturned, prefetchLost, denied, shadowDecisions, shadowErrors, shadowDropped}
)

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.decisions.Describe(to)
	m.refusals.Describe(to)
	m.thresholds.Describe(to)
	m.bans.Describe(to)
	m.durations.Describe(to)
	for _, v := range all {
		to <- v.desc
	}
}

// Collect sends the values of all metrics.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.decisions.Collect(to)
	m.refusals.Collect(to)
	m.thresholds.Collect(to)
	m.bans.Collect(to)
	m.durations.Collect(to)
	m.mu.Lock()
	watched := append([]weir.Engine(nil), m.watched...)
	m.mu.Unlock()
	for _, e := range watched {
		collectLayers(to, e)
	}
}

func collectLayers(to chan<- prometheus.Metric, e weir.Engine) {
	if g, ok := weir.Find[*layer.Guarded](e); ok {
		collectGuard(to, g.Stats())
	}
	if l, ok := weir.Find[*layer.Prefetched](e); ok {
		s := l.Stats()
		prefetchOut.is(to, float64(s.Out))
		prefetchKeys.is(to, float64(s.Keys))
		prefetchTakes.is(to, float64(s.Here), "prefetch")
		prefetchTakes.is(to, float64(s.Asked), "engine")
		prefetchReturned.is(to, float64(s.Returned))
		prefetchLost.is(to, float64(s.Lost))
	}
	if d, ok := weir.Find[*layer.Denier](e); ok {
		denied.is(to, float64(d.Refused()))
	}
	if s, ok := weir.Find[*layer.Shadowed](e); ok {
		stats := s.Stats()
		shadowErrors.is(to, float64(stats.Errors))
		shadowDropped.is(to, float64(stats.Dropped))
		for _, r := range stats.Rules {
			shadowDecisions.is(to, float64(r.Decisions-r.Stricter-r.Looser), r.Rule, "same")
			shadowDecisions.is(to, float64(r.Stricter), r.Rule, "stricter")
			shadowDecisions.is(to, float64(r.Looser), r.Rule, "looser")
		}
	}
}

func collectGuard(to chan<- prometheus.Metric, s layer.GuardStats) {
	guardAway.is(to, truth(s.Away))
	guardOutages.is(to, float64(s.Opened))
	guardFailures.is(to, float64(s.Failures))
	guardAnswers.is(to, float64(s.Denied), "deny")
	guardAnswers.is(to, float64(s.Local), "local")
	guardAnswers.is(to, float64(s.Allowed), "allow")
	guardHanging.is(to, float64(s.Hanging))
	guardOwed.is(to, float64(s.Owed))
	guardQueued.is(to, float64(s.Queued))
	guardRecorded.is(to, float64(s.Recorded))
	guardLost.is(to, float64(s.Lost))
	guardTrip.is(to, s.RoundTrip.Seconds())
	guardHasty.is(to, truth(s.DeadlineTooShort))
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
