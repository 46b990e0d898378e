package filter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// terms are the limits of a filter. One limit of this process is a Limiter or a Keyed; several limits and those of an
// engine are a rule in a Queue.
type terms struct {
	// allow takes the turn of a key if it is now. A Queue has no such verb.
	allow func(key string, n int64) bool
	// reserve takes a later turn. It is nil if the limit is strict, and for a Queue.
	reserve func(key string, n int64) (*weir.Reservation, error)
	// wait waits for a turn, if there is no reserve. For Work it acquires a slot, too.
	wait func(ctx context.Context, key string, n int64) (*pace.Acquired, error)

	capacity int64 // the largest cost of one turn
	ahead    int64 // the units that callers of a key wait for at a time
	together int64 // the units that one of them waits for
	strict   bool  // a turn counts from the instant of the grant
	spare    bool  // the units ahead are more than are due within maxLag

	rule  *weir.Rule // on an engine
	queue *pace.Queue
}

// maxLag bounds the lateness of the filter that does not delay later lines, because callers wait ahead for those that
// are due within it. If the reader of the output stalls for longer, or the process was stopped, the lost time does not
// return as a burst.
const maxLag = 20 * time.Millisecond

func newTerms(o *Options) (*terms, error) {
	if len(o.Limits) == 0 {
		return nil, errors.New("pace: no limit")
	}
	t := &terms{capacity: math.MaxInt64, ahead: math.MaxInt64}
	limits := make([]weir.Limit, len(o.Limits))
	var one *weir.Limiter
	for i, limit := range o.Limits {
		adapted, rate, err := forWaiting(limit)
		if err != nil {
			return nil, err
		}
		if one, err = weir.New(adapted); err != nil {
			return nil, err
		}
		limits[i] = adapted
		t.strict = t.strict || rate == weir.Rate{}
		t.capacity = min(t.capacity, one.Peek(0).Limit)
		t.ahead = min(t.ahead, dueWithin(maxLag, rate))
	}
	switch {
	case o.Work != nil:
		t.strict, t.ahead = true, 1
		return t, t.onEngine(o, append(limits, weir.Concurrency{Slots: o.AtOnce}))
	case o.Engine != nil || len(limits) > 1:
		return t, t.onEngine(o, limits)
	case o.Key == nil || o.Fair:
		t.shared(one)
		return t, nil
	}
	return t, t.apart(limits[0])
}

// dueWithin returns the units that are due within a time, and at least one. A limit without a rate is strict: one caller
// waits for it, because several lines could pass together after a stall.
func dueWithin(d time.Duration, rate weir.Rate) int64 {
	if rate.Period == 0 {
		return 1
	}
	return int64(max(float64(rate.Count)*float64(d)/float64(rate.Period), 1))
}

// shared makes all keys wait for one limit.
func (t *terms) shared(l *weir.Limiter) {
	t.batch()
	t.allow = func(_ string, n int64) bool { return l.AllowN(n) }
	t.wait = func(ctx context.Context, _ string, n int64) (*pace.Acquired, error) { return nil, l.WaitN(ctx, n) }
	if !t.strict {
		t.reserve = func(_ string, n int64) (*weir.Reservation, error) { return l.Reserve(n, weir.Never) }
	}
}

// apart gives each key a limit of its own.
func (t *terms) apart(limit weir.Limit) error {
	k, err := weir.NewKeyed[string](limit)
	if err != nil {
		return err
	}
	t.batch()
	t.allow = k.AllowN
	t.wait = func(ctx context.Context, key string, n int64) (*pace.Acquired, error) {
		return nil, k.WaitN(ctx, key, n)
	}
	if !t.strict {
		t.reserve = func(key string, n int64) (*weir.Reservation, error) { return k.Reserve(key, n, weir.Never) }
	}
	return nil
}

// batch lets callers wait for all lines of a millisecond. Under a limit that is not strict they wait for a spare line, so
// that the time between a turn and the next question is not lost.
func (t *terms) batch() {
	t.together = max(t.ahead/int64(maxLag/time.Millisecond), 1)
	if !t.strict && t.ahead == 1 {
		t.ahead, t.spare = 2, true
	}
}

// mostBooked bounds the callers that wait ahead for an engine. If the process is killed, their instants are lost.
const mostBooked = 64

