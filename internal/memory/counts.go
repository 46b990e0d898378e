package memory

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/word"
)

// Stats describe an engine: see weir.MemoryStats.
type Stats struct {
	Keys, Shared int
	Bytes        int
	Evicted      uint64
	Overflow     uint64
	Rules        []RuleStats // by name
}

// RuleStats are the statistics of the rules with one name: see weir.RuleStats.
type RuleStats struct {
	Rule                string
	Decisions, Refusals uint64
	Overflow            uint64
	Bans, Unnoted       uint64
}

// entriesAtStats bounds the work for a name that is gone, some milliseconds.
const entriesAtStats = 1 << 20

// Stats returns the statistics of the engine. It first frees the states of rules that are gone, so that the statistics
// describe rules that exist.
func (e *Engine) Stats() Stats {
	e.making.Lock()
	e.freeGone(len(e.inTurn), entriesAtStats, e.clock.Now())
	e.making.Unlock()
	s := Stats{Overflow: e.overflow.total.Load()}
	for _, value := range e.states.Range {
		s.add(e, value.(*limitStates))
	}
	for _, value := range e.tables.Range {
		t := value.(*word.Table)
		s.Bytes += t.Bytes()
		s.Evicted += t.Dropped()
	}
	for i := range e.shards {
		e.shards[i].mu.Lock()
		s.Evicted += e.shards[i].evicted
		e.shards[i].mu.Unlock()
	}
	for _, value := range e.rules.Range {
		s.Rules = append(s.Rules, value.(*ruleCounts).stats())
	}
	slices.SortFunc(s.Rules, func(a, b RuleStats) int { return cmp.Compare(a.Rule, b.Rule) })
	return s
}

func (s *Stats) add(e *Engine, states *limitStates) {
	keys := s.addCells(e, states)
	if states.hasWords() {
		keys = states.column.Table().Len() // includes the keys of cells
	}
	if withoutSuffix(states.name) == states.name {
		s.Keys += keys
	} else {
		s.Shared += keys
	}
}

// addCells adds the memory of a limit's cells, and returns how many are used.
func (s *Stats) addCells(e *Engine, states *limitStates) (n int) {
	for i := range e.shards {
		e.shards[i].mu.Lock()
		if c := states.cells[i]; c != nil {
			n += len(c.places)
			s.Bytes += c.bytes()
		}
		e.shards[i].mu.Unlock()
	}
	return n
}

// ruleCounts count the decisions of the rules with one name. The counters are
// striped: goroutines that decide at the same time mostly write to different ones.
type ruleCounts struct {
	stripes  [stripeCount]stripe // first, so that each is one cache line
	rule     string
	overflow atomic.Uint64
	bans     atomic.Uint64 // that began
	unnoted  atomic.Uint64 // refusals that were no strike, for lack of room
}

const (
	stripeBits  = 5
	stripeCount = 1 << stripeBits
)

// stripe is one cache line.
type stripe struct {
	admitted, refused atomic.Uint64
	_                 [48]byte
}

// Decided is a decision of TakeOne, which the caller counts. The zero Decided is none.
type Decided struct{ counts *ruleCounts }

// Done reports whether there is a decision.
func (d Decided) Done() bool { return d.counts != nil }

// Count counts the decision. The caller first writes its answer to where it returns it. The atomic addition
// waits until all earlier writes are in the cache. If it came first, the copy of the answer, which reads two words at
// once, would wait for that as well.
func (d Decided) Count(allowed bool) { d.counts.count(allowed) }

func (r *ruleCounts) count(allowed bool) {
	var here byte
	s := &r.stripes[stripeOf(uintptr(unsafe.Pointer(&here)))]
	if allowed {
		s.admitted.Add(1)
	} else {
		s.refused.Add(1)
	}
}

// stripeOf chooses the stripe of a goroutine by the address of its stack:
// goroutines that run at the same time have different ones. The address is only a
// number here. After a stack has moved, its goroutine uses another stripe.
func stripeOf(stack uintptr) int {
	return int(uint64(stack) >> 11 * 0x9e3779b97f4a7c15 >> (64 - stripeBits))
}

// count counts the decisions of a call. The answer names the binding request.
func (c *call) count(a *algorithm.Answer) {
	for i := range c.accesses {
		x := &c.accesses[i]
		if i > 0 && c.accesses[i-1].request == x.request {
			continue
		}
		x.states.counts.count(a.Allowed || x.request != a.Binding)
	}
}

// countBans counts the effect of a refusal on the bans of its rules.
func (c *call) countBans() {
	for i := range c.parts {
		switch counts, p := c.accesses[i].states.counts, &c.parts[i]; {
		case p.Begun:
			counts.bans.Add(1)
		case p.Missed:
			counts.unnoted.Add(1)
		}
	}
}

func (r *ruleCounts) stats() RuleStats {
	s := RuleStats{Rule: r.rule, Overflow: r.overflow.Load(), Bans: r.bans.Load(), Unnoted: r.unnoted.Load()}
	for i := range r.stripes {
		refused := r.stripes[i].refused.Load()
		s.Refusals += refused
		s.Decisions += refused + r.stripes[i].admitted.Load()
	}
	return s
}
