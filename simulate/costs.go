package simulate

import (
	"math"
	"math/rand/v2"
)

// costs draws the cost of the next request. Without costs, each is 1.
type costs func(random *rand.Rand) uint32

const maxCost = 1_000_000_000

// fixedCost is the same for all requests.
func fixedCost(n int64) costs {
	return func(*rand.Rand) uint32 { return uint32(n) }
}

// evenCost takes every whole number from low to high with the same probability.
func evenCost(low, high int64) costs {
	return func(random *rand.Rand) uint32 { return uint32(low + random.Int64N(high-low+1)) }
}

// geometricCost has the given mean m: n costs at least 1, and is n with probability (1-p)^(n-1) p, where p = 1/m.
func geometricCost(mean int64) costs {
	if mean == 1 {
		return fixedCost(1)
	}
	scale := -1 / math.Log1p(-1/float64(mean))
	return func(random *rand.Rand) uint32 {
		return uint32(min(maxCost, 1+math.Floor(random.ExpFloat64()*scale)))
	}
}

// rareCost is usual, and with the given probability rare.
func rareCost(usual, rare int64, share float64) costs {
	return func(random *rand.Rand) uint32 {
		if random.Float64() < share {
			return uint32(rare)
		}
		return uint32(usual)
	}
}
