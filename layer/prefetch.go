package layer

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// PrefetchOptions configure a Prefetch.
type PrefetchOptions struct {
	// MaxKeys bounds the keys that are looked at. The engine decides the others. Default: 100,000.
	MaxKeys int
	// MaxAge is how long a block lasts at most. One that is not used for a quarter of that goes back sooner. Default: 1 s.
	MaxAge time.Duration
}

const (
	defaultAge   = time.Second
	leastBlock   = 2  // units of a block that is worth taking ahead
	aheadOf      = 10 // at most a tenth of the capacity is taken ahead
	stockShards  = 64
	returnTime   = 100 * time.Millisecond // units are back within this time
	returnsBatch = 128
	fillTime     = 4 * time.Millisecond // how long a caller waits for answers to others before it asks on its own
)

// Prefetched is an engine with a Prefetch. It is safe for concurrent use.
type Prefetched struct {
	engine
	below   weir.Engine
	guard   *Guarded // below; nil without one
	next    weir.Next
	options PrefetchOptions
	seed    maphash.Seed
	clock   clock
	began   time.Time
	shards  [stockShards]stockShard
	keys    atomic.Int64
	counts  prefetchCounts

	mu       sync.Mutex
	sweeping bool
	closed   atomic.Bool
	end      chan struct{}
}

type prefetchCounts struct{ here, asked, returned, lost atomic.Uint64 }

type stockShard struct {
	mu  sync.RWMutex
	all map[stockKey]*stock
}

// stockKey names a key. Its stock belongs to the state that all rules of one name share.
type stockKey struct{ rule, key, colocation string }

// stock is the unused units that the process took ahead for one key.
type stock struct {
	name stockKey

	mu       sync.Mutex
	rule     *weir.Rule
	left     int64
	taken    []int64       // the engine's Taken of the block
	took     time.Duration // before the block was taken; all times are since Prefetched.began
	ends     time.Duration // when it must not be used any more
	used     time.Duration
	block    int64         // units to take ahead the next time
	decision weir.Decision // the engine's last answer; at is when it came
	at       time.Duration
	fill     *fill // that is on its way
	gone     bool  // another stock may have its place
}

// fill is a call of the engine, for one caller and those that come meanwhile.
type fill struct {
	done    chan struct{}
	cost    int64 // that was asked for
	refusal weir.Decision
	refused bool
	err     error
}

// Prefetch takes blocks of permits of busy keys ahead, and decides from them in process. At most a tenth of the capacity per
// key and process is taken ahead, so that any stretch of time admits at most that more than the limit.
//
// It takes ahead for keys of token buckets, and of a single window or cycle, with a capacity of at least 20. Calls of
// several requests and of any other rule go to the engine. A block lasts for PrefetchOptions.MaxAge and never beyond the
// end of a window. Unused permits go back, unless the limit has refilled them. Call Close to give everything back.
func Prefetch(e weir.Engine, options PrefetchOptions) (*Prefetched, error) {
	problems := []error{checkOver(e, prefetches)}
	if options.MaxKeys < 0 {
		problems = append(problems, optionError(prefetches, "maxKeys", "%d is negative", options.MaxKeys))
	}
	if options.MaxAge < 0 {
		problems = append(problems, optionError(prefetches, "maxAge", "%v is negative", options.MaxAge))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	options.MaxKeys, options.MaxAge = cmp.Or(options.MaxKeys, defaultLocalKeys), cmp.Or(options.MaxAge, defaultAge)
	p := &Prefetched{below: e, next: e.Do, options: options, seed: maphash.MakeSeed(), clock: clockOf(e), end: make(chan struct{})}
	p.began = p.clock.now()
	p.guard, _ = weir.Find[*Guarded](e)
	for i := range p.shards {
		p.shards[i].all = map[stockKey]*stock{}
	}
	p.engine = weir.Wrap(e, p.around)
	return p, nil
}

// Unwrap returns the engine below, for weir.Find.
func (p *Prefetched) Unwrap() weir.Engine { return p.below }

func (p *Prefetched) rank() rank { return prefetches }

func (p *Prefetched) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	if call.Op == weir.OpReserve {
		return weir.Kit.Reserve(ctx, p, call) // so that takes and settlements pass here
	}
	if len(call.Requests) != 1 || call.Identity != "" {
		return p.pass(ctx, call, next)
	}
	q := &call.Requests[0]
	if q.Cost < 0 || q.Cost == 0 && call.Op != weir.OpPeek || q.Rule == nil || q.Otherwise != nil || call.Within <= 0 && ctx.Err() != nil || len(q.Key) > weir.MaxKey || len(q.Colocation) > weir.MaxKey {
		return p.pass(ctx, call, next)
	}
	f := factsOf(q.Rule)
	if f.most == 0 {
		return p.pass(ctx, call, next)
	}
	switch call.Op {
	case weir.OpTake:
		return p.take(ctx, call, f)
	case weir.OpPeek:
		return p.peek(ctx, call, q)
	case weir.OpRecord:
		return p.record(ctx, call, q)
	case weir.OpReturn:
		return p.giveBack(ctx, call, q, f)
	}
	return p.pass(ctx, call, next)
}

