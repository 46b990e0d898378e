package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
)

// Sources are what a scrape reads.
type Sources struct {
	Engine weir.Engine
	Desk   *decide.Desk
	Rules  *rulefiles.Set // nil without rules in files
	// Unready returns why the daemon wants no new work, or "".
	Unready func() string
	// Certificates returns the end of each certificate, by the flag that names its file.
	Certificates func() map[string]time.Time
	// CredentialsFail reports whether files of tokens or certificates have a problem.
	CredentialsFail func() bool
	// Daemons returns the number of daemons that share the engine: the one that local shares are divided by, and those
	// seen at the last look, or 0 if they are not counted. Nil without an engine that others may share.
	Daemons func() (peers, seen int)
	// Saved returns when the state was last saved, and whether the save after it failed. Nil without a file of the state.
	Saved func() (at time.Time, fails bool)
	// RecordFails reports whether the record cannot be written. Nil without one.
	RecordFails func() bool
	// Origin says where pushed rules come from. Nil, or returns nil, for other rules.
	Origin func() *xds.Origin
	// Overrides returns the number of keys with another limit in force.
	Overrides func() int
}

// Watch adds the sources to the metrics.
func (m *Metrics) Watch(s Sources) { m.registry.MustRegister(collector{s, m.Banned}) }

// value is a metric that is read from a source.
type value struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (v value) send(to chan<- prometheus.Metric, n float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(v.desc, v.kind, n, labels...)
}

