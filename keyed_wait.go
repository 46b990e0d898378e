package weir

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
)

// Wait waits for the turn of the caller and takes cost 1 of the key: see Limiter.WaitN.
func (k *Keyed[K]) Wait(ctx context.Context, key K) error { return k.WaitN(ctx, key, 1) }

// WaitN waits for the turn of the caller and takes cost n of the key: see Limiter.WaitN.
func (k *Keyed[K]) WaitN(ctx context.Context, key K, n int64) error {
	return k.wait(ctx, key, Turn{Cost: n, Max: Never})
}

// WaitMax works like WaitN with a maximum wait: see Limiter.WaitMax.
func (k *Keyed[K]) WaitMax(ctx context.Context, key K, n int64, longest time.Duration) error {
	return k.wait(ctx, key, Turn{Cost: n, Max: max(longest, 0)})
}

// WaitTurn works like WaitN with a class and a maximum wait.
func (k *Keyed[K]) WaitTurn(ctx context.Context, key K, turn Turn) error {
	turn.Max = turn.longest()
	return k.wait(ctx, key, turn)
}

func (k *Keyed[K]) wait(ctx context.Context, key K, turn Turn) error {
	if err := k.check(opWait, key); err != nil {
		return err
	}
	limit, h := k.wordsOf(key, turn.Cost)
	if limit == nil {
		h = k.hash(key)
	}
	lines := &k.shard(h).lines
	if err := lines.Check(ctx, turn.Cost, turn.Class, turn.Weight); err != nil {
		return refusal(opWait, err)
	}
	r := k.clock.Read()
	if limit != nil && !k.closed.Load() {
		if need, done := limit.Within(h, r.At, turn.Cost, line.Alone(ctx, int64(turn.Max))); done {
			return turn.late(lines, need)
		}
		if allowed, _ := limit.Allow(h, r.At, turn.Cost); allowed {
			return nil
		}
	}
	w, o, err := k.join(ctx, r, key, turn)
	if err != nil {
		return err
	}
	return await(ctx, turn, lines, k.jitter, o, w)
}

func (k *Keyed[K]) join(ctx context.Context, r clock.Reading, key K, turn Turn) (w *line.Waiter, o keyOwner[K], err error) {
	o = keyOwner[K]{keyed: k, key: key}
	var v visit[K]
	if err := k.lock(&v, opWait, r, key); err != nil {
		return nil, o, err
	}
	defer v.unlock()
	lines := &v.shard.lines
	if k.closed.Load() {
		return nil, o, refusal(opWait, lines.Count(line.ErrClosed))
	}
	o.shared = v.shared
	if v.found.key == nil {
		kept := key
		v.found.key = &kept
	}
	if w, err = lines.Join(ctx, v.subject, v.now, turn.inLine()); err != nil {
		err = refusal(opWait, err)
	}
	return w, o, err
}

// Reserve takes cost n of the key for the earliest instant within longest: see Limiter.Reserve.
func (k *Keyed[K]) Reserve(key K, n int64, longest time.Duration) (*Reservation, error) {
	var v visit[K]
	if err := k.lock(&v, opReserve, k.clock.Read(), key); err != nil {
		return &Reservation{}, err
	}
	defer v.unlock()
	o := keyOwner[K]{keyed: k, key: key, shared: v.shared}
	return newBooking(o, v.subject, v.now, n, longest)
}

// Close ends the waits of waiting and later callers with ErrClosed. The other methods continue to work.
func (k *Keyed[K]) Close() {
	now := k.clock.Read().At
	k.closed.Store(true)
	for i := range k.shards {
		k.shards[i].each(func(s *line.Subject) { s.Close(now) })
	}
}

// KeyLimiter is one key of a Keyed, for functions that pace a single subject. Keyed.For returns it.
type KeyLimiter[K comparable] struct {
	keyed *Keyed[K]
	key   K
}

// For returns the limiter of one key. It allocates nothing and has no state of its own.
func (k *Keyed[K]) For(key K) KeyLimiter[K] { return KeyLimiter[K]{k, key} }

// WaitTurn calls Keyed.WaitTurn for the key.
func (l KeyLimiter[K]) WaitTurn(ctx context.Context, turn Turn) error {
	return l.owner().WaitTurn(ctx, l.key, turn)
}

// Return calls Keyed.Return for the key.
func (l KeyLimiter[K]) Return(n int64) Decision { return l.owner().Return(l.key, n) }

// owner returns the Keyed of l, which refuses everything if l is the zero KeyLimiter.
func (l KeyLimiter[K]) owner() *Keyed[K] {
	if l.keyed == nil {
		return new(Keyed[K])
	}
	return l.keyed
}

// WaitStats returns the statistics of the waiting callers of all keys. It looks at each key that has some.
func (k *Keyed[K]) WaitStats() WaitStats {
	var s line.Stats
	for i := range k.shards {
		shard := &k.shards[i]
		shard.each(func(subject *line.Subject) { subject.AddTo(&s, k.clock.Read().At) })
		shard.lines.AddTo(&s)
	}
	return waitStats(&s)
}
