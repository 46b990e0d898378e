package grpclimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/layer"
)

// distant returns an engine that takes 60 ms to answer, and gives up with its context.
func distant(engine weir.Engine) weir.Engine {
	return remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake {
			select {
			case <-time.After(60 * time.Millisecond):
			case <-ctx.Done():
				return weir.Answer{}, ctx.Err()
			}
		}
		return next(ctx, c)
	})
}

// incoming is a stream of a server with messages without end.
type incoming struct {
	grpc.ServerStream
	ctx context.Context
}

func (s incoming) Context() context.Context { return s.ctx }
func (incoming) RecvMsg(any) error          { return nil }

// arrivals are the ways in which a client reaches the limits of a server.
var arrivals = map[string]func(s *grpclimit.Server, ctx context.Context, reached func()) error{
	"a call": func(s *grpclimit.Server, ctx context.Context, reached func()) error {
		return callDirectly(ctx, s, reached)
	},
	"a stream": func(s *grpclimit.Server, ctx context.Context, reached func()) error {
		return s.Stream(nil, incoming{ctx: ctx}, &grpc.StreamServerInfo{}, func(any, grpc.ServerStream) error {
			reached()
			return nil
		})
	},
	"a message": func(s *grpclimit.Server, ctx context.Context, reached func()) error {
		return s.Stream(nil, incoming{ctx: ctx}, &grpc.StreamServerInfo{}, func(_ any, stream grpc.ServerStream) error {
			err := stream.RecvMsg(nil)
			if err == nil {
				reached()
			}
			return err
		})
	},
}

func TestACallWhoseClientHangsUpIsDecided(t *testing.T) {
	for name, arrive := range arrivals {
		synctest.Test(t, func(t *testing.T) {
			reached, failures := 0, 0
			limited := newServer(t, grpclimit.Options{Engine: distant(weir.NewMemory(weir.MemoryOptions{})), Guard: layer.GuardOptions{OnFailure: layer.Allow, Deadline: time.Second}, EachMessage: name == "a message",
				Rules: []grpclimit.Rule{{Limit: "key=fixed window 1/h", Key: grpclimit.Everyone}},
				Observe: func(_ context.Context, o layer.Observation) {
					if o.Err != nil {
						failures++
					}
				}})
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_ = arrive(limited, ctx, func() { reached++ })
				cancel()
			}
			if reached != 1 || failures != 0 {
				t.Errorf("%s: %d of 20 passed 1/h, with %d failures, want 1 and none", name, reached, failures)
			}
			wantCode(t, name+" of a patient client", arrive(limited, t.Context(), func() {}), codes.ResourceExhausted)
		})
	}
}

// A plan that asks a store under the call's context does not know the answer when the client hangs up.
func TestAClientThatHangsUpDuringItsPlanIsNotPassedOn(t *testing.T) {
	for name, arrive := range arrivals {
		failures := 0
		limited := newServer(t, grpclimit.Options{Guard: layer.GuardOptions{OnFailure: layer.Allow}, EachMessage: name == "a message",
			Rules:   []grpclimit.Rule{{Plan: func(grpclimit.RPC) *weir.Rule { return nil }}},
			Observe: func(context.Context, layer.Observation) { failures++ }})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := arrive(limited, ctx, func() { t.Errorf("%s: the handler was reached for a client that has left", name) })
		wantCode(t, name, err, codes.Canceled)
		if failures != 0 {
			t.Errorf("%s: %d failures were observed, want none", name, failures)
		}
	}
}
