package redislimit_test

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/otherwisetest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

func TestOtherwiseOnRedisIsTryReplaceTry(t *testing.T) {
	client := dial(t, redistest.Start(t))
	otherwisetest.Duel(t, randtest.Rounds(t, 80, 25), func(clock func() int64) weir.Engine {
		return newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock})
	})
}

func TestARepeatedCallWithOtherwiseIsPaidOnce(t *testing.T) {
	otherwisetest.PaidOnce(t, newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{}))
}

// The floor and the pool may be on different machines.
func TestOtherwiseOnAClusterIsTryReplaceTry(t *testing.T) {
	client := dialCluster(t, redistest.StartCluster(t))
	otherwisetest.DuelOnLanes(t, randtest.Rounds(t, 40, 16), func(clock func() int64) weir.Engine {
		return newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock})
	})
	otherwisetest.PaidOnce(t, newEngine(t, client, redislimit.Options{Prefix: fresh()}))
}
