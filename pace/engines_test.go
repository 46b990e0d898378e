package pace_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/pace"
)

// remote is a memory engine that a queue takes for one on another machine. It counts the calls. Its state can be lost.
type remote struct {
	weir.Engine
	calls atomic.Int64
	asks  bool // it books nothing
	state atomic.Pointer[weir.Memory]
	// around, unless it is nil, makes the calls, of which a reservation is a take.
	around func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error)
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	return remoteOf(mustMemory(t))
}

func remoteOf(memory *weir.Memory) *remote {
	r := &remote{asks: true}
	r.state.Store(memory)
	r.Engine = weir.Kit.EngineOf(r.do, memory.Check)
	return r
}

func (r *remote) do(ctx context.Context, c weir.Call) (weir.Answer, error) {
	switch {
	case c.Op == weir.OpReserve:
		return weir.Kit.Reserve(ctx, r, c)
	case r.asks && c.Op == weir.OpEach && c.Each.Calls[0].Op == weir.OpReserveAhead:
		return weir.Answer{}, weir.Kit.Unsupported(weir.OpReserveAhead, "is not made by this engine")
	case r.around != nil:
		return r.around(ctx, c, r.next)
	}
	return r.next(ctx, c)
}

func (r *remote) next(ctx context.Context, c weir.Call) (weir.Answer, error) {
	r.calls.Add(1)
	return r.state.Load().Do(ctx, c)
}

// onBoth runs a test in virtual time on the memory engine and on one that a queue takes for remote. calls returns the
// number of decisions so far.
func onBoth(t *testing.T, test func(t *testing.T, engine weir.Engine, calls func() int64)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64 // a decision reads the clock once
			test(t, weir.NewMemory(weir.MemoryOptions{Clock: func() int64 {
				calls.Add(1)
				return time.Now().UnixNano()
			}}), calls.Load)
		})
	})
	t.Run("remote", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote(t)
			test(t, r, r.calls.Load)
		})
	})
}

// onAll works like onBoth, and on an engine that books.
func onAll(t *testing.T, test func(t *testing.T, engine weir.Engine, calls func() int64)) {
	onBoth(t, test)
	t.Run("booking", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote(t)
			r.asks = false
			test(t, r, r.calls.Load)
		})
	})
}

func mustQueue(t *testing.T, engine weir.Engine) *pace.Queue {
	t.Helper()
	q, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func mustAcquire(t *testing.T, q *pace.Queue, requests ...weir.Request) *pace.Acquired {
	t.Helper()
	a, err := q.Acquire(t.Context(), requests...)
	if err != nil {
		t.Error(err)
		return &pace.Acquired{}
	}
	return a
}
