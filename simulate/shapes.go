package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// arrivals yields instants from 0 in order, until yield returns false. Only the random ones use the source.
type arrivals func(random *rand.Rand, yield func(time.Duration) bool)

// constant sends request i at i / rate.
func constant(r weir.Rate) arrivals {
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for i := int64(0); yield(tape.InstantOf(r, i)); i++ {
		}
	}
}

// poisson leaves an independent gap of -ln(1-u) / rate before each request, where u is uniform in 0 to 1.
func poisson(r weir.Rate) arrivals {
	mean := float64(r.Period) / float64(r.Count)
	return func(random *rand.Rand, yield func(time.Duration) bool) {
		for at := random.ExpFloat64() * mean; yield(tape.Nanoseconds(at)); {
			at += float64(random.ExpFloat64() * mean)
		}
	}
}

// burst sends requests at the rate for a while at the start of every cycle.
func burst(r weir.Rate, on, cycle time.Duration) arrivals {
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for start := time.Duration(0); ; start += cycle {
			for i := int64(0); tape.InstantOf(r, i) < on; i++ {
				if !yield(start + tape.InstantOf(r, i)) {
					return
				}
			}
		}
	}
}

// storm sends n requests at one instant.
func storm(n int64, at time.Duration) arrivals {
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for range n {
			if !yield(at) {
				return
			}
		}
	}
}

// ramp changes the rate evenly from one to another, and keeps the second one. Request i comes when the integral of
// the rate is i: with rates a and b and a length T that is at 2i / (a + sqrt(a² + 2i (b-a)/T)) until T.
func ramp(from, to weir.Rate, over time.Duration) arrivals {
	a, b, length := tape.PerNano(from), tape.PerNano(to), float64(over)
	slope, during := (b-a)/length, float64(a+b)/2*length
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for i := 0.0; ; i++ {
			at := length + (i-during)/b
			if i < during {
				at = 2 * i / (a + math.Sqrt(max(0, float64(a*a)+float64(2*i*slope))))
			}
			if !yield(tape.Nanoseconds(at)) {
				return
			}
		}
	}
}

// diurnal goes from one rate to the other and back in each cycle T:
// a + (b-a) (1 - cos(2πt/T)) / 2. Request i comes when the integral of the rate is i.
func diurnal(from, to weir.Rate, cycle time.Duration) arrivals {
	a, b, turn := tape.PerNano(from), tape.PerNano(to), 2*math.Pi/float64(cycle)
	return varying{
		least: min(a, b),
		rate:  func(t float64) float64 { return a + float64((b-a)*(1-math.Cos(turn*t))/2) },
		integral: func(t float64) float64 {
			return float64((a+b)/2*t) - float64((b-a)/2/turn*math.Sin(turn*t))
		},
	}.arrivals
}

// flash keeps a rate a until it jumps to b at an instant s. It then decays back with the time constant T:
// a + (b-a) exp(-(t-s)/T). Request i comes when the integral of the rate is i.
func flash(from, to weir.Rate, start, decay time.Duration) arrivals {
	a, b, s, length := tape.PerNano(from), tape.PerNano(to), float64(start), float64(decay)
	left := func(t float64) float64 { return math.Exp(-max(0, t-s) / length) }
	return varying{
		least: min(a, b),
		rate: func(t float64) float64 {
			if t < s {
				return a
			}
			return a + float64((b-a)*left(t))
		},
		integral: func(t float64) float64 { return float64(a*t) + float64((b-a)*length*(1-left(t))) },
	}.arrivals
}

// varying is a rate that depends on the time, in requests per nanosecond. It is never below least.
type varying struct {
	least          float64
	rate, integral func(t float64) float64
}

func (v varying) arrivals(_ *rand.Rand, yield func(time.Duration) bool) {
	at := 0.0
	for i := 0.0; ; i++ {
		at = v.solve(i, at)
		if !yield(tape.Nanoseconds(at)) {
			return
		}
	}
}

// solve returns the instant, not before from, when the integral is i. It uses Newton's method, and halves the
// bracket when a step would leave it.
func (v varying) solve(i, from float64) float64 {
	low, high := from, from+max(0, i-v.integral(from))/v.least
	at := from
	for range 100 {
		miss := v.integral(at) - i
		step := miss / v.rate(at)
		if math.Abs(step) < 0.25 {
			return max(from, at-step)
		}
		if miss > 0 {
			high = at
		} else {
			low = at
		}
		if at -= step; at <= low || at >= high {
			at = low + (high-low)/2
		}
	}
	return at
}
