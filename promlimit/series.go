package promlimit

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// ruleSeries are the values of a rule, at hand: a lookup by labels for each decision would cost more than the rest.
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

// The results of decisions. A refusal by a count or a gap has that reason.
const (
	admitted = iota
	refused
	byCount
	byGap
	away
	failed
	results
)

var resultNames = [results][2]string{
	admitted: {"admitted", ""}, refused: {"refused", ""}, byCount: {"refused", weir.ByCount.String()}, byGap: {"refused", weir.ByGap.String()},
	away: {"away", ""}, failed: {"error", ""},
}

func resultOf(o *layer.Observation) int {
	switch {
	case o.Err == nil && o.Decision.Allowed:
		return admitted
	case o.Err == nil:
		return min(refused+int(o.Decision.Cause), byGap)
	case weir.Unavailable(o.Err):
		return away
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
