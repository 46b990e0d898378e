package redislimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/redislimit"
)

// The promises of waiting, in processes on a real server.
func TestWaitingOnRedisKeepsItsPromisesInRandomSchedules(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for seed := range randtest.Seeds(t, 4, 2) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprint("seed", seed) // the schedules share the server
			open := func() *redislimit.Engine { return newEngine(t, dial(t, server), redislimit.Options{Prefix: prefix}) }
			waittest.Schedule(t, seed, waittest.World{
				Connect:   func(n waittest.Network) weir.Engine { return n.Around(open()) },
				Sees:      open(),
				Processes: 5,
			})
		})
	}
}

// Calls that can never be admitted cost other callers nothing. Both crowds of a limit run at the same time, so that a busy machine
// delays both.
func TestHopelessCallsOnRedisCostOtherCallersNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, limit := range waittest.Limits {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprint("hopeless", i)
			waittest.Hopeless(t, randtest.Seed(t)+uint64(i), waittest.World{
				Connect: func(n waittest.Network) weir.Engine {
					return n.Around(newEngine(t, dial(t, server), redislimit.Options{Prefix: prefix}))
				},
			}, limit, 5*time.Second, 0.5, 60) // virtual time shows 2 %
		})
	}
}
