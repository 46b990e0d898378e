package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	ruleTakes   = counter("weir_rule_takes_total", "Calls that a rule has admitted, even where another rule of the call bound.", "rule")
	ruleFullest = gauge("weir_rule_fullest_key_ratio", "Part of the limit that the fullest known key of a rule has used, by samples.", "rule")
)

// ruleCollector tells the takes of each rule, and how full its fullest key is. No key is a label.
type ruleCollector struct{ *Metrics }

// Describe sends the descriptions of the values.
func (c ruleCollector) Describe(to chan<- *prometheus.Desc) {
	to <- ruleTakes.desc
	to <- ruleFullest.desc
}

// Collect sends the values.
func (c ruleCollector) Collect(to chan<- prometheus.Metric) {
	for rule, counts := range c.Figures(false).Rules {
		if counts.Takes > 0 {
			ruleTakes.send(to, float64(counts.Takes), rule)
		}
	}
	for rule, key := range c.Top.Fullests() {
		ruleFullest.send(to, key.Share(), rule)
	}
}