// onEngine puts the limits into a rule on the engine, or on an engine of this process.
func (t *terms) onEngine(o *Options, limits []weir.Limit) (err error) {
	engine := o.Engine
	if engine == nil {
		engine = weir.NewMemory(weir.MemoryOptions{})
	}
	if t.rule, err = weir.NewRule(strings.TrimSpace("pace "+o.Name), limits...); err != nil {
		return err
	}
	if err := engine.Check(t.rule); err != nil {
		return err
	}
	if t.queue, err = pace.NewQueue(engine, pace.QueueOptions{}); err != nil {
		return err
	}
	t.together, t.ahead = 1, min(t.ahead, mostBooked)
	t.allow = func(string, int64) bool { return false }
	t.wait = patient{t.queue, t.rule, o.Patience, o.Work != nil}.wait
	return nil
}

// longestFlush bounds the time that a filter takes to give back what was booked. It ends within the grace of a signal.
const longestFlush = 900 * time.Millisecond

// flush waits until what the lines that leave had booked is given back. Units that the engine does not take back stay spent.
func (t *terms) flush(ctx context.Context) {
	if t.queue == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestFlush)
	defer cancel()
	_ = t.queue.Flush(ctx)
}

// NoPaceError reports a limit that is valid, but cannot pace a stream.
type NoPaceError struct {
	Limit weir.Limit
	Why   string
}

func (e *NoPaceError) Error() string {
	return e.Limit.String() + ": limit cannot pace a stream, because " + e.Why
}

// forWaiting adapts the limit to lines that wait instead of being refused. It returns the rate of a limit under which a
// late line does not delay others, and otherwise no rate.
func forWaiting(limit weir.Limit) (_ weir.Limit, rate weir.Rate, err error) {
	if limit == nil {
		return nil, rate, errors.New("pace: no limit")
	}
	noPace := func(why string) error { return &NoPaceError{limit, why} }
	if weir.Describe(limit).Strikes > 0 {
		return nil, rate, noPace("lines wait, and are never refused")
	}
	if _, err := weir.New(limit); err != nil {
		return nil, rate, err
	}
	adapted := weir.Describe(limit).Waiting
	switch d := weir.Describe(adapted); {
	case d.Held:
		return nil, rate, noPace("a stream never releases its slots")
	case d.Capacity == 0:
		return nil, rate, noPace("it admits nothing")
	case d.Planned:
		rate = d.Rate
	}
	return adapted, rate, nil
}

// later reserves the turn of a cost and returns the time until it. Later lines do not depend on when the filter notices
// that. A cost above the capacity is reserved in parts.
func (t *terms) later(key string, cost int64) (wait time.Duration, err error) {
	for ; cost > 0; cost -= min(cost, t.capacity) {
		r, err := t.reserve(key, min(cost, t.capacity))
		if err != nil {
			return 0, err
		}
		if !r.Decision.Allowed {
			return 0, fmt.Errorf("pace: reserve: cost %d of key %q has no turn: %+v", cost, key, r.Decision)
		}
		wait = r.Decision.Delay
	}
	return wait, nil
}

// waitFor waits for the turn of a cost. It waits in parts for a cost above the capacity.
func (t *terms) waitFor(ctx context.Context, key string, cost int64) (slot *pace.Acquired, err error) {
	for ; cost > 0 && err == nil; cost -= min(cost, t.capacity) {
		slot, err = t.wait(ctx, key, min(cost, t.capacity))
	}
	return slot, err
}

// patient waits in a queue. It asks a failing engine again, for a bounded time. Units that a failed call has counted
// stay spent.
type patient struct {
	queue    *pace.Queue
	rule     *weir.Rule
	patience time.Duration
	acquires bool
}

// enginePause is the pause after a failure of the engine.
const enginePause = 250 * time.Millisecond

// wait returns an *EngineError when the patience is over, or when a retry cannot help.
func (p patient) wait(ctx context.Context, key string, cost int64) (*pace.Acquired, error) {
	request := p.rule.For(key[:min(len(key), weir.MaxKey)], cost)
	var failing time.Time // since when
	for {
		began := time.Now()
		slot, err := p.ask(ctx, request)
		switch {
		case err == nil:
			return slot, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, weir.ErrRequest) || errors.Is(err, weir.ErrNever):
			return nil, &EngineError{err}
		case failing.IsZero() || began.Sub(failing) > p.patience+2*enginePause: // it has waited meanwhile
			failing = time.Now()
		}
		if time.Since(failing) >= p.patience {
			return nil, &EngineError{err}
		}
		select {
		case <-time.After(enginePause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p patient) ask(ctx context.Context, request weir.Request) (*pace.Acquired, error) {
	if p.acquires {
		return p.queue.Acquire(ctx, request)
	}
	_, err := p.queue.Wait(ctx, request)
	return nil, err
}
