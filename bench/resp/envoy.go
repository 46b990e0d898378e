package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	channels  = 4
	many      = 100 // descriptors or decisions in a call
	serverCPU = "µs of server CPU a decision"
	median    = "p50 µs of a call"

	// The CPU time of others, their Redis included, over that of an echo: 38.81 + 11.58 and 46.76 over 12.11 µs.
	envoyproxyOverEcho = 4.16
	gubernatorOverEcho = 3.86
)

// rules admit every user a million times a second.
const rules = `rules: [{name: user, match: {domain: shop, descriptor.user: "*"}, key: descriptor.user, limit: 1000000/s}]`

// The servers that Envoy asks.
const (
	weirGRPC = "`weir serve --grpc`"
	onRedis  = "`weir serve --grpc --engine redis://`"
	bareEcho = "a bare grpc-go echo"
)

func callersGroup(callers, descriptors int) string {
	return fmt.Sprintf("Envoy: %d callers, %d descriptors a call", callers, descriptors)
}

// envoyRows are the rows of Envoy. Callers of one descriptor are as many as in the figures of others.
func envoyRows(at map[string]string) (list []measure.Row) {
	for _, shape := range [][2]int{{1, 1}, {16, 1}, {128, 1}, {16, many}} {
		for _, s := range []struct{ line, name string }{{weirGRPC, "weir"}, {onRedis, "shared"}, {bareEcho, "echo"}} {
			e := &envoys{address: at[s.name], pid: at[s.name+"-pid"], callers: shape[0], descriptors: shape[1]}
			if s.name == "shared" {
				e.redis = at["redis"]
			}
			list = append(list, measure.Row{Group: callersGroup(shape[0], shape[1]), Line: s.line, Measure: e.measure})
		}
	}
	return list
}

func envoyTargets() []measure.Target {
	beside := func(name, ours, of, format string, bound float64, callers ...int) measure.Target {
		t := measure.Target{Name: name, Figure: of, Format: format, Bound: bound}
		for _, n := range callers {
			t.Cases = append(t.Cases, measure.Case{Row: ours + ", " + callersGroup(n, 1), Over: []string{bareEcho + ", " + callersGroup(n, 1)}})
		}
		return t
	}
	alone := func(name, row string) measure.Target {
		return measure.Target{Name: name, Figure: serverCPU, Format: "%.2f µs", Bound: 1.5, Cases: []measure.Case{{Row: row}}}
	}
	return []measure.Target{
		beside(weirGRPC+": CPU time over an echo", weirGRPC, serverCPU, "%.2f ×", 1.25, 16, 128),
		beside(weirGRPC+": p50 over an echo", weirGRPC, median, "%.2f ×", 1.15, 1, 16, 128),
		beside("a third of the CPU time of envoyproxy/ratelimit", weirGRPC, serverCPU, "%.2f ×", envoyproxyOverEcho/3, 128),
		beside("the CPU time of gubernator, by 2.5", weirGRPC, serverCPU, "%.2f ×", gubernatorOverEcho/2.5, 128),
		beside("on one Redis, the CPU time of envoyproxy/ratelimit by 1.5", onRedis, serverCPU, "%.2f ×", envoyproxyOverEcho/1.5, 128),
		alone("100 descriptors in a call over gRPC, each", weirGRPC+", "+callersGroup(16, many)),
		alone("100 decisions in a call over HTTP, each", batchName),
	}
}

// envoys ask one server over gRPC.
type envoys struct {
	address, pid, redis  string
	callers, descriptors int
}

// measure asks for a window.
func (e *envoys) measure(ctx context.Context, o *measure.Options) (measure.Figures, error) {
	clients, end, err := dial(e.address)
	if err != nil {
		return nil, err
	}
	defer end()
	return asking(ctx, o, e.callers, e.descriptors, usage{e.pid, e.redis}, func(caller int) func(context.Context) error {
		client, calls, i := clients[caller%channels], e.calls(caller), 0
		return func(ctx context.Context) error {
			answer, err := client.ShouldRateLimit(ctx, calls[i%len(calls)])
			if i++; err != nil {
				return err
			}
			if answer.OverallCode != service.RateLimitResponse_OK || len(answer.Statuses) != e.descriptors || answer.Statuses[0].CurrentLimit == nil {
				return fmt.Errorf("answer %v, want %d admissions by a limit", answer, e.descriptors)
			}
			return nil
		}
	})
}

