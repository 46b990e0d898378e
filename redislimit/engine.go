// Package redislimit is the weir.Engine whose states live in Redis or Valkey, so
// that a limit holds across processes and machines. Start with [Open] for a URL,
// or [New] for a rueidis client of your own:
//
//	engine, err := redislimit.Open("redis://127.0.0.1:6379", redislimit.Options{})
//	defer engine.Close()
//	d, err := engine.Take(ctx, login.For("alice", 1))
//
// A decision is one round trip, however many limits and keys it holds, and
// decisions of concurrent callers share round trips: whoever comes while a call
// is under way joins the next one. One script decides them all in order, each on
// its own, exactly, by the server's clock. docs/redis.md describes the flow of a
// decision, what Redis has to allow, and which way failures err.
package redislimit

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Engine is a weir.Engine over Redis. All methods may be called concurrently.
type Engine struct {
	client  rueidis.Client // nil if there is a sender
	sender  Sender
	conns   *connections // of a client that Open made, which Close closes too
	closed  atomic.Bool
	options Options
	keys    keys
	lanes   atomic.Pointer[[]committer] // one for each lane of a cluster, else one for all
	crossed atomic.Bool                 // a cluster behind one address was found out
	most    int
	pool    sync.Pool // of *submission
	stats   counters
}

var (
	_ weir.Engine    = (*Engine)(nil)
	_ weir.UpToTaker = (*Engine)(nil)
)

// New makes an engine over a rueidis client, which stays the caller's, of one
// server, of Sentinel or of a cluster. It does no call.
func New(client rueidis.Client, options Options) (*Engine, error) {
	options.OneSlot = options.OneSlot || client.Mode() == rueidis.ClientModeCluster
	return newEngine(client, nil, options)
}

func newEngine(client rueidis.Client, sender Sender, options Options) (*Engine, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	e := &Engine{client: client, sender: sender, options: options, most: options.Batch}
	e.keys = keys{prefix: options.Prefix, lanes: uint64(options.Lanes)}
	e.pool.New = func() any { return &submission{done: make(chan struct{}, 1)} }
	if options.OneSlot {
		e.setLanes(options.Lanes)
	} else {
		e.setLanes(1)
	}
	return e, nil
}

// setLanes makes the committers, each for the lanes that may share a call.
func (e *Engine) setLanes(n int) {
	lanes := make([]committer, n)
	for i := range lanes {
		lanes[i] = committer{run: e.run, most: e.most, worth: (e.most + 3) / 4}
	}
	e.lanes.Store(&lanes)
}

// keepToOneSlot has each call keep to one slot from now on.
func (e *Engine) keepToOneSlot() {
	if len(e.committers()) == 1 && !e.crossed.Swap(true) {
		e.setLanes(e.options.Lanes)
	}
}

// Open makes an engine from a URL, as [ParseURL] reads it. What the URL says of
// the engine replaces what options say. Close closes its connections.
func Open(url string, options Options) (*Engine, error) {
	client, said, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options = said.over(options)
	conns := &connections{}
	client.DialCtxFn = conns.dial
	connected, err := rueidis.NewClient(client)
	if err != nil {
		return nil, cannotOpen(client.InitAddress, err)
	}
	e, err := New(connected, options)
	if err != nil {
		connected.Close()
		return nil, err
	}
	e.conns = conns
	if err := checkVersion(connected, strings.Join(client.InitAddress, ", ")); err != nil {
		connected.Close()
		return nil, err
	}
	return e, nil
}

// Close ends the connections that Open made. Later decisions are errors, and so
// are those that wait for Redis: they may have been counted. A client that was
// given to New stays open.
func (e *Engine) Close() {
	if e.closed.Swap(true) || e.conns == nil {
		return
	}
	e.client.Close()
}

// Take admits the cost of all requests now, or none.
func (e *Engine) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.decide(ctx, opTake, requests)
}

// Peek is the answer Take would give, and writes nothing.
func (e *Engine) Peek(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.decide(ctx, opPeek, requests)
}

// Record counts the cost whether it fits or not; a negative one gives back.
func (e *Engine) Record(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.decide(ctx, opRecord, requests)
}

// Reset forgets the keys of the requests under their rules.
func (e *Engine) Reset(ctx context.Context, requests ...weir.Request) error {
	_, err := e.decide(ctx, opReset, requests)
	return err
}

