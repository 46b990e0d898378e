package pace_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// remote is a memory engine that a queue takes for one on another machine. It counts the calls. Its state can be lost.
type remote struct {
	calls atomic.Int64
	state atomic.Pointer[weir.Memory]
}

var _ weir.Engine = (*remote)(nil)

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{}
	r.state.Store(mustMemory(t))
	return r
}

func (r *remote) called() *weir.Memory {
	r.calls.Add(1)
	return r.state.Load()
}

func (r *remote) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return r.called().Take(ctx, requests...)
}

func (r *remote) Peek(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return r.called().Peek(ctx, requests...)
}

func (r *remote) Record(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return r.called().Record(ctx, requests...)
}

func (r *remote) Reset(ctx context.Context, requests ...weir.Request) error {
	return r.called().Reset(ctx, requests...)
}

func (r *remote) TakeEach(ctx context.Context, requests []weir.Request, results []weir.Result) error {
	return r.called().TakeEach(ctx, requests, results)
}

func (r *remote) Check(rules ...*weir.Rule) error { return r.called().Check(rules...) }

func (r *remote) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	return weir.Reserve(ctx, r, requests...)
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

func mustQueue(t *testing.T, engine weir.Engine) *pace.Queue {
	t.Helper()
	q, err := pace.NewQueue(engine, pace.QueueOptions{})
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
