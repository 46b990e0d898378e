package weir

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
	"github.com/weirflow/weir/internal/table"
)

// Keyed holds a limit for each of many subjects, in this process, which differ by
// a key of any comparable type: no strings are built and nothing is boxed. Its
// verbs are those of Limiter with a key in front, and mean the same. Keys never
// influence each other, and no lock is held while anyone waits.
//
// An idle key, one that answers like a key never seen, is forgotten and costs
// nothing; one that someone waits for never is. Beyond Options.MaxKeys, keys that
// are not known share 256 budgets by their hash, so that inventing keys buys
// nothing and costs known keys nothing. New keys of a Concurrency without a Lease
// are refused instead, and waiting for them is ErrNoRoom. A key that is or holds NaN is
// refused. Make a Keyed with NewKeyed: the zero Keyed refuses everything.
type Keyed[K comparable] struct {
	clock  *clock.Clock
	limits limitSource[K]
	table  atomic.Pointer[keyTable] // nil until a limit comes whose states fit words
	seed   maphash.Seed
	closed atomic.Bool

	maxKeys int
	jitter  time.Duration
	shards  [shardCount]keyedShard[K]
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
	k := &Keyed[K]{clock: clock.New(options.Clock), seed: maphash.MakeSeed(), maxKeys: keyBound(options.MaxKeys), jitter: options.Jitter}
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
	return k.allowUnderLock(r, key, n)
}

// allowUnderLock is allow of a state that is no word. It is a function of its own
// because a deferred call has a price.
func (k *Keyed[K]) allowUnderLock(r clock.Reading, key K, n int64) bool {
	s, v, err := k.lock(opTake, r, key)
	if err != nil {
		return false
	}
	defer s.unlock(key, &v)
	return v.subject.Allow(v.now, n)
}

// Take takes cost n of the key if it is admitted now.
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
	return k.decide(opTake, r, key, n, (*line.Subject).Take)
}

// decide asks the subject of the key under the lock of its shard.
func (k *Keyed[K]) decide(op string, r clock.Reading, key K, n int64, ask verb) (d Decision) {
	s, v, err := k.lock(op, r, key)
	if err != nil {
		return invalidCost
	}
	defer s.unlock(key, &v)
	a := ask(v.subject, v.now, n)
	d.describe(&a)
	return d
}

// TakeUpTo takes as many units of the key as are admitted now, n at most: see
// Limiter.TakeUpTo.
func (k *Keyed[K]) TakeUpTo(key K, n int64) (taken int64, d Decision) {
	d = k.decide(opTake, k.clock.Read(), key, n, func(s *line.Subject, now, n int64) (a algorithm.Answer) {
		taken, a = s.TakeUpTo(now, n)
		return a
	})
	return taken, d
}

// Peek returns what Take(key, n) would, and takes nothing.
func (k *Keyed[K]) Peek(key K, n int64) Decision {
	return k.decide(opPeek, k.clock.Read(), key, n, (*line.Subject).Peek)
}

// PeekAt is Peek at a given time.
func (k *Keyed[K]) PeekAt(t time.Time, key K, n int64) Decision {
	return k.decide(opPeek, clock.Given(t), key, n, (*line.Subject).Peek)
}

// Record counts cost n of the key whether it fits or not; a negative n gives
// units back.
func (k *Keyed[K]) Record(key K, n int64) Decision {
	return k.decide(opRecord, k.clock.Read(), key, n, (*line.Subject).Record)
}

// RecordAt is Record at a given time.
func (k *Keyed[K]) RecordAt(t time.Time, key K, n int64) Decision {
	return k.decide(opRecord, clock.Given(t), key, n, (*line.Subject).Record)
}

// Reset makes the key as if never seen.
func (k *Keyed[K]) Reset(key K) {
	s, v, err := k.lock(opReset, k.clock.Read(), key)
	if err != nil {
		return
	}
	defer s.unlock(key, &v)
	v.subject.Reset(v.now)
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

// A verb comes to the state of its key in the table, without a lock, or to a
// subject under the lock of the key's shard.

func (k *Keyed[K]) hash(key K) table.Hash { return table.Hash(maphash.Comparable(k.seed, key)) }

func (k *Keyed[K]) shard(h table.Hash) *keyedShard[K] { return &k.shards[h%shardCount] }

// wordsOf is the limit of the key and the table that its word is in; nil if it
// may be none.
func (k *Keyed[K]) wordsOf(key K, n int64) (*compiledLimit, *keyTable) {
	t := k.table.Load()
	if t == nil || n < 1 || key != key { // NaN has no place
		return nil, nil
	}
	if limit := k.limits.limitOf(key); t.holds(limit) {
		return limit, t
	}
	return nil, nil
}

// lock locks the shard of the key and finds its subject; the visit ends with
// unlock of the shard.
func (k *Keyed[K]) lock(op string, r clock.Reading, key K) (*keyedShard[K], visit, error) {
	if err := k.check(op, key); err != nil {
		return nil, visit{}, err
	}
	h := k.hash(key)
	s := k.shard(h)
	for {
		changes := k.limits.changes.Load()
		limit := k.limits.limitOf(key)
		if limit.err != nil {
			return nil, visit{}, limit.err
		}
		t := k.tableFor(limit, r.At)
		s.mu.Lock()
		if changes == k.limits.changes.Load() {
			v := s.find(r, key, h, limit, t)
			if v.subject != nil {
				return s, v, nil
			}
			s.mu.Unlock()
			return nil, visit{}, fmt.Errorf("weir: %s: %w: %d, as many as MaxKeys allows, hold slots without a lease", op, ErrNoRoom, k.maxKeys)
		}
		s.mu.Unlock() // the limit may be an old one, and nobody would ask again
	}
}

// check refuses what no key can be: NaN, which equals nothing, so that nobody
// finds it again. A zero Keyed refuses all.
func (k *Keyed[K]) check(op string, key K) error {
	if k.unmade() {
		return k.notMade(op)
	}
	if key != key {
		return &RequestError{Op: op, Field: "key", Reason: "is or holds NaN, which does not equal itself"}
	}
	return nil
}

// unmade says that k is the zero Keyed.
func (k *Keyed[K]) unmade() bool { return k.clock == nil }

func (k *Keyed[K]) notMade(op string) error { return notMade(op, "keyed", "weir.NewKeyed") }
