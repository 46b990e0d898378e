package weir

import (
	"hash/maphash"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// How a verb comes to the state of its key: to a word in the table without a
// lock, or to a subject under the lock of the key's shard.

func (k *Keyed[K]) hash(key K) table.Hash { return table.Hash(maphash.Comparable(k.seed, key)) }

func (k *Keyed[K]) shard(h table.Hash) *keyedShard[K] { return &k.shards[h%shardCount] }

// wordsOf is the limit of the key and the table that its word is in; nil if it
// may be none.
func (k *Keyed[K]) wordsOf(key K, n int64) (*compiledLimit, *keyTable) {
	t := k.table.Load()
	if t == nil || n < 1 || key != key { // NaN has no place
		return nil, nil
	}
	if limit := k.limits.of(key); t.holds(limit) {
		return limit, t
	}
	return nil, nil
}

// enter locks the shard of the key and finds its subject; the visit ends with
// leave.
func (k *Keyed[K]) enter(op string, r clock.Reading, key K) (*keyedShard[K], visit, error) {
	if err := k.check(op, key); err != nil {
		return nil, visit{}, err
	}
	h := k.hash(key)
	s := k.shard(h)
	for {
		changes := k.limits.changes.Load()
		limit := k.limits.of(key)
		if limit.err != nil {
			return nil, visit{}, limit.err
		}
		t := k.tableFor(limit, r.At)
		s.mu.Lock()
		if changes == k.limits.changes.Load() {
			return s, s.enter(r, key, h, limit, t), nil
		}
		s.mu.Unlock() // the limit may be an old one, and nobody would ask again
	}
}

// check refuses what no key can be: NaN, which equals nothing, so that nobody
// finds it again. A zero Keyed refuses all.
func (k *Keyed[K]) check(op string, key K) error {
	if k.unmade() {
		return k.refusal(op)
	}
	if key != key {
		return &RequestError{Op: op, Field: "key", Reason: "is or holds NaN, which does not equal itself"}
	}
	return nil
}

// unmade says that k is the zero Keyed.
func (k *Keyed[K]) unmade() bool { return k.clock == nil }

func (k *Keyed[K]) refusal(op string) error { return notMade(op, "keyed", "weir.NewKeyed") }

// tableFor is the table: the one that there is, unless there is none or it is of
// another identity than the limit of all keys. A caller that still has the limit
// before may have begun that one.
func (k *Keyed[K]) tableFor(limit *compiledLimit, now int64) *keyTable {
	t := k.table.Load()
	if t == nil && limit.words == nil || t.holds(limit) || t != nil && limit != k.limits.all.Load() {
		return t
	}
	var next *keyTable
	if limit.words != nil {
		next = &keyTable{word.NewTable(limit.words, now, k.most), limit.identity, limit}
	}
	k.table.CompareAndSwap(t, next)
	return k.table.Load()
}

// keyOwner comes back to the subject of a key, or to the one that it shared with
// others when it was there first.
type keyOwner[K comparable] struct {
	keyed  *Keyed[K]
	key    K
	shared *subject
}

func (o keyOwner[K]) visit(do func(s *subject, now int64)) error {
	k := o.keyed
	r, _ := k.clock.ReadSafely()
	if k.shard(k.hash(o.key)).visit(r, o, do) {
		return nil
	}
	s, v, err := k.enter(opSettle, r, o.key)
	if err != nil {
		return err
	}
	defer s.leave(o.key, &v)
	do(v.subject, v.now)
	return nil
}

// visit finds a subject that is no word, for which nobody need ask for the limit
// of the key.
func (s *keyedShard[K]) visit(r clock.Reading, o keyOwner[K], do func(s *subject, now int64)) (found bool) {
	s.mu.Lock()
	v := visit{subject: o.shared, now: r.Latest(&s.newest), known: true, shared: o.shared != nil}
	if known := s.subjects[o.key]; known != nil && !v.shared {
		v.found, v.subject = known, &known.subject
	}
	if v.subject == nil {
		s.mu.Unlock()
		return false
	}
	defer s.leave(o.key, &v)
	do(v.subject, v.now)
	return true
}
