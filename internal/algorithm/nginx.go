package algorithm

// Nginx is the arithmetic of ngx_http_limit_req_module to the bit: whole
// milliseconds, thousandths of requests, and its three truncations. It is a
// dialect of LeakyBucket and not an Algorithm: a request costs 1, and its answer
// has an excess instead of a remainder.
type Nginx struct {
	rate  int64 // thousandths of a request per second
	burst int64 // thousandths
	delay int64 // thousandths of excess that pass at once; negative for all
}

// NginxState is what a key has: its excess when last admitted. The zero value
// is a key never seen.
type NginxState struct {
	seen   bool
	excess int64
	last   int64 // ms
}

// NewNginx makes a limit of so many requests in each second, or in each minute.
// A negative delay is nodelay.
func NewNginx(rate int64, perMinute bool, burst, delay int64) *Nginx {
	seconds := int64(1)
	if perMinute {
		seconds = 60
	}
	return &Nginx{rate: rate * thousandths / seconds, burst: burst * thousandths, delay: delay * thousandths}
}

const (
	thousandths = 1000   // of a request
	backMost    = -60000 // ms; a clock set back further starts anew
)

// Take admits a request at now, in ms, or refuses it and leaves s as it was.
// The delay is in ms.
func (x *Nginx) Take(s NginxState, now int64) (after NginxState, allowed bool, excess, delay int64) {
	if !s.seen {
		return NginxState{seen: true, last: now}, true, 0, 0
	}
	elapsed := subSat(now, s.last)
	if elapsed < backMost {
		elapsed = 1
	}
	elapsed = max(elapsed, 0)
	drained := mul(x.rate, elapsed).floorDiv(thousandths)
	excess = max(subSat(s.excess, drained)+thousandths, 0)
	if excess > x.burst {
		return s, false, excess, 0
	}
	s.excess = excess
	if elapsed != 0 {
		s.last = now
	}
	return s, true, excess, x.delayOf(excess)
}

func (x *Nginx) delayOf(excess int64) int64 {
	if x.delay < 0 || excess <= x.delay {
		return 0
	}
	return mul(excess-x.delay, thousandths).floorDiv(x.rate)
}
