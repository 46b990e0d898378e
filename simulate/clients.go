package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// clients are the senders of a stream. The zero value is one client.
type clients struct {
	count int
	// skew makes shares uneven: client k of n, from 1, sends each request with a probability in proportion to 1/k^skew.
	skew float64
	// inTurn makes client k send request k, k+n, … instead of drawing the client.
	inTurn bool
}

const (
	maxClients = 1_000_000
	maxSkew    = 10
)

// pick returns a function that returns the client of the next request, from 0.
func (c clients) pick(random *rand.Rand) func() uint32 {
	switch {
	case c.count <= 1:
		return func() uint32 { return 0 }
	case c.inTurn && c.skew == 0:
		next := -1
		return func() uint32 {
			next = (next + 1) % c.count
			return uint32(next)
		}
	case c.skew == 0:
		return func() uint32 { return uint32(random.IntN(c.count)) }
	}
	sums := make([]float64, c.count)
	sum := 0.0
	for k := range sums {
		sum += math.Pow(float64(k+1), -c.skew)
		sums[k] = sum
	}
	return func() uint32 {
		k, _ := slices.BinarySearch(sums, random.Float64()*sum)
		return uint32(min(k, c.count-1))
	}
}
