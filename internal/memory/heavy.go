package memory

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/table"
)

// KeyCount is a key with many decisions: see weir.KeyCount.
type KeyCount struct {
	Rule, Key        string
	Count, Overcount uint64
}

// Top returns the n keys with the most decisions, and the n with the most
// refusals, at most 128 each.
func (e *Engine) Top(n int) (busiest, refused []KeyCount) {
	now, k := e.clock.Now(), &e.heavy
	k.mu.Lock()
	defer k.mu.Unlock()
	k.age(now)
	return k.busiest.list(n), k.refused.list(n)
}

// heavyKeys finds the keys with the most decisions, from samples.
type heavyKeys struct {
	mu               sync.Mutex
	lastHalving      int64 // 0 is never
	busiest, refused sketch
}

const (
	sampleGap   = 128 // decisions from one sample to the next, on average
	halvingTime = int64(10 * time.Minute)
)

// sample counts a decision for itself and for those since the last sample of its
// counter. It never waits: if the lists are in use, the next decision is the
// sample.
func (k *heavyKeys) sample(seed *table.Seed, r *ruleCounts, from *sampledCount, key string, allowed bool, now int64) {
	if !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	n := from.n.Load()
	if n < from.nextSample.Load() {
		return // another goroutine was faster
	}
	weight := n - from.lastSample.Load()
	// The first decisions are all samples, so that little traffic shows as well.
	gap := min(2*sampleGap-1, 1+n/sampleGap)
	from.lastSample.Store(n)
	from.nextSample.Store(n + 1 + rand.Uint64N(gap))
	k.age(now)
	id := uint64(seed.Hash(key)) ^ r.salt
	k.busiest.add(id, r.rule, key, weight)
	if !allowed {
		k.refused.add(id, r.rule, key, weight)
	}
}

// age halves all counts when it is time.
func (k *heavyKeys) age(now int64) {
	times := uint64(now-k.lastHalving) / uint64(halvingTime)
	if times == 0 {
		return
	}
	k.lastHalving = now
	k.busiest.halve(times)
	k.refused.halve(times)
}

// sketch is Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a key that is
// not in the list replaces the one with the smallest count, and inherits that
// count as its possible overcount.
type sketch struct {
	ids    [sketchKeys]uint64
	counts [sketchKeys]uint64 // 0 is a free place
	keys   [sketchKeys]sketchKey
}

const sketchKeys = 128

type sketchKey struct {
	rule      string
	key       []byte // a copy: the caller's key may be part of something large
	overcount uint64
}

func (s *sketch) add(id uint64, rule, key string, weight uint64) {
	smallest := 0
	for i, count := range s.counts {
		if s.ids[i] == id && count > 0 {
			s.counts[i] += weight
			return
		}
		if count < s.counts[smallest] {
			smallest = i
		}
	}
	s.ids[smallest] = id
	k := &s.keys[smallest]
	k.rule, k.key, k.overcount = rule, append(k.key[:0], key...), s.counts[smallest]
	s.counts[smallest] += weight
}

func (s *sketch) halve(times uint64) {
	times = min(times, 64) // shifts by 64 and more are 0
	for i := range s.counts {
		s.counts[i] >>= times
		s.keys[i].overcount >>= times
	}
}

// list returns the n largest counts, the largest first.
func (s *sketch) list(n int) []KeyCount {
	all := make([]KeyCount, 0, sketchKeys)
	for i, count := range s.counts {
		if count > 0 {
			k := &s.keys[i]
			all = append(all, KeyCount{Rule: k.rule, Key: string(k.key), Count: count, Overcount: k.overcount})
		}
	}
	slices.SortFunc(all, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(max(n, 0), len(all))]
}