func gauge(name, help string, labels ...string) value {
	return value{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) value {
	return value{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

var (
	ready    = gauge("weir_ready", "1 while the daemon wants new work, as /readyz says.")
	engineUp = gauge("weir_engine_up", "1 while the engine decides, 0 while it fails or a policy answers.")

	ruleNumber    = gauge("weir_rules", "Rules in force.")
	overrides     = gauge("weir_overrides", "Blocks, allows and limits of single keys or prefixes in force.")
	reloadFailing = gauge("weir_rules_reload_failing", "1 while the rules files have problems and the earlier rules stay in force.")

	planeConnected  = gauge("weir_control_plane_connected", "1 while the stream of the control plane is open.")
	planeAnswers    = counter("weir_control_plane_answers_total", "Answers of the control plane, by result: accepted, or refused for at least one resource.", "result")
	pushedAt        = gauge("weir_pushed_timestamp_seconds", "When the control plane pushed the rules in force, in seconds since 1970.")
	pushedResources = gauge("weir_pushed_resources", "Resources of the control plane in force.")
	pushedRefused   = gauge("weir_pushed_resources_refused", "Resources of the last answer that are not in force as pushed.")

	credentialsFailing = gauge("weir_credentials_reload_failing", "1 while files of tokens or certificates have problems and the earlier ones stay in use.")
	certificateEnds    = gauge("weir_certificate_expiry_timestamp_seconds", "When the first certificate in a file ends, by the flag that names the file.", "flag")

	savedAt     = gauge("weir_state_saved_timestamp_seconds", "When the state was last saved in the file of --state.")
	saveFailing = gauge("weir_state_save_failing", "1 while the file of --state cannot be saved; a restart would lose the decisions since the last save.")
	recordFails = gauge("weir_record_failing", "1 while the file of --record cannot be written and requests are missing in it.")

	peers       = gauge("weir_peers", "Number of daemons that --on-failure local divides a limit among.")
	daemonsSeen = gauge("weir_daemons_seen", "Daemons on the same Redis server at the last look, this one included.")

	keys     = gauge("weir_keys", "Keys with a state in memory, including idle ones that are not yet evicted.")
	shared   = gauge("weir_keys_shared", "States that keys share for lack of room.")
	mostKeys = gauge("weir_keys_max", "The bound on the keys of each limit.")
	bytes    = gauge("weir_state_bytes", "Memory of the states, without the entries of logs.")
	evicted  = counter("weir_keys_evicted_total", "Idle states that were evicted.")
	overflow = counter("weir_keys_overflow_total", "Requests decided on shared states.")

	banned  = gauge("weir_banned_keys", "Banned keys that this daemon has refused, by rule; up to 10,000.", "rule")
	unnoted = counter("weir_ban_refusals_unnoted_total", "Refusals that counted towards no ban, because the key had no room of its own, by rule.", "rule")

	waiting = gauge("weir_waiting_callers", "Waiting callers, by rule.", "rule")
	oldest  = gauge("weir_waiting_oldest_seconds", "The longest time that a waiting caller has waited, by rule.", "rule")
	waits   = counter("weir_waits_total", "Waits that have ended, by rule and end: granted, or the reason.", "rule", "end")

	values = []value{planeConnected, planeAnswers, pushedAt, pushedResources, pushedRefused, ready, engineUp, peers, daemonsSeen, ruleNumber, overrides, reloadFailing, credentialsFailing, certificateEnds, savedAt, saveFailing, recordFails, keys, shared, mostKeys, bytes, evicted, overflow, banned, unnoted, waiting, oldest, waits}
)

// collector reads the sources.
type collector struct {
	Sources
	banned *Banned
}

// Describe sends the descriptions of all values.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, v := range values {
		to <- v.desc
	}
}

// Collect sends the values.
func (c collector) Collect(to chan<- prometheus.Metric) {
	ready.send(to, truth(c.Unready() == ""))
	engineUp.send(to, truth(c.Desk.EngineFails() == ""))
	c.collectDaemons(to)
	c.collectRules(to)
	c.collectOrigin(to)
	c.collectCredentials(to)
	c.collectFiles(to)
	c.collectKeys(to)
	c.collectBans(to)
	c.collectWaiting(to)
}

func (c collector) collectDaemons(to chan<- prometheus.Metric) {
	if c.Daemons == nil {
		return
	}
	n, seen := c.Daemons()
	if peers.send(to, float64(n)); seen > 0 {
		daemonsSeen.send(to, float64(seen))
	}
}

func (c collector) collectRules(to chan<- prometheus.Metric) {
	failing := false
	if c.Rules != nil {
		last := c.Rules.Last()
		failing = last.Err != nil && last.Now != nil // otherwise changes go unnoticed
	}
	ruleNumber.send(to, float64(c.Desk.InForce().Number()))
	if c.Overrides != nil {
		overrides.send(to, float64(c.Overrides()))
	}
	reloadFailing.send(to, truth(failing))
}

func (c collector) collectOrigin(to chan<- prometheus.Metric) {
	if c.Origin == nil {
		return
	}
	o := c.Origin()
	if o == nil {
		return
	}
	planeConnected.send(to, truth(o.Connected))
	planeAnswers.send(to, float64(o.Accepted), "accepted")
	planeAnswers.send(to, float64(o.Refused), "refused")
	if !o.Pushed.IsZero() {
		pushedAt.send(to, float64(o.Pushed.Unix()))
	}
	pushedResources.send(to, float64(o.Resources))
	pushedRefused.send(to, float64(len(o.Bad)))
}

func (c collector) collectCredentials(to chan<- prometheus.Metric) {
	if c.Certificates == nil {
		return
	}
	credentialsFailing.send(to, truth(c.CredentialsFail()))
	for flag, end := range c.Certificates() {
		certificateEnds.send(to, float64(end.Unix()), flag)
	}
}

func (c collector) collectFiles(to chan<- prometheus.Metric) {
	if c.Saved != nil {
		at, fails := c.Saved()
		savedAt.send(to, float64(at.UnixMilli())/1000)
		saveFailing.send(to, truth(fails))
	}
	if c.RecordFails != nil {
		recordFails.send(to, truth(c.RecordFails()))
	}
}

func (c collector) collectKeys(to chan<- prometheus.Metric) {
	memory, ok := weir.Find[*weir.Memory](c.Engine)
	if !ok {
		return
	}
	s := memory.Stats()
	keys.send(to, float64(s.Keys))
	shared.send(to, float64(s.Shared))
	mostKeys.send(to, float64(s.MaxKeys))
	bytes.send(to, float64(s.Bytes))
	evicted.send(to, float64(s.Evicted))
	overflow.send(to, float64(s.Overflow))
}

// collectBans sends how many keys of each rule are banned. Rules are bounded as those of package promlimit are.
func (c collector) collectBans(to chan<- prometheus.Metric) {
	for rule, n := range c.banned.counts() {
		banned.send(to, float64(n), rule)
	}
	memory, ok := weir.Find[*weir.Memory](c.Engine)
	if !ok {
		return
	}
	sent := 0
	for _, r := range memory.Stats().Rules {
		if r.Unnoted > 0 && sent < mostLines {
			unnoted.send(to, float64(r.Unnoted), r.Rule)
			sent++
		}
	}
}

// mostLines bounds the rules whose waiting callers are shown.
const mostLines = 1000

func (c collector) collectWaiting(to chan<- prometheus.Metric) {
	s := c.Desk.Waiting()
	sent := 0
	for _, line := range s.Rules {
		if line.Callers == 0 && line.Granted == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(line.Refused)), func(n uint64) bool { return n > 0 }) {
			continue // nobody has waited
		}
		if sent++; sent > mostLines {
			return
		}
		waiting.send(to, float64(line.Callers), line.Rule)
		oldest.send(to, line.Oldest, line.Rule)
		waits.send(to, float64(line.Granted), line.Rule, "granted")
		for reason, n := range line.Refused {
			waits.send(to, float64(n), line.Rule, reason)
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