// pass passes a call on that the stocks do not concern. A reset forgets them.
func (p *Prefetched) pass(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	a, err := next(ctx, call)
	if call.Op != weir.OpReset {
		return a, err
	}
	for i := range call.Requests {
		if q := &call.Requests[i]; q.Rule != nil {
			if s := p.find(q); s != nil {
				s.mu.Lock()
				s.left = 0
				s.mu.Unlock()
			}
		}
	}
	return a, err
}

// shard returns the shard of a key.
func (p *Prefetched) shard(key string) *stockShard {
	return &p.shards[maphash.String(p.seed, key)%stockShards]
}

// find returns the stock of a key, or nil.
func (p *Prefetched) find(q *weir.Request) *stock {
	shard := p.shard(q.Key)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.all[stockKey{q.Rule.Name(), q.Key, q.Colocation}]
}

// stock returns the stock of a key, and makes one if there is room.
func (p *Prefetched) stock(q *weir.Request) *stock {
	if s := p.find(q); s != nil {
		return s
	}
	if p.keys.Load() >= int64(p.options.MaxKeys) {
		return nil
	}
	name := stockKey{q.Rule.Name(), q.Key, q.Colocation}
	shard := p.shard(q.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	s := shard.all[name]
	if s == nil {
		s = &stock{name: name, rule: q.Rule}
		shard.all[name] = s
		p.keys.Add(1)
		p.sweep()
	}
	return s
}

// alive returns the units that may be used at an instant.
func (s *stock) alive(now time.Duration) int64 {
	if now < s.ends {
		return s.left
	}
	return 0
}

// Take works as on every engine. It keeps a request that the stock decides on the stack.
func (p *Prefetched) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	if len(requests) == 1 && requests[0].Rule != nil && requests[0].Cost > 0 && requests[0].Otherwise == nil && ctx.Err() == nil {
		if a, ok := p.takeHere(&requests[0]); ok {
			return a.Decision, nil
		}
	}
	return p.engine.Take(ctx, slices.Clone(requests)...)
}

