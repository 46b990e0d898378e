package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirflow/weir/layer"
)

// Counts are the decisions of a rule, as /metrics has them.
type Counts struct {
	Admitted, Refused uint64
	Takes             uint64 // calls that it has admitted, even where another rule of the call bound
	// Candidate and Shadow have its decisions beside those in force; nil without one.
	Candidate, Shadow *Differences
}

// Differences are decisions of a candidate or shadow, by how they differ from those in force.
type Differences struct {
	Same     uint64 `json:"same"`
	Stricter uint64 `json:"stricter"`
	Looser   uint64 `json:"looser"`
	Error    uint64 `json:"error"`
}

// Histogram has the number of decisions up to each duration in seconds, and in all.
type Histogram struct {
	UpTo  map[float64]uint64
	Count uint64
}

// Figures are read from the metrics.
type Figures struct {
	Rules map[string]*Counts // by name; those without a series of their own are under "other"
	Took  Histogram          // of all rules; without UpTo unless it was asked for
}

// Figures returns what /metrics would say at the moment. The durations are there only if they are asked for.
func (m *Metrics) Figures(durations bool) Figures {
	f := Figures{Rules: map[string]*Counts{}}
	if durations {
		f.Took.UpTo = map[float64]uint64{}
	}
	read := func(one prometheus.Metric, add func(*dto.Metric)) {
		var d dto.Metric
		if one.Write(&d) == nil {
			add(&d)
		}
	}
	each(m.decisions, func(one prometheus.Metric) {
		switch {
		case one.Desc() == m.described[decisionsName]:
			read(one, f.decided)
		case durations && one.Desc() == m.described[durationsName]:
			read(one, f.took)
		}
	})
	for name, calls := range m.Top.Beside() {
		f.counts(name).Takes += calls
	}
	each(m.differences, func(one prometheus.Metric) { read(one, f.differed) })
	return f
}

// The names of the metrics that become figures.
const (
	decisionsName = "weir_decisions_total"
	durationsName = "weir_decision_duration_seconds"
)

// describe finds the descriptions of the metrics that become figures.
func (m *Metrics) describe() {
	m.described = map[string]*prometheus.Desc{}
	to := make(chan *prometheus.Desc)
	go func() { m.decisions.Describe(to); close(to) }()
	for d := range to {
		for _, name := range []string{decisionsName, durationsName} {
			if strings.Contains(d.String(), `"`+name+`"`) {
				m.described[name] = d
			}
		}
	}
}

// each calls use with each metric of a collector.
func each(c prometheus.Collector, use func(prometheus.Metric)) {
	to := make(chan prometheus.Metric, 256)
	go func() { c.Collect(to); close(to) }()
	for one := range to {
		use(one)
	}
}

// of returns the counts of the rule in a label.
func (f *Figures) of(d *dto.Metric) (c *Counts, labels map[string]string) {
	labels = make(map[string]string, len(d.Label))
	for _, pair := range d.Label {
		labels[pair.GetName()] = pair.GetValue()
	}
	return f.counts(labels["rule"]), labels
}

// counts returns the counts of a rule.
func (f *Figures) counts(rule string) *Counts {
	c := f.Rules[rule]
	if c == nil {
		c = &Counts{}
		f.Rules[rule] = c
	}
	return c
}

func (f *Figures) decided(d *dto.Metric) {
	c, labels := f.of(d)
	switch n := uint64(d.GetCounter().GetValue()); labels["result"] {
	case "admitted":
		if c.Admitted += n; labels["reason"] == "" { // otherwise no engine was asked
			c.Takes += n
		}
	case "refused":
		c.Refused += n
	}
}

func (f *Figures) took(d *dto.Metric) {
	h := d.GetHistogram()
	f.Took.Count += h.GetSampleCount()
	for _, b := range h.Bucket {
		f.Took.UpTo[b.GetUpperBound()] += b.GetCumulativeCount()
	}
}

func (f *Figures) differed(d *dto.Metric) {
	c, labels := f.of(d)
	to := &c.Candidate
	if labels["as"] == "shadow" {
		to = &c.Shadow
	}
	if *to == nil {
		*to = &Differences{}
	}
	n := uint64(d.GetCounter().GetValue())
	switch labels["difference"] {
	case "same":
		(*to).Same += n
	case "stricter":
		(*to).Stricter += n
	case "looser":
		(*to).Looser += n
	case "error":
		(*to).Error += n
	}
}

// Follow has seen called for each decision in force, until it is called with nil. It must be fast, because callers wait for it.
func (m *Metrics) Follow(seen func(*layer.Observation)) {
	if seen == nil {
		m.followed.Store(nil)
		return
	}
	m.followed.Store(&seen)
}

// Version returns the version of the program and the revision of its source, as weir_build_info has them.
func Version() (version, revision string) {
	labels := buildLabels("")
	return labels["version"], labels["revision"]
}