// dial returns a client of each channel. Calls wait until the server listens.
func dial(address string) (clients [channels]service.RateLimitServiceClient, end func(), err error) {
	var ends []func()
	end = func() {
		for _, hangUp := range ends {
			hangUp()
		}
	}
	for i := range clients {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
		if err != nil {
			end()
			return clients, nil, err
		}
		ends, clients[i] = append(ends, func() { _ = conn.Close() }), service.NewRateLimitServiceClient(conn)
	}
	return clients, end, nil
}

// calls makes the calls of a caller.
func (e *envoys) calls(caller int) (all []*service.RateLimitRequest) {
	drawn := workload.Uniform(keys, 64*e.descriptors, uint64(caller))
	for i := range 64 {
		call := &service.RateLimitRequest{Domain: "shop"}
		for j := range e.descriptors {
			call.Descriptors = append(call.Descriptors, &envoy.RateLimitDescriptor{
				Entries: []*envoy.RateLimitDescriptor_Entry{{Key: "user", Value: drawn.Key(i*e.descriptors + j)}},
			})
		}
		all = append(all, call)
	}
	return all
}

// asking lets callers ask for a window. of returns what a caller does again and again.
func asking(ctx context.Context, o *measure.Options, callers, decisions int, used usage, of func(caller int) func(context.Context) error) (measure.Figures, error) {
	for caller := range callers { // connections are there, and keys known
		if err := of(caller)(ctx); err != nil {
			return nil, err
		}
	}
	before, err := used.read()
	if err != nil {
		return nil, err
	}
	took, failed := make([]measure.Series, callers), make(chan error, callers)
	var all sync.WaitGroup
	start := time.Now()
	until := start.Add(o.Window)
	for caller := range callers {
		ask := of(caller)
		all.Go(func() {
			for began := time.Now(); began.Before(until); {
				if err := ask(ctx); err != nil {
					failed <- err
					return
				}
				now := time.Now()
				took[caller] = append(took[caller], float64(now.Sub(began).Microseconds()))
				began = now
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start).Seconds()
	after, err := used.read()
	if len(failed) > 0 {
		err = <-failed
	}
	if err != nil {
		return nil, err
	}
	times := measure.Series(slices.Concat(took...))
	slices.Sort(times)
	calls := float64(len(times))
	return measure.Figures{callsASec: calls / elapsed, serverCPU: (after - before) / calls / float64(decisions), median: times.Median(), p99: times[len(times)*99/100]}, nil
}

// echo answers each descriptor with the same status.
func echo() error {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("grpc on", on.Addr())
	g := grpc.NewServer()
	service.RegisterRateLimitServiceServer(g, echoer{})
	return g.Serve(on)
}

type echoer struct {
	service.UnimplementedRateLimitServiceServer
}

var (
	status = &service.RateLimitResponse_DescriptorStatus{
		Code: service.RateLimitResponse_OK, LimitRemaining: 999_999, DurationUntilReset: &durationpb.Duration{Seconds: 1},
		CurrentLimit: &service.RateLimitResponse_RateLimit{Name: "user", RequestsPerUnit: 1_000_000, Unit: service.RateLimitResponse_RateLimit_SECOND},
	}
	statuses = slices.Repeat([]*service.RateLimitResponse_DescriptorStatus{status}, many)
	answers  = map[int]*service.RateLimitResponse{
		1:    {OverallCode: service.RateLimitResponse_OK, Statuses: statuses[:1]},
		many: {OverallCode: service.RateLimitResponse_OK, Statuses: statuses},
	}
)

func (echoer) ShouldRateLimit(_ context.Context, r *service.RateLimitRequest) (*service.RateLimitResponse, error) {
	return answers[len(r.Descriptors)], nil
}
