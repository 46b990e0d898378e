package weir

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// KeyCount is a key that was decided on often.
type KeyCount struct {
	Rule, Key string
	// Count is about how many decisions it had. It is never more than Error
	// too high because of what the list has forgotten. Because one decision of
	// 128 is looked at on average (the first ones more often), it may also be off either way, by up to
	// 12√Count in two cases of three. Counts halve every ten minutes, so that the list
	// tells of today.
	Count, Error uint64
}

// Top are the n keys with the most decisions, and the n with the most refusals:
// at most 128 each. Decisions are those of MemoryStats.
func (m *Memory) Top(n int) (demanding, refused []KeyCount) {
	now, t := m.clock.Read().At, &m.top
	t.mu.Lock()
	defer t.mu.Unlock()
	t.age(now)
	return t.demanding.list(n), t.refused.list(n)
}

// top finds the keys that are decided on most, from samples.
type top struct {
	mu                 sync.Mutex
	halved             int64 // when, 0 is never
	demanding, refused sketch
}

const (
	sampleGap = 128 // decisions from one sample to the next, on average
	halveTop  = int64(10 * time.Minute)
)

// sample adds a decision, for itself and those of its tally since the sample
// before. Nobody waits: if the lists are in use, the next one is the sample.
func (t *top) sample(m *Memory, r *ruleCounts, tally *tally, key string, allowed bool, now int64) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	n := tally.n.Load()
	if n < tally.next.Load() {
		return // another was faster
	}
	weight := n - tally.last.Load()
	// The first ones are all samples, so that little traffic shows as well.
	gap := min(2*sampleGap-1, 1+n/sampleGap)
	tally.last.Store(n)
	tally.next.Store(n + 1 + rand.Uint64N(gap))
	t.age(now)
	id := uint64(m.seed.Hash(key)) ^ r.salt
	t.demanding.add(id, r.rule, key, weight)
	if !allowed {
		t.refused.add(id, r.rule, key, weight)
	}
}

// age halves all counts if it is time.
func (t *top) age(now int64) {
	passed := uint64(now-t.halved) / uint64(halveTop)
	if passed == 0 {
		return
	}
	t.halved = now
	t.demanding.halve(passed)
	t.refused.halve(passed)
}

// sketch is Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a key that is
// not in the list takes the place of the one with the least, and its count as
// what may be wrong with the new one.
type sketch struct {
	ids    [sketchKeys]uint64
	counts [sketchKeys]uint64 // 0 is a free place
	keys   [sketchKeys]sketchKey
}

const sketchKeys = 128

type sketchKey struct {
	rule  string
	key   []byte // a copy: the caller's key may be part of something large
	error uint64
}

func (s *sketch) add(id uint64, rule, key string, weight uint64) {
	least := 0
	for i, count := range s.counts {
		if s.ids[i] == id && count > 0 {
			s.counts[i] += weight
			return
		}
		if count < s.counts[least] {
			least = i
		}
	}
	s.ids[least] = id
	k := &s.keys[least]
	k.rule, k.key, k.error = rule, append(k.key[:0], key...), s.counts[least]
	s.counts[least] += weight
}

func (s *sketch) halve(times uint64) {
	times = min(times, 64) // shifts by 64 and more are 0
	for i := range s.counts {
		s.counts[i] >>= times
		s.keys[i].error >>= times
	}
}

// list are the n largest counts, the largest first.
func (s *sketch) list(n int) []KeyCount {
	all := make([]KeyCount, 0, sketchKeys)
	for i, count := range s.counts {
		if count > 0 {
			k := &s.keys[i]
			all = append(all, KeyCount{Rule: k.rule, Key: string(k.key), Count: count, Error: k.error})
		}
	}
	slices.SortFunc(all, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(max(n, 0), len(all))]
}
