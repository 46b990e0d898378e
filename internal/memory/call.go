package memory

import (
	"math/bits"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// call is one decision: the parts of all requests, and where their states are.
type call struct {
	requests []rule.Request
	parts    []algorithm.Part
	accesses []access // one for each part
	shards   uint64   // the set of shards that hold the states
}

// callSpace lets a small call stay on the stack. For that, a call is passed by
// value while it grows, and does not hold the engine: the compiler moves to the
// heap whatever is stored through a pointer, or beside a value that escapes.
type callSpace struct {
	parts    [4]algorithm.Part
	accesses [4]access
}

// access is the use that a call makes of one state.
type access struct {
	key     string // of the request, its parent or its group
	request int
	hash    table.Hash
	part    *rule.Part
	home    *atomic.Pointer[limitStates]
	states  *limitStates
	word    uint64 // borrowed from the words of states
	place   place
	steps   uint8 // number of moves to a shared state
}

// place is the place of an access's state.
type place uint8

const (
	nowhere     place = iota
	inWord            // borrowed; unlock puts it back
	inCell            // in a cell of the shard
	inNewCell         // in a cell that store adds; reserved if the states have no words
	inEarlier         // in an earlier access of the call, which shares the state
	returnOnly        // nowhere, and the call only gives units back, which needs no room
	withoutRoom       // nowhere, and there is no room for it
)

// layOut lists the parts of checked and merged requests.
func layOut(requests []rule.Request, seed *table.Seed, space *callSpace) call {
	c := call{requests: requests, parts: space.parts[:0], accesses: space.accesses[:0]}
	for i := range requests {
		c = c.withParts(i, seed)
	}
	return c
}

func (c call) withParts(request int, seed *table.Seed) call {
	q := &c.requests[request]
	h := seed.Hash(q.Key)
	c.shards |= 1 << (h % table.Shards)
	home := homeOf(q.Rule)
	for i := range q.Rule.Parts {
		p := &q.Rule.Parts[i]
		c.parts = append(c.parts, algorithm.Part{Algorithm: p.Algorithm, Cost: q.Cost, Lease: q.Lease})
		c.accesses = append(c.accesses, access{key: q.Key, request: request, hash: h, part: p, home: &home.parts[i]})
	}
	return c
}

// lock takes the locks of all shards in order and loads the states, including the
// shared states of keys that find no room. It returns the instant to decide at.
// That is now, unless a missing key may have been evicted later than now: then the
// key counts as new since its eviction.
//
// The error is of a key that finds no room and cannot share. Then no lock is held.
func (e *Engine) lock(c *call, now int64) (at int64, err error) {
	at, room := e.tryLock(c, now)
	if room {
		return at, nil
	}
	for !room {
		e.unlock(c)
		if err := e.moveToShared(c, now); err != nil {
			return 0, err
		}
		at, room = e.tryLock(c, now)
	}
	c.sumSharedCosts()
	return at, nil
}

// tryLock works like lock and reports whether there was room for the keys.
func (e *Engine) tryLock(c *call, now int64) (at int64, room bool) {
	for set := c.shards; set != 0; set &= set - 1 {
		e.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
	now = e.latest(c, now)
	at, room = now, true
	for i := range c.accesses {
		x, p := &c.accesses[i], &c.parts[i]
		if x.states == nil {
			x.states = e.statesOf(x.part, x.home, now)
		}
		if x.steps > 0 && c.isShared(i) {
			continue
		}
		at = max(at, e.load(x, p, c.accesses[:i], now))
		room = room && x.place != withoutRoom
	}
	return at, room
}

// latest returns the time of the decision under the locks: see [clock.Reading].
func (e *Engine) latest(c *call, now int64) int64 {
	if e.clock.Injected() {
		return now
	}
	for set := c.shards; set != 0; set &= set - 1 {
		now = max(now, e.shards[bits.TrailingZeros64(set)].newest)
	}
	for set := c.shards; set != 0; set &= set - 1 {
		e.shards[bits.TrailingZeros64(set)].newest = now
	}
	return now
}

// load finds the state of a part, and the instant since which it is known. earlier are the accesses of the call that
// are already loaded.
func (e *Engine) load(x *access, p *algorithm.Part, earlier []access, now int64) int64 {
	if x.states.hasWords() {
		switch x.borrow(p, now) {
		case inWord:
			if x.word == table.Fresh {
				return x.states.Words.Swept()
			}
			return now
		case withoutRoom:
			return now
		}
	}
	if found := x.cells().find(x.hash); found != nil {
		x.place, p.State = inCell, found.state
		return now
	}
	s := &e.shards[x.hash%table.Shards]
	if !x.states.hasWords() {
		switch {
		case s.cellsOf(x.states, x.hash).reserve(earlier, now):
			x.place = inNewCell
		case x.part.Endless && p.Cost <= 0:
			x.place = returnOnly
		default:
			x.place = withoutRoom
		}
	}
	p.State = p.Algorithm.Fresh()
	return s.lastEviction
}

// borrow takes the state of an access out of its word, if it is there and fits.
func (x *access) borrow(p *algorithm.Part, now int64) place {
	word, ok := x.states.Borrow(x.hash, now)
	switch {
	case ok:
		x.word, x.place = word, inWord
		p.State = x.states.Writer.Unpack(word, x.states.Base)
	case word == table.Elsewhere:
		x.place = nowhere // a cell holds it
	default:
		x.place = withoutRoom
	}
	return x.place
}

// store writes back the states that the decision changed: first those that have a place, then those that need a new
// cell. To make room it evicts states that are idle at the reading of the clock. It does not use the instant of the
// decision, which may be later, because a decision at an earlier time would then miss those states.
func (e *Engine) store(c *call, changed bool, now int64) {
	if !changed {
		return
	}
	for i := range c.accesses {
		switch x := &c.accesses[i]; x.place {
		case inNewCell, inEarlier, returnOnly:
		default:
			if c.parts[i].Changed {
				x.save(&c.parts[i], now)
			}
		}
	}
	for i := range c.accesses {
		if x := &c.accesses[i]; c.parts[i].Changed && x.place == inNewCell {
			e.addCell(x, c.parts[i].State, now)
		}
	}
}

// save stores a state in a word or a cell. A state that leaves its word needs a new cell. An idle one gives up its
// cell if there is no room for another key.
func (x *access) save(p *algorithm.Part, now int64) {
	if x.states.hasWords() {
		if word, ok := x.states.pack(p.State, now); ok {
			x.word = word
			if x.place == inCell {
				x.cells().remove(x.hash)
			}
			x.place = inWord
			return
		}
	}
	if x.place != inCell {
		x.place = inNewCell
		return
	}
	cells := x.cells()
	found := cells.find(x.hash)
	found.part, found.state = x.part, p.State
	if !x.states.hasWords() && !cells.hasRoom() && found.idle(now) {
		cells.evict(x.hash, now)
		x.place = nowhere
	}
}

// addCell adds a cell, which was reserved if the states have no words.
func (e *Engine) addCell(x *access, state algorithm.State, now int64) {
	cells := e.shards[x.hash%table.Shards].cellsOf(x.states, x.hash)
	cells.add(x.hash, x.part, state, now)
	if !x.states.hasWords() {
		cells.reserved--
	}
	x.place = inCell
}

// cells returns the cells of the state's limit in the state's shard, or nil.
func (x *access) cells() *cells { return x.states.cells[x.hash%table.Shards] }

// reset makes the states fresh.
func (c *call) reset() {
	for i := range c.accesses {
		x := &c.accesses[i]
		if x.place == inCell {
			x.cells().remove(x.hash)
			x.place = nowhere
			if x.states.hasWords() {
				x.place = inWord
			}
		}
		x.word = table.Fresh
	}
}

// unlock returns borrowed words, gives up unused reserved cells, and releases the locks.
func (e *Engine) unlock(c *call) {
	for i := range c.accesses {
		switch x := &c.accesses[i]; x.place {
		case inWord:
			x.states.Put(x.hash, x.word)
		case inNewCell:
			x.cells().reserved--
		}
	}
	for set := c.shards; set != 0; set &= set - 1 {
		e.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// nameBinding replaces the binding part of an answer by the index of its request.
func (c *call) nameBinding(a *algorithm.Answer) { a.Binding = c.accesses[a.Binding].request }
