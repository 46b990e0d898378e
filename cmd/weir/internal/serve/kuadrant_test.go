package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	reflected "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirflow/weir/cmd/weir/internal/kuadrantpb"
	"github.com/weirflow/weir/internal/redistest"
)

// gateway is a client of one daemon, as Kuadrant's gateways are.
type gateway struct {
	kuadrantpb.RateLimitServiceClient
	conn *grpc.ClientConn
	t    *testing.T
	kill func() // ends the daemon without a word
}

// startGateway starts a daemon whose users have 1000 tokens a year.
func startGateway(t *testing.T, args ...string) *gateway {
	t.Helper()
	folder := t.TempDir()
	file, socket := filepath.Join(folder, "weir.yaml"), filepath.Join(folder, "grpc")
	if err := os.WriteFile(file, []byte("rules: [{name: tokens, match: {descriptor.user: '*'}, key: descriptor.user, limit: fixed window 1000/366d}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := daemonCommand(t, append([]string{"--config", file, "--http", "127.0.0.1:0", "--grpc", "unix:" + socket, "--grpc-hold-time", "5m"}, args...)...)
	var log strings.Builder
	cmd.Stderr = &log
	killed := false
	t.Cleanup(func() {
		if killed {
			return
		}
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("weir serve ended with %v: %s", err, log.String())
		}
	})
	startAndFindURL(t, cmd)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &gateway{kuadrantpb.NewRateLimitServiceClient(conn), conn, t, func() {
		killed = true
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}}
}

func descriptorsOf(user string) []*envoy.RateLimitDescriptor {
	return []*envoy.RateLimitDescriptor{{Entries: []*envoy.RateLimitDescriptor_Entry{{Key: "user", Value: user}}}}
}

// reserve returns the id of a hold.
func (g *gateway) reserve(user string, amount uint64, ttl time.Duration) string {
	g.t.Helper()
	r, err := g.Reserve(g.t.Context(), &kuadrantpb.ReserveRequest{Domain: "models", Descriptors: descriptorsOf(user), Amount: amount, Ttl: durationpb.New(ttl)})
	if err != nil || r.Code != rls.RateLimitResponse_OK {
		g.t.Fatalf("Reserve of %d for %s: %v, %v", amount, user, r, err)
	}
	return r.ReservationId
}

// commit fails unless the hold stood as wanted.
func (g *gateway) commit(user, id string, actual uint64, want bool) {
	g.t.Helper()
	r, err := g.Commit(g.t.Context(), &kuadrantpb.CommitRequest{Domain: "models", Descriptors: descriptorsOf(user), ReservationId: id, ActualAmount: actual})
	if err != nil || r.ReservationReleased != want {
		g.t.Errorf("Commit of %d for %s: %v, %v, want %v", actual, user, r, err, want)
	}
}

// ask returns the tokens that a user has left.
func (g *gateway) ask(user string) (uint32, error) {
	r, err := g.CheckRateLimit(g.t.Context(), &rls.RateLimitRequest{Domain: "models", Descriptors: descriptorsOf(user)})
	if err != nil {
		return 0, err
	}
	return r.Statuses[0].LimitRemaining, nil
}

func (g *gateway) checkLeft(user string, want uint32) {
	g.t.Helper()
	if got, err := g.ask(user); err != nil || got != want {
		g.t.Errorf("%s has %d left (%v), want %d", user, got, err, want)
	}
}

// awaitLeft waits for a hold to come back, and for the engine.
func (g *gateway) awaitLeft(user string, want uint32) {
	g.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got, err := g.ask(user)
		if err == nil && got == want {
			return
		}
		if time.Since(began) > patience {
			g.t.Fatalf("%s has %d left after %v (%v), want %d", user, got, patience, err, want)
		}
	}
}

// The same on a daemon with its own memory, and on two daemons that share a Redis: whichever is asked, each cost counts once.
func TestHoldsOfKuadrantsGatewaysCountOnce(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			var args []string
			if shared {
				args = []string{"--engine", "redis://" + redistest.Start(t).Addr, "--deadline", "5s"}
			}
			one := startGateway(t, args...)
			two := one
			if shared {
				two = startGateway(t, args...)
			}
			checkHolds(t, one, two)
		})
	}
}

