package grpclimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
)

func TestCostsAreSettledWhenCallsEnd(t *testing.T) {
	failures := func(_ grpclimit.RPC, err error, taken int64) int64 {
		if err == nil {
			return 0
		}
		return taken
	}
	four := func(grpclimit.RPC) int64 { return 4 }
	for _, tt := range []struct {
		name    string
		rule    grpclimit.Rule
		handler func(context.Context) error
		want    int64
	}{
		{"a success, if failures count", grpclimit.Rule{After: failures}, func(context.Context) error { return nil }, 10},
		{"a failure", grpclimit.Rule{After: failures}, func(context.Context) error { return errors.New("wrong password") }, 9},
		{"a panic", grpclimit.Rule{After: failures}, func(context.Context) error { panic("handler") }, 9},
		{"less", grpclimit.Rule{Cost: four, Settled: true}, func(ctx context.Context) error { grpclimit.Settle(ctx, "tokens", 1); return nil }, 9},
		{"more", grpclimit.Rule{Cost: four, Settled: true}, func(ctx context.Context) error { grpclimit.Settle(ctx, "tokens", 7); return nil }, 3},
		{"nothing stated", grpclimit.Rule{Cost: four, Settled: true}, func(context.Context) error { return nil }, 6},
	} {
		for way, call := range map[string]func(s *grpclimit.Server) error{
			"a call": func(s *grpclimit.Server) error {
				_, err := s.Unary(t.Context(), nil, anyMethod, func(ctx context.Context, _ any) (any, error) { return nil, tt.handler(ctx) })
				return err
			},
			"a stream": func(s *grpclimit.Server) error {
				return s.Stream(nil, incoming{ctx: t.Context()}, &grpc.StreamServerInfo{}, func(_ any, stream grpc.ServerStream) error { return tt.handler(stream.Context()) })
			},
		} {
			engine := weir.NewMemory(weir.MemoryOptions{})
			tt.rule.Rule, tt.rule.Key = mustRule(t, "tokens=fixed window 10/1d and concurrency 5"), grpclimit.Everyone
			s := newServer(t, grpclimit.Options{Engine: engine, Rules: []grpclimit.Rule{tt.rule}})
			func() {
				defer func() { _ = recover() }()
				_ = call(s)
			}()
			if d, err := engine.Peek(t.Context(), mustRule(t, "tokens=fixed window 10/1d").For("all", 0)); err != nil || d.Remaining != tt.want {
				t.Errorf("%s, %s: %d of 10 remain (%v), want %d", tt.name, way, d.Remaining, err, tt.want)
			}
		}
	}
	_, err := grpclimit.NewClient(grpclimit.ClientOptions{Rules: []grpclimit.Rule{{Limit: "1/s", Settled: true}}})
	if err == nil || !strings.Contains(err.Error(), "only a Server") {
		t.Errorf("NewClient takes a rule that is Settled: %v, want an error", err)
	}
}
