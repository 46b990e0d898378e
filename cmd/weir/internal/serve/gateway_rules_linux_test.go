package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
)

// configurations reads the rules that Envoy Gateway's own tests expect its translator to make. They differ in their domains
// here, so that none finds the counts of another.
func configurations(t *testing.T, module string) map[string][]*pb.RateLimitConfig {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(module, "internal/xds/translator/testdata/out/ratelimit-config/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]*pb.RateLimitConfig{}
	for _, file := range files {
		if strings.HasSuffix(file, ".routes.yaml") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var fields any
			if err := yaml.Unmarshal([]byte(document), &fields); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			c := &pb.RateLimitConfig{}
			if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, c); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			c.Name += fmt.Sprintf("-%d", len(all))
			c.Domain += fmt.Sprintf("-%d", len(all))
			all[filepath.Base(file)] = append(all[filepath.Base(file)], c)
		}
	}
	if len(all) != 26 {
		t.Fatalf("%s has %d configurations, want 26", module, len(all))
	}
	return all
}

// startOriginal starts envoyproxy/ratelimit on a Redis of its own.
func startOriginal(t *testing.T, program, plane string) rls.RateLimitServiceClient {
	t.Helper()
	redis := redistest.Start(t)
	port := testprocess.FreePort(t)
	cmd := exec.Command(program)
	cmd.Env = []string{"DISABLE_STATS=true", "LOG_LEVEL=error", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr, "LIMIT_RESPONSE_HEADERS_ENABLED=true",
		fmt.Sprintf("PORT=%d", testprocess.FreePort(t)), fmt.Sprintf("DEBUG_PORT=%d", testprocess.FreePort(t)), fmt.Sprintf("GRPC_PORT=%d", port),
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=" + plane, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit"}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return rls.NewRateLimitServiceClient(conn)
}

// entriesOf draws entries that lead somewhere in a configuration, mostly to a limit.
func entriesOf(random *rand.Rand, list []*pb.RateLimitDescriptor) (entries []*ratelimit.RateLimitDescriptor_Entry) {
	for len(list) > 0 && random.IntN(20) > 0 {
		d := list[random.IntN(len(list))]
		e := &ratelimit.RateLimitDescriptor_Entry{Key: d.Key, Value: d.Value}
		if d.Value == "" {
			e.Value = fmt.Sprintf("value-%d", random.IntN(3))
		}
		if random.IntN(40) == 0 {
			e.Value = "another"
		}
		entries, list = append(entries, e), d.Descriptors
	}
	if entries == nil {
		entries = append(entries, &ratelimit.RateLimitDescriptor_Entry{Key: "none", Value: "none"})
	}
	return entries
}

func callOf(random *rand.Rand, configs []*pb.RateLimitConfig) *rls.RateLimitRequest {
	c := configs[random.IntN(len(configs))]
	call := &rls.RateLimitRequest{Domain: c.Domain, HitsAddend: uint32(random.IntN(3))}
	for range 1 + random.IntN(3) {
		d := &ratelimit.RateLimitDescriptor{Entries: entriesOf(random, c.Descriptors)}
		if random.IntN(8) == 0 {
			d.HitsAddend = wrapperspb.UInt64(uint64(random.IntN(4)))
		}
		call.Descriptors = append(call.Descriptors, d)
	}
	return call
}

// beginOfSecond waits while the second is about to end, so that two services answer in the same window.
func beginOfSecond() {
	if rest := time.Until(time.Now().Truncate(time.Second).Add(time.Second)); rest < 50*time.Millisecond {
		time.Sleep(rest + time.Millisecond)
	}
}

// alike takes away what docs/reference/envoyproxy.md lists as a difference: what is left of a limit above 10^9.
func alike(a *rls.RateLimitResponse) *rls.RateLimitResponse {
	large := false
	for _, s := range a.Statuses {
		if s.CurrentLimit.GetRequestsPerUnit() > 1_000_000_000 {
			s.LimitRemaining, large = 0, true
		}
	}
	for _, field := range a.ResponseHeadersToAdd {
		if large && field.Key == "RateLimit-Remaining" && len(field.Value) > 8 {
			field.Value = "much"
		}
	}
	return a
}

// The rules are those that Envoy Gateway's own tests expect of it, pushed to the real envoyproxy/ratelimit and to the daemon. make
// envoy-gateway-rules brings both.
func TestConfigurationsOfEnvoyGatewayAreAnsweredAsByTheOriginal(t *testing.T) {
	module, program := os.Getenv("WEIR_ENVOY_GATEWAY"), os.Getenv("WEIR_RATELIMIT")
	if module == "" || program == "" {
		t.Skip("it needs 300 MB of modules: make envoy-gateway-rules")
	}
	random, plane := randtest.New(randtest.Seed(t)), xdstest.Start(t, "envoy-ratelimit")
	original := startOriginal(t, program, plane.Addr)
	d := startPushed(t, plane.Addr, []string{"LIMIT_RESPONSE_HEADERS_ENABLED=true"})
	version := 0
	for name, configs := range configurations(t, module) {
		version++
		plane.Push(fmt.Sprint(version), configs...)
		plane.Accepted(fmt.Sprint(version))
		plane.Accepted(fmt.Sprint(version)) // by both
		if _, err := original.ShouldRateLimit(t.Context(), callOf(random, []*pb.RateLimitConfig{{Domain: "none"}})); err != nil {
			t.Fatal(err) // it has begun to answer
		}
		limits, over, differ := 0, 0, 0
		for range 1000 {
			call := callOf(random, configs)
			beginOfSecond()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			began := time.Now()
			want, err := original.ShouldRateLimit(ctx, call)
			got, failed := d.ShouldRateLimit(ctx, call)
			cancel()
			if err != nil || failed != nil {
				t.Fatalf("%s: %v: %v, and the original %v", name, call, failed, err)
			}
			if began.Unix() != time.Now().Unix() {
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // both begin a window
				continue
			}
			if want.Statuses[0].CurrentLimit != nil {
				limits++
			}
			if want.OverallCode == rls.RateLimitResponse_OVER_LIMIT {
				over++
			}
			if !proto.Equal(alike(got), alike(want)) {
				if differ++; differ <= 3 {
					t.Errorf("%s: %v\ngot  %v\nwant %v", name, call, got, want)
				}
			}
		}
		if limits < 100 || over == 0 && name != "global-shadow-mode.yaml" {
			t.Errorf("%s: %d calls found a limit and %d were over one; the comparison is worth little", name, limits, over)
		}
	}
}
