package algorithm

// Nginx is the arithmetic of ngx_http_limit_req_module, bit for bit: whole milliseconds, thousandths of requests, and
// its three truncations. The module counts single requests; a cost of n is n requests at one instant, all or none.
// State: A is the millisecond of the last admitted request, B the excess after it in thousandths, and C is 1 after
// the first request.
type Nginx struct {
	Plain
	rate  int64 // thousandths of a request per second
	burst int64 // thousandths
	delay int64 // thousandths of excess that pass at once; negative means all
}

// NewNginx returns a limit of rate requests per second or per minute. A negative delay means nodelay.
func NewNginx(rate int64, perMinute bool, burst, delay int64) *Nginx {
	seconds := int64(1)
	if perMinute {
		seconds = 60
	}
	return &Nginx{rate: rate * thousandths / seconds, burst: burst * thousandths, delay: delay * thousandths}
}

const (
	thousandths = 1000 // in a request
	millisecond = 1_000_000
	backMost    = -60000 // ms; a clock set back further starts afresh
	maxExcess   = maxUnits * thousandths
)

// Wait returns the time to the first millisecond when n requests fit.
func (x *Nginx) Wait(s State, now, n int64) int64 {
	room := x.burst - (n-1)*thousandths
	if excess, _ := x.Excess(s, now); excess <= room {
		return 0
	}
	// drained, which is rate × elapsed / 1000 rounded down, must reach lacking.
	lacking := subSat(s.B, room-thousandths)
	elapsed := mul(lacking, thousandths).ceilDiv(x.rate)
	return mul(s.A, millisecond).add(mul(elapsed, millisecond)).sub(mul(now, 1)).ceilDiv(1)
}

// Take adds n requests to the excess even if they do not fit.
func (x *Nginx) Take(s State, now, n int64) State {
	excess, elapsed := x.Excess(s, now)
	if s.C == 0 || elapsed != 0 {
		s.A = milliseconds(now)
	}
	s.B, s.C = min(AddSaturating(excess, min(n-1, maxUnits)*thousandths), maxExcess), 1
	return s
}

// Give subtracts n requests from the excess.
func (x *Nginx) Give(s State, _, n int64) State {
	s.B = max(s.B-min(n, maxUnits)*thousandths, 0)
	return s
}

// Room returns the number of requests that fit at this instant.
func (x *Nginx) Room(s State, now int64) int64 {
	excess, _ := x.Excess(s, now)
	return max(x.burst-excess+thousandths, 0) / thousandths
}

// Delay returns how long the last admitted request is held back, from its admission.
func (x *Nginx) Delay(s State, _ int64) int64 {
	if x.delay < 0 || s.B <= x.delay {
		return 0
	}
	return mul(s.B-x.delay, thousandths).floorDiv(x.rate) * millisecond
}

// Excess returns the excess after one more request, in thousandths, which the module compares with the burst, and the
// milliseconds since the last admitted request.
func (x *Nginx) Excess(s State, now int64) (excess, elapsed int64) {
	if s.C == 0 {
		return 0, 0
	}
	elapsed = subSat(milliseconds(now), s.A)
	if elapsed < backMost {
		elapsed = 1
	}
	elapsed = max(elapsed, 0)
	drained := mul(x.rate, elapsed).floorDiv(thousandths)
	return max(subSat(s.B, drained)+thousandths, 0), elapsed
}

// Fresh returns the state of a key without requests.
func (x *Nginx) Fresh() State { return State{} }

// Capacity returns the burst plus one request.
func (x *Nginx) Capacity() int64 { return x.burst/thousandths + 1 }

// Solitary returns true: a delay of one limit does not delay the requests of another.
func (x *Nginx) Solitary() bool { return true }

func milliseconds(now int64) int64 {
	ms, _ := floorDivMod(now, millisecond)
	return ms
}
