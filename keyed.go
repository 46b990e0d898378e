package weir

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

// Keyed holds a limit for each of many subjects, in this process, told apart by
// a key of any comparable type: no strings are built and nothing is boxed. Its
// verbs are those of Limiter with a key in front, and mean the same. Keys never
// influence each other, and no lock is held while anyone waits.
//
// An idle key, one that answers like a key never seen, is forgotten and costs
// nothing; one that someone waits for never is. Beyond Options.MaxKeys, keys that
// are not known share 256 budgets by their hash, so that inventing keys buys
// nothing and costs known keys nothing. A key that is or holds NaN is
// refused. Make a Keyed with NewKeyed: the zero Keyed refuses everything.
type Keyed[K comparable] struct {
	clock  *clock.Clock
	limits limitSource[K]
	table  atomic.Pointer[keyTable] // nil until a limit comes whose states fit words
	seed   maphash.Seed
	most   int // keys
	closed atomic.Bool
	shards [shardCount]keyedShard[K]
}

// NewKeyed makes a Keyed with one limit for every key.
func NewKeyed[K comparable](limit Limit) (*Keyed[K], error) {
	return NewKeyedWith[K](limit, Options{})
}

// NewKeyedWith is NewKeyed with options. Wrong options are *OptionError values.
func NewKeyedWith[K comparable](limit Limit, options Options) (*Keyed[K], error) {
	compiled, err := compileLimit(limit)
	if err != nil {
		return nil, errors.Join(err, options.check())
	}
	k, err := newKeyed[K](options)
	if err == nil {
		k.limits.all.Store(compiled)
	}
	return k, err
}

// NewKeyedFunc makes a Keyed that asks for the limit of a key at each decision,
// so plans can differ by tenant and change at any time. The function must be
// fast and safe for concurrent use, must not call the Keyed, and should answer
// few distinct limits. A key whose limit is invalid is refused, and Wait and
// Reserve say why.
//
// On a change, counts stay counts, and a bucket keeps the instant at which it
// will be full; for keys that someone waits for, the units used are kept, as in
// Limiter.SetLimit. Another algorithm or window period starts fresh.
func NewKeyedFunc[K comparable](limit func(key K) Limit, options Options) (*Keyed[K], error) {
	if limit == nil {
		return nil, &LimitError{Limit: "limit", Field: "function", Code: CodeMissing, Reason: "is nil"}
	}
	k, err := newKeyed[K](options)
	if err == nil {
		k.limits.byKey = limit
	}
	return k, err
}

func newKeyed[K comparable](options Options) (*Keyed[K], error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	k := &Keyed[K]{clock: clock.New(options.Clock), seed: maphash.MakeSeed(), most: keyBound(options.MaxKeys)}
	k.clock.Prime()
	for i := range k.shards {
		k.shards[i].init(k.clock, options)
	}
	return k, nil
}

// Allow is AllowN(key, 1).
func (k *Keyed[K]) Allow(key K) bool { return k.allow(k.clock.Read(), key, 1) }

// AllowN says whether cost n of the key is admitted now, and takes it if so.
func (k *Keyed[K]) AllowN(key K, n int64) bool { return k.allow(k.clock.Read(), key, n) }

// AllowAt is AllowN at a given time.
func (k *Keyed[K]) AllowAt(t time.Time, key K, n int64) bool {
	return k.allow(clock.Given(t), key, n)
}

func (k *Keyed[K]) allow(r clock.Reading, key K, n int64) bool {
	if limit, t := k.wordsOf(key, n); t != nil {
		if allowed, done := t.Allow(limit.words, k.hash(key), r.At, n); done {
			return allowed
		}
	}
	return k.allowLocked(r, key, n)
}

// allowLocked is allow the long way, apart from it because a deferred call has
// a price.
func (k *Keyed[K]) allowLocked(r clock.Reading, key K, n int64) bool {
	s, v, err := k.enter(opTake, r, key)
	if err != nil {
		return false
	}
	defer s.leave(key, &v)
	return v.subject.allow(v.now, n)
}

// Take takes cost n of the key if it is admitted now, and tells all about it.
func (k *Keyed[K]) Take(key K, n int64) Decision { return k.take(k.clock.Read(), key, n) }

// TakeAt is Take at a given time.
func (k *Keyed[K]) TakeAt(t time.Time, key K, n int64) Decision {
	return k.take(clock.Given(t), key, n)
}

func (k *Keyed[K]) take(r clock.Reading, key K, n int64) Decision {
	if limit, t := k.wordsOf(key, n); t != nil {
		var a algorithm.Answer
		if t.Take(limit.words, k.hash(key), r.At, n, &a) {
			return decision(a)
		}
	}
	s, v, err := k.enter(opTake, r, key)
	if err != nil {
		return invalidCost
	}
	defer s.leave(key, &v)
	return v.subject.take(v.now, n)
}

// Peek tells what Take(key, n) would, and takes nothing.
func (k *Keyed[K]) Peek(key K, n int64) Decision { return k.peek(k.clock.Read(), key, n) }

// PeekAt is Peek at a given time.
func (k *Keyed[K]) PeekAt(t time.Time, key K, n int64) Decision {
	return k.peek(clock.Given(t), key, n)
}

func (k *Keyed[K]) peek(r clock.Reading, key K, n int64) Decision {
	s, v, err := k.enter(opPeek, r, key)
	if err != nil {
		return invalidCost
	}
	defer s.leave(key, &v)
	return v.subject.peek(v.now, n)
}

// Record counts cost n of the key whether it fits or not; a negative n gives
// units back.
func (k *Keyed[K]) Record(key K, n int64) Decision { return k.record(k.clock.Read(), key, n) }

