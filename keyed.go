package weir

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/line"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// Keyed holds one limit per key, in this process. Keys have any comparable type; Keyed builds no strings and boxes
// nothing. It tells keys apart by 64-bit hashes under a secret seed, with the odds stated for Memory. Its methods are
// those of Limiter with a key. Keys do not influence each other, and waiting callers hold no lock.
//
// Keyed evicts idle keys, because an idle key behaves exactly like a new one; a Bursty, and a Cycle from its first use,
// say where they differ. It never evicts a key that has waiting callers. Above Options.MaxKeys, new keys share 256 states by their hash, so that an attacker gains nothing by
// inventing keys and does not slow known keys. With a Concurrency without a Lease, new keys are refused instead, and
// waiting for them returns ErrNoRoom. Keyed refuses a key that is or contains NaN. Make a Keyed with NewKeyed: the
// zero Keyed refuses everything.
type Keyed[K comparable] struct {
	clock   *clock.Clock
	limits  limitSource[K]
	table   atomic.Pointer[keyTable] // nil until a limit's states fit in words
	seed    maphash.Seed
	closed  atomic.Bool
	maxKeys int
	jitter  time.Duration
	shards  [table.Shards]keyedShard[K]
}

// NewKeyed returns a Keyed with one limit for every key.
func NewKeyed[K comparable](limit Limit) (*Keyed[K], error) { return NewKeyedWith[K](limit, Options{}) }

// NewKeyedWith works like NewKeyed with options. Invalid options are *OptionError values.
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

// NewKeyedFunc returns a Keyed that calls limit for the limit of a key at each decision, so that plans can differ by
// tenant and change at any time. The function must be fast and safe for concurrent use, must not call the Keyed, and
// should return few distinct limits. It costs least if it returns Limit values that it keeps, from a map or a slice. A key
// with an invalid limit is refused, and Wait and Reserve return the reason.
//
// When a limit changes, a key keeps the units used: a bucket that lacked 3 units lacks 3 under the new rate, and counts
// stay. The next admission converts the state of a bucket, and so does a refusal under a faster rate. A refusal under a
// slower rate writes nothing, so that the units used come back at the faster rate until then. Another algorithm or
// window period starts afresh.
func NewKeyedFunc[K comparable](limit func(key K) Limit, options Options) (*Keyed[K], error) {
	if limit == nil {
		return nil, &LimitError{Limit: "limit", Field: "function", Code: CodeMissing, Reason: "is nil"}
	}
	k, err := newKeyed[K](options)
	if err == nil {
		k.limits.byKey, k.limits.compiled = limit, compiled.NewOnce(func(limit any, into *compiledLimit) { into.compile(limit) })
	}
	return k, err
}

func newKeyed[K comparable](options Options) (*Keyed[K], error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	k := &Keyed[K]{clock: clock.New(options.Clock), seed: maphash.MakeSeed(), maxKeys: keyBound(options.MaxKeys), jitter: options.Jitter}
	k.clock.Prime()
	for i := range k.shards {
		k.shards[i].init(k.clock, options)
	}
	return k, nil
}

// Allow reports whether cost 1 of the key is admitted now, and takes it if so.
func (k *Keyed[K]) Allow(key K) bool { return k.allow(k.clock.Read(), key, 1) }

// AllowN reports whether cost n of the key is admitted now, and takes it if so.
func (k *Keyed[K]) AllowN(key K, n int64) bool { return k.allow(k.clock.Read(), key, n) }

// AllowAt works like AllowN at a given time.
func (k *Keyed[K]) AllowAt(t time.Time, key K, n int64) bool { return k.allow(clock.Given(t), key, n) }

func (k *Keyed[K]) allow(r clock.Reading, key K, n int64) bool {
	if limit, h := k.wordsOf(key, n); limit != nil {
		if allowed, done := limit.Allow(h, r.At, n); done {
			return allowed
		}
	}
	return k.allowUnderLock(r, key, n)
}

// allowUnderLock decides on a state that is not a word. It is a separate function because a deferred call costs time.
func (k *Keyed[K]) allowUnderLock(r clock.Reading, key K, n int64) bool {
	var v visit[K]
	if k.lock(&v, opTake, r, key) != nil {
		return false
	}
	defer v.unlock()
	return v.subject.Allow(v.now, n)
}

// Take takes cost n of the key if it is admitted now.
func (k *Keyed[K]) Take(key K, n int64) (d Decision) { k.take(k.clock.Read(), key, n, &d); return d }

// TakeAt works like Take at a given time.
func (k *Keyed[K]) TakeAt(t time.Time, key K, n int64) (d Decision) {
	k.take(clock.Given(t), key, n, &d)
	return d
}

func (k *Keyed[K]) take(r clock.Reading, key K, n int64, d *Decision) {
	var a algorithm.Answer
	if limit, h := k.wordsOf(key, n); limit != nil && limit.Take(h, r.At, n, &a) {
		d.describe(&a)
		return
	}
	*d = k.decide(opTake, r, key, n, (*line.Subject).Take)
}

