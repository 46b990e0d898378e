// Package promlimit makes Prometheus metrics of what an engine decides, and of the layers around it.
//
//	metrics := promlimit.New()
//	registry.MustRegister(metrics)
//	engine, err = metrics.Observe(engine)
//
// docs/metrics.md lists the metrics. A rule or limit is a label, a key never is: up to 1,000 rules and limits have names of
// their own, and the others share the name "other".
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
	decisions, refusals, thresholds *prometheus.CounterVec
	durations                       *prometheus.HistogramVec

	mu      sync.Mutex
	names   map[string]bool
	watched []weir.Engine
}

// mostNames bounds the names of rules and limits.
const mostNames = 1000

// buckets are powers of 4, from a decision in memory to one that times out.
var buckets = prometheus.ExponentialBuckets(1e-6, 4, 11)

// New returns metrics without values.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		decisions:  counter("weir_decisions_total", "Decisions by result: admitted, refused, away or error.", "rule", "result"),
		refusals:   counter("weir_refusals_total", "Refusals by the limit that refused.", "rule", "limit"),
		thresholds: counter("weir_thresholds_total", "Decisions by which a key reached 80 or 100 per cent of a limit.", "rule", "percent"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_decision_duration_seconds", Help: "Duration of decisions.", Buckets: buckets}, []string{"rule"}),
		names: map[string]bool{},
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

// Decided counts an observation, for layer.ObserveOptions.
func (m *Metrics) Decided(_ context.Context, o layer.Observation) {
	rule, calls := m.name(o.Rule), float64(o.Calls)
	m.decisions.WithLabelValues(rule, o.Result()).Add(calls)
	m.durations.WithLabelValues(rule).Observe(o.Took.Seconds())
	if o.Limit != "" {
		m.refusals.WithLabelValues(rule, m.name(o.Limit)).Add(calls)
	}
	if o.Threshold > 0 {
		m.thresholds.WithLabelValues(rule, strconv.Itoa(o.Threshold)).Add(calls)
	}
}

// name returns a name, or "other" if there are too many.
func (m *Metrics) name(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.names[name] {
		if len(m.names) >= mostNames {
			return "other"
		}
		m.names[name] = true
	}
	return name
}
