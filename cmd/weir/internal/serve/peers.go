package serve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/peers"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// count announces the daemon to the others on its engine, if that is Redis, and has local shares follow their number under
// --peers auto.
func (o *engineOptions) count(ctx context.Context, server sharedEngine, chosen *chosenEngine, guard *layer.GuardOptions, log *slog.Logger) error {
	chosen.peers = func() int { return max(guard.Peers, 1) }
	if _, redis := server.(*redislimit.Engine); !redis {
		return nil
	}
	c, err := peers.Open(o.where, log)
	if err != nil {
		return err
	}
	err = c.Announce(ctx)
	auto := o.layers.AutoPeers()
	switch {
	case auto && peers.Refused(err):
		c.Close()
		return cli.Fail(fmt.Errorf("serve: --peers auto: Redis does not count this daemon: %w", err),
			"allow the user of Redis the commands HSET, HGETALL and HDEL, or say how many daemons share the server: --peers 3")
	case auto && err != nil:
		log.Warn("the daemons on the engine are not counted yet: a local share is the whole limit until they are", "err", err)
	case err != nil:
		log.Info("the daemons on the engine are not counted yet", "err", err)
	}
	if auto {
		guard.PeersNow, chosen.peers = c.Peers, c.Peers
		log.Info("local shares follow the number of daemons on the engine", "peers", c.Peers())
	}
	c.Start()
	chosen.counter = c
	return nil
}

// leave tells the other daemons that this one goes.
func (e *chosenEngine) leave() {
	if e.counter != nil {
		e.counter.Close()
	}
}

// daemons returns how many there are, for metrics, or nil if the engine is not shared.
func (e *chosenEngine) daemons() func() (peers, seen int) {
	if e.guard == nil {
		return nil
	}
	return func() (int, int) {
		if e.counter == nil {
			return e.peers(), 0
		}
		return e.peers(), e.counter.Seen()
	}
}
