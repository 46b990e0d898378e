package notice

import (
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Decided sees a decision. The caller waits for it, so it only notes which keys to look at.
func (n *Notices) Decided(o *layer.Observation) {
	d := &o.Decision
	if o.Err != nil || o.Op == weir.OpPeek || d.Unrecorded || strings.Contains(o.Rule, "~") {
		return
	}
	requests := n.options.Overridden(o.Requests)
	for i := range requests {
		q := &requests[i]
		found := quotasOf(q.Rule)
		for j := range found.list {
			f := &found.list[j]
			used := int64(unknown)
			switch {
			case d.Allowed && o.Op == weir.OpRecord && d.Limit == weir.MaxCount: // kept for an engine that is away
			case len(requests) == 1 && found.all == 1,
				d.Allowed && int(d.LimitIndex) == f.at && d.Rule == q.Rule.Name() && d.Key == q.Key:
				if used = usedOf(d); d.Limit <= 0 || d.Limit >= weir.MaxCount || !reached(used, d.Limit, thresholds[0]) {
					continue
				}
			case !d.Allowed && o.Op != weir.OpRecord: // which took nothing
				continue
			}
			n.consider(o, q, f, used)
		}
	}
}

// unknown are the used units of a limit that a decision does not tell, because another one binds it.
const unknown = -1

// consider queues a look at a quota of a request, if it may have reached a threshold since the last one.
func (n *Notices) consider(o *layer.Observation, q *weir.Request, f *quota, used int64) {
	id, now := maphash.Comparable(n.seed, subject{q.Rule.Name(), q.Key, f.text}), o.Began.Add(o.Took).UnixNano()
	if !n.seen.due(id, now, used, costOf(o, q)) {
		return
	}
	n.queue(look{id: id, quota: f, key: q.Key})
}

// queue queues a look. Without room for it, a call a second later looks again.
func (n *Notices) queue(l look) {
	select {
	case n.looks <- l:
	default:
		n.counts.unlooked.Add(1)
		n.seen.set(l.id, quiet(time.Now()))
	}
}

// quiet is the state of a key after a look without an answer.
func quiet(now time.Time) state {
	return state{until: now.Add(lookAgain).UnixNano(), next: math.MaxInt64, left: math.MaxInt64}
}

// subject is the subject of a look.
type subject struct{ rule, key, limit string }

// costOf returns the units that a call has taken of a request: several times its cost, if the call takes as often as it can.
func costOf(o *layer.Observation, q *weir.Request) int64 {
	if o.Op == weir.OpTakeUpTo {
		return max(o.Cost, q.Cost, 0)
	}
	return max(q.Cost, 0)
}

// state is the known state of a key under a quota.
type state struct {
	until int64 // Unix nanoseconds; nothing is known from then on
	next  int64 // the used units of the next threshold
	left  int64 // the units until the next look, of calls that do not report the used units
	told  int64 // the used units of the last look, whose thresholds were reported
	used  int64 // the most used units that calls have reported since the look that is under way
	busy  bool  // a look is under way
}

// table keeps the known figures of keys. Dropped keys are looked at once more, and the marks are in the engine. The zero table is empty.
type table struct{ shards [shards]shard }

type shard struct {
	mu     sync.Mutex
	states map[uint64]state
}

const (
	shards       = 64
	mostInAShard = 2048
)

// due notes a call, and reports whether to look at its key now.
func (t *table) due(id uint64, now, used, cost int64) bool {
	s := &t.shards[id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.states[id]
	switch {
	case ok && known.busy:
		known.used, known.left = max(known.used, used), known.left-cost
		s.states[id] = known
		return false
	case !ok || now >= known.until:
	case used != unknown && used < known.next:
		known.left = min(known.left, known.next-used)
		s.states[id] = known
		return false
	case used == unknown && known.left > cost:
		known.left -= cost
		s.states[id] = known
		return false
	}
	before := int64(0)
	if ok && now < known.until {
		before = known.told
	}
	s.put(id, state{busy: true, told: before})
	return true
}

// isNew reports whether no known look at a key has found this many used units.
func (t *table) isNew(id uint64, units int64) bool {
	s := &t.shards[id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[id].told < units
}

// set notes the outcome of a look. It reports whether to look again at once, because calls came meanwhile that it may have missed.
func (t *table) set(id uint64, known state) (again bool) {
	s := &t.shards[id%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.states[id]; before.busy {
		known.left += before.left
		if again = before.used >= known.next || known.left <= 0; again {
			known = state{busy: true, told: known.told}
		}
	}
	s.put(id, known)
	return again
}

// put keeps a state, in place of any other if there is no room.
func (s *shard) put(id uint64, known state) {
	if s.states == nil {
		s.states = map[uint64]state{}
	}
	if _, ok := s.states[id]; !ok && len(s.states) >= mostInAShard {
		for old := range s.states {
			delete(s.states, old)
			break
		}
	}
	s.states[id] = known
}

// lookAgain is the pause after a look that failed, or found no room.
const lookAgain = time.Second
