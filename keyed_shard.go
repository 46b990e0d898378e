package weir

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// keyedShard holds the subjects of its keys that are not words in the table: keys with waiting callers, and states
// that do not fit in a word. It finds them like words, by the hashes of their keys; key strings are never compared. Its
// mutex guards them and their lines. A waiting caller does not hold it.
type keyedShard[K comparable] struct {
	mu       sync.Mutex
	subjects map[table.Hash]*keyedSubject[K]
	lines    line.Lines
	sweepAt  int
	swept    int64 // latest eviction: a missing key may have been in use before it
	newest   int64 // reading of the clock
	capacity int   // bound on subjects that are not words
	searched int64 // when the full shard last searched for idle subjects
	shared   [groupsOfShard]*keyedSubject[K]
	overflow uint64 // decisions on shared subjects
	_        [48]byte
}

// firstSweep is the number of subjects when a shard first searches for idle ones.
const firstSweep = 64

// groupsOfShard is the number of states that keys without room share in a shard: 256 in all shards.
const groupsOfShard = 256 / table.Shards

// keyedSubject is a subject that is not a word in the table, and the limit of its last decision. It fills two cache lines.
type keyedSubject[K comparable] struct {
	subject line.Subject
	limit   *compiledLimit
	table   *keyTable // the table that lent the words of the key; nil if none did
	key     *K        // nil until a caller waits
}

// visit is one method's access to a shard: the subject of its key, and the instant of the decision.
type visit[K comparable] struct {
	shard   *keyedShard[K]
	subject *line.Subject
	now     int64
	read    int64 // the reading of the clock; now may be ahead of it
	found   *keyedSubject[K]
	hash    table.Hash
	known   bool
	live    bool          // the state comes from words
	shared  *line.Subject // the subject, if keys without room share it
}

func (s *keyedShard[K]) init(clock *clock.Clock, options Options) {
	s.capacity = max(1, keyBound(options.MaxKeys)/table.Shards)
	s.searched = math.MinInt64
	s.subjects = map[table.Hash]*keyedSubject[K]{}
	s.lines = options.lines(&s.mu, clock)
	s.sweepAt = firstSweep
	s.swept = math.MinInt64
}

// find finds or makes the subject of a hash and borrows its word. A key without room gets the subject of its group. The
// caller holds the lock.
func (v *visit[K]) find(r clock.Reading, limit *compiledLimit, t *keyTable) {
	s := v.shard
	v.read = r.Latest(&s.newest)
	v.now = v.read
	if v.found, v.known = s.subjects[v.hash]; !v.known && s.room(v.now) {
		v.found = s.newSubject(v.now, limit)
	}
	if v.found == nil || t != nil && v.found.table != t && !v.borrow(t, limit) && !v.known {
		v.findShared(limit)
		return
	}
	if !v.known && !v.live {
		v.now = max(v.now, s.swept)
	}
	v.found.setLimit(v.now, limit)
	v.subject = &v.found.subject
}

func (s *keyedShard[K]) newSubject(now int64, limit *compiledLimit) *keyedSubject[K] {
	return &keyedSubject[K]{subject: line.NewSubject(limit.algorithm, now), limit: limit}
}

// borrow takes the words of a subject out of t. It returns false if there is no room for any.
func (v *visit[K]) borrow(t *keyTable, limit *compiledLimit) bool {
	loan, ok := t.column.Table().Borrow(v.hash, v.now)
	if !ok {
		return false
	}
	v.found.table = t
	words, l := loan.Read(t.column), t.limit(limit)
	switch {
	case v.known || words.First == table.Elsewhere || l == nil: // the words belong to a limit that no longer applies
	case words.First == table.Fresh:
		v.now = max(v.now, t.column.Table().Swept())
	default:
		v.found.subject.State, v.live = l.Unpack(words), true
		v.found.subject.Restored()
	}
	return true
}

// lend gives the subjects entries in t, if that is still in force. A nil t has none.
func (s *keyedShard[K]) lend(inForce *atomic.Pointer[keyTable], t *keyTable, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, k := range s.subjects {
		if inForce.Load() != t || k.table == t {
			continue
		}
		if k.table = nil; t != nil {
			if _, ok := t.column.Table().Borrow(h, now); ok {
				k.table = t
			}
		}
	}
}

// room reports whether the shard has room for another subject. A full one looks for idle ones at most once a
// millisecond, and without any for a few spare ones, so that the others keep what they have stored.
func (s *keyedShard[K]) room(now int64) bool {
	if len(s.subjects) >= s.capacity && now >= algorithm.AddSaturating(s.searched, int64(time.Millisecond)) {
		s.searched = now
		if s.forget(now, (*line.Subject).Idle, s.capacity); len(s.subjects) >= s.capacity {
			s.forget(now, (*line.Subject).Spare, 1+s.capacity/16)
		}
	}
	return len(s.subjects) < s.capacity
}

// findShared finds the subject that a key without room shares with other keys of its group. It finds none if the limit
// holds units until they are released, because a key that later has room would release them elsewhere.
func (v *visit[K]) findShared(limit *compiledLimit) {
	if limit.algorithm.Endless() {
		return
	}
	v.shard.overflow++
	v.now = v.read
	group := &v.shard.shared[v.hash/table.Shards%groupsOfShard]
	if *group == nil {
		*group = v.shard.newSubject(v.now, limit)
	}
	(*group).setLimit(v.now, limit)
	v.found, v.subject, v.shared = *group, &(*group).subject, &(*group).subject
}

