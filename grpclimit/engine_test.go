package grpclimit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/layer"
)

var anyMethod = &grpc.UnaryServerInfo{FullMethod: unaryMethod}

// callDirectly calls the interceptor of a server without a connection.
func callDirectly(ctx context.Context, s *grpclimit.Server, inside func()) error {
	_, err := s.Unary(ctx, nil, anyMethod, func(context.Context, any) (any, error) {
		inside()
		return nil, nil
	})
	return err
}

func TestALeakyBucketHoldsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := newServer(t, grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "client=leaky bucket 1/s queue 1"}}})
		began := time.Now()
		for _, want := range []time.Duration{0, time.Second} {
			wantCode(t, "held", callDirectly(t.Context(), limited, func() {
				if got := time.Since(began); got != want {
					t.Errorf("the handler was called after %v, want %v", got, want)
				}
			}), codes.OK)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := callDirectly(ctx, limited, func() { t.Error("the handler was called for a client that has left") })
		wantCode(t, "a client that leaves", err, codes.DeadlineExceeded)
	})
}

// holder is an engine whose slots expire unless they are renewed.
type holder struct {
	weir.Engine
	held, released atomic.Int64
	err            error
}

func newHolder(engine weir.Engine) *holder {
	h := &holder{}
	h.Engine = remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake && h.err != nil {
			return weir.Answer{}, h.err
		}
		if c.Op == weir.OpEach && c.Each.Calls[0].Op == weir.OpReturn { // the Guard releases
			h.released.Add(1)
		}
		return next(ctx, c)
	})
	return h
}

func (h *holder) KeepSlots(_ time.Time, slots weir.Call) (<-chan struct{}, func()) {
	h.held.Add(int64(len(slots.Requests)))
	return nil, func() { h.held.Add(-int64(len(slots.Requests))) }
}

func TestSlotsAreRenewedWhereTheyExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newHolder(weir.NewMemory(weir.MemoryOptions{}))
		limited := newServer(t, grpclimit.Options{Engine: engine, Rules: []grpclimit.Rule{{Limit: "work=100/s and concurrency 1"}}})
		for range 2 {
			wantCode(t, "call", callDirectly(t.Context(), limited, func() {
				if got := engine.held.Load(); got != 1 {
					t.Errorf("%d slots are renewed during the call, want 1", got)
				}
			}), codes.OK)
		}
		if got := engine.held.Load(); got != 0 {
			t.Errorf("%d slots are renewed after the calls, want none", got)
		}
		engine.err = errors.New("connection lost")
		wantCode(t, "a lost answer", callDirectly(t.Context(), limited, func() {}), codes.Unavailable)
		engine.err = nil
		time.Sleep(10 * time.Second)
		if engine.released.Load() == 0 {
			t.Error("the slot of the lost answer was not released")
		}
	})
}

func TestAClientFollowsThePolicyForAFailingEngine(t *testing.T) {
	for policy, want := range map[layer.Policy]codes.Code{layer.Deny: codes.Unavailable, layer.Allow: codes.OK} {
		synctest.Test(t, func(t *testing.T) {
			engine := broken(weir.NewMemory(weir.MemoryOptions{}))
			c := newClient(t, grpclimit.ClientOptions{Engine: engine, Guard: layer.GuardOptions{OnFailure: policy, Peers: 1}, Rules: []grpclimit.Rule{{Limit: "client=1/m"}}})
			wantCode(t, "a failing engine", call(t.Context(), c, "m", succeed), want)
		})
	}
}

func TestAnEngineThatHangsHoldsUpTheEndOfACallForTwoSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		stuck := remote(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			if c.Op == weir.OpReturn && time.Since(began) < time.Minute {
				<-ctx.Done()
				return weir.Answer{}, ctx.Err()
			}
			return next(ctx, c)
		})
		c := newClient(t, grpclimit.ClientOptions{Engine: stuck, Rules: []grpclimit.Rule{{Limit: "client=concurrency 1"}}})
		wantCode(t, "call", call(t.Context(), c, "m", succeed), codes.OK)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the call took %v, want 2s at most", took)
		}
		time.Sleep(2 * time.Minute) // the Guard settles when the engine is back
	})
}
