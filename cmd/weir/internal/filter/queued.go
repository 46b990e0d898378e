package filter

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// Shared is a rule on an engine: several limits, or limits that other processes share. Lines then wait in a queue of
// package pace, a key of the rule for each key of a line.
type Shared struct {
	Queue *pace.Queue
	Rule  *weir.Rule
	// Patience bounds the time in which the engine fails without end before Run does. Default: 0, the first failure.
	Patience time.Duration

	capacity int64
	ahead    int
}

// NewShared returns the rule of limits, adapted to lines that wait, on an engine that accepts it.
func NewShared(engine weir.Engine, name string, limits ...weir.Limit) (*Shared, error) {
	s := &Shared{capacity: math.MaxInt64, ahead: mostAhead}
	for i, limit := range limits {
		adapted, _, err := forWaiting(limit)
		if err != nil {
			return nil, err
		}
		one, err := weir.New(adapted)
		if err != nil {
			return nil, err
		}
		limits[i] = adapted
		s.capacity = min(s.capacity, one.Peek(0).Limit)
		s.ahead = min(s.ahead, aheadOf(adapted))
	}
	var err error
	if s.Rule, err = weir.NewRule(name, limits...); err != nil {
		return nil, err
	}
	if err := engine.Check(s.Rule); err != nil {
		return nil, err
	}
	s.Queue, err = pace.NewQueue(engine, pace.QueueOptions{})
	return s, err
}

// mostAhead bounds the lines of a key that wait at a time.
const mostAhead = 64

// aheadOf returns how many lines of a key wait at a time. Under a bucket those that are due within maxLag do, so that a
// late wake-up does not delay later lines. They may pass together after a stall, so under other limits one line waits.
func aheadOf(limit weir.Limit) int {
	bucket, ok := limit.(weir.TokenBucket)
	if !ok {
		return 1
	}
	due := float64(bucket.Rate.Count) * float64(maxLag) / float64(bucket.Rate.Period)
	return int(min(max(due, 1), mostAhead))
}

// pay waits until the rule admits a cost. A cost above the capacity is paid in parts.
func (s *Shared) pay(ctx context.Context, key string, cost int64) error {
	if len(key) > weir.MaxKey {
		key = key[:weir.MaxKey]
	}
	for ; cost > 0; cost -= min(cost, s.capacity) {
		if err := s.take(ctx, s.Rule.For(key, min(cost, s.capacity))); err != nil {
			return err
		}
	}
	return nil
}

// enginePause is the pause after a failure of the engine.
const enginePause = 250 * time.Millisecond

// take waits for one request. It asks again after a failure of the engine. What a failed call has counted stays spent.
func (s *Shared) take(ctx context.Context, q weir.Request) error {
	var failing time.Time // since when
	for {
		began := time.Now()
		_, err := s.Queue.Wait(ctx, q)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, weir.ErrRequest) || errors.Is(err, weir.ErrNever):
			return &EngineError{err}
		case failing.IsZero() || began.Sub(failing) > s.Patience+2*enginePause: // it has waited meanwhile
			failing = time.Now()
		}
		if time.Since(failing) >= s.Patience {
			return &EngineError{err}
		}
		select {
		case <-time.After(enginePause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// EngineError is a failure of the engine of a Shared.
type EngineError struct{ Err error }

func (e *EngineError) Error() string { return "pace: engine: " + e.Err.Error() }

func (e *EngineError) Unwrap() error { return e.Err }

// queued are turns that callers of a Shared wait for: each waits for one turn, of a key or of all keys.
type queued struct {
	ctx     context.Context
	shared  *Shared
	bytes   bool // a line costs its bytes, not 1
	fair    bool
	lanes   lanes
	ring    []*lane // with fair: the next turn comes first
	waiting map[*lane]int
	callers sync.WaitGroup
	wake    chan struct{}

	mu    sync.Mutex
	ready []*lane // have a turn
	err   error
}

// ofAll is the lane whose turns are for any key.
var ofAll = &lane{}

func newQueued(ctx context.Context, o *Options) *queued {
	return &queued{ctx: ctx, shared: o.Shared, bytes: o.Chunk > 0, fair: o.Fair,
		lanes: lanes{}, waiting: map[*lane]int{}, wake: make(chan struct{}, 1)}
}

func (q *queued) add(key string, l *line, _ int64) {
	lane, begun := q.lanes.add(key, l)
	if q.fair {
		if begun {
			q.ring = append(q.ring, lane)
		}
		lane = ofAll
	}
	q.ask(lane)
}

// ask lets callers wait for the lines of a lane that no caller waits for yet, up to the bound. If lines cost their
// bytes, the one caller pays for the first line.
func (q *queued) ask(lane *lane) {
	lines, first, key, most := len(lane.lines), lane, lane.key, q.shared.ahead
	if q.fair {
		if lines, first = len(q.ring), nil; lines > 0 {
			first = q.ring[0]
			lines += len(first.lines) - 1
		}
	}
	cost := int64(1)
	if q.bytes && lines > 0 {
		cost, most = int64(len(first.lines[0].data)), 1
	}
	for ; q.waiting[lane] < min(lines, most); q.waiting[lane]++ {
		q.callers.Go(func() { q.wait(lane, key, cost) })
	}
}

func (q *queued) wait(lane *lane, key string, cost int64) {
	err := q.shared.pay(q.ctx, key, cost)
	q.mu.Lock()
	if err == nil {
		q.ready = append(q.ready, lane)
	} else if q.err == nil {
		q.err = err
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// due is now if a line has its turn. Otherwise the next turn is announced by wake.
func (q *queued) due() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) > 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

func (q *queued) next(int64) *line {
	q.mu.Lock()
	lane := q.ready[0]
	q.ready = q.ready[1:]
	q.mu.Unlock()
	if q.waiting[lane]--; q.waiting[lane] == 0 {
		delete(q.waiting, lane)
	}
	from := lane
	if q.fair {
		from, q.ring = q.ring[0], q.ring[1:]
	}
	l := from.pop()
	switch {
	case len(from.lines) == 0:
		delete(q.lanes, from.key)
	case q.fair:
		q.ring = append(q.ring, from)
	}
	q.ask(lane)
	return l
}

// failed returns the error of a caller.
func (q *queued) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}
