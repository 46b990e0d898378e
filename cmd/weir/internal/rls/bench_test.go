package rls

import (
	"context"
	"fmt"
	"net"
	"testing"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir"
)

// benchRules limit addresses generously, so that calls are admitted.
const benchRules = `rules: [{name: address, match: {domain: shop, descriptor.remote_address: "*"}, key: descriptor.remote_address, limit: 1000000/s}]`

// echo answers with a fixed message of the same form.
type echo struct {
	service.UnimplementedRateLimitServiceServer
	answer *service.RateLimitResponse
}

func (e *echo) ShouldRateLimit(context.Context, *service.RateLimitRequest) (*service.RateLimitResponse, error) {
	return e.answer, nil
}

func benchCall(b testing.TB, descriptors int) *service.RateLimitRequest {
	list := make([]string, descriptors)
	for i := range list {
		list[i] = entries(fmt.Sprintf("remote_address=192.0.2.%d", i))
	}
	return asked(b, callOf(list...))
}

func benchServer(b testing.TB) *Server {
	s, _ := newServer(b, benchRules, func(o *setup) { o.desk.Engine = weir.NewMemory(weir.MemoryOptions{}) })
	return s
}

func TestACallTakesFewObjects(t *testing.T) {
	ctx, s, call := t.Context(), benchServer(t), benchCall(t, 1)
	if got := testing.AllocsPerRun(1000, func() { _, _ = s.ShouldRateLimit(ctx, call) }); got > 4 {
		t.Errorf("got %v objects more than an echo, want at most 4", got)
	}
}

func BenchmarkCall(b *testing.B) {
	compat, _ := newCompat(b, "{domain: shop, descriptors: [{key: remote_address, rate_limit: {unit: second, requests_per_unit: 1000000}}]}", nil)
	for _, n := range []int{1, 100} {
		for name, s := range map[string]*Server{"rules": benchServer(b), "compat": compat} {
			call := benchCall(b, n)
			b.Run(fmt.Sprintf("%s/descriptors=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if a, err := s.ShouldRateLimit(b.Context(), call); err != nil || a.Statuses[n-1].CurrentLimit == nil {
						b.Fatal(a, err)
					}
				}
			})
		}
	}
}

// BenchmarkPort compares calls over gRPC with an echo of the same messages, on the same server options.
func BenchmarkPort(b *testing.B) {
	for _, n := range []int{1, 100} {
		s, call := benchServer(b), benchCall(b, n)
		answer, err := s.ShouldRateLimit(b.Context(), call)
		if err != nil {
			b.Fatal(err)
		}
		for name, register := range map[string]func(*grpc.Server){
			"echo": func(g *grpc.Server) { service.RegisterRateLimitServiceServer(g, &echo{answer: answer}) },
			"weir": func(g *grpc.Server) { service.RegisterRateLimitServiceServer(g, s) },
		} {
			b.Run(fmt.Sprintf("%s/descriptors=%d", name, n), func(b *testing.B) { benchPort(b, register, call) })
		}
	}
}

func benchPort(b *testing.B, register func(*grpc.Server), call *service.RateLimitRequest) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	g := grpc.NewServer()
	register(g)
	go func() { _ = g.Serve(l) }()
	defer g.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := service.NewRateLimitServiceClient(conn)
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := client.ShouldRateLimit(b.Context(), call); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
