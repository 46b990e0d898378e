package weir

import (
	"fmt"
	"strconv"
	"strings"
)

// limitOf is a limit whose identity and capacity are these. It has the states of
// all limits of the identity: what it finds idle, they do. Only of a cycle the
// capacity matters for that.
func limitOf(identity string, capacity int64) (Limit, error) {
	kind, window, _ := strings.Cut(identity, "/")
	period, phase, _ := strings.Cut(window, "+")
	rate := Rate{Count: capacity, Period: MaxPeriod}
	if window != "" {
		rate.Period, _ = parsePeriod(period)
	}
	var limit Limit
	switch kind {
	case "token bucket":
		limit = TokenBucket{Rate: PerSecond(1), Burst: capacity}
	case "leaky bucket":
		limit = LeakyBucket{Rate: PerSecond(1), Queue: capacity - 1}
	case "fixed window":
		limit = FixedWindow{Rate: rate}
	case "sliding window":
		limit = SlidingWindow{Rate: rate}
	case "sliding log":
		limit = SlidingLog{Rate: rate}
	case "rate gate":
		limit = RateGate{Rate: rate}
	case "cycle":
		origin, _ := parseDuration(phase)
		limit = Cycle{Rate: rate, Origin: origin}
	case "concurrency":
		limit = Concurrency{Slots: capacity}
	default:
		return nil, fmt.Errorf("%q is no limit known here", identity)
	}
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	if limit.identity() != identity || limit.algorithm().Capacity() != capacity {
		return nil, fmt.Errorf("%q with a capacity of %d is no limit", identity, capacity)
	}
	return limit, nil
}

// isOrdinal says that text is the number of a limit among its equals in a rule.
func isOrdinal(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n < maxLimits && strconv.Itoa(n) == text
}
