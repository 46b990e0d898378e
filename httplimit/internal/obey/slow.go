package obey

import "time"

// slowdown paces a client whose server refuses without saying when to come back: it cuts the measured rate, and lets
// it grow again.
type slowdown struct {
	rate, before float64   // after the cut, and measured before it, in requests a second; 0 if nothing is cut
	at           time.Time // time of the cut

	since    time.Time // the beginning of the measurement
	starts   float64   // requests since then
	measured float64   // in the measurement before
}

const (
	kept      = 0.7              // share of the measured rate
	leastRate = 0.5              // requests a second
	regrow    = 30 * time.Second // until the rate before the cut is reached again
	paced     = 2                // times the rate before the cut: above it, nothing is paced
	measure   = time.Second      // the shortest measurement
)

// started measures the rate of requests.
func (s *slowdown) started(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
	if passed := now.Sub(s.since); passed >= measure {
		s.measured, s.since, s.starts = s.starts/passed.Seconds(), now, 0
	}
	s.starts++
}

// cut lowers the rate after a refusal.
func (s *slowdown) cut(now time.Time) {
	rate := max(s.measured, s.starts/max(now.Sub(s.since), measure).Seconds())
	if s.active(now) {
		rate = min(rate, s.now(now))
	}
	s.rate, s.before, s.at = max(kept*rate, leastRate), max(rate, leastRate/kept), now
}

// now returns the rate at an instant. It grows by the same amount every second.
func (s *slowdown) now(now time.Time) float64 {
	return s.rate + (s.before-s.rate)*now.Sub(s.at).Seconds()/regrow.Seconds()
}

func (s *slowdown) active(now time.Time) bool { return s.rate > 0 && s.now(now) < paced*s.before }

// wait returns how long a request has to wait after the last one.
func (s *slowdown) wait(now, last time.Time) time.Duration {
	if s.rate == 0 {
		return 0
	}
	if !s.active(now) {
		s.rate = 0
		return 0
	}
	return last.Add(time.Duration(float64(time.Second) / s.now(now))).Sub(now)
}
