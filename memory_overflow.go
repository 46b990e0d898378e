package weir

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/table"
)

// Keys that find no room share states: those of their parents, where they have
// some, and else of groups. These are states like all others, in tables of their
// own, so that no key can be taken for a parent or a group.

// What the names of tables of shared states end with, after the name of the
// limit's state, which ends with a digit.
var sharedNames = [...]string{ofParents: "p", ofGroups: "g"}

const (
	ofParents = iota
	ofGroups
)

const (
	// Beside the room of so many keys there is that of one parent.
	keysPerParent = 8
	minParents    = shardCount
	maxSteps      = 8 // of parents of parents
)

// groupNames are the names of the groups: single bytes.
var groupNames = func() (all string) {
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	return string(bytes)
}()

// share sends the slots that found no room to the state that they share with
// others. A group always has room. Nothing is locked.
//
// Units that are held until they are given back are not shared. Once their key
// finds room of its own, they would be given back there, and stay taken
// permanently in the shared state.
func (m *Memory) share(op string, c *call, now int64) error {
	counted := -1 // the last request that was
	for i := range c.slots {
		s := &c.slots[i]
		if s.place != noRoom {
			continue
		}
		if s.part.Endless {
			m.note.full(s.table, now)
			return undecided{fmt.Errorf("weir: %s: rule %q: %w: %d, as many as MaxKeys allows, hold slots without a lease", op, s.table.counts.rule, ErrNoRoom, s.table.maxKeys)}
		}
		if s.steps == 0 && s.request != counted {
			counted = s.request
			m.note.overflow(s.table, now)
		}
		kind := ofGroups
		if parent, ok := m.parentOf(s); ok {
			kind, s.key = ofParents, parent
		} else {
			group := s.hash >> shardBits % 256
			s.key = groupNames[group : group+1]
		}
		s.steps++
		s.table = m.sharedTable(s, kind, now)
		s.hash = m.seed.Hash(s.key)
		c.shards |= 1 << (s.hash % shardCount)
	}
	return nil
}

func (m *Memory) parentOf(s *slot) (parent string, ok bool) {
	if m.parent == nil || s.steps >= maxSteps {
		return "", false
	}
	parent, ok = m.parent(s.key)
	return parent, ok && len(parent) <= table.MaxKey
}

// sharedTable is where a slot's limit keeps the states that keys share.
func (m *Memory) sharedTable(s *slot, kind int, now int64) *limitTable {
	own := m.tableOf(s.part, s.home, now)
	if t := own.shared[kind].Load(); t != nil {
		return t
	}
	t := m.tableNamed(own.name+sharedNames[kind], s.part, now)
	own.shared[kind].Store(t)
	return t
}

// maxKeysOf is the cap of the table of a name; 0 is none.
func (m *Memory) maxKeysOf(name string) int {
	switch {
	case strings.HasSuffix(name, sharedNames[ofParents]):
		return m.maxParents
	case strings.HasSuffix(name, sharedNames[ofGroups]):
		return 0 // there are 256
	}
	return m.maxKeys
}

// ownOrdinal is the end of a name without what shared states add.
func ownOrdinal(ordinal string) string {
	for _, end := range sharedNames {
		ordinal = strings.TrimSuffix(ordinal, end)
	}
	return ordinal
}

// isTwin says that a slot before i shares its state, and takes a copy of it.
// Both decide, as their rules may differ, and the one before is stored.
func (c *call) isTwin(i int) bool {
	s := &c.slots[i]
	for j := range c.slots[:i] {
		first := &c.slots[j]
		if first.sharesWith(s) && first.place != noRoom && first.place != asTwin {
			s.place = asTwin
			c.parts[i].State = c.parts[j].State.Clone()
			return true
		}
	}
	return false
}

// sumTwins gives slots of one state the sum of their costs.
func (c *call) sumTwins() {
	for i := range c.slots {
		if c.slots[i].place == asTwin {
			first := &c.parts[c.twinOf(i)]
			first.Cost = saturatingAdd(first.Cost, c.parts[i].Cost)
		}
	}
	for i := range c.slots {
		if c.slots[i].place == asTwin {
			c.parts[i].Cost = c.parts[c.twinOf(i)].Cost
		}
	}
}

// twinOf is the first slot with the state of i.
func (c *call) twinOf(i int) int {
	for j := range c.slots[:i] {
		if c.slots[j].sharesWith(&c.slots[i]) {
			return j
		}
	}
	return i
}

// sharesWith says that two slots are of one state.
func (s *slot) sharesWith(other *slot) bool { return s.table == other.table && s.hash == other.hash }

// overflowNote counts and tells that keys found no room.
type overflowNote struct {
	logger *slog.Logger
	total  atomic.Uint64
	last   atomic.Int64 // when the logger was told
}

const overflowLogEvery = int64(time.Minute)

func (n *overflowNote) overflow(t *limitTable, now int64) {
	t.counts.overflow.Add(1)
	total := n.total.Add(1)
	if n.due(now) {
		n.logger.Warn("keys find no room, and share budgets", "rule", t.counts.rule, "max_keys", t.maxKeys, "shared_decisions", total)
	}
}

// full tells of keys that find no room and cannot share.
func (n *overflowNote) full(t *limitTable, now int64) {
	if n.due(now) {
		n.logger.Warn("new keys find no room, and are refused: slots without a lease keep theirs", "rule", t.counts.rule, "max_keys", t.maxKeys)
	}
}

// due says whether the logger is to be told, which is so once a minute.
func (n *overflowNote) due(now int64) bool {
	last := n.last.Load()
	return n.logger != nil && uint64(now-last) >= uint64(overflowLogEvery) && n.last.CompareAndSwap(last, now)
}
