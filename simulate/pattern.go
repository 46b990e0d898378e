package simulate

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Pattern is made-up traffic: the instants at which requests come. Create it with [ParsePattern].
type Pattern struct {
	text  string
	parts []arrivals
}

// String returns the text of the pattern.
func (p Pattern) String() string { return p.text }

// arrivals yields instants from 0 in order, until yield returns false. Only the random ones use the source.
type arrivals func(random *rand.Rand, yield func(time.Duration) bool)

// Instants returns the requests of the given length of time, in order. Equal seeds give equal instants. It refuses a
// length outside 1 ns to [weir.MaxPeriod], and more than ten million requests.
func (p Pattern) Instants(length time.Duration, seed uint64) ([]time.Duration, error) {
	if length < 1 || length > weir.MaxPeriod {
		return nil, fmt.Errorf("simulate: traffic %q: a length of %v is not within 1ns and %d days", p.text, length, weir.MaxPeriod/(24*time.Hour))
	}
	var all []time.Duration
	for i, part := range p.parts {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		part(random, func(at time.Duration) bool {
			if at >= length || len(all) > maxOffered {
				return false
			}
			all = append(all, at)
			return true
		})
	}
	if len(all) > maxOffered {
		return nil, fmt.Errorf("simulate: traffic %q: more than %d requests in %g seconds", p.text, maxOffered, length.Seconds())
	}
	slices.Sort(all)
	return all, nil
}

// constant sends request i at i / rate.
func constant(r weir.Rate) arrivals {
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for i := int64(0); yield(instantOf(r, i)); i++ {
		}
	}
}

// instantOf returns i / rate, rounded down.
func instantOf(r weir.Rate, i int64) time.Duration {
	high, low := bits.Mul64(uint64(i), uint64(r.Period))
	if high >= uint64(r.Count) {
		return math.MaxInt64
	}
	at, _ := bits.Div64(high, low, uint64(r.Count))
	return time.Duration(min(at, math.MaxInt64))
}

// poisson leaves an independent gap of -ln(1-u) / rate before each request, where u is uniform in 0 to 1.
func poisson(r weir.Rate) arrivals {
	mean := float64(r.Period) / float64(r.Count)
	return func(random *rand.Rand, yield func(time.Duration) bool) {
		for at := random.ExpFloat64() * mean; yield(nanoseconds(at)); {
			at += float64(random.ExpFloat64() * mean)
		}
	}
}

// burst sends requests at the rate for a while at the start of every cycle.
func burst(r weir.Rate, on, cycle time.Duration) arrivals {
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for start := time.Duration(0); ; start += cycle {
			for i := int64(0); instantOf(r, i) < on; i++ {
				if !yield(start + instantOf(r, i)) {
					return
				}
			}
		}
	}
}

// ramp changes the rate evenly from one to another, and keeps the second one. Request i comes when the integral of
// the rate is i: with rates a and b and a length T that is at 2i / (a + sqrt(a² + 2i (b-a)/T)) until T.
func ramp(from, to weir.Rate, over time.Duration) arrivals {
	a, b, length := perNano(from), perNano(to), float64(over)
	slope, during := (b-a)/length, float64(a+b)/2*length
	return func(_ *rand.Rand, yield func(time.Duration) bool) {
		for i := 0.0; ; i++ {
			at := length + (i-during)/b
			if i < during {
				at = 2 * i / (a + math.Sqrt(max(0, float64(a*a)+float64(2*i*slope))))
			}
			if !yield(nanoseconds(at)) {
				return
			}
		}
	}
}

func perNano(r weir.Rate) float64 { return float64(r.Count) / float64(r.Period) }

// nanoseconds rounds down.
func nanoseconds(at float64) time.Duration {
	if at >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(at)
}
