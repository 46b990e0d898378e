package weir

import (
	"context"
	"math/bits"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// slot is where the state of a part lives, and which request asked for it.
type slot struct {
	key     string // of the request, or its parent or group
	request int
	hash    table.Hash
	part    *rule.Part
	home    *partHome
	table   *limitTable
	word    uint64 // what was borrowed from the table
	place   place
	steps   uint8 // how often the key was sent on for want of room
}

// place says where the state of a slot is: as a word in the table, if it fits,
// or in a cell of the shard.
type place uint8

const (
	unplaced place = iota
	asWord         // borrowed, to be put back
	asCell
	newCell // nowhere yet; promised where states are no words
	asTwin  // with a slot before, which has the same state
	asFresh // to give back what is not held, which needs no room
	noRoom
)

func (s *slot) shard(m *Memory) *shard { return &m.shards[s.hash%shardCount] }

// cells are those that the state is one of, if it is a cell.
func (s *slot) cells() *cells { return s.table.cells[s.hash%shardCount] }

// call is one decision on its way: the parts of all requests, and the shards
// that hold their states.
type call struct {
	requests []rule.Request // merged
	parts    []algorithm.Part
	slots    []slot
	shards   uint64 // set of shard numbers
}

// callSpace lets a small call stay on the stack. For that a call is handed on
// by value while it grows, and does not hold the engine: what is stored through
// a pointer, or beside one that escapes, has to escape too.
type callSpace struct {
	requests [4]rule.Request
	parts    [4]algorithm.Part
	slots    [4]slot
}

// gather checks and merges the requests, and lays out their parts.
func (m *Memory) gather(ctx context.Context, op string, requests []Request, space *callSpace) (call, error) {
	if m.clock == nil {
		return call{}, m.refusal(op)
	}
	merged, err := mergeRequests(op, requests, space.requests[:0])
	if err != nil {
		return call{}, err
	}
	if err := ctx.Err(); err != nil {
		return call{}, cannotDecide(op, err)
	}
	c := call{requests: merged, parts: space.parts[:0], slots: space.slots[:0]}
	for i := range merged {
		c = c.withParts(i, m.seed)
	}
	return c, nil
}

func (c call) withParts(request int, seed *table.Seed) call {
	q := &c.requests[request]
	h := seed.Hash(q.Key)
	c.shards |= 1 << (h % shardCount)
	homes := homesOf(q.Rule)
	for i := range q.Rule.Parts {
		p := &q.Rule.Parts[i]
		c.parts = append(c.parts, algorithm.Part{Algorithm: p.Algorithm, Cost: q.Cost, Lease: q.Lease})
		c.slots = append(c.slots, slot{key: q.Key, request: request, hash: h, part: p, home: &homes[i]})
	}
	return c
}

// lock takes the locks of all shards in order and loads the states, those that
// keys share who find no room included. The result is the instant to decide at:
// now, unless a key is missing that was perhaps forgotten later than that. Then
// it is taken to have been fresh since.
// An error is of a key that finds no room and cannot share: then no lock is held.
func (m *Memory) lock(op string, c *call, now int64) (int64, error) {
	at, room := m.tryLock(c, now)
	if room {
		return at, nil
	}
	for !room {
		m.unlock(c, now)
		if err := m.share(op, c, now); err != nil {
			return 0, err
		}
		at, room = m.tryLock(c, now)
	}
	c.sumTwins()
	return at, nil
}

// tryLock is lock, but says whether there was room for the keys.
func (m *Memory) tryLock(c *call, now int64) (at int64, room bool) {
	for set := c.shards; set != 0; set &= set - 1 {
		m.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
	now = m.under(c, now)
	at, room = now, true
	for i := range c.slots {
		s, p := &c.slots[i], &c.parts[i]
		if s.table == nil {
			s.table = m.tableOf(s.part, s.home, now)
		}
		if s.steps > 0 && c.isTwin(i) {
			continue
		}
		at = max(at, m.load(s, p, c.slots[:i], now))
		room = room && s.place != noRoom
	}
	return at, room
}

// under is the time to decide at, now that the locks are held: see reading.
func (m *Memory) under(c *call, now int64) int64 {
	if m.clock.Injected() {
		return now
	}
	for set := c.shards; set != 0; set &= set - 1 {
		now = max(now, m.shards[bits.TrailingZeros64(set)].newest)
	}
	for set := c.shards; set != 0; set &= set - 1 {
		m.shards[bits.TrailingZeros64(set)].newest = now
	}
	return now
}

// load finds the state of a part, and the instant from which on it is known. The
// slots before it in its call are loaded.
func (m *Memory) load(s *slot, p *algorithm.Part, loaded []slot, now int64) int64 {
	if s.table.hasWords() {
		switch s.borrow(p, now) {
		case asWord:
			if s.word == table.Fresh {
				return s.table.Words.Swept()
			}
			return now
		case noRoom:
			return now
		}
	}
	shard := s.shard(m)
	if found := s.cells().find(s.hash); found != nil {
		s.place, p.State = asCell, found.state
		return now
	}
	if !s.table.hasWords() {
		switch {
		case shard.cellsOf(s.table, s.hash).promise(loaded, now):
			s.place = newCell
		case s.part.Endless && p.Cost <= 0:
			s.place = asFresh
		default:
			s.place = noRoom
		}
	}
	p.State = p.Algorithm.Fresh()
	return shard.swept
}

// store writes back the states that the decision changed: first those that have
// a place, then those that need a new one. For that what is idle at the reading
// of the clock may be forgotten; not at the instant decided at, if that is later,
// or time behind it would find room again.
func (m *Memory) store(c *call, changed bool, now int64) {
	if !changed {
		return
	}
	for i := range c.slots {
		if s := &c.slots[i]; c.parts[i].Cost != 0 && s.place != newCell && s.place != asTwin && s.place != asFresh {
			s.save(&c.parts[i], now)
		}
	}
	for i := range c.slots {
		if s := &c.slots[i]; c.parts[i].Cost != 0 && s.place == newCell {
			m.addCell(s, c.parts[i].State, now)
		}
	}
}

// save puts a state where it fits: a word, or a cell. A cell for what was a word
// is new. One that is idle now makes room for another key if there is none.
func (s *slot) save(p *algorithm.Part, now int64) {
	if s.table.hasWords() {
		if word, ok := s.part.Words.Pack(p.State, s.table.Base); ok {
			s.word = word
			if s.place == asCell {
				s.cells().remove(s.hash)
			}
			s.place = asWord
			return
		}
	}
	if s.place == asCell {
		cells := s.cells()
		found := cells.find(s.hash)
		found.part, found.state = s.part, p.State
		if !s.table.hasWords() && !cells.hasRoom() && found.idle(now) {
			cells.evict(s.hash, now)
			s.place = unplaced
		}
	} else {
		s.place = newCell
	}
}

// addCell puts in a new cell, which was promised where states are no words.
func (m *Memory) addCell(s *slot, state algorithm.State, now int64) {
	c := s.shard(m).cellsOf(s.table, s.hash)
	c.add(s.hash, s.part, state, now)
	if !s.table.hasWords() {
		c.promised--
	}
	s.place = asCell
}

// reset makes a key fresh. One that found no room shares its state with others,
// who keep it.
func (s *slot) reset() {
	if s.place == asCell {
		s.cells().remove(s.hash)
		s.place = unplaced
		if s.table.hasWords() {
			s.place = asWord
		}
	}
	s.word = table.Fresh
}

// unlock gives back what was borrowed.
func (m *Memory) unlock(c *call, now int64) {
	for i := range c.slots {
		switch s := &c.slots[i]; s.place {
		case asWord:
			s.table.Put(s.hash, s.word)
		case newCell:
			s.cells().promised--
		}
	}
	for set := c.shards; set != 0; set &= set - 1 {
		m.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// decision names the rule and key of the binding part.
func (c *call) decision(a algorithm.Answer) Decision {
	d := decision(a)
	q := &c.requests[c.slots[a.Binding].request]
	d.Rule, d.Key = q.Rule.Name, q.Key
	return d
}
