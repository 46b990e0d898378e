// Package redislimit is the weir.Engine that keeps its states in Redis or Valkey, so that a limit holds across
// processes and machines. Start with [Open] for a URL, [New] for a rueidis client, or [NewWith] for any other client:
//
//	engine, err := redislimit.Open("redis://127.0.0.1:6379", redislimit.Options{})
//	defer engine.Close()
//	d, err := engine.Take(ctx, login.For("alice", 1))
//
// A decision takes one round trip, for any number of limits and keys. Concurrent callers share round trips: a caller
// that comes during a call joins the next one. One script makes all decisions of a call in order, each on its own,
// exactly, by the server's clock. docs/redis.md describes the flow of a decision, the permissions that the engine
// needs, and the effect of failures.
package redislimit

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Engine is a weir.Engine over Redis. It is safe for concurrent use.
type Engine struct {
	client  rueidis.Client // nil with a sender, and with a link
	link    *link
	sender  Sender
	script  sendable
	conns   *connections // of a client that Open made; Close closes it
	closed  atomic.Bool
	options Options
	keys    keys
	lanes   atomic.Pointer[[]committer] // one per lane of a cluster, otherwise one
	crossed atomic.Bool                 // the engine has found a cluster behind one address
	most    int
	pool    sync.Pool // of *submission
	singles sync.Pool // see newSingle
	stats   counters
	steps   stepLog
	watch   atomic.Int64 // the keys left to look for under their names in earlier versions

	background background
	holds      holds
	entered    entered
}

var (
	_ weir.Engine     = (*Engine)(nil)
	_ weir.Holder     = (*Engine)(nil)
	_ weir.LineKeeper = (*Engine)(nil)
)

// New returns an engine over a rueidis client of one server, of Sentinel or of a cluster. The caller keeps ownership
// of the client. New makes no call.
func New(client rueidis.Client, options Options) (*Engine, error) {
	options.OneSlot = options.OneSlot || client.Mode() == rueidis.ClientModeCluster
	return newEngine(client, nil, options)
}

func newEngine(client rueidis.Client, sender Sender, options Options) (*Engine, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	e := &Engine{client: client, sender: sender, script: theScript(), options: options, most: options.Batch}
	e.watch.Store(firstWatched)
	e.keys = newKeys(options.Prefix, options.Lanes)
	e.pool.New = func() any { return &submission{done: make(chan struct{}, 1)} }
	e.singles.New = newSingle
	if options.OneSlot {
		e.setLanes(options.Lanes)
	} else {
		e.setLanes(1)
	}
	return e, nil
}

// setLanes makes the committers, each for lanes that may share a call.
func (e *Engine) setLanes(n int) {
	lanes, all := make([]committer, n), new(trips)
	for i := range lanes {
		lanes[i] = committer{run: e.run, most: e.most, worth: (e.most + 3) / 4, unheard: &e.stats.unheard, distance: distance{most: e.options.Flights, all: all}}
	}
	e.lanes.Store(&lanes)
}

// keepToOneSlot makes each call keep to one slot from now on.
func (e *Engine) keepToOneSlot() {
	if len(e.committers()) == 1 && !e.crossed.Swap(true) {
		e.setLanes(e.options.Lanes)
	}
}

// Open returns an engine for a URL, as [ParseURL] reads it. Options in the URL override those in options. Close
// closes its connections. If no server answers, that is an error, unless [Options.ConnectLater] is set.
func Open(url string, options Options) (*Engine, error) {
	client, said, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options = said.over(options)
	conns := &connections{}
	client.DialCtxFn = conns.dial
	e, err := openWith(client, options)
	if err != nil {
		return nil, err
	}
	e.conns = conns
	return e, nil
}

