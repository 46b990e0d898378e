package memory

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Keys without room share states: those of their parents, or otherwise those of groups. Shared states work like
// others but have names of their own, so that no key can pass for a parent or a group.

// sharedSuffixes follow the name of a limit's states, which ends with a digit.
var sharedSuffixes = [...]string{ofParents: "p", ofGroups: "g"}

const (
	ofParents = iota
	ofGroups
)

const (
	keysPerParent = 8 // one parent has room for each n keys that have
	minParents    = table.Shards
	maxSteps      = 8 // of parents of parents
)

// NoRoomError reports a key without room that cannot share a state.
type NoRoomError struct {
	Rule    string
	MaxKeys int
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("rule %q: no room for more than %d keys", e.Rule, e.MaxKeys)
}

// moveToShared points the accesses without room at states that their keys share with others. A group always has room.
// No lock is held.
//
// Units that a holder must release are not shared. If the key finds room of its own later, they would be released
// there and stay taken in the shared state.
func (e *Engine) moveToShared(c *call, now int64) error {
	counted := -1 // the last request that was counted
	for i := range c.accesses {
		x := &c.accesses[i]
		if x.place != withoutRoom {
			continue
		}
		if x.part.Endless {
			e.overflow.refused(x.states, now)
			return &NoRoomError{Rule: x.states.counts.rule, MaxKeys: x.states.maxKeys}
		}
		if x.steps == 0 && x.request != counted {
			counted = x.request
			e.overflow.shared(x.states, now)
		}
		kind := ofGroups
		if parent, ok := e.parentOf(x); ok {
			kind, x.key = ofParents, parent
		} else {
			x.key = string([]byte{byte(x.hash >> table.ShardBits)}) // the name of one of 256 groups
		}
		x.steps++
		x.states = e.sharedStates(x, kind, now)
		x.limit = x.states.limit(x.part.Words)
		x.hash = e.seed.Hash(x.key)
		c.shards |= 1 << (x.hash % table.Shards)
	}
	return nil
}

func (e *Engine) parentOf(x *access) (parent string, ok bool) {
	if e.parent == nil || x.steps >= maxSteps {
		return "", false
	}
	parent, ok = e.parent(x.key)
	return parent, ok && len(parent) <= table.MaxKey
}

// sharedStates returns the states that keys of the access's limit share.
func (e *Engine) sharedStates(x *access, kind int, now int64) *limitStates {
	if s := x.own.shared[kind].Load(); s != nil {
		return s
	}
	s := e.statesNamed(x.own.name+sharedSuffixes[kind], x.part, now)
	x.own.shared[kind].Store(s)
	return s
}

// maxKeysOf returns the bound on the keys of the states of a name; 0 means none.
func (e *Engine) maxKeysOf(name string) int {
	switch {
	case strings.HasSuffix(name, sharedSuffixes[ofParents]):
		return e.maxParents
	case strings.HasSuffix(name, sharedSuffixes[ofGroups]):
		return 0 // there are 256 groups
	}
	return e.maxKeys
}

// suffixOf returns the suffix of a name of shared states.
func suffixOf(name string) string { return name[len(withoutSuffix(name)):] }

// withoutSuffix returns the name of the states of a limit's own keys.
func withoutSuffix(name string) string {
	for _, suffix := range sharedSuffixes {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// isShared reports whether an earlier access of the call has the same state, and
// copies it. Both parts decide, as their rules may differ. The earlier one is
// stored.
func (c *call) isShared(i int) bool {
	x := &c.accesses[i]
	for j := range c.accesses[:i] {
		earlier := &c.accesses[j]
		if earlier.hasStateOf(x) && earlier.place != withoutRoom && earlier.place != inEarlier {
			x.place = inEarlier
			c.parts[i].State = c.parts[j].State.Clone()
			return true
		}
	}
	return false
}

// sumSharedCosts gives all accesses of one state the sum of their costs.
func (c *call) sumSharedCosts() {
	for i := range c.accesses {
		if c.accesses[i].place == inEarlier {
			first := &c.parts[c.firstWithStateOf(i)]
			first.Cost = algorithm.AddSaturating(first.Cost, c.parts[i].Cost)
		}
	}
	for i := range c.accesses {
		if c.accesses[i].place == inEarlier {
			c.parts[i].Cost = c.parts[c.firstWithStateOf(i)].Cost
		}
	}
}

// spareSharing lets no refusal of a key that shares a state be a strike: others have used the units that it lacks.
func (c *call) spareSharing() {
	for i := range c.accesses {
		if !c.accesses[i].part.Bans {
			continue
		}
		for j := range c.accesses {
			if c.accesses[j].steps > 0 && c.accesses[j].request == c.accesses[i].request {
				c.parts[i].NoRoom = true
			}
		}
	}
}

func (c *call) firstWithStateOf(i int) int {
	for j := range c.accesses[:i] {
		if c.accesses[j].hasStateOf(&c.accesses[i]) {
			return j
		}
	}
	return i
}

func (x *access) hasStateOf(other *access) bool {
	return x.states == other.states && x.hash == other.hash
}

// overflowReport counts and logs the decisions on keys that found no room.
type overflowReport struct {
	logger  *slog.Logger
	total   atomic.Uint64
	lastLog atomic.Int64
}

const overflowLogEvery = int64(time.Minute)

// shared reports a decision on a shared state.
func (r *overflowReport) shared(s *limitStates, now int64) {
	s.counts.overflow.Add(1)
	total := r.total.Add(1)
	if r.mayLog(now) {
		r.logger.Warn("keys find no room, and share budgets", "rule", s.counts.rule, "max_keys", s.maxKeys, "shared_decisions", total)
	}
}

// refused reports a key that cannot share.
func (r *overflowReport) refused(s *limitStates, now int64) {
	if r.mayLog(now) {
		r.logger.Warn("new keys find no room, and are refused: slots without a lease keep theirs", "rule", s.counts.rule, "max_keys", s.maxKeys)
	}
}

// mayLog returns true once a minute.
func (r *overflowReport) mayLog(now int64) bool {
	last := r.lastLog.Load()
	return r.logger != nil && uint64(now-last) >= uint64(overflowLogEvery) && r.lastLog.CompareAndSwap(last, now)
}
