package redislimit_test

import (
	"fmt"
	"testing"

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