// decide calls ask on the subject of the key, under the lock of its shard.
func (k *Keyed[K]) decide(op string, r clock.Reading, key K, n int64, ask verb) (d Decision) {
	var v visit[K]
	if k.lock(&v, op, r, key) != nil {
		return invalidCost
	}
	defer v.unlock()
	a := ask(v.subject, v.now, n)
	d.describe(&a)
	return d
}

// TakeUpTo takes up to n units of the key, as many as are admitted now: see Limiter.TakeUpTo.
func (k *Keyed[K]) TakeUpTo(key K, n int64) (taken int64, d Decision) {
	d = k.decide(opTake, k.clock.Read(), key, n, func(s *line.Subject, now, n int64) (a algorithm.Answer) {
		taken, a = s.TakeUpTo(now, n)
		return a
	})
	return taken, d
}

// Peek returns the answer that Take would give, without taking anything.
func (k *Keyed[K]) Peek(key K, n int64) Decision {
	return k.decide(opPeek, k.clock.Read(), key, n, (*line.Subject).Peek)
}

// PeekAt works like Peek at a given time.
func (k *Keyed[K]) PeekAt(t time.Time, key K, n int64) Decision {
	return k.decide(opPeek, clock.Given(t), key, n, (*line.Subject).Peek)
}

// Record counts cost n of the key even if it does not fit.
func (k *Keyed[K]) Record(key K, n int64) Decision {
	return k.decide(opRecord, k.clock.Read(), key, n, recorded)
}

// Return gives n units of the key back: see Limiter.Return.
func (k *Keyed[K]) Return(key K, n int64) Decision {
	return k.decide(opReturn, k.clock.Read(), key, n, returned)
}

// Reset clears the key.
func (k *Keyed[K]) Reset(key K) {
	var v visit[K]
	if k.lock(&v, opReset, k.clock.Read(), key) != nil {
		return
	}
	defer v.unlock()
	v.subject.Reset(v.now)
}

// Len returns the number of keys that have state. Some may be idle and not yet evicted.
func (k *Keyed[K]) Len() (n int) {
	t := k.table.Load()
	if t != nil {
		n = t.column.Table().Len()
	}
	for i := range k.shards {
		n += k.shards[i].len(t)
	}
	return n
}

// Overflow returns the number of decisions on shared states, for lack of room.
func (k *Keyed[K]) Overflow() (n uint64) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += s.overflow
		s.mu.Unlock()
	}
	return n
}

// A method decides on the word of its key without a lock, or on a subject under the lock of the key's shard.

func (k *Keyed[K]) hash(key K) table.Hash { return table.Hash(maphash.Comparable(k.seed, key)) }

func (k *Keyed[K]) shard(h table.Hash) *keyedShard[K] { return &k.shards[h%table.Shards] }

// wordsOf returns the limit of the key on words, and the key's hash. It returns nil if the key cannot have words.
func (k *Keyed[K]) wordsOf(key K, n int64) (limit *word.Limit, h table.Hash) {
	t := k.table.Load()
	if t == nil || n < 1 || key != key { // NaN cannot be found again
		return nil, 0
	}
	return t.limit(k.limits.limitOf(key)), k.hash(key)
}

// lock locks the shard of the key and finds its subject. The caller ends the visit with unlock. It returns no visit,
// because a copy takes time.
func (k *Keyed[K]) lock(v *visit[K], op string, r clock.Reading, key K) error {
	if err := k.check(op, key); err != nil {
		return err
	}
	v.hash = k.hash(key)
	v.shard = k.shard(v.hash)
	for {
		changes := k.limits.changes.Load()
		limit := k.limits.limitOf(key)
		if limit.err != nil {
			return limit.err
		}
		if t := k.tableFor(limit, r.At); k.lockUnder(v.shard, changes, t) {
			v.find(r, limit, t)
			break
		}
	}
	if v.subject == nil {
		v.shard.mu.Unlock()
		return fmt.Errorf("weir: %s: %w: all %d keys that MaxKeys allows hold slots without a lease", op, ErrNoRoom, k.maxKeys)
	}
	return nil
}

// lockUnder locks a shard unless the limit or the table that the caller has found may be an old one.
func (k *Keyed[K]) lockUnder(s *keyedShard[K], changes uint64, t *keyTable) (locked bool) {
	s.mu.Lock()
	if locked = changes == k.limits.changes.Load() && t == k.table.Load(); !locked {
		s.mu.Unlock()
	}
	return locked
}

// check refuses NaN, which equals nothing and so can never be found again, and every key of a zero Keyed.
func (k *Keyed[K]) check(op string, key K) error {
	if k.unmade() {
		return k.notMade(op)
	}
	if key != key {
		return &RequestError{Op: op, Field: "key", Reason: "is or contains NaN, which does not equal itself"}
	}
	return nil
}

// unmade reports whether k is the zero Keyed.
func (k *Keyed[K]) unmade() bool { return k.clock == nil }

func (k *Keyed[K]) notMade(op string) error { return notMade(op, "keyed", "weir.NewKeyed") }
