package redislimit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/servers"
)

// wantAbsent fails unless a decision says that no server answered, and nothing was counted.
func wantAbsent(t *testing.T, err error) {
	t.Helper()
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Op != "take" || failed.Reason != Lost || failed.Counted != weir.CountedNo {
		t.Fatalf("Take while no server answers: %v, want an error of take with the reason lost, and nothing counted", err)
	}
}

func TestOpenConnectsLaterIfNoServerAnswers(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	engine := openFor(t, "redis://"+server.Addr, Options{ConnectLater: true})
	rule := mustRule(t, "r=token bucket 100/h and concurrency 5 lease 1m")
	_, err := engine.Reserve(t.Context(), rule.For("k", 1))
	wantAbsent(t, err)
	if _, err := engine.Warnings(t.Context()); err == nil {
		t.Error("Warnings while no server answers: want an error")
	}
	server.Restart()
	eventually(t, "the engine has connected", func() error {
		r, err := engine.Reserve(t.Context(), rule.For("k", 1))
		return errors.Join(err, r.Done(t.Context()))
	})
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("Warnings: %q, %v, want none", warnings, err)
	}
	engine.Close()
	if _, err := engine.Take(t.Context(), rule.For("k", 0)); err == nil {
		t.Error("Take after Close: want an error")
	}
}

// The engine did not know the cluster when its first call was made, which spans all lanes.
func TestAClusterThatIsConnectedLaterDecidesTheFirstCall(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	nowhere := redistest.Start(t)
	nowhere.Kill()
	engine := openFor(t, "redis-cluster://"+nowhere.Addr, Options{ConnectLater: true})
	rule := mustRule(t, "r=token bucket 100/h")
	requests, results := make([]weir.Request, 40), make([]weir.Result, 40)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint(i), 1)
	}
	if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, results[0].Err)
	option, _, err := ParseURL("redis-cluster://" + cluster.Nodes[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	engine.client.Dial = func() (rueidis.Client, error) { return servers.Connect(option) }
	eventually(t, "the engine has connected", func() error {
		if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
			return err
		}
		return results[0].Err
	})
	for i, r := range results {
		if r.Err != nil || r.Decision.Remaining != 99 {
			t.Errorf("decision %d of the first call: %+v, want 99 remaining", i, r)
		}
	}
	if d, err := engine.Take(t.Context(), requests[:9]...); err != nil || d.Remaining != 98 {
		t.Errorf("Take of nine keys: %+v, %v, want 98 remaining", d, err)
	}
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("Warnings: %q, %v, want none", warnings, err)
	}
}

// A server that refuses is not absent.
func TestOpenRefusesAWrongPasswordThoughItConnectsLater(t *testing.T) {
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "requirepass", "secret")
	_, err := Open("redis://:wrong@"+server.Addr, Options{ConnectLater: true})
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Op != "open" || failed.Reason != Denied {
		t.Errorf("Open with a wrong password: %v, want it denied", err)
	}
}