func openWith(client rueidis.ClientOption, options Options) (*Engine, error) {
	connected, err := connect(client)
	if err != nil && options.ConnectLater && failure(err).Reason == Lost {
		e, err := newEngine(nil, nil, options)
		if err != nil {
			return nil, err
		}
		e.link = &link{open: func() (rueidis.Client, error) { return connect(client) }}
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := New(connected, options)
	if err != nil {
		connected.Close()
	}
	return e, err
}

// connect returns a client of servers that are not too old.
func connect(option rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, cannotOpen(option.InitAddress, err)
	}
	if err := checkVersion(client, strings.Join(option.InitAddress, ", ")); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Close closes the connections that Open made. Later and pending decisions fail; pending ones may have been counted.
// The slots of reservations are no longer renewed, and count as lost. Close does not close a client that was passed to
// New.
func (e *Engine) Close() {
	if e.closed.Swap(true) {
		return
	}
	e.background.close()
	e.holds.lose()
	e.entered.close()
	if e.conns != nil {
		e.closeClient()
	}
}

// Punctual returns true: a call ends with its context or its Within, whatever the server does.
func (e *Engine) Punctual() bool { return true }

// Do makes one call.
func (e *Engine) Do(ctx context.Context, c weir.Call) (a weir.Answer, err error) {
	ctx, cancel := c.Bound(ctx)
	defer cancel()
	switch c.Op {
	case weir.OpTake:
		if c.Lease == 0 && c.Identity == "" {
			a.Decision, err = e.Take(ctx, c.Requests...)
			return a, err
		}
		return e.decide(ctx, opTake, c)
	case weir.OpTakeUpTo:
		return e.takeUpTo(ctx, c)
	case weir.OpReserve:
		return weir.Reserve(ctx, e, leased(c))
	case weir.OpReserveAhead:
		return e.reserveAhead(ctx, c)
	case weir.OpPeek:
		return e.decide(ctx, opPeek, c)
	case weir.OpRecord, weir.OpReturn:
		return e.decide(ctx, opRecord, c)
	case weir.OpReset:
		return e.decide(ctx, opReset, c)
	case weir.OpEach:
		if c.Each != nil {
			err = e.Each(ctx, c.Each.Calls, c.Each.Results)
		}
		return a, err
	}
	return a, weir.Unsupported(c.Op, "is unknown")
}

// Take admits the cost of all requests now, or of none.
func (e *Engine) Take(ctx context.Context, requests ...weir.Request) (d weir.Decision, err error) {
	if s := e.single(ctx, requests); s != nil {
		err = e.takeSingle(ctx, s, requests, &d)
		return d, err
	}
	return e.plain(ctx, opTake, requests)
}

// Peek returns the answer that Take would give, without writing anything.
func (e *Engine) Peek(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.plain(ctx, opPeek, requests)
}

// Record counts the cost even if it does not fit.
func (e *Engine) Record(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.plain(ctx, opRecord, requests)
}

// Return gives units back.
func (e *Engine) Return(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	a, err := e.decide(ctx, opRecord, weir.Call{Op: weir.OpReturn, Requests: requests})
	return a.Decision, err
}

// Reset clears the keys of the requests under their rules.
func (e *Engine) Reset(ctx context.Context, requests ...weir.Request) error {
	_, err := e.plain(ctx, opReset, requests)
	return err
}

// Reserve takes the requests and returns a reservation.
func (e *Engine) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	a, err := weir.Reserve(ctx, e, weir.Call{Op: weir.OpReserve, Requests: requests})
	return a.Reservation, err
}

// Check returns the limits of the rules that Redis cannot hold exactly.
func (e *Engine) Check(rules ...*weir.Rule) error {
	return enginekit.Check(rules, func(r *weir.Rule) error { return enginekit.Keep(r, compile).err })
}

// plain makes one decision on requests without a lease or an identity.
func (e *Engine) plain(ctx context.Context, o op, requests []weir.Request) (weir.Decision, error) {
	_, d, err := e.decideTimes(ctx, o, 1, weir.Call{Requests: requests})
	return d, err
}

// decide makes one decision on the requests of a call.
func (e *Engine) decide(ctx context.Context, o op, c weir.Call) (weir.Answer, error) {
	_, d, err := e.decideTimes(ctx, o, 1, c)
	return weir.Answer{Decision: d}, err
}