// takeHere takes from the stock if there is enough.
func (p *Prefetched) takeHere(q *weir.Request) (a weir.Answer, ok bool) {
	s := p.find(q)
	if s == nil {
		return a, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := p.now()
	if s.gone || s.alive(now) < q.Cost || !sameLimits(s.rule, q.Rule) || p.closed.Load() {
		return a, false
	}
	return weir.Answer{Decision: p.use(s, q.Cost, now), Taken: s.taken}, true
}

// use takes a cost that the stock has. The caller holds the lock of s.
func (p *Prefetched) use(s *stock, cost int64, now time.Duration) weir.Decision {
	s.left -= cost
	s.used = now
	p.counts.here.Add(1)
	return s.answer(now)
}

// take takes from the stock, or asks the engine for the missing units.
func (p *Prefetched) take(ctx context.Context, call weir.Call, f *facts) (weir.Answer, error) {
	q := &call.Requests[0]
	var until time.Duration // when it does not wait for answers to others any more
	for {
		s := p.stock(q)
		if s == nil || p.closed.Load() {
			return p.next(ctx, call)
		}
		s.mu.Lock()
		switch now := p.now(); {
		case s.gone:
			s.mu.Unlock()
			continue
		case s.fill == nil && s.rule != q.Rule && !sameLimits(s.rule, q.Rule):
			p.change(s, q.Rule)
		case s.alive(now) >= q.Cost:
			a := weir.Answer{Decision: p.use(s, q.Cost, now), Taken: s.taken}
			s.mu.Unlock()
			return a, nil
		case s.fill != nil:
			wait, missing := s.fill, q.Cost-s.alive(now)
			s.mu.Unlock()
			until = cmp.Or(until, now+fillTime)
			if a, err, answered := p.await(ctx, call, wait, missing, until-now); answered {
				return a, err
			}
			continue
		default:
			return p.refill(ctx, call, s, f)
		}
		s.mu.Unlock()
	}
}

// answer is the decision on a cost that was taken from the stock.
func (s *stock) answer(now time.Duration) weir.Decision {
	d := s.decision
	d.Allowed, d.RetryAfter, d.Remaining = true, 0, d.Remaining+s.left
	d.RefusedBy, d.Cause = 0, 0
	age(&d, now-s.at)
	return d
}

// await waits for the engine's answer to another caller. A refusal is also one of any cost that is not smaller. If the
// answer takes longer than left, the caller asks on its own, so that it does not wait for many.
func (p *Prefetched) await(ctx context.Context, call weir.Call, f *fill, missing int64, left time.Duration) (a weir.Answer, err error, answered bool) {
	ended := ctx.Done()
	if call.Within > 0 {
		ended, left = nil, min(left, call.Within)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-f.done:
		return weir.Answer{Decision: f.refusal}, f.err, f.err != nil || f.refused && missing >= f.cost
	case <-ended:
		return a, leftError{ctx.Err()}, true
	case <-timer.C:
	}
	p.counts.asked.Add(1)
	a, err = p.next(ctx, call)
	if err == nil && !a.Decision.Allowed { // perhaps because the other caller has taken the rest ahead
		if here, ok := p.takeHere(&call.Requests[0]); ok {
			a = here
		}
	}
	return a, err, true
}

// leftError is the error of a caller that left while another one asked.
type leftError struct{ err error }

func (e leftError) Error() string          { return "layer: take: could not decide: " + e.err.Error() }
func (e leftError) Unwrap() error          { return e.err }
func (leftError) WasCounted() weir.Counted { return weir.CountedNo }

// refill asks the engine for the missing units, and for a block on top. The caller holds the lock of s, which refill
// releases.
func (p *Prefetched) refill(ctx context.Context, call weir.Call, s *stock, f *facts) (a weir.Answer, err error) {
	q := call.Requests[0]
	began := p.now()
	p.drop(s, began)
	kept := s.left
	s.left = 0 // so that no other caller uses it meanwhile
	q.Cost -= kept
	block := s.heat(began, f.most, p.options.MaxAge)
	s.fill = &fill{done: make(chan struct{}), cost: q.Cost}
	s.mu.Unlock()
	call.Requests = []weir.Request{q}
	if more := block / q.Cost; more > 0 {
		call.Op, call.Most = weir.OpTakeUpTo, 1+more
		call.Lease = cmp.Or(call.Lease, weir.Kit.NewLease()) // so that the answer tells the instant
	}
	p.counts.asked.Add(1)
	err = errPanicked // unless the engine answers
	defer func() {
		left := call.Within <= 0 && ctx.Err() != nil || call.Within > 0 && p.now()-began >= call.Within
		p.filled(s, f, &a, err, !left, kept, q.Cost, began)
		if p.closed.Load() {
			p.send(p.idle(p.now(), true))
		}
	}()
	if a, err = p.next(ctx, call); call.Op == weir.OpTakeUpTo && errors.Is(err, errors.ErrUnsupported) {
		call.Op, call.Most = weir.OpTake, 0 // so the engine cannot give blocks
		a, err = p.next(ctx, call)
	}
	return a, err
}

var errPanicked = errors.New("layer: take: the engine panicked")

// filled takes in the answer of the engine to a cost, and passes it to the callers that came meanwhile if it is shared.
// If the cost was admitted, the units kept in the stock are used.
func (p *Prefetched) filled(s *stock, f *facts, a *weir.Answer, err error, shared bool, kept, cost int64, began time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	filled, d := s.fill, a.Decision
	s.fill = nil
	if err == nil {
		s.decision, s.at = d, p.now()
	}
	switch {
	case err != nil || !d.Allowed:
		s.left = kept
	case d.Limit != weir.MaxCount: // otherwise a policy admits all, and no engine could take a block back
		taken := a.Taken
		if kept > 0 { // which must not come back to a later window
			a.Taken = s.taken
		}
		s.taken = taken
		s.left = min(scaled(cost, max(a.Times, 1)-1, 1), f.most)
		s.took, s.ends = began, began+p.options.MaxAge
		if known := &f.limits[0]; known.refill == weir.RefillWindow { // the answer names the end of this window, or of a later one
			s.ends = min(s.ends, began+(d.ResetAfter-1)%known.period+1)
		}
	}
	if a.Decision.Remaining, a.Times = d.Remaining+s.left, 0; shared { // otherwise the next one asks again
		filled.err, filled.refused, filled.refusal = err, err == nil && !d.Allowed, a.Decision
	}
	close(filled.done)
}

// heat returns the size of the next block: more if the last one was used up soon, and none for a key that was not used
// lately.
func (s *stock) heat(now time.Duration, most int64, age time.Duration) int64 {
	switch {
	case s.used == 0 || now-s.used > age:
		s.block = 0
	case s.block == 0:
		s.block = 1
	case now-s.took < age/4:
		s.block = min(2*s.block, most)
	}
	s.used = now
	return min(s.block, most)
}

// peek adds the stock to the answer of the engine.
func (p *Prefetched) peek(ctx context.Context, call weir.Call, q *weir.Request) (weir.Answer, error) {
	s := p.find(q)
	if s == nil {
		return p.next(ctx, call)
	}
	s.mu.Lock()
	left := s.alive(p.now())
	s.mu.Unlock()
	missing := *q
	missing.Cost = max(q.Cost-left, 0)
	call.Requests = []weir.Request{missing}
	a, err := p.next(ctx, call)
	a.Decision.Remaining += left
	return a, err
}

// record takes a cost from the stock, and has the engine record the rest.
func (p *Prefetched) record(ctx context.Context, call weir.Call, q *weir.Request) (weir.Answer, error) {
	s := p.find(q)
	if s == nil {
		return p.next(ctx, call)
	}
	s.mu.Lock()
	now := p.now()
	here := min(s.alive(now), q.Cost)
	s.left -= here
	a := weir.Answer{Decision: s.answer(now)}
	s.mu.Unlock()
	if here == q.Cost {
		return a, nil
	}
	rest := *q
	rest.Cost -= here
	call.Requests = []weir.Request{rest}
	return p.next(ctx, call)
}

// giveBack puts units into the stock, if it has room for them. Settled units of a window only go into their own block,
// because another block may belong to a later window.
func (p *Prefetched) giveBack(ctx context.Context, call weir.Call, q *weir.Request, f *facts) (weir.Answer, error) {
	s := p.find(q)
	if s == nil || p.guard != nil && p.guard.local.gave(&call) {
		return p.next(ctx, call)
	}
	s.mu.Lock()
	ofBlock := call.Taken == nil || f.limits[0].refill == weir.RefillRate || slices.Equal(call.Taken, s.taken)
	if now := p.now(); ofBlock && s.alive(now) > 0 && s.fill == nil && q.Cost <= f.most-s.left {
		defer s.mu.Unlock()
		s.left += q.Cost
		return weir.Answer{Decision: s.answer(now)}, nil
	}
	s.mu.Unlock()
	return p.next(ctx, call)
}
