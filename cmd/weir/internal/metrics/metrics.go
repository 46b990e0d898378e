// Package metrics shows what a daemon decides, and how it is: as metrics of Prometheus, lists of heavy keys, traces, and a
// sample of the refusals in the log.
//
// [New] makes the metrics before the engine is open, so that the engine can report its calls to [Metrics.EngineCall]. Then
// [Metrics.Observe] puts itself around the engine, and [Metrics.HTTP] around the handler of the traffic. A scrape reads the
// rest from the [Sources] (sources.go). No key is ever a label, and the names of rules are bounded: docs/reference/metrics.md.
package metrics

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/notice"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/promlimit"
	"github.com/weirflow/weir/redislimit"
)

// Metrics are those of a daemon. They are safe for concurrent use.
type Metrics struct {
	Top    *top.Keys // the heavy keys of each rule
	Banned *Banned

	registry    *prometheus.Registry
	below       weir.Engine // the observed engine
	decisions   *promlimit.Metrics
	differences *prometheus.CounterVec
	besideBans  *prometheus.CounterVec
	told        *prometheus.CounterVec
	paid        *prometheus.CounterVec
	calls       *prometheus.CounterVec
	callTimes   prometheus.Histogram
	reloads     *prometheus.CounterVec
	http        requests
	refusals    refusals
	gone        map[string]bool                          // names of rules before the last reload
	traced      func(context.Context, layer.Observation) // nil without traces
	notices     *notice.Notices                          // nil without any
	described   map[string]*prometheus.Desc              // of the metrics that become Figures, by name
	followed    atomic.Pointer[func(*layer.Observation)] // nil while nobody does
}

// New returns metrics for an engine of a kind, memory or redis. Refusals are logged.
func New(engine string, log *slog.Logger) *Metrics {
	m := &Metrics{Top: top.New(), Banned: &Banned{}, registry: prometheus.NewRegistry(), decisions: promlimit.New(), http: newRequests(), refusals: newRefusals(log)}
	m.differences = counters("weir_beside_decisions_total", "Decisions of shadows and candidates beside those in force, by difference: same, stricter, looser, or error, also if too many were to be decided.", "rule", "as", "difference")
	m.besideBans = counters("weir_beside_bans_begun_total", "Bans that began for shadows and candidates, and refuse nobody.", "rule", "as")
	m.told = counters("weir_told_units_total", "Units of costs reported after the work, by outcome: counted, capped by the bound of one cost, or lost.", "rule", "outcome")
	m.paid = counters("weir_paid_for_total", "Requests to take that a rule paid for in place of another, by that other rule.", "rule", "asked")
	m.calls = counters("weir_engine_calls_total", "Calls of a shared engine, by outcome: ok, or the failure.", "outcome")
	m.calls.WithLabelValues(outcomeOK) // also of a daemon that has made none
	m.callTimes = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_engine_call_duration_seconds", Help: "Duration of the calls of a shared engine.",
		Buckets: prometheus.ExponentialBuckets(64e-6, 4, 9)})
	m.reloads = counters("weir_rules_reloads_total", "Reloads of rules files, by result: ok or failed.", "result")
	for _, result := range []string{reloadOK, reloadFailed} {
		m.reloads.WithLabelValues(result)
	}
	m.describe()
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_build_info", Help: "1, with the version of the program and the kind of its engine.", ConstLabels: buildLabels(engine)})
	build.Set(1)
	m.registry.MustRegister(build, m.decisions, ruleCollector{m}, m.differences, m.besideBans, m.told, m.paid, m.calls, m.callTimes, m.reloads, m.http.counts, m.http.durations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func buildLabels(engine string) prometheus.Labels {
	labels := prometheus.Labels{"version": "devel", "revision": "", "go": runtime.Version(), "engine": engine}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return labels
	}
	if info.Main.Version != "" {
		labels["version"] = strings.Trim(info.Main.Version, "()")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			labels["revision"] = s.Value
		}
	}
	return labels
}

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError})
}

// Trace has decided called for each decision. Call it before the first one.
func (m *Metrics) Trace(decided func(context.Context, layer.Observation)) { m.traced = decided }

// Notice has notices see each decision, and adds their metrics. Call it before the first decision.
func (m *Metrics) Notice(n *notice.Notices) {
	m.registry.MustRegister(n)
	m.notices = n
}

// Observe returns the engine with its decisions counted.
func (m *Metrics) Observe(e weir.Engine) (weir.Engine, error) {
	m.decisions.Watch(e)
	m.below = e
	return layer.Observe(e, layer.ObserveOptions{Decided: m.decided})
}

// ObserveChains returns an engine over that of Observe with its decisions counted: one of each call, by the rule that paid.
func (m *Metrics) ObserveChains(e weir.Engine) (weir.Engine, error) {
	return layer.Observe(e, layer.ObserveOptions{Decided: m.decided})
}

// Peek looks at keys of the observed engine until the context ends, so that rules show how full their keys are before they refuse:
// see [top.Keys.Peek].
func (m *Metrics) Peek(ctx context.Context, away func() bool) { m.Top.Peek(ctx, m.below, away) }

