package weir

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Keyed holds a limit for each of many subjects, in this process, told apart by
// a key of any comparable type: no strings are built and nothing is boxed. Its
// verbs are those of Limiter with a key in front, and mean the same. Keys never
// influence each other, and no lock is held while anyone waits.
//
// An idle key, one that answers like a key never seen, is forgotten and costs
// nothing; one that someone waits for never is. Beyond Options.MaxKeys, keys that
// are not known share 256 budgets by their hash, so that inventing keys buys
// nothing and costs known keys nothing. Make it with NewKeyed.
type Keyed[K comparable] struct {
	clock  *clock
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

// NewKeyedWith is NewKeyed with options for those who wait.
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
		return nil, &LimitError{Limit: "limit", Field: "function", Reason: "is nil"}
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
	k := &Keyed[K]{clock: newClock(options.Clock), seed: maphash.MakeSeed(), most: options.maxKeys()}
	for i := range k.shards {
		k.shards[i].init(k.clock.now, options)
	}
	return k, nil
}

// Allow is AllowN(key, 1).
func (k *Keyed[K]) Allow(key K) bool { return k.allow(k.clock.read(), key, 1) }

// AllowN says whether cost n of the key is admitted now, and takes it if so.
func (k *Keyed[K]) AllowN(key K, n int64) bool { return k.allow(k.clock.read(), key, n) }

// AllowAt is AllowN at a given time.
func (k *Keyed[K]) AllowAt(t time.Time, key K, n int64) bool {
	return k.allow(given(t), key, n)
}

func (k *Keyed[K]) allow(r reading, key K, n int64) bool {
	if limit, t := k.wordsOf(key, n); t != nil {
		if allowed, done := t.allow(limit.words, k.hash(key), r.at, n); done {
			return allowed
		}
	}
	return k.allowLocked(r, key, n)
}

// allowLocked is allow the long way, apart from it because a deferred call has
// a price.
func (k *Keyed[K]) allowLocked(r reading, key K, n int64) bool {
	s, v, err := k.enter(r, key)
	if err != nil {
		return false
	}
	defer s.leave(key, &v)
	return v.subject.allow(v.now, n)
}

// Take takes cost n of the key if it is admitted now, and tells all about it.
func (k *Keyed[K]) Take(key K, n int64) Decision { return k.take(k.clock.read(), key, n) }

// TakeAt is Take at a given time.
func (k *Keyed[K]) TakeAt(t time.Time, key K, n int64) Decision {
	return k.take(given(t), key, n)
}

func (k *Keyed[K]) take(r reading, key K, n int64) Decision {
	if limit, t := k.wordsOf(key, n); t != nil {
		var a algorithm.Answer
		if t.take(limit.words, k.hash(key), r.at, n, &a) {
			return decision(a)
		}
	}
	s, v, err := k.enter(r, key)
	if err != nil {
		return invalidCost
	}
	defer s.leave(key, &v)
	return v.subject.take(v.now, n)
}

// Peek tells what Take(key, n) would, and takes nothing.
func (k *Keyed[K]) Peek(key K, n int64) Decision { return k.peek(k.clock.read(), key, n) }

// PeekAt is Peek at a given time.
func (k *Keyed[K]) PeekAt(t time.Time, key K, n int64) Decision {
	return k.peek(given(t), key, n)
}

func (k *Keyed[K]) peek(r reading, key K, n int64) Decision {
	s, v, err := k.enter(r, key)
	if err != nil {
		return invalidCost
	}
	defer s.leave(key, &v)
	return v.subject.peek(v.now, n)
}

// Record counts cost n of the key whether it fits or not; a negative n gives
// units back.
func (k *Keyed[K]) Record(key K, n int64) Decision { return k.record(k.clock.read(), key, n) }

// RecordAt is Record at a given time.
func (k *Keyed[K]) RecordAt(t time.Time, key K, n int64) Decision {
	return k.record(given(t), key, n)
}

func (k *Keyed[K]) record(r reading, key K, n int64) Decision {
	s, v, err := k.enter(r, key)
	if err != nil {
		return invalidCost
	}
	defer s.leave(key, &v)
	return v.subject.record(v.now, n)
}

// Reset makes the key as if never seen.
func (k *Keyed[K]) Reset(key K) {
	s, v, err := k.enter(k.clock.read(), key)
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
	compiled, err := compileLimit(limit)
	if err != nil {
		return err
	}
	k.limits.all.Store(compiled)
	if t := k.table.Load(); t != nil && t.identity != compiled.identity {
		k.table.CompareAndSwap(t, nil) // its words mean nothing to the new limit
	}
	k.Refresh()
	return nil
}

// Refresh asks for the limits of those keys anew that someone waits for. Every
// other key is asked at its next decision anyway.
func (k *Keyed[K]) Refresh() {
	k.limits.changes.Add(1)
	for i := range k.shards {
		k.shards[i].replan(k.clock.now(), k.limits.of)
	}
}

// Wait is WaitN(ctx, key, 1).
func (k *Keyed[K]) Wait(ctx context.Context, key K) error { return k.WaitN(ctx, key, 1) }

