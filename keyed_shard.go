package weir

import (
	"math"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// keyedShard holds the subjects of its keys that are not words in the table: keys with waiting callers, and states
// that do not fit in a word. Its mutex guards them and their lines. A waiting caller does not hold it.
type keyedShard[K comparable] struct {
	mu       sync.Mutex
	subjects map[K]*keyedSubject
	lines    line.Lines
	sweepAt  int
	swept    int64  // latest eviction: a missing key may have been in use before it
	created  uint64 // subjects
	newest   int64  // reading of the clock
	capacity int    // bound on subjects that are not words
	searched int64  // when the full shard last searched for idle subjects
	shared   [groupsOfShard]*keyedSubject
	overflow uint64 // decisions on shared subjects
	refusals word.KeyRefusals
	_        [48]byte
}

// firstSweep is the number of subjects at which a shard first searches for idle ones.
const firstSweep = 64

// groupsOfShard is the number of states that keys without room share in a shard: 256 in all shards.
const groupsOfShard = 256 / table.Shards

// keyedSubject is a subject that is not a word in the table, and the limit of its last decision.
type keyedSubject struct {
	subject line.Subject
	limit   *compiledLimit
	hash    table.Hash
	stamp   uint64    // of the last write before the last unlock
	table   *keyTable // the table from which the words of the key are borrowed; nil if none are
}

// visit is one method's access to a shard: the subject of its key, and the instant of the decision.
type visit struct {
	subject *line.Subject
	now     int64
	read    int64 // the reading of the clock; now may be ahead of it
	found   *keyedSubject
	known   bool
	shared  bool // for lack of room
}

// sharedSubject returns the subject if other keys share it.
func (v *visit) sharedSubject() *line.Subject {
	if !v.shared {
		return nil
	}
	return v.subject
}

func (s *keyedShard[K]) init(clock *clock.Clock, options Options) {
	s.capacity = max(1, keyBound(options.MaxKeys)/table.Shards)
	s.searched = math.MinInt64
	s.subjects = map[K]*keyedSubject{}
	s.lines = options.lines(&s.mu, clock)
	s.sweepAt = firstSweep
	s.swept = math.MinInt64
}

// find finds or makes the subject of key and borrows its word. A key without room gets the subject of its group. The
// caller holds the lock.
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
	s.refusals.Forget(h)
	v.found.setLimit(v.now, limit)
	v.subject = &v.found.subject
	return v
}

func (s *keyedShard[K]) newSubject(now int64, h table.Hash, limit *compiledLimit) *keyedSubject {
	s.created++
	stamp := s.created << 32 // each subject has a stamp of its own
	return &keyedSubject{subject: line.NewSubject(limit.algorithm, now, stamp), limit: limit, hash: h}
}

// borrow takes the words of a subject out of t. It returns false if there is no room for any.
func (v *visit) borrow(t *keyTable, limit *compiledLimit) bool {
	loan, ok := t.column.Table().Borrow(v.found.hash, v.now)
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
		v.found.subject.State = l.Unpack(words)
	}
	return true
}

// room reports whether the shard has room for another subject. A full one looks for idle ones at most once a millisecond.
func (s *keyedShard[K]) room(now int64) bool {
	if len(s.subjects) >= s.capacity && now >= algorithm.AddSaturating(s.searched, int64(time.Millisecond)) {
		s.searched = now
		s.forget(now)
	}
	return len(s.subjects) < s.capacity
}

// withoutRoom returns the visit of a key without room. It has no subject if the limit holds units until they are
// released, because a key that later has room would release them elsewhere.
func (s *keyedShard[K]) withoutRoom(now int64, h table.Hash, limit *compiledLimit) visit {
	if algorithm.Endless(limit.algorithm) {
		return visit{}
	}
	return s.findShared(now, h, limit)
}

// findShared returns the subject that a key without room shares with other keys of its group.
func (s *keyedShard[K]) findShared(now int64, h table.Hash, limit *compiledLimit) visit {
	s.overflow++
	group := &s.shared[h/table.Shards%groupsOfShard]
	if *group == nil {
		*group = s.newSubject(now, h, limit)
	}
	(*group).setLimit(now, limit)
	return visit{subject: &(*group).subject, now: now, read: now, found: *group, known: true, shared: true}
}

// withSubject calls do with a subject that is not a word, under the limit in force. A nil limit keeps the earlier one.
func (s *keyedShard[K]) withSubject(r clock.Reading, o keyOwner[K], limit *compiledLimit, do func(s *line.Subject, now int64)) (found bool) {
	s.mu.Lock()
	v := visit{subject: o.shared, now: r.Latest(&s.newest), known: true, shared: o.shared != nil}
	if known := s.subjects[o.key]; known != nil && !v.shared {
		v.found, v.subject = known, &known.subject
		s.refusals.Forget(known.hash)
		if limit != nil && limit.err == nil {
			known.setLimit(v.now, limit)
		}
	}
	if v.subject == nil {
		s.mu.Unlock()
		return false
	}
	defer s.unlock(o.key, &v)
	do(v.subject, v.now)
	return true
}

// unlock turns the state into a word again if it fits, keeps a subject that is not fresh, and unlocks the shard.
func (s *keyedShard[K]) unlock(key K, v *visit) {
	defer s.mu.Unlock()
	if v.shared {
		return
	}
	switch words, ok := v.found.words(v.now); {
	case ok:
		v.found.table.column.Put(v.found.hash, words, v.now)
		v.found.table = nil
		delete(s.subjects, key)
	case v.known:
		if v.found.limit.quiet && v.subject.AtRest(v.now) && !v.subject.WroteSince(&v.found.stamp) {
			s.refusals.Note(v.found.hash, v.found.limit.algorithm, &v.subject.State, v.now)
		}
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

// words returns the state as words of its table, if they are all that the subject holds.
func (k *keyedSubject) words(now int64) (w word.Words, ok bool) {
	if !k.subject.AtRest(now) {
		return w, false
	}
	if k.table != nil {
		if l := k.table.limit(k.limit); l != nil {
			return l.Pack(k.subject.State, now)
		}
	}
	return w, false
}

// drop returns the words of an evicted subject.
func (k *keyedSubject) drop(now int64) {
	if k.table != nil {
		k.table.column.Put(k.hash, word.Words{}, now)
	}
}

func (k *keyedSubject) setLimit(now int64, limit *compiledLimit) {
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
	s.refusals.ForgetAll()
	for key, k := range s.subjects {
		if !k.subject.HasLine() {
			continue
		}
		limit, failed := recovered(limits.limitOf, key)
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

// recovered returns limitOf(key), or the value with which it panicked.
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

// keyOwner finds the subject of a key again, or the shared subject that the key used.
type keyOwner[K comparable] struct {
	keyed  *Keyed[K]
	key    K
	shared *line.Subject
}

func (o keyOwner[K]) withSubject(do func(s *line.Subject, now int64)) error {
	k := o.keyed
	r, _ := k.clock.ReadSafely()
	limit, _ := recovered(k.limits.limitOf, o.key)
	if k.shard(k.hash(o.key)).withSubject(r, o, limit, do) {
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