// Reserve is Take with a handle to settle or cancel.
func (e *Engine) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	return weir.Reserve(ctx, e, requests...)
}

// Check says which limits of the rules are beyond what Redis holds exactly.
func (e *Engine) Check(rules ...*weir.Rule) error {
	return enginekit.Check(rules, func(r *weir.Rule) error { return enginekit.Keep(r, compile).err })
}

// decide answers requests that are one decision.
func (e *Engine) decide(ctx context.Context, o op, requests []weir.Request) (weir.Decision, error) {
	_, d, err := e.decideTimes(ctx, o, 1, requests)
	return d, err
}

// decideTimes is decide, except that a take takes the requests as many times as
// they fit, most times at most. It returns that number.
func (e *Engine) decideTimes(ctx context.Context, o op, most int64, requests []weir.Request) (times int64, d weir.Decision, err error) {
	requests, err = enginekit.Merge(enginekit.Op(o.String()), requests)
	if err != nil {
		return 0, weir.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return 0, weir.Decision{}, cannotDecide(o.String(), err)
	}
	s := e.submission()
	parts, at, err := e.parts(s.few[:0], requests)
	if err != nil {
		return 0, weir.Decision{}, err
	}
	ask := int64(1)
	if most > 1 {
		most, ask = ofFresh(most, requests)
	}
	q := asking(o, ask, parts, at)
	switch {
	case len(parts) == 0:
		times = most
		d, err = e.withoutState(o, requests)
	case at.oneLane:
		times, d, err = e.inOneCall(ctx, o, s, q, requests)
	default:
		times, d, err = e.across(ctx, o, q, requests)
	}
	switch {
	case err != nil || !d.Allowed:
		return 0, d, err
	case q.op == opUpTo:
		return times, d, nil
	}
	return most, d, nil
}

// inOneCall has the question q of a verb answered in one call of the script.
func (e *Engine) inOneCall(ctx context.Context, o op, s *submission, q decision, requests []weir.Request) (times int64, _ weir.Decision, err error) {
	s.one[0] = q
	s.decisions = s.one[:]
	if err := e.ask(ctx, s); err != nil {
		return 0, weir.Decision{}, cannotDecide(o.String(), err)
	}
	defer e.release(s)
	if err := s.one[0].err; err == errCrossing {
		return e.across(ctx, o, q, requests)
	} else if err != nil {
		return 0, weir.Decision{}, cannotDecide(o.String(), err)
	}
	if o == opReset {
		return 0, weir.Decision{}, nil
	}
	return s.one[0].count(), answer(o, q.parts, requests), nil
}

// ask has s answered by the committer of its keys. After an error s is not ours
// any more: its answer may still come.
func (e *Engine) ask(ctx context.Context, s *submission) error {
	return e.committer(s.lane()).do(ctx, s)
}

func (e *Engine) committers() []committer { return *e.lanes.Load() }

func (e *Engine) committer(lane int) *committer {
	lanes := e.committers()
	return &lanes[lane%len(lanes)]
}

// layout says how the parts of a decision can be decided.
type layout struct {
	oneLane bool // one call can decide them
	refused bool // a limit without a state refuses its cost
}

// parts are the limits of the requests, which are merged, with their keys. Limits
// without a state are left out.
func (e *Engine) parts(parts []part, requests []weir.Request) (_ []part, at layout, err error) {
	at.oneLane = true
	all := len(e.committers()) == 1
	for i := range requests {
		q := &requests[i]
		c := enginekit.Keep(q.Rule, compile)
		if c.err != nil {
			return nil, layout{}, c.err
		}
		place := q.Colocation
		if place == "" {
			place = q.Key
		}
		lane := e.keys.lane(place)
		for j := range c.limits {
			l := &c.limits[j]
			if l.kind == kindNone {
				at.refused = at.refused || q.Cost > l.capacity
				continue
			}
			at.oneLane = at.oneLane && (len(parts) == 0 || all || lane == parts[0].lane)
			parts = append(parts, part{limit: l, key: e.keys.name(lane, l.state, q.Key), lane: lane, request: i, cost: q.Cost, lease: q.Lease})
		}
	}
	return parts, at, nil
}

func (e *Engine) submission() *submission { return e.pool.Get().(*submission) }

// release keeps an answered submission for the next caller.
func (e *Engine) release(s *submission) {
	s.err, s.ctx = nil, nil
	s.state.Store(open)
	e.pool.Put(s)
}
