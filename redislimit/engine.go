// Package redislimit is the weir.Engine that keeps its states in Redis or Valkey, so that a limit holds across
// processes and machines. Start with [Open] for a URL, [New] for a rueidis client, or [NewWith] for any other client:
//
//	engine, err := redislimit.Open("redis://127.0.0.1:6379", redislimit.Options{})
//	defer engine.Close()
//	d, err := engine.Take(ctx, login.For("alice", 1))
//
// A decision takes one round trip, for any number of limits and keys. Concurrent callers share round trips: a caller
// that comes during a call joins the next one. One script makes all decisions of a call in order, each on its own,
// exactly, by the server's clock. docs/develop/redis.md describes the flow of a decision,
// docs/reference/redis.md the effect of failures, and docs/howto/redis.md the permissions that the engine needs.
package redislimit

import (
	"sync"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/servers"
	"github.com/weirflow/weir/redislimit/internal/slots"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Engine is a weir.Engine over Redis. It is safe for concurrent use.
type Engine struct {
	client  *servers.Client
	calls   *calls.Lanes
	keeper  *slots.Keeper
	options Options
	keys    stored.Keys
	singles sync.Pool // see newSingle
	signals signals
}

var (
	_ weir.Engine        = (*Engine)(nil)
	_ weir.SlotKeeper    = (*Engine)(nil)
	_ enginekit.Renewer  = (*Engine)(nil)
	_ enginekit.Listener = (*Engine)(nil)
)

// New returns an engine over a rueidis client of one server, of Sentinel or of a cluster. The caller keeps ownership
// of the client. New makes no call.
func New(client rueidis.Client, options Options) (*Engine, error) {
	return newEngine(servers.Using(client), options)
}

// NewWith returns an engine over a client other than rueidis. The caller keeps ownership of the client. For a
// cluster, set [Options.OneSlot]. NewWith makes no call.
func NewWith(sender Sender, options Options) (*Engine, error) {
	return newEngine(servers.Through(sender), options)
}

// Open returns an engine for a URL, as [ParseURL] reads it. Options in the URL override those in options. Close
// closes its connections. If no server answers, that is an error, unless [Options.ConnectLater] is set.
func Open(url string, options Options) (*Engine, error) {
	client, said, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	return openWith(client, said.over(options))
}

func openWith(option rueidis.ClientOption, options Options) (*Engine, error) {
	c, err := servers.Open(option, options.ConnectLater)
	if err != nil {
		return nil, errorOf(opOpen, fault.Of(err))
	}
	e, err := newEngine(c, options)
	if err != nil {
		c.Close()
	}
	return e, err
}

func newEngine(c *servers.Client, options Options) (*Engine, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	options.OneSlot = options.OneSlot || c.Cluster()
	e := &Engine{client: c, options: options, keys: stored.NewKeys(options.Prefix, options.Lanes)}
	s := calls.Setup{
		Call: c.Call, Keys: e.keys, Lanes: options.Lanes, OneSlot: options.OneSlot, Shards: c.Cluster(), Batch: options.Batch, Flights: options.Flights,
		Clock: options.Clock, DenyNewServer: options.DenyNewServer, Linger: options.Linger, Logger: options.Logger,
		Stepped: func(sameServer func(lane int) bool) { e.keeper.RenewAll(sameServer) },
	}
	if options.Observe != nil {
		s.Observe = e.observe
	}
	e.calls = calls.NewLanes(s)
	e.keeper = slots.NewKeeper(e.calls)
	e.singles.New = newSingle
	e.signals.engine = e
	return e, nil
}

// Close closes the connections that Open made. Later and pending decisions fail; pending ones may have been counted.
// The slots of reservations are no longer renewed, and count as lost. Close does not close a client that was passed to
// New.
func (e *Engine) Close() {
	if !e.calls.Close() {
		return
	}
	e.keeper.Lose()
	e.signals.close()
	e.client.Close()
}
