package weir

import (
	"math"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
	"github.com/weirflow/weir/internal/table"
)

// A Keyed has as many shards as its table.
const shardCount = table.Shards

// keyedShard holds the subjects of those keys that hash to it which are no words
// in the table: those with waiting callers, and those that do not fit.
// Its mutex guards them and their lines, and is never held while a caller waits.
type keyedShard[K comparable] struct {
	mu       sync.Mutex
	subjects map[K]*keyedSubject
	lines    line.Lines
	sweepAt  int
	swept    int64  // latest eviction: before it, a missing key is not new
	created  uint64 // subjects
	newest   int64  // reading of the clock
	capacity int    // subjects, where they are no words
	searched int64  // when a full shard last looked for idle subjects
	shared   [groupsOfShard]*keyedSubject
	overflow uint64 // decisions on shared subjects
	_        [56]byte
}

// firstSweep is how many subjects a shard holds before it looks for idle ones.
const firstSweep = 64

// groupsOfShard are the budgets that the keys of a shard share when there is no
// room for their own: 256 in all shards.
const groupsOfShard = 256 / shardCount

// keyedSubject is a subject that is no word in the table, and the limit that it
// was last asked under.
type keyedSubject struct {
	subject line.Subject
	limit   *compiledLimit
	hash    table.Hash
	table   *keyTable // whose word for the key reads Elsewhere; nil if none does
}

// visit is one verb's stay in a shard: the subject of its key, and the instant
// to decide at.
type visit struct {
	subject *line.Subject
	now     int64
	read    int64 // what the clock said; now may be ahead of it
	found   *keyedSubject
	known   bool
	shared  bool // for want of room
}

// sharedSubject is the subject, if others share it.
func (v *visit) sharedSubject() *line.Subject {
	if !v.shared {
		return nil
	}
	return v.subject
}

func (s *keyedShard[K]) init(clock *clock.Clock, options Options) {
	s.capacity = max(1, keyBound(options.MaxKeys)/shardCount)
	s.searched = math.MinInt64
	s.subjects = map[K]*keyedSubject{}
	s.lines = options.lines(&s.mu, clock)
	s.sweepAt = firstSweep
	s.swept = math.MinInt64
}

// find finds or makes the subject of key, and borrows its word; a key that
// finds no room is one of a group. The shard is locked.
func (s *keyedShard[K]) find(r clock.Reading, key K, h table.Hash, limit *compiledLimit, t *keyTable) visit {
	now := r.Latest(&s.newest)
	v := visit{now: now, read: now}
	v.found, v.known = s.subjects[key]
	if !v.known {
		if !s.room(now) {
			return s.withoutRoom(now, h, limit)
		}
		v.found = s.newSubject(now, h, limit)
		v.now = max(now, s.swept)
	}
	if t != nil && v.found.table != t && !v.borrow(t, limit) && !v.known {
		return s.withoutRoom(now, h, limit)
	}
	v.found.setLimit(v.now, limit)
	v.subject = &v.found.subject
	return v
}

func (s *keyedShard[K]) newSubject(now int64, h table.Hash, limit *compiledLimit) *keyedSubject {
	s.created++
	stamp := s.created << 32 // no two subjects share a stamp
	return &keyedSubject{subject: line.NewSubject(limit.algorithm, now, stamp), limit: limit, hash: h}
}

// borrow takes the word of a subject out of t. It fails if there is no room for
// one.
func (v *visit) borrow(t *keyTable, limit *compiledLimit) bool {
	word, borrowed := t.Borrow(v.found.hash, v.now)
	if !borrowed && word == table.Moved {
		return false
	}
	v.found.table = t
	switch {
	case v.known || !borrowed || !t.holds(limit): // the word is of a limit that no longer counts
	case word == table.Fresh:
		v.now = max(v.now, t.Words.Swept())
	default:
		v.found.subject.State = limit.words.Unpack(word, t.Base)
	}
	return true
}

// room says whether the shard may hold another subject. A full one looks for
// idle ones at most once a millisecond.
func (s *keyedShard[K]) room(now int64) bool {
	if len(s.subjects) >= s.capacity && now >= algorithm.AddSaturating(s.searched, int64(time.Millisecond)) {
		s.searched = now
		s.forget(now)
	}
	return len(s.subjects) < s.capacity
}

// withoutRoom is find for a key that finds no room. It has no subject if the limit
// holds units until they are given back: a key that had room by then would give
// back elsewhere.
func (s *keyedShard[K]) withoutRoom(now int64, h table.Hash, limit *compiledLimit) visit {
	if algorithm.Endless(limit.algorithm) {
		return visit{}
	}
	return s.findShared(now, h, limit)
}

