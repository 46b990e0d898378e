package redislimit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/limittest"
	"github.com/weirflow/weir/redislimit"
)

func dialCluster(t testing.TB, cluster *redistest.Cluster) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs(), DisableCache: true})
	if err != nil {
		t.Fatalf("dialling the cluster: %v", err)
	}
	t.Cleanup(client.Close)
	if client.Mode() != rueidis.ClientModeCluster {
		t.Fatalf("the client of a cluster is in mode %q", client.Mode())
	}
	return client
}

func TestAClusterPassesTheSuiteAndItsVectors(t *testing.T) {
	t.Parallel()
	client := dialCluster(t, redistest.StartCluster(t))
	limittest.RunTicks(t, time.Microsecond, 1<<52, func(clock func() int64) weir.Engine {
		return newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock, Linger: time.Hour})
	})
	t.Run("MemoryAndRedisGiveTheSameAnswers", func(t *testing.T) { duels(t, client, randtest.Rounds(t, 200, 50), false) })
	t.Run("WhatALaterLaneRefusesIsGivenBackExactly", func(t *testing.T) { refusedByALane(t, client) })
	t.Run("DenyAllRefusesWithoutAWriteOnAnyLane", func(t *testing.T) { refusedWithoutAWrite(t, client, 2) })
	t.Run("WhatALaterLaneHasNoRoomForIsGivenBackExactly", func(t *testing.T) { takersAcross(t, client) })
}

// unreturned is how many units a test may miss after undos: those that a bucket regained between a take and its undo do
// not come back twice, and here they are a fraction of one.
func unreturned(l weir.Limit) int64 {
	if _, ok := l.(weir.TokenBucket); ok {
		return 1
	}
	return 0
}

// Many callers take two keys on different lanes, of which one is full. The other key loses nothing, and never admits
// too much.
func refusedByALane(t *testing.T, client rueidis.Client) {
	engine := newEngine(t, client, redislimit.Options{Prefix: fresh()})
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(100, 300*24*time.Hour)}, weir.FixedWindow{Rate: weir.Per(100, 300*24*time.Hour)},
		weir.SlidingWindow{Rate: weir.Per(100, 300*24*time.Hour)}, weir.SlidingLog{Rate: weir.PerDay(100)},
		weir.RateGate{Rate: weir.PerDay(100)}, weir.Cycle{Rate: weir.Per(100, 300*24*time.Hour)}, weir.Concurrency{Slots: 100, Lease: time.Hour},
	} {
		rule := newRule(t, limit.String(), limit)
		full := newRule(t, "full", weir.FixedWindow{Rate: weir.Per(1, 300*24*time.Hour)})
		var all sync.WaitGroup
		for caller := range 8 {
			all.Go(func() {
				for i := range 20 {
					key := fmt.Sprint("full ", caller, i)
					admitted(t, engine, context.Background(), full.For(key, 1))
					d, err := engine.Take(context.Background(), rule.For("k", 3), full.For(key, 1))
					if err != nil || d.Allowed || d.Rule != "full" {
						t.Errorf("%s: Take beside a full key: got %+v and %v, want it refused by full", rule, d, err)
					}
				}
			})
		}
		all.Wait()
		if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining > 100 || d.Remaining < 100-unreturned(limit) {
			t.Errorf("%s: after 160 refusals: got %+v and %v, want all 100 remaining", rule, d, err)
		}
	}
}

// A colocation is part of the place of a state, even without a cluster.
func TestPlaceIsPartOfTheKeyOnOneServerToo(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(5)})
	if _, err := engine.Take(t.Context(), rule.For("alice", 3).Colocate("acme")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		request weir.Request
		want    int64
	}{{rule.For("alice", 0).Colocate("acme"), 2}, {rule.For("alice", 0), 5}} {
		if d, err := engine.Peek(t.Context(), test.request); err != nil || d.Remaining != test.want {
			t.Errorf("colocated with %q: %d left, %v; want %d", test.request.Colocation, d.Remaining, err, test.want)
		}
	}
}
