package simulate

import (
	"math/bits"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// serve passes the starts, in order, through one server, and returns the latency of each request, sorted: from its
// first attempt to the end of its service. Requests queue for the server without a bound.
func serve(r weir.Rate, starts []start, series *Series) []time.Duration {
	latencies := make([]time.Duration, len(starts))
	free := int64(0)
	for i, s := range starts {
		begin := max(free, s.at)
		if begin > s.at {
			series.queue(uint64(s.at), 1)
			series.queue(uint64(begin), -1)
		}
		free = later(begin, service(r, s.cost))
		latencies[i] = time.Duration(later(free-s.at, s.waited))
	}
	slices.Sort(latencies)
	return latencies
}

// service returns how long a request of this cost takes: cost / rate, rounded up.
func service(r weir.Rate, cost uint32) int64 {
	high, low := bits.Mul64(uint64(cost), uint64(r.Period))
	if high >= uint64(r.Count) {
		return int64(weir.MaxPeriod)
	}
	q, rest := bits.Div64(high, low, uint64(r.Count))
	if rest > 0 {
		q++
	}
	return int64(min(q, uint64(weir.MaxPeriod)))
}