// findShared finds the subject that a key without room shares with the keys that
// hash near it.
func (s *keyedShard[K]) findShared(now int64, h table.Hash, limit *compiledLimit) visit {
	s.overflow++
	group := &s.shared[h/shardCount%groupsOfShard]
	if *group == nil {
		*group = s.newSubject(now, h, limit)
	}
	(*group).setLimit(now, limit)
	return visit{subject: &(*group).subject, now: now, read: now, found: *group, known: true, shared: true}
}

// withSubject finds a subject that is no word, for which nobody need ask for the
// limit of the key.
func (s *keyedShard[K]) withSubject(r clock.Reading, o keyOwner[K], do func(s *line.Subject, now int64)) (found bool) {
	s.mu.Lock()
	v := visit{subject: o.shared, now: r.Latest(&s.newest), known: true, shared: o.shared != nil}
	if known := s.subjects[o.key]; known != nil && !v.shared {
		v.found, v.subject = known, &known.subject
	}
	if v.subject == nil {
		s.mu.Unlock()
		return false
	}
	defer s.unlock(o.key, &v)
	do(v.subject, v.now)
	return true
}

// unlock makes a word of the state if it is one again, keeps the subject if it is
// not fresh, and unlocks.
func (s *keyedShard[K]) unlock(key K, v *visit) {
	defer s.mu.Unlock()
	if v.shared {
		return
	}
	switch word, ok := v.found.word(v.now); {
	case ok:
		v.found.table.Put(v.found.hash, word)
		v.found.table = nil
		delete(s.subjects, key)
	case v.known:
	case v.subject.Idle(v.now):
		v.found.drop(v.now)
	default:
		s.keep(key, v)
	}
}

func (s *keyedShard[K]) keep(key K, v *visit) {
	s.subjects[key] = v.found
	if len(s.subjects) >= s.sweepAt {
		s.forget(v.read)
		s.sweepAt = max(firstSweep, 2*len(s.subjects))
	}
}

func (s *keyedShard[K]) forget(now int64) {
	for key, k := range s.subjects {
		if k.subject.Idle(now) {
			k.drop(now)
			delete(s.subjects, key)
			s.swept = max(s.swept, now)
		}
	}
}

// word is the state as a word of the table it was borrowed from, if it is the
// whole subject.
func (k *keyedSubject) word(now int64) (word uint64, ok bool) {
	if !k.subject.AtRest(now) || !k.table.holds(k.limit) {
		return 0, false
	}
	return k.limit.words.Pack(k.subject.State, k.table.Base)
}

// drop ends the borrowing of a subject that is forgotten.
func (k *keyedSubject) drop(now int64) {
	if k.table != nil {
		k.table.Put(k.hash, table.Fresh)
	}
}

func (k *keyedSubject) setLimit(now int64, limit *compiledLimit) {
	if k.limit != limit {
		k.subject.SetAlgorithm(now, limit.algorithm, k.limit.identity == limit.identity)
		k.limit = limit
	}
}

// replan gives the keys that have waiting callers the limit they have now. Those
// whose limit is invalid go on under the one before, and those that share a
// budget under that of the next caller. A panic of the caller's function keeps
// only its own key from being rescheduled; the first one is returned.
func (s *keyedShard[K]) replan(now int64, limitOf func(K) *compiledLimit) (panicked any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, k := range s.subjects {
		if !k.subject.HasLine() {
			continue
		}
		limit, failed := recovered(limitOf, key)
		if panicked == nil {
			panicked = failed
		}
		if limit != nil && limit.err == nil {
			k.setLimit(now, limit)
		}
	}
	return panicked
}

// recovered is limitOf(key), or what it panicked with.
func recovered[K comparable](limitOf func(K) *compiledLimit, key K) (limit *compiledLimit, panicked any) {
	defer func() { panicked = recover() }()
	return limitOf(key), nil
}

func (s *keyedShard[K]) close(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.subjects {
		k.subject.Close(now)
	}
	for _, k := range s.shared {
		if k != nil {
			k.subject.Close(now)
		}
	}
}

// len is how many keys the shard remembers that have no word in t.
func (s *keyedShard[K]) len(t *keyTable) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t == nil {
		return len(s.subjects)
	}
	for _, k := range s.subjects {
		if k.table != t {
			n++
		}
	}
	return n
}

// keyOwner comes back to the subject of a key, or to the one that it shared with
// others when it was there first.
type keyOwner[K comparable] struct {
	keyed  *Keyed[K]
	key    K
	shared *line.Subject
}

func (o keyOwner[K]) withSubject(do func(s *line.Subject, now int64)) error {
	k := o.keyed
	r, _ := k.clock.ReadSafely()
	if k.shard(k.hash(o.key)).withSubject(r, o, do) {
		return nil
	}
	s, v, err := k.lock(opSettle, r, o.key)
	if err != nil {
		return err
	}
	defer s.unlock(o.key, &v)
	do(v.subject, v.now)
	return nil
}
