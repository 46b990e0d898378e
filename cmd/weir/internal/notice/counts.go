package notice

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what became of notices.
type counts struct {
	told     atomic.Uint64 // events
	unlooked atomic.Uint64 // looks without room, or without an answer
	unlogged atomic.Uint64 // events since the last line of the log
}

var (
	events  = prometheus.NewDesc("weir_notify_events_total", "Events of --notify, by outcome: told in the log, sent to the webhook, failed there, or full: dropped because too many waited.", []string{"outcome"}, nil)
	waiting = prometheus.NewDesc("weir_notify_events_waiting", "Events that wait for the webhook of --notify.", nil, nil)
	missed  = prometheus.NewDesc("weir_notify_looks_missed_total", "Looks at keys near a threshold that found no room or no answer, so that an event may be late or missing.", nil, nil)
)

var _ prometheus.Collector = (*Notices)(nil)

// Describe sends the descriptions of all metrics.
func (n *Notices) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{events, waiting, missed} {
		to <- d
	}
}

// Collect sends the metrics.
func (n *Notices) Collect(to chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	counter(events, n.counts.told.Load(), "told")
	counter(missed, n.counts.unlooked.Load())
	if h := n.options.Hook; h != nil {
		counter(events, h.sent.Load(), "sent")
		counter(events, h.failed.Load(), "failed")
		counter(events, h.full.Load(), "full")
		to <- prometheus.MustNewConstMetric(waiting, prometheus.GaugeValue, float64(len(h.queue)))
	}
}
