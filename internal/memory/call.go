package memory

import (
	"math/bits"
	"runtime"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// call is one decision: the parts of all requests, and where their states are.
type call struct {
	requests []compiled.Request
	parts    []algorithm.Part
	accesses []access // one for each part
	shards   uint64   // the set of shards that hold the states
}

// callSpace lets a small call stay on the stack. For that, a call is passed by value while it grows, and does not hold
// the engine: the compiler moves values to the heap that are stored through a pointer, or beside a value that escapes.
type callSpace struct {
	parts    [4]algorithm.Part
	accesses [4]access
}

// access is the use that a call makes of one state.
type access struct {
	key     string // the key of the request, its parent or its group
	request int
	hash    table.Hash
	part    *compiled.Part
	own     *limitStates // the part's
	states  *limitStates // own, or those that the key shares
	limit   *word.Limit  // nil if states has no words
	words   word.Words   // the state's, if place is inWords
	loan    word.Loan    // the loan of their entry
	lender  int          // the access whose loan has the words
	place   place
	steps   uint8 // number of moves to a shared state
}

// place is the place of an access's state.
type place uint8

const (
	nowhere     place = iota
	inWords           // borrowed; unlock puts them back
	inCell            // in a cell of the shard
	inNewCell         // in a cell that store adds; reserved if the states have no words
	inEarlier         // in an earlier access of the call, which shares the state
	returnOnly        // nowhere, and the call needs no room: it only gives units back, or the state is that of a ban
	withoutRoom       // nowhere, and there is no room for it
)

// layOut lists the parts of checked and merged requests.
func (e *Engine) layOut(requests []compiled.Request, now int64, space *callSpace) call {
	c := call{requests: requests, parts: space.parts[:0], accesses: space.accesses[:0]}
	if n := len(requests); n > cap(c.parts) { // a large call does not grow step by step
		c.parts, c.accesses = make([]algorithm.Part, 0, n), make([]access, 0, n)
	}
	for i := range requests {
		c = c.withParts(i, e, now)
	}
	return c
}

func (c call) withParts(request int, e *Engine, now int64) call {
	q := &c.requests[request]
	h := e.seed.Hash(q.Key)
	c.shards |= 1 << (h % table.Shards)
	home := e.homeOf(q.Rule, now)
	for i := range q.Rule.Parts {
		p, u := &q.Rule.Parts[i], &home.parts[i]
		c.parts = append(c.parts, algorithm.Part{Algorithm: p.Algorithm, Cost: q.Cost, Lease: q.Lease, Taken: q.Taken, Request: uint8(request), Spared: q.Spared})
		c.accesses = append(c.accesses, access{key: q.Key, request: request, hash: h, part: p, own: u.states, states: u.states, limit: u.limit, lender: -1})
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
		e.unlock(c, now)
		if err := e.moveToShared(c, now); err != nil {
			return 0, err
		}
		at, room = e.tryLock(c, now)
	}
	c.sumSharedCosts()
	if e.maxKeys >= 0 {
		c.spareSharing()
	}
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
		x := &c.accesses[i]
		x.lender = -1
		if x.steps > 0 && c.isShared(i) {
			continue
		}
		at = max(at, e.load(c, i, now))
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

// load finds the state of the i-th part, and the instant since which it is known.
func (e *Engine) load(c *call, i int, now int64) int64 {
	x, p := &c.accesses[i], &c.parts[i]
	s := &e.shards[x.hash%table.Shards]
	s.busy = append(s.busy, x.hash)
	if x.states.hasWords() {
		switch c.borrow(i, now); x.place {
		case inWords:
			p.State = x.limit.Unpack(x.words)
			if x.words.First == table.Fresh {
				return x.states.column.Table().Swept()
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
	if !x.states.hasWords() {
		switch {
		case s.cellsOf(x.states, x.hash).reserve(now):
			x.place = inNewCell
		case x.part.Endless && p.Cost <= 0:
			x.place = returnOnly
		case x.part.Bans && e.maxKeys >= 0:
			x.place, p.NoRoom = returnOnly, true
		default:
			x.place = withoutRoom
		}
	}
	p.State = p.Algorithm.Fresh()
	return s.lastEviction
}

// borrow reads the words of an access, and borrows their entry unless an earlier access has. It sets the place:
// nowhere if a cell has the state.
func (c *call) borrow(i int, now int64) {
	x := &c.accesses[i]
	if x.lender = c.lenderOf(i); x.lender == i {
		var ok bool
		if x.loan, ok = x.states.column.Table().Borrow(x.hash, now); !ok {
			x.place, x.lender = withoutRoom, -1
			return
		}
	}
	x.words, x.place = c.accesses[x.lender].loan.Read(x.states.column), inWords
	if x.words.First == table.Elsewhere {
		x.place = nowhere
	}
}

// lenderOf returns the access that has borrowed the entry of the i-th access, or i if none has. Only accesses of one
// request share an entry, and those of keys that share states.
func (c *call) lenderOf(i int) int {
	x := &c.accesses[i]
	for j := i - 1; j >= 0 && (x.steps > 0 || c.accesses[j].request == x.request); j-- {
		if y := &c.accesses[j]; y.lender == j && y.loan.Of(x.states.column, x.hash) {
			return j
		}
	}
	return i
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

// save stores a state in words or a cell. A state that leaves its words needs a new cell. An idle one gives up its
// cell if there is no room for another key.
func (x *access) save(p *algorithm.Part, now int64) {
	if x.limit != nil {
		if words, ok := pack(x.limit, p.State, now); ok {
			x.words = words
			if x.place == inCell {
				x.cells().remove(x.hash)
			}
			x.place = inWords
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
		cells.evict(found, now)
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
				x.place = inWords
			}
		}
		x.words = word.Words{}
	}
}

// unlock returns borrowed entries, gives up unused reserved cells, and releases the locks.
func (e *Engine) unlock(c *call, now int64) {
	for i := range c.accesses {
		switch x := &c.accesses[i]; {
		case x.place == inNewCell:
			x.cells().reserved--
		case x.lender < 0 || x.place == inEarlier:
		case x.place == inCell:
			c.accesses[x.lender].loan.Write(x.states.column, word.Words{First: table.Elsewhere}, now)
		case x.place == inWords:
			c.accesses[x.lender].loan.Write(x.states.column, x.words, now)
		}
	}
	for i := range c.accesses {
		if x := &c.accesses[i]; x.lender == i {
			x.loan.Return(now)
			x.lender = -1
		}
	}
	for set := c.shards; set != 0; set &= set - 1 {
		s := &e.shards[bits.TrailingZeros64(set)]
		s.busy = s.busy[:0]
		s.mu.Unlock()
	}
	runtime.KeepAlive(c) // and its rules, so that their states were not freed: see named
}

// noteTaken sets when the units of a take were taken, for its undo. A limit may have written them later than
// now, if time has run back.
func (c *call) noteTaken(now int64) {
	for i := range c.requests {
		c.requests[i].Taken = now
	}
	for i := range c.accesses {
		if x, p := &c.accesses[i], &c.parts[i]; x.place != inEarlier && p.Changed {
			q := &c.requests[x.request]
			q.Taken = max(q.Taken, algorithm.TakenAt(p.Algorithm, p.State, now))
		}
	}
}

// nameBinding replaces the binding part of an answer by the index of its request and the ordinal of its limit.
func (c *call) nameBinding(a *algorithm.Answer) {
	part := a.Binding
	a.Binding = c.accesses[part].request
	for ; part > 0 && c.accesses[part-1].request == a.Binding; part-- {
		a.Ordinal++
	}
}
