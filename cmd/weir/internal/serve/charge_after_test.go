package serve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
)

// toldRules charge the tokens of users after the work, and the requests of teams before it.
const toldRules = `rules:
  - {name: tokens, match: {descriptor.user: "*"}, key: descriptor.user, limit: quota 100/year, charge: after}
  - {name: requests, match: {descriptor.team: "*"}, key: descriptor.team, limit: sliding log 20/366d}
`

// envoyClient asks a daemon as Envoy does.
type envoyClient struct {
	ratelimit.RateLimitServiceClient
	admin string // the socket of the daemon's admin port
}

// startEnvoy starts a daemon with the rules, and a client of its gRPC port.
func startEnvoy(t *testing.T, args ...string) envoyClient {
	t.Helper()
	folder := t.TempDir()
	config, socket, admin := filepath.Join(folder, "weir.yaml"), filepath.Join(folder, "grpc.sock"), filepath.Join(folder, "admin.sock")
	if err := os.WriteFile(config, []byte(toldRules), 0o600); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, append([]string{"--http", "127.0.0.1:0", "--grpc", "unix:" + socket, "--admin", "unix:" + admin, "--config", config}, args...)...)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return envoyClient{ratelimit.NewRateLimitServiceClient(conn), admin}
}

// asksFor is a descriptor, and what it asks for.
type asksFor struct {
	entry, value string
	hits         int64 // -1: absent
	back         int64 // hits that come back instead
}

func (a asksFor) descriptor() *envoy.RateLimitDescriptor {
	d := &envoy.RateLimitDescriptor{Entries: []*envoy.RateLimitDescriptor_Entry{{Key: a.entry, Value: a.value}}}
	switch {
	case a.back > 0:
		d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(uint64(a.back)), true
	case a.hits >= 0:
		d.HitsAddend = wrapperspb.UInt64(uint64(a.hits))
	}
	return d
}

// ask reports whether a call is admitted.
func (c envoyClient) ask(ctx context.Context, parts ...asksFor) (bool, error) {
	r := &ratelimit.RateLimitRequest{Domain: "shop"}
	for _, p := range parts {
		r.Descriptors = append(r.Descriptors, p.descriptor())
	}
	a, err := c.ShouldRateLimit(ctx, r)
	return a.GetOverallCode() == ratelimit.RateLimitResponse_OK, err
}

// toldModel is what keys have used.
type toldModel struct{ used map[asksFor]int64 }

// ask counts a call, and reports whether it is admitted: what is told at once, and the rest all or nothing.
func (m *toldModel) ask(parts ...asksFor) bool {
	admitted, takes := true, map[asksFor]int64{}
	for _, p := range parts {
		capacity, key := int64(100), asksFor{p.entry, p.value, 0, 0}
		if p.entry == "team" {
			capacity = 20
		}
		switch {
		case p.back > 0:
			m.used[key] = max(0, m.used[key]-p.back)
		case p.hits > 1 && p.entry == "user":
			m.used[key] += min(p.hits, 10*capacity)
		default:
			cost := max(1, p.hits)
			if p.hits != 0 {
				takes[key] += cost
			}
			admitted = admitted && m.used[key]+max(cost, takes[key]) <= capacity
		}
	}
	for key, cost := range takes {
		if admitted {
			m.used[key] += cost
		}
	}
	return admitted
}

// drawCall returns descriptors of different keys, or one that gives back.
func drawCall(random *rand.Rand) (parts []asksFor) {
	value := fmt.Sprint(random.IntN(3))
	if random.IntN(8) == 0 {
		return []asksFor{{"user", value, 0, 1 + random.Int64N(150)}}
	}
	hits := func(most int64) int64 { return []int64{-1, 0, 1, 2, 2 + random.Int64N(most)}[random.IntN(5)] }
	parts = append(parts, asksFor{"user", value, hits(60), 0})
	if random.IntN(40) == 0 {
		parts[0].hits = 5000
	}
	if random.IntN(2) == 0 {
		parts = append(parts, asksFor{"team", fmt.Sprint(random.IntN(5)), hits(3), 0})
	}
	if random.IntN(3) == 0 {
		parts = append(parts, asksFor{"user", "other " + value, hits(60), 0})
	}
	return parts
}

// Envoy's calls under a rule that charges after the work are answered as a slow model says.
func TestToldCostsAreCountedAsASlowModelSays(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, args := range map[string][]string{"memory": nil, "Redis": {"--engine", "redis://" + server.Addr, "--deadline", "5s"},
		"Redis, prefetched": {"--engine", "redis://" + server.Addr + "/1", "--deadline", "5s", "--prefetch"}} {
		t.Run(name, func(t *testing.T) {
			client := startEnvoy(t, args...)
			random, model := rand.New(rand.NewPCG(randtest.Seed(t), 1)), toldModel{map[asksFor]int64{}}
			for i := range randtest.Rounds(t, 1500, 500) {
				parts := drawCall(random)
				got, err := client.ask(t.Context(), parts...)
				if want := model.ask(parts...); err != nil || got != want {
					t.Fatalf("call %d, %v: got %v, %v, want %v of %v", i, parts, got, err, want, model.used)
				}
			}
		})
	}
}

// Costs that are told while Redis is away count when it is back, whatever the policy and however it went.
func TestToldCostsCountAfterAnOutageOfRedis(t *testing.T) {
	for _, policy := range []string{"deny", "local", "allow"} {
		for _, how := range []string{"frozen", "killed"} {
			t.Run(policy+", "+how, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, "appendonly yes", "appendfsync always")
				client := startEnvoy(t, "--engine", "redis://"+server.Addr, "--on-failure", policy, "--peers", "1", "--deadline", "200ms")
				var all sync.WaitGroup
				tell := func(from, to int) {
					for i := from; i < to; i++ {
						all.Go(func() {
							if ok, err := client.ask(t.Context(), asksFor{"user", fmt.Sprint(i % 3), 40, 0}); err != nil || !ok {
								t.Errorf("a cost was refused: %v, %v", ok, err)
							}
						})
					}
				}
				tell(0, 9)
				all.Wait()
				if how == "frozen" {
					server.Stop()
				} else {
					server.Kill()
				}
				tell(0, 9)
				time.Sleep(700 * time.Millisecond)
				tell(0, 9)
				time.Sleep(300 * time.Millisecond)
				if how == "frozen" {
					server.Cont()
				} else {
					server.Restart()
				}
				all.Wait()
				for _, name := range []string{"weir_guard_away", "weir_guard_hanging", "weir_guard_owed_keys", "weir_guard_queued"} {
					awaitMetric(t, client.admin, name, "0") // until Redis has all
				}
				patient := startEnvoy(t, "--engine", "redis://"+server.Addr, "--deadline", "10s") // a policy answers nothing for it
				for i := range 3 {
					wantUsed(t, patient, fmt.Sprint(i), 9*40)
				}
			})
		}
	}
}

// wantUsed fails unless a user has used exactly some units: with all but the capacity back
// there is no room, and with one more there is.
func wantUsed(t *testing.T, client envoyClient, user string, want int64) {
	t.Helper()
	for _, step := range []struct {
		back int64
		room bool
	}{{want - 100, false}, {1, true}} {
		if _, err := client.ask(t.Context(), asksFor{"user", user, 0, step.back}); err != nil {
			t.Errorf("giving back: %v", err)
		}
		if got, err := client.ask(t.Context(), asksFor{"user", user, 0, 0}); err != nil || got != step.room {
			t.Errorf("user %s: room is %v, %v, want %v: the units used are not %d", user, got, err, step.room, want)
		}
	}
}
