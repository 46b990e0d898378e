package weir

import (
	"math"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// keyedShard holds the subjects of those keys that hash to it which are no words
// in the table: who is waited for, and what does not fit. Its mutex guards
// them and the lines of those who wait, and is never held while anyone does.
type keyedShard[K comparable] struct {
	mu       sync.Mutex
	subjects map[K]*keyedSubject
	queue    queue
	sweepAt  int
	swept    int64 // as in shard
	born     uint64
	newest   int64 // reading of the clock
	most     int   // subjects, where they are no words
	looked   int64 // when idle ones were last looked for because of it
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
	subject subject
	limit   *compiledLimit
	hash    table.Hash
	table   *keyTable // whose word for the key reads Elsewhere; nil if none does
}

// keyTable keeps the words of the keys whose limit has one identity.
type keyTable struct {
	word.Table
	identity string
	first    *compiledLimit // the limit that it was begun with
}

// holds says that states under the limit are words of t.
func (t *keyTable) holds(limit *compiledLimit) bool {
	return t != nil && (limit == t.first || limit.words != nil && limit.identity == t.identity)
}

// visit is one verb's stay in a shard: the subject of its key, and the instant
// to decide at.
type visit struct {
	subject *subject
	now     int64
	clock   int64 // what it read, which now may be ahead of
	found   *keyedSubject
	known   bool
	shared  bool // for want of room
}

func (s *keyedShard[K]) init(clock *clock.Clock, options Options) {
	s.most = max(1, keyBound(options.MaxKeys)/shardCount)
	s.looked = math.MinInt64
	s.subjects = map[K]*keyedSubject{}
	s.queue = queue{mu: &s.mu, clock: clock, options: options}
	s.sweepAt = firstSweep
	s.swept = math.MinInt64
}

// enter finds or makes the subject of key, and borrows its word; a key that
// finds no room is one of a group. The shard is locked.
func (s *keyedShard[K]) enter(r clock.Reading, key K, h table.Hash, limit *compiledLimit, t *keyTable) visit {
	now := r.Latest(&s.newest)
	v := visit{now: now, clock: now}
	v.found, v.known = s.subjects[key]
	if !v.known {
		if !s.room(now) {
			return s.enterShared(now, h, limit)
		}
		v.found = s.newSubject(now, h, limit)
		v.now = max(now, s.swept)
	}
	if t != nil && v.found.table != t && !v.borrow(t, limit) && !v.known {
		return s.enterShared(now, h, limit)
	}
	v.found.setLimit(v.now, limit)
	v.subject = &v.found.subject
	return v
}

func (s *keyedShard[K]) newSubject(now int64, h table.Hash, limit *compiledLimit) *keyedSubject {
	k := &keyedSubject{subject: newSubject(limit.algorithm, now), limit: limit, hash: h}
	s.born++
	k.subject.stamps = s.born << 32 // no two subjects share a stamp
	return k
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
		v.found.subject.state = limit.words.Unpack(word, t.Base)
	}
	return true
}

// room says whether the shard may hold another subject. A full one looks for
// idle ones at most once a millisecond.
func (s *keyedShard[K]) room(now int64) bool {
	if len(s.subjects) >= s.most && now >= saturatingAdd(s.looked, int64(time.Millisecond)) {
		s.looked = now
		s.forget(now)
	}
	return len(s.subjects) < s.most
}

// enterShared is enter for a key that finds no room: keys it hashes near to share
// one budget.
func (s *keyedShard[K]) enterShared(now int64, h table.Hash, limit *compiledLimit) visit {
	s.overflow++
	group := &s.shared[h/shardCount%groupsOfShard]
	if *group == nil {
		*group = s.newSubject(now, h, limit)
	}
	(*group).setLimit(now, limit)
	return visit{subject: &(*group).subject, now: now, clock: now, found: *group, known: true, shared: true}
}

// leave makes a word of the state if it is one again, keeps the subject if it is
// not fresh, and unlocks.
func (s *keyedShard[K]) leave(key K, v *visit) {
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
	case v.subject.idle(v.now):
		v.found.drop(v.now)
	default:
		s.keep(key, v)
	}
}

func (s *keyedShard[K]) keep(key K, v *visit) {
	s.subjects[key] = v.found
	if len(s.subjects) >= s.sweepAt {
		s.forget(v.clock)
		s.sweepAt = max(firstSweep, 2*len(s.subjects))
	}
}

func (s *keyedShard[K]) forget(now int64) {
	for key, k := range s.subjects {
		if k.subject.idle(now) {
			k.drop(now)
			delete(s.subjects, key)
			s.swept = max(s.swept, now)
		}
	}
}

// word is the state as a word of the table it was borrowed from: not while
// anyone waits or was told an instant to come.
func (k *keyedSubject) word(now int64) (word uint64, ok bool) {
	if k.subject.line != nil || k.subject.told > now || !k.table.holds(k.limit) {
		return 0, false
	}
	return k.limit.words.Pack(k.subject.state, k.table.Base)
}

// drop ends the borrowing of a subject that is forgotten.
func (k *keyedSubject) drop(now int64) {
	if k.table != nil {
		k.table.Put(k.hash, table.Fresh)
	}
}

func (k *keyedSubject) setLimit(now int64, limit *compiledLimit) {
	if k.limit != limit {
		k.subject.setAlgorithm(now, limit.algorithm, k.limit.identity == limit.identity)
		k.limit = limit
	}
}

// replan gives the keys that have waiting callers the limit they have now. Those
// whose limit is invalid go on under the one before, and those that share a
// budget under that of the next caller. A panic of the caller's function keeps
// only its own key from being rescheduled; the first one is returned.
func (s *keyedShard[K]) replan(now int64, of func(K) *compiledLimit) (panicked any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, k := range s.subjects {
		if k.subject.line == nil {
			continue
		}
		limit, failed := recovered(of, key)
		if panicked == nil {
			panicked = failed
		}
		if limit != nil && limit.err == nil {
			k.setLimit(now, limit)
		}
	}
	return panicked
}

// recovered is of(key), or what it panicked with.
func recovered[K comparable](of func(K) *compiledLimit, key K) (limit *compiledLimit, panicked any) {
	defer func() { panicked = recover() }()
	return of(key), nil
}

func (s *keyedShard[K]) close(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.subjects {
		k.close(now)
	}
	for _, k := range s.shared {
		if k != nil {
			k.close(now)
		}
	}
}

func (k *keyedSubject) close(now int64) {
	if k.subject.line != nil {
		k.subject.line.close(now, ErrClosed)
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