// WaitN takes cost n of the key when it is the caller's turn: see Limiter.WaitN.
func (k *Keyed[K]) WaitN(ctx context.Context, key K, n int64) error {
	return k.wait(ctx, key, Turn{Cost: n, Max: Never})
}

// WaitMax is WaitN for at most so long.
func (k *Keyed[K]) WaitMax(ctx context.Context, key K, n int64, longest time.Duration) error {
	return k.wait(ctx, key, Turn{Cost: n, Max: max(longest, 0)})
}

// WaitTurn is WaitN in a class and with a bound.
func (k *Keyed[K]) WaitTurn(ctx context.Context, key K, turn Turn) error {
	if turn.Max == 0 {
		turn.Max = Never
	}
	return k.wait(ctx, key, turn)
}

func (k *Keyed[K]) wait(ctx context.Context, key K, turn Turn) error {
	s := k.shard(k.hash(key))
	if err := s.queue.check(ctx, turn); err != nil {
		return err
	}
	w, err := k.join(ctx, key, turn)
	if w == nil {
		return err
	}
	return s.queue.await(ctx, w)
}

func (k *Keyed[K]) join(ctx context.Context, key K, turn Turn) (*waiter, error) {
	r := k.clock.read()
	if limit, t := k.wordsOf(key, turn.Cost); t != nil && !k.closed.Load() {
		if allowed, _ := t.allow(limit.words, k.hash(key), r.at, turn.Cost); allowed {
			return nil, nil
		}
	}
	s, v, err := k.enter(r, key)
	if err != nil {
		return nil, err
	}
	defer s.leave(key, &v)
	if k.closed.Load() {
		return nil, ErrClosed
	}
	return s.queue.enter(ctx, v.subject, v.now, turn)
}

// Reserve takes cost n of the key for the earliest instant that is at most
// longest away: see Limiter.Reserve.
func (k *Keyed[K]) Reserve(key K, n int64, longest time.Duration) (*Booking, error) {
	b := &Booking{cost: n}
	s, v, err := k.enter(k.clock.read(), key)
	if err != nil {
		b.settled = true
		return b, err
	}
	defer s.leave(key, &v)
	b.with = func(do func(*subject, int64)) { k.revisit(key, &v, do) }
	return b, v.subject.book(b, v.now, int64(max(longest, 0)))
}

// revisit comes back to the subject of a booking: that of the key, or the one it
// shared. If the limit of the key is no longer valid there is none.
func (k *Keyed[K]) revisit(key K, booked *visit, do func(*subject, int64)) {
	if booked.shared {
		s := k.shard(k.hash(key))
		s.mu.Lock()
		defer s.mu.Unlock()
		do(booked.subject, k.clock.read().under(&s.newest))
		return
	}
	s, v, err := k.enter(k.clock.read(), key)
	if err != nil {
		return
	}
	defer s.leave(key, &v)
	do(v.subject, v.now)
}

// Close sends everyone who waits away with ErrClosed, and whoever comes to wait
// later. The verbs that do not wait go on.
func (k *Keyed[K]) Close() {
	k.closed.Store(true)
	for i := range k.shards {
		k.shards[i].close()
	}
}

// Len is how many keys are remembered. Some may be idle and not yet forgotten.
func (k *Keyed[K]) Len() (n int) {
	for i := range k.shards {
		n += k.shards[i].len()
	}
	if t := k.table.Load(); t != nil {
		n += t.table.Len()
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

func (k *Keyed[K]) hash(key K) table.Hash { return table.Hash(maphash.Comparable(k.seed, key)) }

func (k *Keyed[K]) shard(h table.Hash) *keyedShard[K] { return &k.shards[h%shardCount] }

// wordsOf is the limit of the key and the table that its word is in; nil if it
// may be none.
func (k *Keyed[K]) wordsOf(key K, n int64) (*compiledLimit, *keyTable) {
	t := k.table.Load()
	if t == nil || n < 1 {
		return nil, nil
	}
	if limit := k.limits.of(key); t.holds(limit) {
		return limit, t
	}
	return nil, nil
}

// enter locks the shard of the key and finds its subject; the visit ends with
// leave.
func (k *Keyed[K]) enter(r reading, key K) (*keyedShard[K], visit, error) {
	h := k.hash(key)
	s := k.shard(h)
	for {
		changes := k.limits.changes.Load()
		limit := k.limits.of(key)
		if limit.err != nil {
			return nil, visit{}, limit.err
		}
		t := k.tableFor(limit, r.at)
		s.mu.Lock()
		if changes == k.limits.changes.Load() {
			return s, s.enter(r, key, h, limit, t), nil
		}
		s.mu.Unlock() // the limit may be an old one, and nobody would ask again
	}
}

// tableFor is the table, begun with the first limit whose states fit words.
func (k *Keyed[K]) tableFor(limit *compiledLimit, now int64) *keyTable {
	t := k.table.Load()
	if t == nil && limit.words != nil {
		k.table.CompareAndSwap(nil, &keyTable{newWordTable(limit.words, now, k.most), limit.identity, limit})
		t = k.table.Load()
	}
	return t
}
