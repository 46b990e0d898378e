package serve

import (
	"context"
	"os"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
)

// leavesVariable names a key whose decisions take until the caller leaves, in daemons of tests.
const leavesVariable = "TEST_OF_WEIR_LEAVES"

// Daemons of the tests decide below the functions that `make more` asks for.
func init() {
	wrap = layertest.Around
	if key := os.Getenv(leavesVariable); key != "" {
		wrap = func(e weir.Engine) weir.Engine {
			return weir.Wrap(layertest.Around(e), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
				requests := call.Requests
				if call.Each != nil {
					requests = call.Each.Calls[0].Requests
				}
				if end := ctx.Done(); end != nil && len(requests) > 0 && requests[0].Key == key {
					<-end
				}
				return next(ctx, call)
			})
		}
	}
}
