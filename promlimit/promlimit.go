// Package promlimit makes Prometheus metrics of an engine's decisions, and of the layers around it.
//
//	metrics := promlimit.New()
//	registry.MustRegister(metrics)
//	engine, err = metrics.Observe(engine)
//
// docs/reference/metrics.md lists the metrics. Rules and limits are labels; keys never are. Up to 1,000 rules, and 32
// limits of each, have names of their own. The others share the name "other".
package promlimit

import (
	"context"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Metrics are a prometheus.Collector. They are safe for concurrent use.
type Metrics struct {
	decisions, refusals, thresholds, bans *prometheus.CounterVec
	durations                             *prometheus.HistogramVec
	rules                                 sync.Map // *ruleSeries, by name

	mu      sync.Mutex
	named   int // of rules
	watched []weir.Engine
}

// The bounds of labels, and the name that the others share.
const (
	mostRules  = 1000
	mostLimits = 32 // limits of a rule
	other      = "other"
)

// buckets are powers of 4, from a decision in memory to one that times out.
var buckets = prometheus.ExponentialBuckets(1e-6, 4, 11)

// New returns metrics without values.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		decisions:  counter("weir_decisions_total", "Decisions by result (admitted, refused, away, left or error) and by the reason of a refusal.", "rule", "result", "reason"),
		refusals:   counter("weir_refusals_total", "Refusals by the limit that refused.", "rule", "limit"),
		bans:       counter("weir_bans_begun_total", "Bans that began.", "rule"),
		thresholds: counter("weir_thresholds_total", "Decisions by which a key reached 80 or 100 per cent of a limit.", "rule", "percent"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_decision_duration_seconds", Help: "Duration of decisions.", Buckets: buckets}, []string{"rule"}),
	}
}

// Observe returns the engine with its decisions counted, and watches the layers below.
func (m *Metrics) Observe(e weir.Engine) (weir.Engine, error) {
	observed, err := layer.Observe(e, layer.ObserveOptions{Decided: m.Decided})
	if err == nil {
		m.Watch(e)
	}
	return observed, err
}

// Watch adds the counts of the layers of an engine. A metric has one value, so watch each kind of layer once.
func (m *Metrics) Watch(e weir.Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched = append(m.watched, e)
}

// Decided counts an observation, for layer.ObserveOptions. A peek decides nothing, and is not counted.
func (m *Metrics) Decided(_ context.Context, o layer.Observation) {
	if o.Op == weir.OpPeek {
		return
	}
	s, calls := m.series(o.Rule), float64(o.Calls)
	s.counter(m, &o).Add(calls)
	s.took.Observe(o.Took.Seconds())
	if o.Limit != "" {
		s.refusalsBy(m, o.Limit).Add(calls)
	}
	if o.Decision.BanBegun {
		m.bans.WithLabelValues(s.name).Inc()
	}
	if o.Threshold > 0 {
		m.thresholds.WithLabelValues(s.name, strconv.Itoa(o.Threshold)).Add(calls)
	}
}

// Judged counts a decision that a program made without an engine, such as one by a list of denied keys.
func (m *Metrics) Judged(rule string, allowed bool, reason string) {
	result := "refused"
	if allowed {
		result = "admitted"
	}
	m.decisions.WithLabelValues(m.series(rule).name, result, reason).Inc()
}

// Forget drops the values of a rule that a program no longer has, and makes room for another. If the rule decides again,
// its counts begin at 0.
func (m *Metrics) Forget(rule string) {
	if _, known := m.rules.Load(rule); !known || rule == other {
		return
	}
	// The lookup goes last, so that no decision counts in values that are gone for longer than this. No decision waits meanwhile.
	labels := prometheus.Labels{"rule": rule}
	m.decisions.DeletePartialMatch(labels)
	m.refusals.DeletePartialMatch(labels)
	m.thresholds.DeletePartialMatch(labels)
	m.bans.DeletePartialMatch(labels)
	m.durations.DeletePartialMatch(labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.rules.LoadAndDelete(rule); known {
		m.named--
	}
}

// ruleSeries are the values of a rule, ready: a lookup by labels for each decision would cost more than the rest.
type ruleSeries struct {
	name    string // that of the rule, or other
	took    prometheus.Observer
	results [results]struct {
		once    sync.Once
		counter prometheus.Counter
	}

	mu     sync.Mutex
	limits map[string]prometheus.Counter
}

// The results of decisions. A refusal by a count, a gap or a ban has that reason.
const (
	admitted = iota
	refused
	byCount
	byGap
	byBan
	away
	left
	failed
	results
)

var resultNames = [results][2]string{
	admitted: {"admitted", ""}, refused: {"refused", ""}, byCount: {"refused", weir.ByCount.String()}, byGap: {"refused", weir.ByGap.String()},
	byBan: {"refused", weir.ByBan.String()},
	away:  {"away", ""}, left: {"left", ""}, failed: {"error", ""},
}

func resultOf(o *layer.Observation) int {
	switch {
	case o.Err == nil && o.Decision.Allowed:
		return admitted
	case o.Err == nil:
		return min(refused+int(o.Decision.Cause), byBan)
	case weir.Unavailable(o.Err):
		return away
	case o.Left:
		return left
	}
	return failed
}

// series returns the values of a rule.
func (m *Metrics) series(rule string) *ruleSeries {
	if s, known := m.rules.Load(rule); known {
		return s.(*ruleSeries)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.rules.Load(rule); !known && m.named >= mostRules {
		rule = other
	}
	if s, known := m.rules.Load(rule); known {
		return s.(*ruleSeries)
	}
	if rule != other {
		m.named++
	}
	s := &ruleSeries{name: rule, took: m.durations.WithLabelValues(rule), limits: map[string]prometheus.Counter{}}
	m.rules.Store(rule, s)
	return s
}

// counter returns the counter of the result of an observation.
func (s *ruleSeries) counter(m *Metrics, o *layer.Observation) prometheus.Counter {
	result := resultOf(o)
	r := &s.results[result]
	r.once.Do(func() {
		r.counter = m.decisions.WithLabelValues(s.name, resultNames[result][0], resultNames[result][1])
	})
	return r.counter
}

// refusalsBy returns the counter of refusals by a limit.
func (s *ruleSeries) refusalsBy(m *Metrics, limit string) prometheus.Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.limits) >= mostLimits && s.limits[limit] == nil {
		limit = other
	}
	if s.limits[limit] == nil {
		s.limits[limit] = m.refusals.WithLabelValues(s.name, limit)
	}
	return s.limits[limit]
}
