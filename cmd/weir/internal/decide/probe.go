package decide

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// probe is a rule that no caller can name. Its rate is so high that many daemons can try one engine.
var probe, _ = weir.NewRule("~probe", weir.TokenBucket{Rate: weir.Rate{Count: 1000, Period: time.Second}, Burst: 1000})

// ProbeCall is the call that tries the engine of the daemon. It succeeds only if the engine can write, and the engine
// forgets it within a millisecond.
func ProbeCall() weir.Call {
	return weir.Call{Op: weir.OpTake, Requests: []weir.Request{probe.For("", 1)}}
}

// Probe makes an engine decide, and leaves nothing behind.
func Probe(ctx context.Context, engine weir.Engine) error {
	if _, err := engine.Do(ctx, ProbeCall()); err != nil {
		return err
	}
	return engine.Reset(ctx, probe.For("", 1))
}
