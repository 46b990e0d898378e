package main

import (
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	times = "%.2f ×"

	limiterBucket, keyedBucket, memoryBucket = peers.OursLimiter + "tokenbucket", peers.OursKeyed + "tokenbucket", peers.OursMemory + "tokenbucket"
)

// known are the mixes whose keys the peers know, and fresh the other one.
var known, fresh = func() (known []string, fresh string) {
	for _, mix := range workload.Mixes(1) {
		if mix.Fresh {
			fresh = mix.Name
		} else {
			known = append(known, mix.Name)
		}
	}
	return known, fresh
}()

// over judges the worst of all outcomes and cores of some mixes, beside the fastest of some peers.
func over(name string, bound float64, ours string, others []string, mixes ...string) measure.Target {
	t := measure.Target{Name: name, Figure: "ns", Format: times, Bound: bound}
	for _, mix := range mixes {
		for _, denied := range []bool{false, true} {
			if denied && mix == fresh {
				continue // every limit admits a fresh key
			}
			for _, cores := range cores() {
				at := ", " + mix + ", " + column(denied, cores)
				c := measure.Case{Row: ours + at}
				for _, other := range others {
					c.Over = append(c.Over, other+at)
				}
				t.Cases = append(t.Cases, c)
			}
		}
	}
	return t
}

// exact returns the names of the exact rivals.
func exact() (singles, keyeds []string) {
	for _, p := range peers.Singles() {
		if p.Kind == peers.Exact || p.Kind == peers.Approximate {
			singles = append(singles, p.Name)
		}
	}
	for _, p := range peers.Keyeds() {
		if p.Kind == peers.Exact {
			keyeds = append(keyeds, p.Name)
		}
	}
	return singles, keyeds
}

func targets([]measure.Row) []measure.Target {
	if busy != nil {
		return busy.targets()
	}
	singles, keyeds := exact()
	one := singleMix.Name
	list := []measure.Target{
		over("`Limiter.Allow`, over one time.Since and one CAS", 1.2, limiterBucket, []string{peers.FloorGCRA}, one),
		over("`Limiter.Allow`, over x/time/rate", 0.5, limiterBucket, []string{peers.XTimeRate}, one),
		over("`Limiter.Allow`, over the fastest rival", 1, limiterBucket, singles, one),
		over("`Wait` that does not block, over `Allow`", 1.3, peers.OursLimiter+"wait", []string{limiterBucket}, one),
	}
	for _, ours := range []struct {
		name, peer, prefix string
		oneKey, rival      float64
	}{{"Keyed", keyedBucket, peers.OursKeyed, 1.3, 1}, {"Memory", memoryBucket, peers.OursMemory, 1.7, 0.85}} {
		name := "`" + ours.name + "`, "
		for _, mix := range known {
			bound := 1.3
			if mix == workload.OneKey {
				bound = ours.oneKey
			}
			list = append(list, over(name+mix+", over the floor table", bound, ours.peer, []string{peers.FloorTable}, mix))
		}
		list = append(list, over(name+"over the fastest exact rival", ours.rival, ours.peer, keyeds, known...))
		list = append(list, freshTargets(name, ours.peer, keyeds)...)
		for _, a := range []struct {
			name  string
			bound float64
		}{{"fixedwindow", 1.3}, {"slidingwindow", 1.3}, {"slidinglog", 3}} {
			list = append(list, over(name+a.name+" over token bucket", a.bound, ours.prefix+a.name, []string{ours.peer}, known...))
		}
		list = append(list, memoryTargets(name, ours.peer)...)
	}
	list = append(list, clocklessTargets()...)
	return append(list, measure.Target{Name: "waiting callers released at 1e6/s", Figure: "callers/s", Format: "%.0f/s", Bound: 0.99e6, AtLeast: true,
		Cases: []measure.Case{{Row: "weir, " + released}}})
}

// freshTargets treat less than one in a hundred calls that allocate as none, because a growing table has to allocate.
func freshTargets(name, peer string, keyeds []string) []measure.Target {
	name += fresh + ", "
	none := over(name+"allocations a call", 0.01, peer, nil, fresh)
	none.Figure, none.Format = allocations, "%.4f"
	return []measure.Target{
		over(name+"over the floor table", 1.5, peer, []string{peers.FloorTable}, fresh),
		over(name+"over the fastest exact rival", 0.5, peer, keyeds, fresh),
		none,
	}
}

func memoryTargets(name, peer string) []measure.Target {
	at := []measure.Case{{Row: peer + ", " + memoryOfMany}}
	return []measure.Target{
		{Name: name + bytesAKey, Figure: bytesAKey, Format: "%.1f", Bound: 28, Cases: at},
		{Name: name + collectionMs, Figure: collectionMs, Format: "%.2f ms", Bound: 2, Cases: at},
	}
}
