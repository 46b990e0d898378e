// Package layertest puts functions around the engines of tests that only pass calls on. `make more` runs the
// tests of fronts, queues and the daemon so, because a layer must change nothing.
package layertest

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/weirflow/weir"
)

// Around returns the engine below as many functions as the environment variable WEIR_LAYERS says, without it the engine
// itself. With functions, no engine is a new memory engine, as it is for the fronts.
func Around(e weir.Engine) weir.Engine {
	layers := fromEnvironment()
	if e == nil && layers > 0 {
		e = weir.NewMemory(weir.MemoryOptions{})
	}
	return Put(e, layers)
}

// Put returns the engine below n functions that only pass calls on.
func Put(e weir.Engine, n int) weir.Engine {
	for range n {
		e = weir.Wrap(e, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) { return next(ctx, call) })
	}
	return e
}

func fromEnvironment() int {
	text := os.Getenv("WEIR_LAYERS")
	if text == "" {
		return 0
	}
	layers, err := strconv.Atoi(text)
	if err != nil || layers < 0 {
		panic(fmt.Sprintf("layertest: WEIR_LAYERS is %q, want a number of functions", text))
	}
	return layers
}