// revisit finds a subject that is not a word, or the shared one, under the limit in force; nil keeps the earlier one.
func (v *visit[K]) revisit(r clock.Reading, limit *compiledLimit, t *keyTable) {
	v.now = r.Latest(&v.shard.newest)
	known := v.shard.subjects[v.hash]
	if known == nil || v.shared != nil {
		return
	}
	v.found, v.subject = known, &known.subject
	if known.table != t {
		known.table = nil
	}
	if limit != nil && limit.err == nil {
		known.setLimit(v.now, limit)
	}
}

// unlock turns the state into a word again if it fits, keeps a subject that is not fresh, and unlocks the shard.
func (v *visit[K]) unlock() {
	s := v.shard
	defer s.mu.Unlock()
	if v.shared != nil {
		return
	}
	switch words, ok := v.found.words(v.now); {
	case ok:
		v.found.table.column.Put(v.hash, words, v.now)
		v.found.table = nil
		delete(s.subjects, v.hash)
	case v.known:
	case v.subject.Idle(v.now) && !v.live:
		v.found.giveUp(v.hash, v.now)
	default:
		s.keep(v)
	}
}

func (s *keyedShard[K]) keep(v *visit[K]) {
	s.subjects[v.hash] = v.found
	if len(s.subjects) >= s.sweepAt {
		s.forget(v.read, (*line.Subject).Idle, len(s.subjects))
		s.sweepAt = max(firstSweep, 2*len(s.subjects))
	}
}

// forget evicts subjects that may go, at most a number of them.
func (s *keyedShard[K]) forget(now int64, may func(*line.Subject, int64) bool, most int) {
	for h, k := range s.subjects {
		if most == 0 {
			return
		}
		if may(&k.subject, now) {
			most--
			s.swept = max(s.swept, now)
			if k.table != nil {
				k.table.words.Forgotten(now)
			}
			k.giveUp(h, now)
			delete(s.subjects, h)
		}
	}
}

// words returns the state as words of its table, if they are all that the subject holds.
func (k *keyedSubject[K]) words(now int64) (w word.Words, ok bool) {
	if k.subject.AtRest(now) && k.table != nil {
		if l := k.table.limit(k.limit); l != nil {
			return l.Pack(k.subject.State, now)
		}
	}
	return w, false
}

// giveUp returns the words of a subject without its state.
func (k *keyedSubject[K]) giveUp(h table.Hash, now int64) {
	if k.table != nil {
		k.table.column.Put(h, word.Words{}, now)
	}
}

func (k *keyedSubject[K]) setLimit(now int64, limit *compiledLimit) {
	switch {
	case k.limit == limit:
	case k.limit.identity == limit.identity:
		k.subject.UseAlgorithm(now, limit.algorithm)
	default:
		k.subject.SetAlgorithm(now, limit.algorithm, false)
	}
	k.limit = limit
}

// replan gives the current limit to keys with waiting callers. Keys with an invalid limit keep the earlier one. Keys
// that share a state, and have limits of their own, get that of the next caller. A panic of the caller's function
// affects only its own key; replan returns the first one.
func (s *keyedShard[K]) replan(now int64, limits *limitSource[K]) (panicked any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.subjects {
		if !k.subject.HasLine() {
			continue
		}
		limit, failed := recovered(limits.limitOf, *k.key)
		if panicked == nil {
			panicked = failed
		}
		if limit != nil && limit.err == nil {
			k.setLimit(now, limit)
		}
	}
	for _, k := range s.shared {
		if all := limits.all.Load(); k != nil && all != nil {
			k.setLimit(now, all)
		}
	}
	return panicked
}

// recovered returns limitOf(key), or the value that it panicked with.
func recovered[K comparable](limitOf func(K) *compiledLimit, key K) (limit *compiledLimit, panicked any) {
	defer func() { panicked = recover() }()
	return limitOf(key), nil
}

// each calls do with every subject that is not a word, under the lock.
func (s *keyedShard[K]) each(do func(*line.Subject)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.subjects {
		do(&k.subject)
	}
	for _, k := range s.shared {
		if k != nil {
			do(&k.subject)
		}
	}
}

// len returns the number of keys of the shard without a word in t.
func (s *keyedShard[K]) len(t *keyTable) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.subjects {
		if t == nil || k.table != t {
			n++
		}
	}
	return n
}

// keyOwner finds the subject of a key again, or the shared subject that the key used.
type keyOwner[K comparable] struct {
	keyed  *Keyed[K]
	key    K
	shared *line.Subject
}

func (o keyOwner[K]) withSubject(do func(s *line.Subject, now int64)) error {
	k := o.keyed
	r, _ := k.clock.ReadSafely()
	v := visit[K]{hash: k.hash(o.key), known: true, subject: o.shared, shared: o.shared}
	v.shard = k.shard(v.hash)
	for locked := false; !locked; {
		changes, t := k.limits.changes.Load(), k.table.Load()
		limit, _ := recovered(k.limits.limitOf, o.key)
		if locked = k.lockUnder(v.shard, changes, t); locked {
			v.revisit(r, limit, t)
		}
	}
	if v.subject == nil {
		v.shard.mu.Unlock()
		v = visit[K]{}
		if err := k.lock(&v, opSettle, r, o.key); err != nil {
			return err
		}
	}
	defer v.unlock()
	do(v.subject, v.now)
	return nil
}