// RecordAt is Record at a given time.
func (k *Keyed[K]) RecordAt(t time.Time, key K, n int64) Decision {
	return k.record(clock.Given(t), key, n)
}

func (k *Keyed[K]) record(r clock.Reading, key K, n int64) Decision {
	s, v, err := k.enter(opRecord, r, key)
	if err != nil {
		return invalidCost
	}
	defer s.leave(key, &v)
	return v.subject.record(v.now, n)
}

// Reset makes the key as if never seen.
func (k *Keyed[K]) Reset(key K) {
	s, v, err := k.enter(opReset, k.clock.Read(), key)
	if err != nil {
		return
	}
	defer s.leave(key, &v)
	v.subject.reset(v.now)
}

// SetLimit gives every key another limit; with NewKeyedFunc, instead of the
// function. What is kept on a change is told there. Those who wait are planned
// anew.
func (k *Keyed[K]) SetLimit(limit Limit) error {
	if k.unmade() {
		return k.refusal("set limit")
	}
	compiled, err := compileLimit(limit)
	if err != nil {
		return err
	}
	now := k.clock.Now()
	k.limits.all.Store(compiled)
	if t := k.table.Load(); t != nil && t.identity != compiled.identity {
		k.table.CompareAndSwap(t, nil) // its words mean nothing to the new limit
	}
	k.refresh(now)
	return nil
}

// Refresh asks for the limits of those keys anew that someone waits for. Every
// other key is asked at its next decision anyway.
func (k *Keyed[K]) Refresh() {
	if !k.unmade() {
		k.refresh(k.clock.Now())
	}
}

func (k *Keyed[K]) refresh(now int64) {
	k.limits.changes.Add(1)
	var panicked any
	for i := range k.shards {
		if p := k.shards[i].replan(now, k.limits.of); panicked == nil {
			panicked = p
		}
	}
	if panicked != nil {
		panic(panicked)
	}
}

// Wait is WaitN(ctx, key, 1).
func (k *Keyed[K]) Wait(ctx context.Context, key K) error { return k.WaitN(ctx, key, 1) }

// WaitN takes cost n of the key when it is the caller's turn: see Limiter.WaitN.
func (k *Keyed[K]) WaitN(ctx context.Context, key K, n int64) error {
	return k.wait(ctx, key, Turn{Cost: n, Max: Never})
}

// WaitMax is WaitN for at most longest: see Limiter.WaitMax.
func (k *Keyed[K]) WaitMax(ctx context.Context, key K, n int64, longest time.Duration) error {
	return k.wait(ctx, key, Turn{Cost: n, Max: max(longest, 0)})
}

// WaitTurn is WaitN in a class and with a bound.
func (k *Keyed[K]) WaitTurn(ctx context.Context, key K, turn Turn) error {
	turn.Max = turn.longest()
	return k.wait(ctx, key, turn)
}

func (k *Keyed[K]) wait(ctx context.Context, key K, turn Turn) error {
	if err := k.check(opWait, key); err != nil {
		return err
	}
	q := &k.shard(k.hash(key)).queue
	if err := q.check(ctx, turn); err != nil {
		return err
	}
	w, o, err := k.join(ctx, key, turn)
	if w != nil {
		err = q.await(ctx, w, turn.Max)
	}
	if err == nil && (w != nil || turn.Slots != nil) {
		err = q.granted(ctx, o, turn, w != nil)
	}
	return err
}

func (k *Keyed[K]) join(ctx context.Context, key K, turn Turn) (w *waiter, o keyOwner[K], err error) {
	o = keyOwner[K]{keyed: k, key: key}
	r := k.clock.Read()
	if limit, t := k.wordsOf(key, turn.Cost); t != nil && !k.closed.Load() {
		if allowed, _ := t.Allow(limit.words, k.hash(key), r.At, turn.Cost); allowed {
			return nil, o, nil
		}
	}
	s, v, err := k.enter(opWait, r, key)
	if err != nil {
		return nil, o, err
	}
	defer s.leave(key, &v)
	if k.closed.Load() {
		return nil, o, ErrClosed
	}
	if v.shared {
		o.shared = v.subject
	}
	w, err = s.queue.enter(ctx, v.subject, v.now, turn)
	return w, o, err
}

// Reserve takes cost n of the key for the earliest instant that is at most
// longest away: see Limiter.Reserve.
func (k *Keyed[K]) Reserve(key K, n int64, longest time.Duration) (*Booking, error) {
	b := &Booking{cost: n, settled: true}
	s, v, err := k.enter(opReserve, k.clock.Read(), key)
	if err != nil {
		return b, err
	}
	defer s.leave(key, &v)
	o := keyOwner[K]{keyed: k, key: key}
	if v.shared {
		o.shared = v.subject
	}
	b.owner = o
	return b, v.subject.book(b, v.now, int64(max(longest, 0)))
}

// Close sends everyone who waits away with ErrClosed, and whoever comes to wait
// later. The verbs that do not wait go on.
func (k *Keyed[K]) Close() {
	now := k.clock.Read().At
	k.closed.Store(true)
	for i := range k.shards {
		k.shards[i].close(now)
	}
}

// Len is how many keys are remembered. Some may be idle and not yet forgotten.
func (k *Keyed[K]) Len() (n int) {
	t := k.table.Load()
	if t != nil {
		n = t.Words.Len()
	}
	for i := range k.shards {
		n += k.shards[i].len(t)
	}
	return n
}

// Overflow is how many decisions were made on shared budgets, because there was
// no room for their keys.
func (k *Keyed[K]) Overflow() (n uint64) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += s.overflow
		s.mu.Unlock()
	}
	return n
}