// decideTimes works like decide, except that a take takes the requests as often as they fit, up to most times. It
// returns the number of times.
func (e *Engine) decideTimes(ctx context.Context, o op, most int64, c weir.Call) (times int64, d weir.Decision, err error) {
	identity := c.Identity
	if err := enginekit.CheckIdentity(o.verb(), identity); err != nil {
		return 0, weir.Decision{}, err
	}
	requests, err := mergedOf(o, &c)
	if err != nil {
		return 0, weir.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return 0, weir.Decision{}, cannotDecide(o.String(), uncounted(Cancelled, err))
	}
	s := e.submission()
	parts, at, err := e.parts(s.few[:0], requests, c.Lease)
	if err == nil {
		err = cmp.Or(checkLeases(o, parts, requests), tooMuch(o, parts))
	}
	if err != nil {
		return 0, weir.Decision{}, err
	}
	if at.leased && o == opRecord {
		settle, whole := e.releasing(parts)
		defer func() { settle(err == nil && !d.Unrecorded) }()
		if whole {
			identity = "" // which an earlier decision may have had, whose release would be taken for this one
		}
	}
	ask, wanted := int64(1), most
	if most > 1 {
		most, ask = ofFresh(most, requests)
	}
	s.one[0] = asking(o, ask, parts, at)
	if free := ask < most; identity != "" && o == opTake && !free {
		s.one[0].takesAgain(wanted, ask)
	}
	upTo := cmp.Or(s.one[0].first, s.one[0].op) == opUpTo
	if upTo {
		s.one[0].most = wanted
	}
	switch {
	case len(parts) == 0:
		times = most
		d, err = e.withoutState(o, requests)
	case at.oneLane:
		times, d, err = e.inOneCall(ctx, o, s, identity, requests)
	default:
		times, d, err = e.across(ctx, o, s.one[0], identity, requests)
	}
	switch {
	case err != nil || !d.Allowed:
		return 0, d, err
	case upTo:
		return times, d, nil
	}
	return most, d, nil
}

// mergedOf returns the merged requests of a call. A return is a record of negative costs.
func mergedOf(o op, c *weir.Call) ([]weir.Request, error) {
	if c.Op != weir.OpReturn {
		return enginekit.Merge(o.verb(), c.Requests)
	}
	merged, err := enginekit.Merge(c.Op, c.Requests)
	if err != nil {
		return nil, err
	}
	merged = slices.Clone(merged)
	for i := range merged {
		merged[i].Cost *= -1
	}
	return merged, nil
}

// ask has the committer of its keys answer s. After an error, s no longer belongs to the caller, because its answer
// may still come.
func (e *Engine) ask(ctx context.Context, s *submission) error {
	return e.committer(s.lane()).do(ctx, s)
}

func (e *Engine) committers() []committer { return *e.lanes.Load() }

func (e *Engine) committer(lane int) *committer {
	lanes := e.committers()
	return &lanes[lane%len(lanes)]
}

// layout describes how to decide the parts of a decision.
type layout struct {
	oneLane bool // one call can decide them
	refused bool // a cost is above a capacity
	leased  bool // some of the parts are slots
}

// parts returns the limits of merged requests, with their keys. It leaves out limits without a state.
func (e *Engine) parts(parts []part, requests []weir.Request, lease uint64) (_ []part, at layout, err error) {
	at.oneLane = true
	all := len(e.committers()) == 1
	for i := range requests {
		q := &requests[i]
		c := enginekit.Keep(q.Rule, compile)
		if c.err != nil {
			return nil, layout{}, c.err
		}
		lane := e.keys.laneOf(q)
		shared := "" // the key of the states of fixed size
		for j := range c.limits {
			l := &c.limits[j]
			at.refused = at.refused || q.Cost > l.capacity
			if l.kind == kindNone {
				continue
			}
			at.leased = at.leased || l.kind == kindSlots
			at.oneLane = at.oneLane && (len(parts) == 0 || all || lane == parts[0].lane)
			parts = append(parts, part{limit: l, lane: lane, request: i, cost: q.Cost, lease: lease})
			p := &parts[len(parts)-1]
			if p.joins = l.kind.fixed() && shared != ""; p.joins {
				p.key = shared
			} else {
				p.key = e.keys.name(lane, l.state, q.Key)
			}
			if l.kind.fixed() {
				shared = p.key
			}
		}
	}
	return parts, at, nil
}

func (e *Engine) submission() *submission { return e.pool.Get().(*submission) }

// release keeps an answered submission for reuse.
func (e *Engine) release(s *submission) {
	s.err, s.ctx, s.decided, s.composed.asked = nil, nil, 0, false
	s.state.Store(open)
	e.pool.Put(s)
}
