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
