package redislimit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/limittest"
	"github.com/weirflow/weir/redislimit"
)

// dial returns a client of a server for the test.
func dial(t testing.TB, server *redistest.Server) rueidis.Client {
	t.Helper()
	return dialWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
}

// dialOnce returns a client with one connection. After its first answer since a restart it loses no further call;
// each of the four connections of [dial] loses one.
func dialOnce(t testing.TB, server *redistest.Server) rueidis.Client {
	t.Helper()
	return dialWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true, PipelineMultiplex: -1})
}

func dialWith(t testing.TB, option rueidis.ClientOption) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatalf("dialling %s: %v", option.InitAddress, err)
	}
	t.Cleanup(client.Close)
	return client
}

// newEngine returns an engine and fails the test if the options are invalid.
func newEngine(t testing.TB, client rueidis.Client, options redislimit.Options) *redislimit.Engine {
	t.Helper()
	options.OneSlot = options.OneSlot || namedOneSlot
	e, err := redislimit.New(client, options)
	if err != nil {
		t.Fatalf("New(%+v): %v", options, err)
	}
	return e
}

// apart numbers the engines that share nothing on one server.
var apart atomic.Int64

func fresh() string { return fmt.Sprint(testPrefix, apart.Add(1)) }

func newRule(t testing.TB, name string, limits ...weir.Limit) *weir.Rule {
	t.Helper()
	r, err := weir.NewRule(name, limits...)
	if err != nil {
		t.Fatalf("NewRule(%q, %v): %v", name, limits, err)
	}
	return r
}

func TestOneServerPassesTheSuiteAndItsVectors(t *testing.T) {
	t.Parallel()
	client, named := suiteServer(t)
	limittest.RunTicks(t, time.Microsecond, 1<<52, func(clock func() int64) weir.Engine {
		return newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock, Linger: time.Hour})
	})
	if named {
		t.Run("MemoryAndRedisGiveTheSameAnswers", func(t *testing.T) { duels(t, client, randtest.Rounds(t, 200, 50), false) })
		t.Run("WhatALaterLaneRefusesIsGivenBackExactly", func(t *testing.T) { refusedByALane(t, client) })
		t.Run("WhatALaterLaneHasNoRoomForIsGivenBackExactly", func(t *testing.T) { takersAcross(t, client) })
	}
}

func TestTheLargestDecisionIsOneCall(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	limits := make([]weir.Limit, 16)
	for i := range limits {
		limits[i] = weir.TokenBucket{Rate: weir.PerHour(int64(100 + i))}
	}
	rule := newRule(t, "r", limits...)
	requests := make([]weir.Request, weir.MaxRequests)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint("key ", i), 1)
	}
	for left := int64(99); left > 95; left-- {
		d, err := engine.Take(t.Context(), requests...)
		if err != nil || !d.Allowed || d.Remaining != left {
			t.Errorf("Take of %d requests of %d limits: got %+v and %v, want it allowed and %d remaining", len(requests), len(limits), d, err, left)
		}
	}
	if calls := engine.Stats().Calls; calls != 4 {
		t.Errorf("4 decisions took %d calls", calls)
	}
}

func TestCallersOfLargeDecisionsAtOnceAreAllAnswered(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.Per(1000, 300*24*time.Hour)}, weir.TokenBucket{Rate: weir.Per(1000, 300*24*time.Hour)})
	var all sync.WaitGroup
	for caller := range 64 {
		all.Go(func() {
			requests := make([]weir.Request, weir.MaxRequests)
			for i := range requests {
				requests[i] = rule.For(fmt.Sprint("key ", (i+caller)%200), 1)
			}
			for range 5 {
				admitted(t, engine, t.Context(), requests...)
			}
		})
	}
	all.Wait()
	spent := int64(0)
	for i := range 200 {
		d, err := engine.Peek(t.Context(), rule.For(fmt.Sprint("key ", i), 0))
		if err != nil {
			t.Fatalf("Peek: %v", err)
		}
		spent += 1000 - d.Remaining
	}
	if want := int64(64 * 5 * weir.MaxRequests); spent != want {
		t.Errorf("64 callers spent %d units, want %d", spent, want)
	}
}