// ObserveBeside returns the engine of shadows and candidates. Their decisions admit and refuse nobody, so Compared counts them.
func (m *Metrics) ObserveBeside(e weir.Engine) (weir.Engine, error) {
	return layer.Observe(e, layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { m.Top.SampleBeside(o) }})
}

// decided counts a decision on requests of callers. Rules whose names begin with a ~ are the daemon's own.
func (m *Metrics) decided(ctx context.Context, o layer.Observation) {
	if strings.HasPrefix(o.Rule, "~") {
		return
	}
	m.decisions.Decided(ctx, o)
	if m.traced != nil {
		m.traced(ctx, o)
	}
	if seen := m.followed.Load(); seen != nil {
		shown := o // so that an observation is on the heap only while somebody follows
		(*seen)(&shown)
	}
	if m.notices != nil {
		m.notices.Decided(&o)
	}
	if o.Decision.Cause == weir.ByBan || m.Banned.some.Load() {
		m.Banned.note(&o)
	}
	if m.Top.Sample(o) {
		m.refusals.log(ctx, o.Rule, o.Decision.Cause.String(), o.Limit, o.Key)
	}
}

// Judged counts a decision that rules in files made without an engine.
func (m *Metrics) Judged(ctx context.Context, rule string, allowed bool, reason rules.Reason) {
	m.decisions.Judged(rule, allowed, string(reason))
	if !allowed {
		m.refusals.log(ctx, rule, string(reason), "", "")
	}
}

// Compared counts a decision of a shadow or candidate beside the one in force. A shadow would join the rules in force, and a
// candidate replace one of them.
func (m *Metrics) Compared(name string, inForce, beside weir.Decision, err error) {
	rule, as, isCandidate := strings.Cut(name, "~") // no name in a file has one
	if !isCandidate {
		as = "shadow"
	}
	difference := "same"
	switch {
	case err != nil:
		difference = "error"
	case inForce.Allowed && !beside.Allowed:
		difference = "stricter"
	case !inForce.Allowed && beside.Allowed && as == "candidate" && inForce.Rule == rule: // otherwise another rule refuses
		difference = "looser"
	}
	m.differences.WithLabelValues(rule, as, difference).Inc()
	if beside.BanBegun {
		m.besideBans.WithLabelValues(rule, as).Inc()
	}
}

// Told counts the units of a cost that a caller reported after the work.
func (m *Metrics) Told(rule string, units int64, what decide.Told) {
	m.told.WithLabelValues(rule, string(what)).Add(float64(units))
}

// PaidBy counts a request that one rule paid for in place of another.
func (m *Metrics) PaidBy(asked, paid string) { m.paid.WithLabelValues(paid, asked).Inc() }

const outcomeOK = "ok"

// EngineCall counts a call of a shared engine, as redislimit.Options has it.
func (m *Metrics) EngineCall(_ context.Context, c redislimit.ScriptCall) {
	outcome := string(c.Outcome)
	if outcome == "" {
		outcome = outcomeOK
	}
	m.calls.WithLabelValues(outcome).Inc()
	m.callTimes.Observe(c.Took.Seconds())
}

const (
	reloadOK     = "ok"
	reloadFailed = "failed"
)

// Reloaded counts a reload, and drops the values of rules that are gone. Call it once the rules are in force, for one reload
// at a time.
func (m *Metrics) Reloaded(before, now *rules.Config, err error) {
	if err != nil {
		m.reloads.WithLabelValues(reloadFailed).Inc()
		return
	}
	kept, gone := namesOf(now), namesOf(before)
	maps.Copy(gone, m.gone) // a decision that was in flight at the reload before may have counted after it
	for name := range kept {
		delete(gone, name)
	}
	for name := range gone {
		m.decisions.Forget(name)
		m.Top.Forget(name)
		m.Banned.forget(name)
		m.refusals.forget(name)
		m.differences.DeletePartialMatch(prometheus.Labels{"rule": name})
		m.besideBans.DeletePartialMatch(prometheus.Labels{"rule": name})
		m.told.DeletePartialMatch(prometheus.Labels{"rule": name})
		m.paid.DeletePartialMatch(prometheus.Labels{"rule": name})
		m.paid.DeletePartialMatch(prometheus.Labels{"asked": name})
	}
	was, is := limitsOf(before), limitsOf(now)
	for name := range kept {
		if was[name] != is[name] {
			m.Top.Changed(name)
		}
	}
	m.gone = namesOf(before)
	m.reloads.WithLabelValues(reloadOK).Inc()
}

// limitsOf returns the limits of each rule as text, with those of its plans.
func limitsOf(c *rules.Config) map[string]string {
	all := map[string]string{}
	for _, limit := range c.Limits() {
		all[limit.Name()] += limit.String() + "\n"
	}
	return all
}

// namesOf returns the names of the rules, and their names in engines.
func namesOf(c *rules.Config) map[string]bool {
	names := map[string]bool{}
	for _, r := range c.Rules {
		names[r.Name] = true
	}
	for _, limit := range c.Limits() {
		names[limit.Name()] = true
	}
	return names
}
