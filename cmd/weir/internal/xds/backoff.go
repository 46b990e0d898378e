package xds

import (
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait before the next attempt, as envoyproxy/ratelimit does: Initial times Factor to the power of
// the attempts before, from Initial to Max. With Jitter it is a random time between Initial and that.
type Backoff struct {
	Initial, Max time.Duration
	Factor       float64
	Jitter       bool
}

// The values in place of those that are not above 0.
const (
	leastInitial  = 100 * time.Millisecond
	leastMax      = 10 * time.Second
	defaultFactor = 2
)

// After returns the wait after a number of attempts. Random is in [0, 1).
func (b Backoff) After(attempts int, random float64) time.Duration {
	least, most, factor := b.Initial, b.Max, b.Factor
	if least <= 0 {
		least = leastInitial
	}
	if most <= 0 {
		most = leastMax
	}
	if factor <= 0 {
		factor = defaultFactor
	}
	wait := float64(least) * math.Pow(factor, float64(attempts))
	if b.Jitter {
		wait = float64(least) + random*(wait-float64(least))
	}
	if least >= most || wait > float64(most) {
		return most
	}
	return max(least, time.Duration(wait))
}

// attempts waits between attempts.
type attempts struct {
	Backoff
	made int
}

func (a *attempts) next() time.Duration {
	wait := a.After(a.made, rand.Float64())
	a.made++
	return wait
}

// jittered returns a duration that differs by up to half.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + rand.Float64()))
}
