// Package xdstest has control planes for tests: one of go-control-plane, which keeps snapshots, and one that says what a
// test tells it to.
package xdstest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
)

// Patience bounds how long tests wait for a report to a control plane.
const Patience = 20 * time.Second

// Server is a control plane.
type Server struct {
	Addr     string
	t        testing.TB
	serve    discovery.AggregatedDiscoveryServiceServer
	options  []grpc.ServerOption
	cache    cache.SnapshotCache
	node     string
	requests chan *discovery.DiscoveryRequest

	mu   sync.Mutex
	grpc *grpc.Server
}

// Start starts the control plane of go-control-plane, for one node.
func Start(t testing.TB, node string, options ...grpc.ServerOption) *Server {
	t.Helper()
	s := &Server{t: t, options: options, node: node, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil), requests: make(chan *discovery.DiscoveryRequest, 10_000)}
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	s.serve = server.NewServer(ctx, s.cache, server.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
		s.requests <- r
		return nil
	}})
	s.listen("127.0.0.1:0")
	return s
}

// Stream is the stream of a client.
type Stream = discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer

// Script starts a control plane that serves each stream by a function.
func Script(t testing.TB, serve func(Stream) error, options ...grpc.ServerOption) *Server {
	t.Helper()
	s := &Server{t: t, options: options, serve: scripted{serve: serve}}
	s.listen("127.0.0.1:0")
	return s
}

type scripted struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	serve func(Stream) error
}

func (s scripted) StreamAggregatedResources(on Stream) error { return s.serve(on) }

func (s *Server) listen(addr string) {
	s.t.Helper()
	on, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	g := grpc.NewServer(s.options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(g, s.serve)
	s.mu.Lock()
	s.Addr, s.grpc = on.Addr().String(), g
	s.mu.Unlock()
	go func() { _ = g.Serve(on) }()
	s.t.Cleanup(g.Stop)
}

// Stop ends the control plane and its streams.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grpc.Stop()
}

// Again starts a stopped control plane at its address.
func (s *Server) Again() { s.listen(s.Addr) }

// Push replaces all resources.
func (s *Server) Push(version string, resources ...*pb.RateLimitConfig) {
	s.t.Helper()
	list := make([]types.Resource, 0, len(resources))
	for _, r := range resources {
		list = append(list, r)
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: list})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cache.SetSnapshot(context.Background(), s.node, snapshot); err != nil {
		s.t.Fatal(err)
	}
}

// Accepted waits until the client acknowledges a version.
func (s *Server) Accepted(version string) {
	s.t.Helper()
	s.await("an acknowledgement of version "+version, func(r *discovery.DiscoveryRequest) bool {
		return r.ErrorDetail == nil && r.ResponseNonce != "" && r.VersionInfo == version
	})
}

// Refused waits until the client refuses an answer, and returns the refusal.
func (s *Server) Refused() *discovery.DiscoveryRequest {
	s.t.Helper()
	return s.await("a refusal", func(r *discovery.DiscoveryRequest) bool { return r.ErrorDetail != nil })
}

func (s *Server) await(what string, is func(*discovery.DiscoveryRequest) bool) *discovery.DiscoveryRequest {
	s.t.Helper()
	deadline, last := time.After(Patience), "none"
	for {
		select {
		case r := <-s.requests:
			if is(r) {
				return r
			}
			last = r.String()
		case <-deadline:
			s.t.Fatalf("xdstest: %s has not come within %s; the last request was %s", what, Patience, last)
		}
	}
}

// Limit is a descriptor with a limit, and descriptors below it.
func Limit(key, value string, count uint32, unit pb.RateLimitUnit, below ...*pb.RateLimitDescriptor) *pb.RateLimitDescriptor {
	return &pb.RateLimitDescriptor{Key: key, Value: value, RateLimit: &pb.RateLimitPolicy{RequestsPerUnit: count, Unit: unit}, Descriptors: below}
}

// Resource is the resource that Envoy Gateway sends for a listener: each route has a descriptor, whose value repeats
// its key.
func Resource(domain string, routes ...*pb.RateLimitDescriptor) *pb.RateLimitConfig {
	return &pb.RateLimitConfig{Name: domain, Domain: domain, Descriptors: routes}
}

// Route is the descriptor of a route of Envoy Gateway, above its limits.
func Route(name string, limits ...*pb.RateLimitDescriptor) *pb.RateLimitDescriptor {
	key := RouteKey(name)
	return &pb.RateLimitDescriptor{Key: key, Value: key, Descriptors: limits}
}

// RouteKey is the key and the value of a route.
func RouteKey(name string) string {
	return fmt.Sprintf("httproute/default/%s/rule/0/match/0/www_example_com", name)
}
