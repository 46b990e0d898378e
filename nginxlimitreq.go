package weir

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// NginxLimitReq is nginx's limit_req to the bit, its rounding included: for
// those who replace or predict that proxy. It counts thousandths of requests in
// whole milliseconds; 1 r/m is 16 thousandths a second, 4 % slower than it
// says. A [LeakyBucket] is the same limit without rounding, and the one to hold
// over an engine: this dialect is only for a [NginxLimiter].
type NginxLimitReq struct {
	Rate    Rate  // per second or per minute
	Burst   int64 // requests in excess of the rate that are not refused
	Delay   int64 // requests in excess that pass at once
	NoDelay bool  // all of them do; Delay is 0 then
}

// maxNginxCount keeps every delay within a Duration.
const maxNginxCount = 100_000_000

// Validate reports every field that is out of bounds.
func (l NginxLimitReq) Validate() error {
	name := "nginx limit_req " + l.Rate.String()
	var period, delay error
	if l.Rate.Period != time.Second && l.Rate.Period != time.Minute {
		period = &LimitError{Limit: name, Field: "period", Reason: spokenDuration(l.Rate.Period) + " is not a second or a minute"}
	}
	if l.NoDelay && l.Delay != 0 {
		delay = &LimitError{Limit: name, Field: "delay", Reason: fmt.Sprintf("%d is not 0, as no delay needs", l.Delay)}
	}
	return joined(l.Rate.check(name), period, delay,
		bounded(name, "rate", l.Rate.Count, 1, maxNginxCount),
		bounded(name, "burst", l.Burst, 0, maxNginxCount),
		bounded(name, "delay", l.Delay, 0, maxNginxCount))
}

// NginxDecision is what nginx finds about a request.
type NginxDecision struct {
	Allowed bool
	Excess  int64         // thousandths of requests above the rate
	Delay   time.Duration // before the request is passed on
}

// NginxLimiter limits one key as nginx does. Make it with NewNginxLimiter.
type NginxLimiter struct {
	mu    sync.Mutex
	limit *algorithm.Nginx
	state algorithm.NginxState
}

// NewNginxLimiter makes a limiter that has seen no request. Its errors are
// *LimitError values joined.
func NewNginxLimiter(limit NginxLimitReq) (*NginxLimiter, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	delay := limit.Delay
	if limit.NoDelay {
		delay = -1
	}
	perMinute := limit.Rate.Period == time.Minute
	return &NginxLimiter{limit: algorithm.NewNginx(limit.Rate.Count, perMinute, limit.Burst, delay)}, nil
}

// TakeAt decides a request at t, of which whole milliseconds count.
func (l *NginxLimiter) TakeAt(t time.Time) NginxDecision {
	l.mu.Lock()
	defer l.mu.Unlock()
	var d NginxDecision
	var ms int64
	l.state, d.Allowed, d.Excess, ms = l.limit.Take(l.state, t.UnixMilli())
	d.Delay = time.Duration(ms) * time.Millisecond
	return d
}
