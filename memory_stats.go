package weir

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
)

// MemoryStats tell what a Memory holds and has done since it was made. They are
// not of one instant, since decisions go on meanwhile.
type MemoryStats struct {
	Keys    int    // states of keys, idle ones that are not yet forgotten included
	Shared  int    // states that keys share for want of room
	MaxKeys int    // the cap on keys of each limit
	Bytes   int    // memory of the states, but without the entries of logs
	Evicted uint64 // idle states forgotten
	// Overflow counts the requests that were decided on shared states.
	Overflow uint64
	Rules    []RuleStats // by name
}

// RuleStats are those of the rules of one name.
type RuleStats struct {
	Rule string
	// Decisions count each request to take, reservations included, and
	// Refusals those of them that the rule refused. In a refused call of
	// several requests one rule is named as the one that refuses, and counts.
	Decisions, Refusals uint64
	Overflow            uint64 // as in MemoryStats
}

// Stats tells what the engine holds and has done.
func (m *Memory) Stats() MemoryStats {
	s := MemoryStats{MaxKeys: m.maxKeys, Overflow: m.note.total.Load()}
	for _, value := range m.tables.Range {
		s.addTable(m, value.(*limitTable))
	}
	for i := range m.shards {
		s.addShard(&m.shards[i])
	}
	for _, value := range m.rules.Range {
		s.Rules = append(s.Rules, value.(*ruleCounts).stats())
	}
	slices.SortFunc(s.Rules, func(a, b RuleStats) int { return cmp.Compare(a.Rule, b.Rule) })
	return s
}

func (s *MemoryStats) addTable(m *Memory, t *limitTable) {
	keys := s.addCells(m, t)
	if t.hasWords() {
		keys = t.Words.Len()
		s.Bytes += t.Words.Bytes()
		s.Evicted += t.Words.Dropped()
	}
	if ownOrdinal(t.name) == t.name {
		s.Keys += keys
	} else {
		s.Shared += keys
	}
}

// addCells adds the memory of a limit's cells, and tells how many there are.
func (s *MemoryStats) addCells(m *Memory, t *limitTable) (n int) {
	for i := range m.shards {
		m.shards[i].mu.Lock()
		if c := t.cells[i]; c != nil {
			n += c.used
			s.Bytes += c.slots * cellBytes
		}
		m.shards[i].mu.Unlock()
	}
	return n
}

func (s *MemoryStats) addShard(from *shard) {
	from.mu.Lock()
	defer from.mu.Unlock()
	s.Evicted += from.dropped
}

// ruleCounts counts the decisions of rules of one name. The counters are
// striped: who decides at the same time mostly writes to different ones.
type ruleCounts struct {
	rule     string
	salt     uint64 // tells its keys from those of other rules
	overflow atomic.Uint64
	stripes  [stripeCount]stripe
}

const (
	stripeBits  = 5
	stripeCount = 1 << stripeBits
)

// stripe is one cache line.
type stripe struct {
	passed, refused tally
	_               [16]byte
}

// tally counts, and says which of what it counts is a sample.
type tally struct {
	n    atomic.Uint64
	next atomic.Uint64 // the next sample
	last atomic.Uint64 // the sample before it, under the lock of the top
}

func (m *Memory) countsOf(rule string) *ruleCounts {
	found, ok := m.rules.Load(rule)
	if !ok {
		found, _ = m.rules.LoadOrStore(rule, &ruleCounts{rule: rule, salt: rand.Uint64()})
	}
	return found.(*ruleCounts)
}

// count counts a decision on a key.
func (r *ruleCounts) count(m *Memory, key string, allowed bool, now int64) {
	var here byte
	s := &r.stripes[stripeOf(uintptr(unsafe.Pointer(&here)))]
	t := &s.passed
	if !allowed {
		t = &s.refused
	}
	if n := t.n.Add(1); n >= t.next.Load() {
		m.top.sample(m, r, t, key, allowed, now)
	}
}

// stripeOf is the stripe of a goroutine, by where its stack is: goroutines that
// run at the same time have different ones. The address is only a number here,
// and a stack that moves takes another stripe.
func stripeOf(stack uintptr) int {
	return int(uint64(stack) >> 11 * 0x9e3779b97f4a7c15 >> (64 - stripeBits))
}

// count counts the decisions of a call.
func (m *Memory) count(c *call, a *algorithm.Answer, now int64) {
	binding := c.slots[a.Binding].request
	for i := range c.slots {
		s := &c.slots[i]
		if i > 0 && c.slots[i-1].request == s.request {
			continue
		}
		s.table.counts.count(m, c.requests[s.request].Key, a.Allowed || s.request != binding, now)
	}
}

func (r *ruleCounts) stats() RuleStats {
	s := RuleStats{Rule: r.rule, Overflow: r.overflow.Load()}
	for i := range r.stripes {
		refused := r.stripes[i].refused.n.Load()
		s.Refusals += refused
		s.Decisions += refused + r.stripes[i].passed.n.Load()
	}
	return s
}
