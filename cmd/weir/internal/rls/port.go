package rls

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthy "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// The bounds of a connection. Calls are small and decisions take no time.
const (
	handshakeTimeout = 5 * time.Second
	quietBeforePing  = time.Minute
	pingTimeout      = 10 * time.Second
	leastPingGap     = 10 * time.Second // of clients
	maxCall          = 1 << 20
	maxHeaders       = 16 << 10
	maxStreams       = 4096
)

// names are the services whose health is reported besides those of limits: the daemon, by the name that envoyproxy/ratelimit
// uses, too.
var names = []string{"", "ratelimit"}

// PortOptions configure a Port.
type PortOptions struct {
	Connections int                         // served at a time; further ones wait
	MaxAge      time.Duration               // of a connection, so that clients find new daemons; 0 is no bound
	Grace       time.Duration               // for calls on a connection of that age
	TLS         *tls.Config                 // nil without encryption
	Unready     func() string               // why the daemon cannot serve, or ""
	Around      grpc.UnaryServerInterceptor // calls; nil for nothing
	// Beside, if not nil, registers services of limits besides Envoy's.
	Beside func(grpc.ServiceRegistrar)
}

// Port serves calls over gRPC, with health and reflection.
type Port struct {
	PortOptions
	envoy  *Server
	names  []string        // of services whose health is reported
	limits map[string]bool // the methods for callers that may take
	server *grpc.Server
	health *health.Server
	ended  chan struct{}
	end    sync.Once
}

// NewPort returns a Port that does not serve yet.
func NewPort(s *Server, o PortOptions) *Port {
	p := &Port{PortOptions: o, envoy: s, names: slices.Clone(names), limits: map[string]bool{}, health: health.NewServer(), ended: make(chan struct{})}
	options := []grpc.ServerOption{
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.InTapHandle(p.turnAway),
		grpc.MaxRecvMsgSize(maxCall),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(uint32(8 * runtime.GOMAXPROCS(0))),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietBeforePing, Timeout: pingTimeout, MaxConnectionAge: o.MaxAge, MaxConnectionAgeGrace: o.Grace}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPingGap, PermitWithoutStream: true}),
	}
	if o.Around != nil {
		options = append(options, grpc.UnaryInterceptor(o.Around))
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	p.server = grpc.NewServer(options...)
	service.RegisterRateLimitServiceServer(p.server, s)
	if o.Beside != nil {
		o.Beside(p.server)
	}
	for name, registered := range p.server.GetServiceInfo() {
		p.names = append(p.names, name)
		for _, m := range registered.Methods {
			p.limits["/"+name+"/"+m.Name] = true
		}
	}
	healthy.RegisterHealthServer(p.server, p.health)
	reflection.Register(p.server)
	return p
}

// Serve serves calls until Shutdown.
func (p *Port) Serve(on net.Listener) error {
	go p.keepHealth()
	return p.server.Serve(netutil.LimitListener(on, p.Connections))
}

// Shutdown finishes calls in flight until the context ends, which cuts them off.
func (p *Port) Shutdown(ctx context.Context) error {
	p.end.Do(func() { close(p.ended) })
	p.health.Shutdown()
	defer context.AfterFunc(ctx, p.server.Stop)()
	p.server.GracefulStop()
	return ctx.Err()
}

// healthGap is the time between two looks at whether the daemon is ready.
const healthGap = 250 * time.Millisecond

// keepHealth reports whether the daemon is ready, until Shutdown.
func (p *Port) keepHealth() {
	tick := time.NewTicker(healthGap)
	defer tick.Stop()
	for {
		status := healthy.HealthCheckResponse_SERVING
		if p.Unready() != "" {
			status = healthy.HealthCheckResponse_NOT_SERVING
		}
		for _, name := range p.names {
			p.health.SetServingStatus(name, status)
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return
		}
	}
}
