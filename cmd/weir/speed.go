package main

import "time"

// speed is how fast an amount grows.
type speed struct {
	begun  time.Time
	recent []tally // of the last few seconds
}

// tally is the amount done by an instant.
type tally struct {
	at     time.Time
	amount int64
}

// The current rate is the mean of about this time.
const recently = 5 * time.Second

// now returns the rate since the oldest of the recent tallies, of which it keeps about ten per second.
func (s *speed) now(now time.Time, amount int64) float64 {
	for len(s.recent) > 1 && now.Sub(s.recent[1].at) >= recently {
		s.recent = s.recent[1:]
	}
	from := tally{at: s.begun}
	if len(s.recent) > 0 && now.Sub(s.begun) > recently {
		from = s.recent[0]
	}
	if n := len(s.recent); n == 0 || now.Sub(s.recent[n-1].at) >= recently/50 {
		s.recent = append(s.recent, tally{now, amount})
	}
	return float64(amount-from.amount) / max(now.Sub(from.at).Seconds(), 1e-9)
}