func checkHolds(t *testing.T, one, two *gateway) {
	id := one.reserve("ann", 400, 5*time.Minute)
	two.checkLeft("ann", 600)
	two.commit("ann", id, 100, true)
	for _, g := range []*gateway{one, two, one} { // whose answers were lost
		g.commit("ann", id, 100, false)
	}
	one.checkLeft("ann", 900)

	none := one.reserve("ann", 0, 5*time.Minute)
	two.checkLeft("ann", 900)
	two.commit("ann", none, 50, true)
	one.commit("ann", none, 50, false)
	two.checkLeft("ann", 850)

	lost := one.reserve("bob", 4000, time.Second) // at most a half
	two.awaitLeft("bob", 1000)
	two.commit("bob", lost, 300, false)
	one.commit("bob", lost, 300, false)
	two.checkLeft("bob", 700)

	two.commit("bob", "", 10, false)
	two.commit("bob", one.reserve("ann", 10, time.Second), 10, false) // of another user
	one.checkLeft("bob", 680)
	one.awaitLeft("ann", 850)

	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := one.Reserve(ctx, &kuadrantpb.ReserveRequest{Domain: "models", Descriptors: descriptorsOf("cay"), Amount: 100}); err == nil {
		t.Error("a client that has left got an answer")
	}
	two.awaitLeft("cay", 1000)
}

// A hold of a daemon that dies does not come back, and the other daemon still settles it.
func TestAHoldOfADaemonThatDiesStaysSpentUntilItsCommit(t *testing.T) {
	redis := redistest.StartWithClock(t)
	args := []string{"--engine", "redis://" + redis.Addr, "--deadline", "5s"}
	one, two := startGateway(t, args...), startGateway(t, args...)
	id, forgotten := one.reserve("ann", 400, time.Minute), one.reserve("bob", 400, 100*time.Millisecond)
	one.kill()
	two.commit("ann", id, 100, true)
	two.commit("ann", id, 100, false)
	two.checkLeft("ann", 900)
	two.awaitLeft("bob", 600)
	three := startGateway(t, args...)
	three.commit("bob", forgotten, 100, true)
	three.checkLeft("bob", 900)

	// The window of the hold ends: nothing comes back to the next one, and the cost counts there.
	late := two.reserve("ann", 500, 5*time.Minute)
	two.checkLeft("ann", 400)
	redis.SetClock(366 * 24 * time.Hour)
	three.checkLeft("ann", 1000)
	three.commit("ann", late, 300, true)
	two.commit("ann", late, 300, false)
	two.checkLeft("ann", 700)
}

// The policy refuses a Reserve while Redis is away. Costs of work that was done count when it is back, and holds come back.
func TestCostsThatAreToldWhileRedisIsAwayCount(t *testing.T) {
	redis := redistest.Start(t)
	g := startGateway(t, "--engine", "redis://"+redis.Addr+"?timeout=30s", "--deadline", "500ms", "--on-failure", "deny") // a busy machine must not look like an outage, nor lose a call
	id := g.reserve("ann", 400, 2*time.Second)                                                                            // it ends about when Redis is back
	g.checkLeft("ann", 600)
	redis.Stop()
	if r, err := g.Reserve(t.Context(), &kuadrantpb.ReserveRequest{Domain: "models", Descriptors: descriptorsOf("ann"), Amount: 1}); status.Code(err) != codes.Unavailable {
		t.Errorf("Reserve: %v, %v, want UNAVAILABLE", r, err)
	}
	g.commit("ann", id, 100, false)
	if r, err := g.Report(t.Context(), &rls.RateLimitRequest{Domain: "models", Descriptors: descriptorsOf("ann"), HitsAddend: 50}); err != nil {
		t.Errorf("Report: %v, %v", r, err)
	}
	redis.Cont()
	g.awaitLeft("ann", 850)
}

// A daemon that keeps its state settles holds of before its restart. Without it they are unknown, so their commits are reports.
func TestARestartedDaemonSettlesHoldsOfBeforeIfItKeepsItsState(t *testing.T) {
	for kept, want := range map[bool]uint32{true: 900, false: 800} {
		var args []string
		if kept {
			args = []string{"--state", filepath.Join(t.TempDir(), "state")}
		}
		id := ""
		t.Run("before", func(t *testing.T) { id = startGateway(t, args...).reserve("ann", 400, time.Minute) })
		g := startGateway(t, args...)
		g.commit("ann", id, 100, kept)
		g.commit("ann", id, 100, false)
		g.checkLeft("ann", want)
	}
}

func TestReflectionDescribesKuadrantsService(t *testing.T) {
	stream, err := reflected.NewServerReflectionClient(startGateway(t).conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&reflected.ServerReflectionRequest{MessageRequest: &reflected.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "kuadrant.service.ratelimit.v1.RateLimitService"}})
	answer, err := stream.Recv()
	if err != nil || len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) < 3 { // with its imports
		t.Errorf("got %v (%v), want the files of the service", answer, err)
	}
}
