// Package memory is the engine that keeps its states in the process. It decides
// on requests whose rules are compiled, and answers with [algorithm.Answer].
// Package weir checks the requests, merges them, and describes the answers.
//
// One call, from top to bottom: engine.go decides. call.go finds the state of
// each part under the locks, and writes it back. states.go keeps the states of
// one limit: as words where they fit, otherwise as cells (cells.go) of shards
// (shard.go). overflow.go sends a key that finds no room to a state
// that it shares with others. names.go frees the states of rules that the program has
// no more. counts.go counts decisions. save.go and
// load.go write and read snapshots, whose format is in format.go.
package memory

import (
	"crypto/rand"
	"log/slog"
	"math"
	"runtime"
	"sync"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// Engine decides on requests. It is safe for concurrent use.
type Engine struct {
	number uint32 // for the homes of rules
	clock  *clock.Clock
	seed   *table.Seed
	states sync.Map // name of a limit's states to *limitStates
	tables sync.Map // name of the rules whose states have words, or of such states, to *word.Table
	rules  sync.Map // name of a rule to *ruleCounts
	shards [table.Shards]shard

	making sync.Mutex // of states and tables; it guards the next fields
	names  map[string]*named
	inTurn []*named // all of them
	turn   int      // the next to look at
	saves  int      // in progress
	idleAt int64    // when states of a name without rules were last found idle

	maxKeys    int
	maxParents int
	parent     func(key string) (string, bool) // nil if keys have none
	overflow   overflowReport
}

// Options configure an Engine.
type Options struct {
	Clock *clock.Clock
	// MaxKeys bounds the keys that one limit of a rule remembers. 0 means no bound. Less than 0 is for tests of
	// shared states: no key finds room, every parent does, and bans are shared like all states.
	MaxKeys int
	// Parent returns the key whose state a key without room shares.
	Parent func(key string) (parent string, ok bool)
	// Logger receives a warning when keys find no room, at most once a minute; nil means no logging.
	Logger *slog.Logger
}

// New returns an engine without states.
func New(options Options) *Engine {
	var secret [table.SecretBytes]byte
	rand.Read(secret[:]) // never fails
	e := &Engine{number: engines.Add(1), clock: options.Clock, seed: table.NewSeed(secret), maxKeys: options.MaxKeys, parent: options.Parent, names: map[string]*named{}, idleAt: math.MinInt64}
	if e.maxKeys > 0 {
		e.maxParents = max(e.maxKeys/keysPerParent, minParents)
	}
	e.overflow.logger = options.Logger
	e.overflow.lastLog.Store(math.MinInt64)
	for i := range e.shards {
		e.shards[i].lastEviction = math.MinInt64
	}
	return e
}

// TakeOne takes one request on the fast path. It decides if the states of all limits of the rule are in words, or if the
// only one is in a cell; otherwise it returns the zero Decided, and nothing has happened. The request must be checked, and
// a must be zero. The Binding of the answer means nothing.
func (e *Engine) TakeOne(r *compiled.Rule, key string, cost int64, a *algorithm.Answer) Decided {
	words := r.Parts[0].Words != nil
	if !words && len(r.Parts) > 1 { // it costs no reading of the clock
		return Decided{}
	}
	now := e.clock.Now()
	home, h := e.homeOf(r, now), e.seed.Hash(key)
	done := false
	if words {
		done = home.row != nil && home.take(h, now, cost, a)
	} else {
		done = e.takeCell(home.parts[0].states, &r.Parts[0], h, now, cost, a)
	}
	if !done {
		return Decided{}
	}
	runtime.KeepAlive(r) // so that its states were not freed: see named
	return Decided{home.counts}
}

// takeCell decides on the state of a known key, if there is room for further ones: then no state is moved or shared.
func (e *Engine) takeCell(states *limitStates, p *compiled.Part, h table.Hash, now, cost int64, a *algorithm.Answer) (done bool) {
	s := &e.shards[h%table.Shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	cells := states.cells[h%table.Shards]
	found := cells.find(h)
	if found == nil || !cells.hasRoom() {
		return false
	}
	if !e.clock.Injected() {
		s.newest = max(s.newest, now)
		now = s.newest
	}
	if algorithm.TakeOne(p.Algorithm, &found.state, now, cost, 0, a); a.Changed {
		found.part = p
	}
	return true
}

func (h *home) take(key table.Hash, now, cost int64, a *algorithm.Answer) (done bool) {
	if len(h.parts) == 1 {
		return h.parts[0].limit.Take(key, now, cost, a)
	}
	done = word.Decide([]word.Ask{{Row: h.row, Key: key, Cost: cost}}, now, false, a)
	a.Ordinal = uint8(a.Binding)
	return done
}

// Verb is what a call asks for.
type Verb uint8

const (
	Take     Verb = iota // admit the cost of all requests now, or of none
	TakeUpTo             // take all requests as many times as they fit, up to n
	Peek                 // the answer of Take right after n units of each request's key were taken; it writes nothing
	Record               // count the cost even if it does not fit; a negative cost gives units back
	Undo                 // give back the units of a take that still count
	Renew                // restart the leases of slots, if all of them are held
)

// Decide makes a call, whose requests must be checked and merged. The Binding of the answer is the index of a request.
// times is how often TakeUpTo has taken the requests.
func (e *Engine) Decide(verb Verb, requests []compiled.Request, n int64) (times int64, answer algorithm.Answer, err error) {
	var space callSpace
	reading := e.clock.Now()
	c := e.layOut(requests, reading, &space)
	now, err := e.lock(&c, reading)
	if err != nil {
		return 0, algorithm.Answer{}, err
	}
	defer e.unlock(&c, now)
	switch verb {
	case Take:
		answer = algorithm.Take(c.parts, now)
	case TakeUpTo:
		times, answer = algorithm.TakeUpTo(c.parts, now, n)
	case Peek:
		answer = algorithm.PeekAfter(c.parts, now, n)
	case Record:
		answer = algorithm.Record(c.parts, now)
	case Undo:
		answer = algorithm.Undo(c.parts, now)
	case Renew:
		answer = algorithm.Renew(c.parts, now)
	}
	if verb <= TakeUpTo && answer.Allowed && requests[0].Lease != 0 {
		c.noteTaken(now)
	}
	e.store(&c, answer.Changed, reading)
	c.nameBinding(&answer)
	if verb == Take || verb == TakeUpTo {
		c.count(&answer)
		if !answer.Allowed {
			c.countBans()
		}
	}
	return times, answer, nil
}

// Now reads the clock.
func (e *Engine) Now() int64 { return e.clock.Now() }

// Ask returns a request for DecideOnWords. ok is false if the states of its rule have no words.
func (e *Engine) Ask(r *compiled.Rule, key string, cost, now int64) (_ word.Ask, ok bool) {
	h := e.homeOf(r, now)
	return word.Ask{Row: h.row, Key: e.seed.Hash(key), Cost: cost}, h.row != nil
}

// DecideOnWords takes or peeks several requests on the fast path: see TakeOne. The Binding of the answer, which must be
// zero, is the index of a request.
func (e *Engine) DecideOnWords(verb Verb, asks []word.Ask, now int64, a *algorithm.Answer) (done bool) {
	if !word.Decide(asks, now, verb == Peek, a) {
		return false
	}
	part, binding := a.Binding, 0
	for ; part >= len(homeOf(&asks[binding]).parts); binding++ {
		part -= len(homeOf(&asks[binding]).parts)
	}
	a.Binding, a.Ordinal = binding, uint8(part)
	if verb == Take {
		for i := range asks {
			homeOf(&asks[i]).counts.count(a.Allowed || i != binding)
		}
	}
	return true
}

func homeOf(q *word.Ask) *home { return q.Row.Owner.(*home) }

// Reset clears the keys of the requests under their rules. A key without room shares its state with others, which
// keep it, unless shared says that they lose it as well; only tests say so.
func (e *Engine) Reset(requests []compiled.Request, shared bool) (err error) {
	var space callSpace
	now := e.clock.Now()
	c := e.layOut(requests, now, &space)
	if shared {
		_, err = e.lock(&c, now)
	} else {
		e.tryLock(&c, now)
	}
	if err == nil {
		defer e.unlock(&c, now)
		c.reset()
	}
	return err
}
